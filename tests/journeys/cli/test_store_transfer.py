"""`wakeful store export` and `import`: logs go from store to store, and nothing that was changed on the way gets in."""

import json
from pathlib import Path

import pytest

from kit.surfaces.command_line import Wakeful
from wakeful import Agent, Retention, open_store, run_sync, tool
from wakeful.contracts.events import ContextResolved
from wakeful.testing import scripted

LONG = "a line of a log\n" * 8_000


@tool(effect="pure")
def look() -> str:
    """A long look."""
    return LONG


@pytest.fixture
def turn(wakeful: Wakeful) -> str:
    agent = Agent("shop", scripted([{"calls": [{"name": "look", "arguments": {}}]}, "done"]), tools=[look])
    run_sync(Agent("calc", scripted(["two"])), "1 + 1?", store="runs.db", thread="today")
    return run_sync(agent, "look", store="runs.db", thread="chat", key="ticket-1").turn_id


def test_a_log_goes_to_another_store_with_everything_that_follows_from_it(wakeful: Wakeful, turn: str) -> None:
    made = wakeful("store", "export", "logs.jsonl", "--store", "runs.db", "--json")
    report = json.loads(made.out)
    assert (made.code, report["agents"]) == (0, ["calc", "shop"])
    assert Path("logs.jsonl").stat().st_mode & 0o077 == 0
    taken = wakeful("store", "import", "logs.jsonl", "--store", "other.db")
    assert taken.code == 0
    assert taken.out.startswith("2 logs taken in from logs.jsonl: ")
    one, other = open_store("runs.db"), open_store("other.db")
    assert (one.turns(), one.messages("chat"), one.cost()) == (other.turns(), other.messages("chat"), other.cost())
    assert [event.payload for event in one.events(turn)] == [event.payload for event in other.events(turn)]
    (artifact,) = other.artifacts(turn)
    assert other.artifact(artifact.artifact_id).text == LONG
    assert other.verify().damage == []
    assert other.replay(turn).identical
    agent = Agent("shop", scripted(["never asked"]), tools=[look])
    again = run_sync(agent, "look", store="other.db", thread="chat", key="ticket-1")
    assert (again.turn_id, again.output) == (turn, "done")


def test_one_agent_alone_and_a_name_that_is_not_there(wakeful: Wakeful, turn: str) -> None:
    made = wakeful("store", "export", "calc.jsonl", "--agent", "calc", "--store", "runs.db")
    assert made.out.startswith("1 log written to calc.jsonl")
    wrong = wakeful("store", "export", "x.jsonl", "--agent", "clac", "--store", "runs.db")
    assert wrong.code != 0
    assert "there is no log of an agent 'clac'" in wrong.err
    assert not Path("x.jsonl").exists()
    twice = wakeful("store", "export", "calc.jsonl", "--store", "runs.db")
    assert "is there already" in twice.err


@pytest.mark.parametrize("change", ["body", "missing row", "cut off", "content", "order", "other file", "known agent"])
def test_a_file_that_does_not_verify_is_refused_and_nothing_is_written(
    wakeful: Wakeful, turn: str, change: str
) -> None:
    wakeful("store", "export", "logs.jsonl", "--store", "runs.db")
    lines = Path("logs.jsonl").read_text().splitlines()
    rows = [place for place, line in enumerate(lines) if '"seq"' in line[:8]]
    words = "is not what was written"
    match change:
        case "body":
            row = json.loads(lines[rows[-1]])
            lines[rows[-1]] = json.dumps(row | {"header": row["header"].replace("chat", "chap")})
        case "missing row":
            del lines[rows[2]]
        case "cut off":
            lines, words = lines[:-1], "is cut off"
        case "content":
            place = next(place for place, line in enumerate(lines) if line.startswith('{"blob"'))
            lines[place], words = lines[place].replace('"data":"', '"data":"AAAA'), "does not match its hash"
        case "order":
            lines[rows[0]], lines[rows[1]] = lines[rows[1]], lines[rows[0]]
        case "other file":
            lines, words = ['{"format":"something"}'], "there is no 'version'"
        case "known agent":
            words = "all that changed.jsonl holds is in runs.db already"
    Path("changed.jsonl").write_text("\n".join(lines) + "\n")
    store = "runs.db" if change == "known agent" else "other.db"
    before = len(open_store("runs.db").turns())
    refused = wakeful("store", "import", "changed.jsonl", "--store", store)
    assert refused.code != 0
    assert words in refused.err
    assert len(open_store(store).turns()) == (before if change == "known agent" else 0)
    assert open_store(store).verify().agents == (2 if change == "known agent" else 0)


def test_an_import_that_was_cut_off_is_completed_by_the_same_line(wakeful: Wakeful, turn: str) -> None:
    """Each log is a transaction of its own: a kill between two of them leaves the first."""
    wakeful("store", "export", "calc.jsonl", "--agent", "calc", "--store", "runs.db")
    wakeful("store", "export", "logs.jsonl", "--store", "runs.db")
    wakeful("store", "import", "calc.jsonl", "--store", "other.db")
    run_sync(Agent("calc", scripted(["four"])), "2 + 2?", store="other.db", thread="today")  # it went on meanwhile
    taken = wakeful("store", "import", "logs.jsonl", "--store", "other.db")
    assert (taken.code, taken.out.startswith("1 log taken in from logs.jsonl: ")) == (0, True)
    other = open_store("other.db")
    assert (len(other.turns(agent="calc")), other.verify().damage) == (2, [])
    assert other.replay(turn).identical


def test_another_log_of_an_agent_that_is_there_is_refused_with_its_whole_file(wakeful: Wakeful, turn: str) -> None:
    wakeful("store", "export", "logs.jsonl", "--store", "runs.db")
    run_sync(Agent("shop", scripted(["three"])), "1 + 2?", store="other.db", thread="today")
    refused = wakeful("store", "import", "logs.jsonl", "--store", "other.db")
    assert refused.code != 0
    assert "another log of agent shop is in other.db already: nothing was imported" in refused.err
    assert [each.agent for each in open_store("other.db").turns()] == ["shop"]


def test_expired_events_and_cut_logs_go_along(wakeful: Wakeful, turn: str) -> None:
    run_sync(Agent("lone", scripted(["two"])), "1 + 1?", store="runs.db")
    aged = open_store("runs.db").compact(retention=Retention(turns=1e-12, temporary_agents=1e-12))
    assert (aged.streams, aged.turns) == (1, 3)
    assert wakeful("store", "export", "logs.jsonl", "--store", "runs.db").code == 0
    assert wakeful("store", "import", "logs.jsonl", "--store", "other.db").code == 0
    other = open_store("other.db")
    assert other.verify().damage == []
    assert other.replay(turn).expired > 0
    assert other.cost() == open_store("runs.db").cost()
    assert ContextResolved.kind in [event.type for event in other.events(turn)]
