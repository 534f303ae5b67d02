"""A client's manifest: proxies for what it can do in an editor, and nothing anywhere else."""

from pathlib import Path
from typing import Any

import pytest

from kit.runs.engine_runs import calls, kinds, of_kind
from wakeful import Agent, pending_requests, resume, run, submit_result
from wakeful.contracts.events import RuntimeToolRequested, ToolFailed, ToolResult
from wakeful.contracts.policies import GatePolicy
from wakeful.decisions.policy.permissions import default_policy
from wakeful.hosts.chat.client_manifest import ClientManifest
from wakeful.providers.scripted import ScriptedModel

SCHEMA = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
ADD = {"name": "ui_add_node", "description": "Adds a node.", "parameters": SCHEMA}
PASTE = {"name": "ui_paste", "description": "Pastes.", "parameters": {}}


def agent(context: Any, *steps: Any, entries: Any = (ADD, PASTE)) -> Agent[None, str]:
    policy = GatePolicy(tools=default_policy(context))
    played = list(steps) or [calls(("client/ui_add_node", {"x": 1})), "done"]
    return Agent("editor", ScriptedModel(played), tools=[ClientManifest(list(entries))], policy=policy)


@pytest.mark.spec("LOOP-BRIDGE-03")
async def test_an_entry_that_is_not_fit_is_left_out_and_named_and_the_others_stay() -> None:
    bad: list[Any] = [
        {**ADD, "name": "add_node"},
        {**ADD, "name": "ui_Add"},
        {**ADD, "name": "ui_"},
        {**ADD, "name": "ui_undo"},
        {**ADD, "name": "ui_blank", "description": " "},
        {**ADD, "name": "ui_nothing", "parameters": None},
        {**ADD, "name": "ui_broken", "parameters": {"type": "no such type"}},
        {**ADD, "name": "ui_more", "effect": "pure"},
        {"description": "nameless", "parameters": {}},
        "ui_text",
        ADD,
    ]
    manifest = ClientManifest([ADD, *bad, PASTE], server_tools=["wakeful/ui_undo"])
    offer = await manifest.offer()
    assert [tool.name for tool in offer.tools] == ["client/ui_add_node", "client/ui_paste"]
    assert [tool.declaration.description for tool in offer.tools] == ["Adds a node.", "Pastes."]
    assert offer.tools[0].declaration.input_schema == SCHEMA
    assert [each.name for each in offer.withheld] == [
        *("client/add_node", "client/ui_Add", "client/ui_", "client/ui_undo", "client/ui_blank", "client/ui_nothing"),
        *("client/ui_broken", "client/ui_more", "client/[9]", "client/[10]", "client/ui_add_node"),
    ]
    assert len(manifest.warnings) == len(bad)
    assert "client/ui_undo: left out of the client's manifest: there is a tool 'ui_undo' already" in manifest.warnings


async def test_in_an_editor_each_entry_is_a_proxy_whose_calls_are_requests(tmp_path: Path) -> None:
    place = str(tmp_path / "store.db")
    (tool, _) = (await ClientManifest([ADD, PASTE]).offer()).tools
    assert (tool.declaration.permission, tool.declaration.timeout) == ("editor_mutate", 30.0)
    waiting = await run(agent("editor"), "go", store=place)
    (request,) = waiting.runtime_tools
    assert (request.tool_name, request.parameters) == ("client/ui_add_node", {"x": 1})
    await submit_result(place, request.request_id, {"node": "n1"})
    result = await resume(place, waiting.turn_id, [agent("editor")])
    assert result.calls()[0].result == '{"node":"n1"}'


@pytest.mark.spec("LOOP-BRIDGE-02")
@pytest.mark.parametrize("context", ["thread", "library"])
async def test_outside_the_editor_the_manifest_is_not_used(context: str, tmp_path: Path) -> None:
    place = str(tmp_path / "store.db")
    result = await run(agent(context), "go", store=place)
    (failed,) = of_kind(result, ToolFailed)
    assert (result.output, failed.tool_error.kind) == ("done", "tool_not_found")
    assert await pending_requests(place) == []
    assert (await run(agent("editor"), "go", store=place)).status == "runtime_tool_pending"  # what makes the difference


@pytest.mark.spec("LOOP-BRIDGE-06")
async def test_arguments_are_held_to_the_manifest_before_they_are_sent_and_results_are_cut_like_any(
    tmp_path: Path,
) -> None:
    place = str(tmp_path / "store.db")
    support = agent("editor", calls(("client/ui_add_node", {"x": "one"})), calls("client/ui_paste"), "done")
    waiting = await run(support, "go", store=place)
    (failed,) = of_kind(waiting, ToolFailed)
    assert (failed.tool_error.kind, failed.effects) == ("invalid_parameters", "none")
    assert [asked.tool_name for asked in of_kind(waiting, RuntimeToolRequested)] == ["client/ui_paste"]
    await submit_result(place, waiting.runtime_tools[0].request_id, {"text": "x" * 200_000})
    result = await resume(place, waiting.turn_id, [support])
    (pasted,) = of_kind(result, ToolResult)
    assert pasted.truncated and pasted.size_bytes > 200_000 and len(pasted.item.text.encode()) <= 50_000
    assert {"output.spilled", "output.truncated"} <= set(kinds(result.facts()))
