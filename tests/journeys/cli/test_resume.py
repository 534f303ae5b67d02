"""`wakeful resume`: a killed run goes on with what the store knows and the code that is supplied."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kit.surfaces.command_line import Wakeful
from wakeful.surfaces.cli.screen import short

REFUND = ("run", "Refund A17.", "--model", "scripted:refund.yaml", "--tools", "shop:both")
KILLED = -9


def turn_of(wakeful: Wakeful) -> str:
    listed = json.loads(wakeful("resume", "--list", "--json").out)
    assert len(listed) == 1
    return str(listed[0]["turn_id"])


def kinds(wakeful: Wakeful, turn: str) -> list[str]:
    return [json.loads(line)["type"] for line in wakeful("events", turn, "--json").out.splitlines()]


@pytest.mark.journey("resume")
def test_a_killed_run_is_listed_and_goes_on_with_its_tools(process: Wakeful, wakeful: Wakeful) -> None:
    assert process(*REFUND, crash=True).code == KILLED
    turn = turn_of(wakeful)
    listed = wakeful("resume", "--list")
    assert short(turn) in listed.out and "cut off" in listed.out, "nobody runs it any more"
    assert f"{short(turn)} (assistant) cut off" in wakeful("doctor").out
    assert f"continue: wakeful resume {short(turn)} --tools MODULE:" in listed.out
    done = wakeful("resume", "--tools", "shop:both", "1")
    assert (done.code, done.out) == (0, "Done \\x1b[31mred.\n"), "the first row of the list"
    assert wakeful("resume").err == "no unfinished turns\n"
    assert wakeful("resume", turn).out == "Done \\x1b[31mred.\n", "a finished turn is recalled"
    assert wakeful("replay", turn).code == 0


@pytest.mark.journey("resume --store")
def test_a_tool_that_is_not_supplied_is_named_with_the_line_to_type_and_nothing_changes(
    process: Wakeful, wakeful: Wakeful
) -> None:
    process(*REFUND, "--store", "runs.db", crash=True)
    turn = json.loads(wakeful("resume", "--list", "--json", "--store", "runs.db").out)[0]["turn_id"]
    before = wakeful("events", turn, "--json", "--store", "runs.db").out
    done = wakeful("resume", turn, "--tools", "shop:look_up", "--store", "runs.db")
    assert (done.code, done.out) == (3, "")
    assert f"turn {turn} of agent 'assistant' uses refund, and the code was not supplied" in done.err
    assert f"wakeful resume {short(turn)} --store runs.db --tools MODULE:refund" in done.err
    assert wakeful("events", turn, "--json", "--store", "runs.db").out == before


@pytest.mark.journey("resume --json")
def test_with_several_unfinished_turns_each_goes_on_that_can(process: Wakeful, wakeful: Wakeful) -> None:
    process(*REFUND, crash=True)
    process("run", "Ship A17.", "--model", "scripted:ship.yaml", "--tools", "shop:ship", crash=True)
    done = wakeful("resume", "--tools", "shop:ship", "--json")
    first, second = json.loads(done.out)
    assert done.code == 3
    assert (first["status"], second["status"]) == ("incomplete", "completed")
    assert "uses look_up, refund, and the code was not supplied" in done.err
    assert wakeful("resume", "--tools", "shop:both").code == 0


def test_an_agent_from_a_module_or_a_file_is_taken_for_its_turns(
    process: Wakeful, wakeful: Wakeful, folder: Path
) -> None:
    (folder / "filed.yaml").write_text("name: filed\nmodel: scripted:refund.yaml\ntools: [look_up, refund]\n")
    process("run", "x", "--agent", "filed.yaml", "--tools", "shop:both", crash=True)
    done = wakeful("resume", "--agent", "filed.yaml", "--tools", "shop:both")
    assert (done.code, done.out) == (0, "Done \\x1b[31mred.\n")


INLINE = """
import sys
from pydantic import BaseModel
from wakeful import Agent, run_sync
from wakeful.testing import scripted
from shop import refund

