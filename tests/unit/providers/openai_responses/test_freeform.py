"""Tools whose one text a model writes bare: offered with their grammar, and from there on a call like any other."""

import json
from pathlib import Path
from typing import Any

import pytest

from kit.wires.responses_server import ResponsesServer
from kit.wires.responses_wire import message, response, words
from wakeful import Agent, run
from wakeful.contracts.events import ToolStarted
from wakeful.providers.openai_responses import OpenAIResponses
from wakeful.store.memory import MemoryStore

PATCH = "--- a/notes.txt\n+++ b/notes.txt\n@@ -1 +1 @@\n-a\n+b\n"
NAME = "wakeful__apply_patch"
TELLS = response(message(words("Done.")), id="resp_2")


def bare(text: str = PATCH, **fields: Any) -> dict[str, Any]:
    """A call in the words of a freeform tool."""
    return {
        "id": "ctc_1",
        "type": "custom_tool_call",
        "status": "completed",
        "call_id": "call_1",
        "name": NAME,
        "input": text,
        **fields,
    }


def wrapped() -> dict[str, Any]:
    """The same call with JSON around it."""
    arguments = json.dumps({"patch": PATCH})
    return {"id": "fc_1", "type": "function_call", "status": "completed", "call_id": "call_1", "name": NAME} | {
        "arguments": arguments
    }


async def patched(root: Path, asks: dict[str, Any], *, stream: bool = True, **settings: Any) -> tuple[Any, Any]:
    (root / "notes.txt").write_text("a\n")
    server = ResponsesServer(response(asks), TELLS)
    model = OpenAIResponses("gpt-5.5", base_url="http://127.0.0.1/v1", api_key="k", client=server.client)
    agent = Agent(
        "editor", model, workspace=root, profile="shell_first", settings={"openai": settings, "stream": stream}
    )
    result = await run(agent, "change it", store=MemoryStore())
    return server, result


@pytest.mark.spec("HOL-REPO-04")
@pytest.mark.parametrize("stream", [True, False])
async def test_apply_patch_may_be_offered_as_a_freeform_tool_with_a_grammar(tmp_path: Path, stream: bool) -> None:
    server, result = await patched(tmp_path, bare(), stream=stream, freeform_tools=True)
    assert (result.status, (tmp_path / "notes.txt").read_text()) == ("completed", "b\n")
    first, second = server.bodies
    (offered,) = [tool for tool in first["tools"] if tool["name"] == NAME]
    assert (offered["type"], offered["format"]["type"], offered["format"]["syntax"]) == ("custom", "grammar", "lark")
    assert "start:" in offered["format"]["definition"] and offered["description"]
    assert {tool["type"] for tool in first["tools"] if tool["name"] != NAME} == {"function"}
    assert "freeform_tools" not in first
    # It goes back in the words it came in, and its result with it; what was sent before is still what is sent.
    made, answer = second["input"][-2:]
    assert (made["type"], made["call_id"], made["input"]) == ("custom_tool_call", "call_1", PATCH)
    assert (answer["type"], answer["call_id"]) == ("custom_tool_call_output", "call_1") and "M notes" in answer[
        "output"
    ]
    assert second["input"][: len(first["input"])] == first["input"] and second["tools"] == first["tools"]


async def test_it_is_a_function_where_nobody_asked_for_more(tmp_path: Path) -> None:
    """The inversion, and the default: no provider is sent a kind of tool that it may not have."""
    server, result = await patched(tmp_path, wrapped())
    assert result.status == "completed"
    assert {tool["type"] for tool in server.bodies[0]["tools"]} == {"function"}
    assert [entry["type"] for entry in server.bodies[1]["input"][-2:]] == ["function_call", "function_call_output"]


@pytest.mark.spec("HOL-REPO-06")
async def test_both_forms_bring_the_same_diff_to_one_engine(tmp_path: Path) -> None:
    seen = []
    for place, (asks, settings) in enumerate(((bare(), {"freeform_tools": True}), (wrapped(), {}))):
        root = tmp_path / str(place)
        root.mkdir()
        _, result = await patched(root, asks, **settings)
        (call,) = result.calls()
        (started,) = [e.fact.event for e in result.facts() if isinstance(e.fact.event, ToolStarted)]
        seen.append((call.tool, call.arguments, call.result, started.args_sha256, (root / "notes.txt").read_bytes()))
    assert seen[0] == seen[1] and seen[0][:3] == ("wakeful/apply_patch", {"patch": PATCH}, "M notes.txt")
    # What is no diff is refused by that engine, whichever way it came; no grammar is trusted with it.
    refusals = []
    for place, (asks, settings) in enumerate(
        ((bare("no diff"), {"freeform_tools": True}), ({**wrapped(), "arguments": '{"patch":"no diff"}'}, {})), start=2
    ):
        root = tmp_path / str(place)
        root.mkdir()
        _, result = await patched(root, asks, **settings)
        refusals.append(result.calls()[0].error)
    assert refusals[0] == refusals[1] and refusals[0]


async def test_a_bare_call_that_was_cut_off_is_no_call(tmp_path: Path) -> None:
    _, result = await patched(tmp_path, bare(PATCH[:20], status="incomplete"), freeform_tools=True)
    (call,) = result.calls()
    assert call.status == "error" and (tmp_path / "notes.txt").read_text() == "a\n"


async def test_with_a_field_beside_the_text_it_is_a_function(tmp_path: Path) -> None:
    """A bare text has no place for another field."""
    (tmp_path / "notes.txt").write_text("a\n")
    server = ResponsesServer(TELLS)
    model = OpenAIResponses("gpt-5.5", base_url="http://127.0.0.1/v1", api_key="k", client=server.client)
    agent = Agent(
        "editor",
        model,
        workspace=tmp_path,
        profile="shell_first",
        settings={"openai": {"freeform_tools": True}},
        injected_tool_args={"why": "Why you do this."},
    )
    await run(agent, "change it", store=MemoryStore())
    assert {tool["type"] for tool in server.bodies[0]["tools"]} == {"function"}
