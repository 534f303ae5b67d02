"""A tool call has the same names wherever a program meets it: `tool`, `call_id`, `turn_id`, `arguments`."""

from pathlib import Path
from typing import Any

import pytest

from kit.runs.engine_runs import calls
from wakeful import Agent, Approval, HookInput, RunContext, hook, pending_requests, run, stream, tool
from wakeful.bootstrap.stores import opened_store
from wakeful.service.queries.explanation import why_call
from wakeful.service.queries.turns import find_turn, latency_of
from wakeful.testing import scripted
from wakeful.views.run_stream_events import ToolCallEvent, ToolResultEvent


async def test_predicates_hooks_approvals_calls_streams_and_reports_say_the_same(tmp_path: Path) -> None:
    seen: dict[str, Any] = {}

    def asks(call: Any) -> bool:
        seen["predicate"] = call
        return True

    @tool(effect="pure", name="shop/look_up", approval=asks)
    def look_up(ctx: RunContext[None], order: str) -> str:
        """Look an order up."""
        seen["context"] = ctx
        return "found"

    @hook("pre_tool_use")
    def watch(given: HookInput) -> None:
        seen["hook"] = given

    def approver(asked: Approval) -> bool:
        seen["approval"] = asked
        return True

    store = tmp_path / "runs.db"
    agent = Agent("clerk", scripted([calls(("look_up", {"order": "A17"})), "done"]), tools=[look_up], hooks=[watch])
    async with stream(agent, "go", store=store, approver=approver) as watched:
        async for event in watched:
            if isinstance(event, ToolCallEvent | ToolResultEvent):
                seen[event.type] = event
        result = await watched.result()
    (seen["call"],) = result.calls()
    async with opened_store(store) as opened:
        row = await find_turn(opened, result.turn_id)
        (seen["latency"],) = (await latency_of(opened, row)).tools
        seen["why"] = await why_call(opened, f"{result.turn_id}/{result.calls()[0].call_id}")

    names = {"tool": "shop/look_up", "call_id": "call_1_1", "turn_id": result.turn_id, "arguments": {"order": "A17"}}
    for place, of in seen.items():
        there = {name: getattr(of, name) for name in names if hasattr(of, name)}
        assert there == {name: value for name, value in names.items() if name in there}, place
        assert "call_id" in there and ("tool" in there or place == "context"), place
    assert len(seen) == 9


@pytest.mark.parametrize("form", ["object", "json"])
async def test_a_request_to_a_client_has_them_too(form: str, tmp_path: Path) -> None:
    @tool(effect="pure", external=True)
    def pick(folder: str) -> str:
        """Pick a file."""
        return ""

    store = tmp_path / "runs.db"
    agent = Agent("clerk", scripted([calls(("pick", {"folder": "home"}))]), tools=[pick])
    result = await run(agent, "go", store=store)
    (request,) = await pending_requests(store)
    names = {
        "tool": "client/pick",
        "call_id": "call_1_1",
        "turn_id": result.turn_id,
        "arguments": {"folder": "home"},
    }
    shown = request.named() if form == "json" else {name: getattr(request, name) for name in names}
    assert {name: shown[name] for name in names} == names
