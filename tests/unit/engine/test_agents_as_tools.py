"""`Agent.as_tool()`: another agent works as a child of the turn, with what is its own, and is resumed like a child."""

from typing import Any

import pytest
from pydantic import BaseModel

from kit.runs.engine_runs import Died, Dying, calls, of_kind
from wakeful import Agent, HookInput, RunContext, RunResult, resume, run, tool
from wakeful.contracts.errors import DepsMissing, InvalidConfig, UnknownProvider
from wakeful.contracts.events import SubagentStarted, ToolFailed, ToolResult
from wakeful.ports import ModelRequest
from wakeful.service.queries.replay import replay_turn
from wakeful.store.memory import Memory, MemoryStore
from wakeful.testing import scripted


class Verdict(BaseModel):
    score: int


class Shop:
    """Counts what was paid."""

    def __init__(self) -> None:
        self.paid: list[str] = []
        self.heard: list[tuple[str, str]] = []

        @tool(effect="keyed")
        def pay(ctx: RunContext[str], order: str) -> str:
            """Pay an order."""
            self.paid.append(ctx.idempotency_key)
            return f"{ctx.deps} paid {order} for {ctx.agent}"

        def listens(call: HookInput) -> None:
            self.heard.append((call.tool, call.agent))

        def writes(request: ModelRequest) -> Any:
            return calls(("pay", {"order": "A"})) if request.answered == 0 else f"{request.instructions} Done."

        self.writer: Agent[str, str] = Agent(
            "writer",
            scripted(writes),
            lambda ctx: f"You are {ctx.agent}.",
            tools=[pay],
            hooks=[listens],
        )

        def leads(request: ModelRequest) -> Any:
            return calls(("agent/writer", {"input": "Pay A."})) if request.answered == 0 else "all done"

        self.boss: Agent[str, str] = Agent("boss", scripted(leads), tools=[self.writer.as_tool()])


async def identical(store: Any, result: RunResult[Any]) -> None:
    row = await store.turn(result.turn_id)
    assert row is not None
    replayed = await replay_turn(store, row)
    assert replayed.identical, replayed.divergence


async def test_it_works_with_its_own_model_instructions_tools_and_hooks_and_the_runs_deps() -> None:
    shop, store = Shop(), MemoryStore()
    result = await run(shop.boss, "go", deps="Ada", store=store)
    assert result.output == "all done"
    ends = {event.tool_name: event.item.text for event in of_kind(result, ToolResult)}
    assert ends == {"pay": "Ada paid A for writer", "agent/writer": "You are writer. Done."}
    assert shop.heard == [("pay", "writer")], "its hooks hear of its own calls alone"
    (started,) = of_kind(result, SubagentStarted)
    assert (started.tool, started.depth, started.task.text) == ("agent/writer", 1, "Pay A.")
    await identical(store, result)


async def test_killed_at_any_commit_it_goes_on_and_pays_once() -> None:
    at = 0
    while True:
        at += 1
        shop, memory = Shop(), Memory()
        dying = Dying(memory, after=at)
        try:
            await run(shop.boss, "go", deps="Ada", store=dying)
            break
        except Died:
            await dying.close()
        store = MemoryStore(memory)
        (row,) = await store.turns()
        result = await resume(store, row.turn_id, [shop.boss], deps="Ada")
        assert result.output == "all done" and len(set(shop.paid)) == 1
        await identical(store, result)
    assert at > 5


async def test_a_tool_of_a_tool_is_a_level_deeper_and_gives_its_typed_answer() -> None:
    judge = Agent("judge", scripted([calls(("finish_subtask", {"score": 7}))]), output_type=Verdict)
    writer = Agent(
        "writer",
        scripted([calls(("agent/judge", {"input": "Judge."})), "good"]),
        tools=[judge.as_tool(description="Ask the judge.")],
    )
    boss = Agent("boss", scripted([calls(("ask", {"input": "Write."})), "done"]), tools=[writer.as_tool("ask")])
    store = MemoryStore()
    result = await run(boss, "go", store=store)
    assert result.output == "done"
    assert [(each.tool, each.depth) for each in of_kind(result, SubagentStarted)] == [("ask", 1), ("agent/judge", 2)]
    assert {event.tool_name: event.item.text for event in of_kind(result, ToolResult)}["agent/judge"] == '{"score":7}'
    await identical(store, result)


async def test_a_task_that_is_none_starts_no_child() -> None:
    writer = Agent("writer", scripted(["x"]))
    boss = Agent("boss", scripted([calls(("agent/writer", {})), "done"]), tools=[writer.as_tool()])
    result = await run(boss, "go")
    (failed,) = of_kind(result, ToolFailed)
    assert failed.tool_error.kind == "missing_required_parameters" and of_kind(result, SubagentStarted) == []


async def test_what_cannot_work_is_refused_before_anything_runs() -> None:
    store = MemoryStore()
    with pytest.raises(DepsMissing, match="agent 'boss' needs deps for 'agent/writer'"):
        await run(Shop().boss, "go", store=store)  # type: ignore[call-overload]
    assert await store.turns() == []
    one, other = (Agent("writer", scripted([word])) for word in ("a", "b"))
    reads = Agent("reader", scripted(["x"]), tools=[other.as_tool()])
    boss = Agent("boss", scripted(["x"]), tools=[one.as_tool(), reads.as_tool()])
    with pytest.raises(InvalidConfig, match="two different agents of this run are called 'agent/writer'"):
        await run(boss, "go", store=store)
    keyless = Agent("boss", scripted(["x"]), tools=[Agent("writer", "nobody:model").as_tool()])
    with pytest.raises(UnknownProvider):
        await run(keyless, "go", store=store)
    assert await store.turns() == []
