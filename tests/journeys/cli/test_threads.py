"""`wakeful thread list` and `thread delete`."""

import json
from pathlib import Path

import pytest

from kit.surfaces.command_line import Wakeful
from wakeful import Agent, run_sync, tool
from wakeful.testing import scripted


@tool(effect="irreversible", approval=True)
def refund(order: str) -> str:
    """Give the money back."""
    return f"refunded {order}"


@pytest.fixture
def place(folder: Path) -> tuple[str, str]:
    """A store with a conversation that is over, and one that waits."""
    path = folder / "runs.db"
    run_sync(Agent("guide", scripted(["At nine."])), "When do you open?", store=path, thread="mia")
    calls = {"calls": [{"name": "refund", "arguments": {"order": "A17"}}]}
    run_sync(Agent("till", scripted([calls]), tools=[refund]), "Refund A17.", store=path, thread="tom")
    return "--store", str(path)


def test_threads_are_listed_of_all_agents_or_of_one(wakeful: Wakeful, place: tuple[str, str]) -> None:
    lines = wakeful("thread", "list", *place).out.splitlines()
    assert [line.split()[:3] for line in lines[1:]] == [["tom", "till", "1"], ["mia", "guide", "1"]]
    assert "Refund A17." in lines[1] and "suspended" in lines[1]
    (only,) = json.loads(wakeful("thread", "list", "guide", *place, "--json").out)
    assert (only["thread"], only["last_turn"]["prompt"]) == ("mia", "When do you open?")


def test_a_deleted_thread_is_not_listed_and_its_turns_say_so(wakeful: Wakeful, place: tuple[str, str]) -> None:
    done = wakeful("thread", "delete", "mia", *place)
    assert done.out.splitlines()[0] == "thread mia of guide is deleted, 1 turn"
    assert "wakeful store compact --store" in done.out
    assert "mia" not in wakeful("thread", "list", *place).out
    assert "(thread deleted)" in wakeful("events", *place).out
    turn = next(
        each for each in map(json.loads, wakeful("events", *place, "--json").out.splitlines()) if each["deleted_at"]
    )
    refused = wakeful("tree", turn["turn_id"], *place)
    assert refused.code == 2 and "its thread 'mia' was deleted" in refused.err
    assert wakeful("store", "compact", *place).code == 0
    assert "At nine." not in wakeful("events", turn["turn_id"], *place, "--json").out
    assert "event.expired" in wakeful("events", turn["turn_id"], *place).out


def test_what_is_open_is_named_with_the_commands_that_end_it(wakeful: Wakeful, place: tuple[str, str]) -> None:
    refused = wakeful("thread", "delete", "tom", *place)
    assert refused.code == 2
    assert "open turns: turn_" in refused.err and "pending approvals: appr_" in refused.err
    assert "wakeful cancel TURN" in refused.err and "wakeful reject ID" in refused.err
    missing = wakeful("thread", "delete", "tim", *place)
    assert missing.code == 2 and "did you mean tom?" in missing.err
