"""`wakeful retry`: one failed turn, or all of them after a summary."""

import asyncio
import json
import shlex
from pathlib import Path

import pytest

from kit.surfaces.command_line import Wakeful
from wakeful import Agent, retry, run_sync, tool
from wakeful.surfaces.cli.screen import short
from wakeful.testing import scripted

SCRIPT = [
    {"calls": [{"name": "exec_command", "arguments": {"cmd": "echo one >> paid.txt"}}]},
    {"calls": [{"name": "exec_command", "arguments": {"cmd": "echo two >> paid.txt"}}]},
    "Both are paid.",
]
CLERK = "name: clerk\nmodel: scripted:pay.json\nmax_steps: 1\nworkspace: .\n"


@tool(effect="keyed")
def exec_command(cmd: str) -> str:
    """It only says so."""
    return cmd


@pytest.fixture
def pay(folder: Path, wakeful: Wakeful) -> tuple[str, ...]:
    (folder / "pay.json").write_text(json.dumps(SCRIPT))
    (folder / "clerk.yaml").write_text(CLERK)
    return ("run", "Pay both.", "--agent", "clerk.yaml", "--approve", "*")


def test_a_turn_that_reached_a_limit_names_the_line_that_goes_on_with_it(
    pay: tuple[str, ...], wakeful: Wakeful, folder: Path
) -> None:
    first = wakeful(*pay, "--key", "bill-7")
    assert first.code == 1
    line = next(line for line in first.err.splitlines() if line.startswith("to try it again: "))
    assert "--max-steps NUMBER" in line
    refused = wakeful("retry", "bill-7")
    assert refused.code == 2 and "would end at once as before" in refused.err and "--max-steps NUMBER" in refused.err
    typed = line.removeprefix("to try it again: wakeful ").replace("NUMBER", "9").split()
    done = wakeful(*typed)
    assert (done.code, done.out) == (0, "Both are paid.\n")
    assert (folder / "paid.txt").read_text() == "one\ntwo\n", "what was paid before is not paid again"
    assert wakeful("replay", "bill-7").code == 0
    again = wakeful("retry", "bill-7")
    assert again.code == 2 and "was completed, so there is nothing to try again" in again.err
    assert 'send it again: wakeful run "..."' in again.err, "an agent of single runs has no mailbox"


def test_a_turn_whose_code_is_not_here_stays_as_it_was_and_the_hint_names_the_line_that_tries_it_again(
    wakeful: Wakeful, folder: Path
) -> None:
    agent = Agent("scribe", scripted([*SCRIPT[:2], "Both are noted."]), tools=[exec_command], max_steps=1)
    first = run_sync(agent, "Note both.", store=folder / "runs.db", key="n")
    assert first.status == "incomplete"
    for _ in range(2):
        without = wakeful("retry", "n", "--max-steps", "9", "--store", "runs.db")
        assert without.code == 3 and "nothing was run; try it again from your program" in without.err
        line = f"wakeful retry {short(first.turn_id)} --max-steps 9 --store runs.db --tools MODULE:AGENT"
        assert line in without.err
    few = wakeful("retry", "n", "--store", "runs.db")
    assert few.code == 2 and "would end at once as before" in few.err, "what no code would help is said first"
    all_of_them = wakeful("retry", "--failed", "--max-steps", "9", "--yes", "--store", "runs.db")
    assert all_of_them.code == 3 and line in all_of_them.err
    assert wakeful("events", "n", "--store", "runs.db", "--type", "turn.retried").out == ""
    done = asyncio.run(retry(folder / "runs.db", first.turn_id, [agent], max_steps=9))
    assert done.output == "Both are noted."


def test_every_command_that_a_refusal_prints_names_the_store(
    pay: tuple[str, ...], wakeful: Wakeful, folder: Path
) -> None:
    there = ("--store", "other.db")
    turn = json.loads(wakeful(*pay, *there, "--thread", "a", "--json").out)["turn_id"]
    refused = wakeful("retry", turn, *there)
    line = next(line.strip() for line in refused.err.splitlines() if "wakeful retry" in line)
    typed = shlex.split(" ".join(refused.err.split()).partition("wakeful ")[2].replace("NUMBER", "9"))
    assert "--store" in typed, line
    wakeful(*pay, *there, "--thread", "a")
    gone_on = wakeful("retry", turn, "--max-steps", "9", *there)
    assert gone_on.code == 2 and gone_on.err.count("--store ") == 2, gone_on.err
    done = wakeful("retry", json.loads(wakeful(*pay, *there, "--thread", "b", "--json").out)["turn_id"], *typed[2:])
    assert done.code == 0, done.err
    done = wakeful("retry", "--failed", *there)
    assert "wakeful retry TURN --message --store other.db" in " ".join(done.out.split())
    assert "wakeful retry TURN --store other.db" in wakeful("retry", *there).err


def test_all_failed_turns_are_tried_again_after_a_summary(
    pay: tuple[str, ...], wakeful: Wakeful, process: Wakeful
) -> None:
    for thread in ("a", "b", "b"):
        assert wakeful(*pay, "--thread", thread).code == 1
    told = wakeful("retry", "--failed")
    assert told.code == 0 and "To try them again, give more: --max-steps" in " ".join(told.out.split())
    asked = process("retry", "--failed", "--max-steps", "9", stdin="n\n")
    assert asked.code == 3 and "2 turns would be tried again" in asked.err
    assert "wakeful retry TURN --message" in " ".join(asked.out.split()), "one of the three is not the newest any more"
    none = wakeful("retry", "--failed", "--max-steps", "9", "--agent", "nobody", "--yes")
    assert none.out == "no turn of agent nobody has failed\n"
    none = wakeful("retry", "--failed", "--cause", "nosuch", "--since", "2026-11-01")
    assert none.out == "no turn has failed with the cause nosuch since 2026-11-01 00:00:00\n"
    assert wakeful("retry", "--failed", "--cause", "nosuch", "--json").out == "[]\n"
    unheard = process("retry", "--failed", "--max-steps", "9", stdin="")
    assert unheard.code == 3 and unheard.err.splitlines()[-1] == "Hint: add --yes"
    done = wakeful("retry", "--failed", "--max-steps", "9", "--cause", "max_steps", "--yes", "--json")
    assert [each["status"] for each in json.loads(done.out)] == ["completed", "completed"]
    left = wakeful("retry", "--failed", "--max-steps", "9", "--yes")
    assert left.code == 0 and "are tried again" not in left.out


def test_a_turn_that_its_thread_has_gone_on_from_names_a_message_to_send(
    pay: tuple[str, ...], wakeful: Wakeful
) -> None:
    turn = json.loads(wakeful(*pay, "--thread", "a", "--json").out)["turn_id"]
    wakeful(*pay, "--thread", "a")
    refused = wakeful("retry", turn, "--max-steps", "9")
    assert refused.code == 2 and "has gone on since" in refused.err
    message = wakeful("retry", turn, "--message").out
    assert message.startswith("Pay both.") and "do not make them again" in message and "echo one" in message


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([], "neither a turn nor --failed was given"),
        (["bill-7", "--failed"], "TURN and --failed were both given"),
        (["bill-7", "--cause", "cost"], "--since and --cause go with --failed"),
        (["--failed", "--message"], "--message goes with a turn"),
        (["--failed", "--since", "yesterday"], "is not a day"),
        (["nothing"], "nothing was run yet"),
    ],
)
def test_wrong_words_are_answered_with_the_right_ones(given: list[str], says: str, wakeful: Wakeful) -> None:
    done = wakeful("retry", *given)
    assert done.code != 0 and says in done.err
