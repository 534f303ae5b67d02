"""The runs that a durable runtime has to be able to show, one after the other, each from its log."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from kit.runs.asked_runs import REFUND, World, again, agent, asked, say
from kit.runs.engine_runs import Died, Dying, calls, kinds, of_kind
from kit.runs.long_runs import Asked, look, looking
from wakeful import Agent, Approve, HookVerdict, interrupt, run, stream, tool
from wakeful.contracts.events import (
    CompactionCompleted,
    HookCompleted,
    OutputSpilled,
    PermissionEvaluated,
    QuotaBlocked,
    RoutingSingleCandidate,
    ToolFailed,
    ToolResult,
    TurnFailed,
    TurnInterruptApplied,
)
from wakeful.ports import ModelRequest
from wakeful.service.queries.views import execution_tree, wire_messages
from wakeful.store.memory import Memory, MemoryStore
from wakeful.testing import scripted
from wakeful.views.run_stream_events import StatusEvent
from wakeful.views.wire_messages import TurnTerminal

LONG = "many words " * 20_000
Acceptance = Callable[[Path], Awaitable[None]]


async def first_status_before_long_output(folder: Path) -> None:
    async with stream(Agent("a", scripted([LONG])), "go", store=MemoryStore()) as shown:
        seen = [event async for event in shown]
    first, *later = seen
    assert isinstance(first, StatusEvent) and first.status == "starting"
    assert later and isinstance(seen[-1], StatusEvent) and seen[-1].status == "completed"
    assert [event for event in later if isinstance(event, StatusEvent)] == seen[-1:]


async def large_result_by_ref(folder: Path) -> None:
    store = MemoryStore()

    @tool(effect="pure")
    def report() -> str:
        return LONG

    result = await run(Agent("a", scripted([calls("report"), "read"]), tools=[report]), "go", store=store)
    (spilled,), (came,) = of_kind(result, OutputSpilled), of_kind(result, ToolResult)
    assert came.result_ref is not None and came.result_ref.digest == spilled.output_ref
    assert await store.get_blob(spilled.output_ref) == LONG.encode()
    assert len(came.item.text) < len(LONG) and len(spilled.preview) <= 500


async def approval_gate(folder: Path) -> None:
    store, world = MemoryStore(), World()
    support = agent([world.tool(approval=True)], (REFUND,))
    waiting = await asked(support, store)
    assert world.names == []
    await say(store, waiting.approvals[0], Approve())
    assert (await again(support, store)).output == "done" and world.done == [REFUND]


async def compaction_keeps_unresolved_actions(folder: Path) -> None:
    store, world = MemoryStore(), World()

    def answer(request: ModelRequest) -> Any:
        if request.level is None:
            jobs = [{"task": "refund"}, {"task": "look around"}]
            return "done" if request.answered else calls(("spawn_parallel", {"jobs": jobs}))
        if "refund" in request.history[0].text:
            return "did it" if request.answered else calls(REFUND)
        return looking(14)(request)

    tools = [look, world.tool(approval=True)]
    support = Agent("shop", Asked().model(answer), tools=tools, allow_parallel_subagents=True)
    waiting = await asked(support, store)
    folded = of_kind(waiting, CompactionCompleted)
    assert folded and {event.preserved_action_ids for event in folded} == {(waiting.approvals[0].id,)}
    await say(store, waiting.approvals[0], Approve())
    assert (await again(support, store)).output == "done" and world.names == ["refund"]


async def permission_and_sandbox_facts_precede_a_write(folder: Path) -> None:
    write = calls(("wakeful/exec_command", {"cmd": "echo here > written"}))
    held_back = 0
    for number in range(1, 30):  # the process dies before each append in turn
        memory, place = Memory(), folder / str(number)
        place.mkdir()
        coder = Agent("coder", scripted([write, "done"], leftover="ignore"), workspace=place, profile="coding")
        dying = Dying(memory, before=number)
        try:
            await run(coder, "go", store=dying)
        except Died:
            await dying.close()
        known = [kind for each in await MemoryStore(memory).agents() for kind in await kinds_of(memory, each)]
        if (place / "written").exists():
            assert {"permission.evaluated", "sandbox.applied"} <= set(known)
        else:
            held_back += "sandbox.applied" not in known
        if "turn.completed" in known:
            break
    else:
        raise AssertionError("the run never came to its end")
    assert (place / "written").read_text() == "here\n" and held_back > 1
    assert known.index("permission.evaluated") < known.index("sandbox.applied") < known.index("tool.result")


async def kinds_of(memory: Memory, agent_id: str) -> list[str]:
    return kinds(await MemoryStore(memory).read(agent_id))


async def a_hooks_rewrite_is_visible(folder: Path) -> None:
    store, world = MemoryStore(), World()
    capped = HookVerdict.rewrite({"order": "A17", "cents": 100}, "capped")
    result = await run(agent([world.tool()], (REFUND,), hooks=[lambda call: capped]), "go", store=store)
    (heard,), (judged,) = of_kind(result, HookCompleted), of_kind(result, PermissionEvaluated)
    assert heard.updated_input_ref is not None and judged.updated_input_ref == heard.updated_input_ref
    assert b"100" in await store.get_blob(heard.updated_input_ref)
    assert world.done == [("refund", {"order": "A17", "cents": 100})]


async def single_candidate(folder: Path) -> None:
    result = await run(Agent("a", scripted(["done"])), "go", store=MemoryStore())
    (alone,) = of_kind(result, RoutingSingleCandidate)
    assert (alone.candidate_count, alone.selected_model_ref) == (1, "scripted:inline")


async def quota_reached(folder: Path) -> None:
    empty = {"fail": {"kind": "quota_exhausted", "message": "pay", "status": 429}}
    result = await run(Agent("a", scripted([empty])), "go")
    (blocked,) = of_kind(result, QuotaBlocked)
    (ended,) = of_kind(result, TurnFailed)
    assert (result.status, blocked.model_ref) == ("failed", "scripted:inline")
    assert ended.failure_artifact is not None and ended.failure_artifact.kind == "quota_exhausted"


async def interrupt_with_a_cancelling_and_a_blocking_tool(folder: Path) -> None:
    store, begun, go = MemoryStore(), asyncio.Barrier(3), asyncio.Event()

    @tool(effect="pure", interrupt_behavior="block")
    async def blocks() -> str:
        await begun.wait()
        await go.wait()
        return "finished"

    @tool(effect="pure")
    async def stops() -> str:
        await begun.wait()
        await asyncio.Event().wait()
        return "never"

    who = Agent("a", scripted([calls("blocks", "stops"), "done"], leftover="ignore"), tools=[blocks, stops])
    task = asyncio.create_task(run(who, "go", store=store, key="k"))
    async with asyncio.timeout(30):
        await begun.wait()
        row = await store.turn_of_key("k")
        assert row is not None
        await interrupt(store, turn_id=row.turn_id)
        watch = store.watch(row.agent_id)
        while "tool.failed" not in kinds(await store.read(row.agent_id)):
            await watch.wait(timeout=0.5)
        watch.close()
        go.set()
        result = await task
    (applied,), (stopped,), (finished,) = (
        of_kind(result, kind) for kind in (TurnInterruptApplied, ToolFailed, ToolResult)
    )
    assert (len(applied.blocking_tool_call_ids), len(applied.cancelled_tool_call_ids)) == (1, 1)
    assert (stopped.tool_name, stopped.status, finished.tool_name) == ("stops", "cancelled", "blocks")
    assert result.status == "cancelled"


async def reconnect_gives_a_snapshot_then_what_follows(folder: Path) -> None:
    store, world = MemoryStore(), World()
    support = agent([world.tool(approval=True), world.reading()], (("look", {}),), (REFUND,))
    waiting = await asked(support, store)
    left = await wire_messages(store, waiting.turn_id)
    assert not left.ended
    await say(store, waiting.approvals[0], Approve())
    await again(support, store)
    snapshot = await execution_tree(store, waiting.turn_id)
    assert [(node.name, node.is_error) for node in snapshot.nodes] == [("look", False), ("refund", False)]
    missed = await wire_messages(store, waiting.turn_id, left.last_event_seq)
    whole = await wire_messages(store, waiting.turn_id)
    assert (*left.messages, *missed.messages) == whole.messages and not missed.replay_incomplete
    assert missed.messages and isinstance(missed.messages[-1], TurnTerminal) and missed.ended
    nothing = await wire_messages(store, waiting.turn_id, whole.last_event_seq)
    assert nothing.messages == ()


RUNS: tuple[Acceptance, ...] = (
    first_status_before_long_output,
    large_result_by_ref,
    approval_gate,
    compaction_keeps_unresolved_actions,
    permission_and_sandbox_facts_precede_a_write,
    a_hooks_rewrite_is_visible,
    single_candidate,
    quota_reached,
    interrupt_with_a_cancelling_and_a_blocking_tool,
    reconnect_gives_a_snapshot_then_what_follows,
)


@pytest.mark.parametrize("accepted", RUNS, ids=lambda each: each.__name__)
@pytest.mark.spec("STD-VAL-07")
async def test_acceptance(accepted: Acceptance, tmp_path: Path) -> None:
    await accepted(tmp_path)
