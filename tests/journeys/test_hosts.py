"""Hosts through their public door, `wakeful.hosts`: the page about them, its programs as printed, and a chat server
that is killed in the middle of a turn."""

import inspect
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kit.surfaces.doc_snippets import snippets
from wakeful.hosts import ConversationLoop
from wakeful.hosts.loop.options import NAMES

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "hosts.md"
EXAMPLES = ("host_loop", "host_policies", "host_package")


def started(folder: Path, program: str, *arguments: str) -> "subprocess.Popen[str]":
    """A program as a person runs it: a file in an empty folder."""
    (folder / "program.py").write_text(program)
    return subprocess.Popen(
        [sys.executable, "program.py", *arguments],
        cwd=folder,
        env={**os.environ, "WAKEFUL_HOME": str(folder / "home")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


# --- the page ---------------------------------------------------------------------------------------------------------


def printed() -> list[tuple[str, str]]:
    """Each program of the page, and what the page says that it prints."""
    found = re.findall(r"^```python\n(.*?)^```$.*?It prints:\n\n```\n(.*?)^```$", PAGE.read_text(), re.S | re.M)
    return [(program, output) for program, output in found]


@pytest.mark.parametrize("place", range(len(EXAMPLES)), ids=EXAMPLES)
def test_every_program_of_the_page_is_an_example_and_prints_what_the_page_says(place: int, tmp_path: Path) -> None:
    program, output = printed()[place]
    assert (ROOT / "examples" / f"{EXAMPLES[place]}.py").read_text() == program
    running = started(tmp_path, program)
    said, wrong = running.communicate(timeout=240)
    assert (running.returncode, said) == (0, output), wrong


def test_the_page_has_no_other_programs() -> None:
    programs = [each.text for each in snippets(PAGE) if each.kind == "python" and "asyncio.run(" in each.text]
    assert programs == [program for program, _ in printed()]
    assert len(programs) == len(EXAMPLES)


def table(heading: str) -> list[str]:
    """The first column of the table under these words."""
    rows = PAGE.read_text().partition(heading)[2].partition("\n|---")[2].split("\n\n")[0]
    return re.findall(r"^\| `(\w+)` \|", rows, re.M)


def test_the_options_table_names_every_option_and_no_other() -> None:
    assert sorted(table("| option |")) == sorted(NAMES)
    assert sorted(table("| parameter |")) == sorted(inspect.signature(ConversationLoop).parameters)


# --- chat -------------------------------------------------------------------------------------------------------------

SERVER = """
import asyncio, json, sys

from wakeful import Agent
from wakeful.hosts.chat import ClientBridge, ClientToolCall, answer_message, open_engine, return_to_turn
from wakeful.hosts.chat import workflow_registry

AGENT = Agent("assistant", "scripted:demo")
SCHEMA = {"type": "object", "properties": {"x": {"type": "integer"}}}
MANIFEST = [{"name": "ui_add_node", "description": "Adds a node.", "parameters": SCHEMA}]
MESSAGE = {
    "thread_id": "t1", "content": "Add it.", "provider": "scripted", "model": "adds.yaml",
    "chat_context": {"kind": "editor", "workflow_id": "wf"}, "user_id": "mallory",
}


def say(kind, **fields):
    print(json.dumps({"kind": kind, **fields}), flush=True)


async def main(turn_id=None):
    async with open_engine("chats.db") as engine:
        tasks = set()

        def asked(call: ClientToolCall):
            say("call", turn_id=call.turn_id, request_id=call.request_id, name=call.name, args=call.args)
            if turn_id is not None:  # the client of the first process is silent
                answer = {"type": "client_tool_result", "request_id": call.request_id, "ok": True, "result": "added"}
                tasks.add(asyncio.ensure_future(bridge.take(answer)))

        bridge = ClientBridge(engine, asked, MANIFEST)
        given = {"user_id": "ann", "send_message": lambda each: say(each.type), "bridge": bridge}
        given["registry"] = await workflow_registry(engine, AGENT)
        if turn_id is None:
            result = await answer_message(engine, AGENT, MESSAGE, **given)
        else:
            result = await return_to_turn(engine, AGENT, turn_id, **given)
        say("end", output=result.output, status=result.status)


asyncio.run(main(*sys.argv[1:]))
"""
SCRIPT = """
steps:
  - calls:
      - name: client/ui_add_node
        arguments: {x: 1}
  - text: It is there.
"""


def told(line: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(line)
    return found


def test_a_chat_server_that_is_killed_while_its_client_works_goes_on_in_another_process(tmp_path: Path) -> None:
    (tmp_path / "adds.yaml").write_text(SCRIPT)
    first = started(tmp_path, SERVER)
    assert first.stdout is not None
    call = next(each for each in map(told, first.stdout) if each["kind"] in ("call", "end"))
    assert (call["kind"], call["name"], call["args"]) == ("call", "ui_add_node", {"x": 1})
    first.send_signal(signal.SIGKILL)
    first.communicate()

    second = started(tmp_path, SERVER, str(call["turn_id"]))
    said, wrong = second.communicate(timeout=240)
    assert second.returncode == 0, wrong
    lines = [told(line) for line in said.splitlines()]
    (again,) = (each for each in lines if each["kind"] == "call")
    assert again == call, "the same request, under the same id"
    assert lines[-1] == {"kind": "end", "output": "It is there.", "status": "completed"}
    assert "turn_terminal" in {each["kind"] for each in lines}


def test_a_message_of_somebody_else_and_one_without_a_route_are_refused_at_the_door(tmp_path: Path) -> None:
    program = (
        SERVER.partition("async def main")[0]
        + """
async def main():
    async with open_engine("chats.db") as engine:
        async def said_by(user, **message):
            given = {"thread_id": "t1", "content": "Hello", "provider": "scripted", "model": "demo", **message}
            try:
                result = await answer_message(engine, AGENT, given, user_id=user, send_message=lambda each: None)
            except Exception as error:
                say("refused", by=type(error).__name__, code=getattr(error, "code", None))
            else:
                say("answered", status=result.status)

        await said_by("ann")
        await said_by("bob")
        await said_by("ann", media_generation={"mode": "video"})
        await said_by("ann", chat_context={"kind": "kitchen"})


asyncio.run(main())
"""
    )
    said, wrong = started(tmp_path, program).communicate(timeout=240)
    assert [told(line) for line in said.splitlines()] == [
        {"kind": "answered", "status": "completed"},
        {"kind": "refused", "by": "NotEntitled", "code": None},
        {"kind": "refused", "by": "InvalidValue", "code": "unsupported_route"},
        {"kind": "refused", "by": "InvalidValue", "code": "invalid_chat_context"},
    ], wrong
