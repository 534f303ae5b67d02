"""`wakeful requests`: calls that a client runs, asked, answered and gone on with by different processes."""

import json
from pathlib import Path

import pytest

from kit.surfaces.command_line import Wakeful

TOOLS = '''
from wakeful import tool

@tool(external=True, timeout=3600)
def pick_file(folder: str) -> str:
    """Let the person pick a file."""
'''
SCRIPT = """
- calls: [{name: client/pick_file, arguments: {folder: /home}}]
- You picked it.
"""
RUN = ("run", "Pick one.", "--model", "scripted:pick.yaml", "--tools", "picker:pick_file")


@pytest.fixture(autouse=True)
def picker(folder: Path) -> None:
    (folder / "picker.py").write_text(TOOLS)
    (folder / "pick.yaml").write_text(SCRIPT)


def asked(wakeful: Wakeful) -> str:
    done = wakeful(*RUN)
    assert done.code == 3
    assert 'client/pick_file(folder="/home")' in done.err
    assert "wakeful requests submit" in done.err
    (request,) = json.loads(wakeful("requests", "--json").out)
    assert (request["tool"], request["arguments"]) == ("client/pick_file", {"folder": "/home"})
    return str(request["request_id"])


def test_three_processes_ask_answer_and_go_on(process: Wakeful) -> None:
    """The one that goes on needs none of the tool's code: a client has it."""
    name = asked(process)
    short = name.removeprefix("runtime-tool-")[:12]
    assert short in process("requests").out
    shown = process("requests", "show", short).out
    assert shown.startswith(f"{name}\nstatus      runtime_tool_pending\n") and '{"folder": "/home"}' in shown
    done = process("requests", "submit", short, '{"file": "a.txt"}')
    assert done.code == 0 and f'{short} (client/pick_file) runtime_tool_completed: {{"file": "a.txt"}}' in done.out
    turn = done.out.split("wakeful resume ")[1].split()[0]
    went_on = process("resume", turn)
    assert (went_on.code, went_on.out) == (0, "You picked it.\n")
    assert process("replay", turn).code == 0


@pytest.mark.parametrize(("command", "status"), [("timeout", "timed_out"), ("cancel", "cancelled")])
def test_a_request_that_is_given_up_fails_its_call_and_whoever_comes_later_is_told(
    wakeful: Wakeful, command: str, status: str
) -> None:
    name = asked(wakeful)
    assert wakeful("requests", command, name).code == 0
    again = wakeful("requests", "submit", name, "1")
    assert again.code == 1
    assert "the request had ended before" in again.err
    assert wakeful("requests").out == "no pending requests\n"
    went_on = wakeful("resume", "--json")
    (result,) = json.loads(went_on.out)
    assert [call["result"]["metadata"]["status"] for call in result["tool_execution_results"]] == [status]


def test_a_failure_of_the_client_is_said_with_error(wakeful: Wakeful) -> None:
    name = asked(wakeful)
    done = wakeful("requests", "submit", name, "--error", "the window was closed")
    assert "runtime_tool_completed: the window was closed" in done.out


def test_what_cannot_be_submitted_is_refused_with_what_to_type(wakeful: Wakeful) -> None:
    name = asked(wakeful)
    no_json = wakeful("requests", "submit", name, "a.txt")
    assert (no_json.code, "quote a text" in no_json.err) == (2, True)
    neither = wakeful("requests", "submit", name)
    assert (neither.code, "submit needs a result as JSON or --error TEXT" in neither.err) == (2, True)
    unknown = wakeful("requests", "show", "nope")
    assert (unknown.code, "there is no request 'nope'" in unknown.err) == (2, True)