class Answer(BaseModel):
    cents: int

steps = [{"calls": [{"name": "refund", "arguments": {"order": "A17", "cents": 4200}}]}, '{"cents": 4200}']
typed = {"output_type": Answer} if sys.argv[1] == "typed" else {}
agent = Agent("inline", scripted(steps), tools=[refund], **typed)
run_sync(agent, "x", store="runs.db")
"""


@pytest.mark.parametrize(
    ("kind", "complaint"),
    [
        ("plain", "was begun with the model 'scripted:inline', which cannot be made from its name here"),
        ("typed", "has to answer with a type that only your program knows"),
    ],
)
def test_what_only_a_program_can_supply_is_said_and_needs_a_person(
    wakeful: Wakeful, folder: Path, kind: str, complaint: str
) -> None:
    (folder / "inline.py").write_text(INLINE)
    killed = subprocess.run([sys.executable, "inline.py", kind], cwd=folder, env={**os.environ, "CRASH": "1"})
    assert killed.returncode == KILLED
    done = wakeful("resume", "--store", "runs.db", "--tools", "shop:refund")
    assert done.code == 3
    assert complaint in done.err
    assert "resume it from your program" in done.err
    (folder / "rest.yaml").write_text("- unused\n- The rest.\n")
    other = wakeful("resume", "--store", "runs.db", "--tools", "shop:refund", "--model", "scripted:rest.yaml")
    assert (other.code, other.out) == ((0, "The rest.\n") if kind == "plain" else (3, ""))


def test_cancel_ends_a_turn_that_nobody_runs_when_it_is_taken_up(process: Wakeful, wakeful: Wakeful) -> None:
    process(*REFUND, crash=True)
    turn = turn_of(wakeful)
    asked = wakeful("cancel", turn)
    assert asked.code == 0
    assert f"No process runs it. To end it: wakeful resume {short(turn)}" in asked.out
    assert " --tools MODULE:look_up --tools MODULE:refund" in asked.out, "what is typed as it stands works"
    done = wakeful("resume", turn, "--tools", "shop:both")
    assert (done.code, done.out) == (1, "")
    assert "cancelled: you asked the turn to stop" in done.err
    assert kinds(wakeful, turn)[-1] == "turn.failed"
    assert wakeful("replay", turn).code == 0
    assert wakeful("cancel", turn).out == f"turn {short(turn)} has ended already: cancelled\n"


def test_a_paused_turn_rests_until_it_is_named_and_reads_what_was_said_to_it(
    process: Wakeful, wakeful: Wakeful
) -> None:
    process(*REFUND, crash=True)
    turn = turn_of(wakeful)
    rests, go_on = wakeful("pause", turn).out.splitlines()
    assert rests == f"turn {short(turn)} pauses as soon as its running calls have finished"
    assert go_on.startswith(f"to continue: wakeful resume {short(turn)} --tools MODULE:look_up")
    assert wakeful("pause", turn).out.splitlines() == [f"turn {short(turn)} was paused already", go_on]
    rested = wakeful("resume", "--tools", "shop:both")
    assert (rested.code, rested.out) == (3, "")
    assert "paused" in rested.err and f"wakeful resume {short(turn)}" in rested.err
    assert kinds(wakeful, turn)[-2:] == ["tool.result", "turn.suspended"], "what was under way is finished"
    said = wakeful("interject", turn, "Be quick.")
    assert said.code == 0 and f"is stored; turn {short(turn)} reads it with its next model request" in said.out
    done = wakeful("resume", turn, "--tools", "shop:both")
    assert (done.code, done.out) == (0, "Done \\x1b[31mred.\n")
    assert wakeful("replay", turn).code == 0
    late = wakeful("interject", turn, "Too late.")
    assert (late.code, late.out) == (2, "") and "is over (completed): nothing would read the message" in late.err
    assert wakeful("pause", turn).out == f"turn {short(turn)} has ended already: completed\n"
