"""Injected fields stand in every tool a model is shown: an own one, one of a server, one that makes children."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from wakeful import Agent, from_mcp, run, tool
from wakeful.ports import ModelRequest
from wakeful.testing import scripted

INJECTED = {"run_origin": "Who asked for this.", "ui_request_id": "Which request of the page it belongs to."}


@tool(effect="pure")
def look(order: str) -> str:
    """Look an order up."""
    return order


@pytest.mark.spec("CTL-INJ-03")
async def test_every_tool_has_them_and_none_requires_them(sdk_url: str, tmp_path: Path) -> None:
    shown: dict[str | None, dict[str, dict[str, Any]]] = {}

    def model(request: ModelRequest) -> object:
        shown[request.level] = {each.name: each.input_schema for each in request.tools}
        if request.level is None and request.answered == 0:
            subtask = {"title": "t", "instructions": "x", "output_schema": {"type": "object", "required": []}}
            return {"calls": [{"name": "run_subtask", "arguments": subtask}]}
        if request.level is not None and request.answered == 0:
            return {"calls": [{"name": "finish_subtask", "arguments": {"run_origin": "page"}}]}
        return "done"

    before = deepcopy(look.declaration.input_schema)
    source = from_mcp("shop", url=sdk_url, classes={"*": "network"}, reads_private=False, pins=tmp_path / "pins.json")
    agent = Agent(
        "any",
        scripted(model),
        tools=[look, source],
        subtasks=True,
        allow_parallel_subagents=True,
        injected_tool_args=INJECTED,
    )
    result = await run(agent, "go")
    assert result.completed, result.message
    root, child = shown.pop(None), next(iter(shown.values()))
    assert {"look", "mcp.shop/count", "run_subtask", "spawn_self", "spawn_parallel", "scratch_read"} <= root.keys()
    assert "finish_subtask" in child
    for schema in (*root.values(), *child.values()):
        for name, description in INJECTED.items():
            assert schema["properties"][name] == {"type": "string", "description": description}
            assert name not in schema.get("required", [])
    assert look.declaration.input_schema == before, "what the tool declares is as it was"
    # Without the field none of them is there.
    shown.clear()
    await run(agent.changed(injected_tool_args={}), "go")
    assert not any(INJECTED.keys() & schema.get("properties", {}).keys() for schema in shown[None].values())
