"""The loop under the name and with the parameters by which a level of a tree is described: `run_unified_agent_loop`.

It is no second loop. It enters the one runner with a level whose belt and prompt somebody else has put together, at
whatever depth, and gives what happens as wire messages. Levels below it are levels of the same turn; the ones of a
tree share what is in `LoopContext`: what was written down, and one budget, of which each takes what those before left.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from wakeful.contracts.budgets import Budget, Limits
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.errors import InvalidConfig
from wakeful.decisions.ledger import left_of
from wakeful.engine.agent import Agent
from wakeful.engine.given_history import items_from
from wakeful.engine.run_request import Engine, HostTerms, MessageOrigin, RunRequest
from wakeful.engine.state_loader import fold
from wakeful.service.commands.interruption import cancel_turn
from wakeful.service.commands.turns import run_turn
from wakeful.service.run_result import RunResult
from wakeful.service.watch import WireSender
from wakeful.tools.tool import Tool
from wakeful.views.cost import CostSummary
from wakeful.views.wire_messages import Chunk, PlanningUpdate, TaskUpdate, ToolCallUpdate, TurnTerminal, WireMessage

NAME = "unified_loop"


@dataclass
class LoopContext:
    """The shared context of the loops of one root turn, which run one after the other. Subtasks run side by side."""

    engine: Engine
    budget: Budget = field(default_factory=lambda: Budget(profile="interactive"))
    memory: dict[str, Any] = field(default_factory=dict)
    """Notes for the rest of the turn, with results of subtasks (`task:<id>`)."""
    result: RunResult[Any] | None = None
    """How the newest loop ended."""
    _left: Limits | None = None
    _is_busy: bool = False

    @property
    def left(self) -> Limits:
        """The budget of the next loop."""
        return self._left or self.budget.limits(None, self.engine.limit_overrides)

    def enter(self) -> None:
        if self._is_busy:
            raise InvalidConfig(
                "a loop of this context is running: two at once could spend what is there for one",
                "wait for its end; work side by side is several run_subtask calls of one loop",
            )
        self._is_busy = True

    async def leave(self, turn_id: str | None, result: RunResult[Any] | None) -> None:
        """Take what the loop used off the budget, and keep what it wrote down; also of one that broke off."""
        self._is_busy = False
        self.result = result
        row = await self.engine.store.turn(turn_id) if turn_id is not None else None
        if row is None:
            return
        recorded = await self.engine.store.read(row.agent_id, thread_id=row.thread_id)
        state = (await fold(self.engine.store, row, recorded)).state
        self.memory.update(state.scratchpad.visible)
        left = left_of(state.ledger, self.left, state.time.active_ms() / 1000)
        self._left = self.left.model_copy(update=left.model_dump())


async def run_unified_agent_loop(
    *,
    provider: str,
    model: str,
    system_prompt: str,
    history: Sequence[Any],
    tools: Sequence[Tool[Any]],
    ctx: LoopContext,
    depth: int = 0,
    max_iterations: int | None = None,
    parent_subtask_id: str | None = None,
    cancel: asyncio.Event | None = None,
) -> AsyncGenerator[WireMessage, None]:
    """Run one level, and give what happens in it and below it as it happens.

    `history` ends with what the user, or the parent, says; `tools` is the belt as it is, with the runtime's own
    (`tools.runtime_tools.runtime_tools`) where the level may split its work. `cancel` stops it when it is set, and so
    does whoever stops reading. At `depth` 0 its cost and its end come last; a level below has its end in `ctx.result`.
    Raises InvalidConfig before anything runs.
    """
    deepest = ctx.left.depth
    if depth < 0 or (deepest is not None and depth > deepest):
        raise InvalidConfig(f"depth={depth}", f"give 0 to {deepest}")
    if (depth == 0) != (parent_subtask_id is None):
        raise InvalidConfig(
            f"depth={depth}, parent_subtask_id={parent_subtask_id!r}",
            "a root has no parent, and whatever is below it has one",
        )
    *before, last = items_from(history) or (None,)
    if not isinstance(last, UserItem):
        raise InvalidConfig("history does not end with a message", "its last entry is what the loop is to answer")
    left = ctx.left
    request = RunRequest(
        Agent(NAME, f"{provider}:{model}", system_prompt, tools, max_steps=max_iterations),
        last.parts,
        history=before or None,
        origin=MessageOrigin(model_from="user"),
        host=HostTerms(
            limits=left.model_copy(update={"max_steps": left.max_steps if max_iterations is None else max_iterations}),
            depth=depth,
            notes=ctx.memory,
            prompt_is_whole=True,
        ),
    )
    async with aclosing(_sent(ctx, request, cancel or asyncio.Event())) as messages:
        async for message in messages:
            if not depth:
                yield message
            elif not isinstance(message, CostSummary | TurnTerminal):
                yield _below(message, depth, parent_subtask_id)


async def _sent(ctx: LoopContext, request: RunRequest, cancel: asyncio.Event) -> AsyncGenerator[WireMessage, None]:
    """The turn runs on the side; whoever leaves early has it stopped, and it is waited for."""
    ctx.enter()
    sent: asyncio.Queue[WireMessage | None] = asyncio.Queue()
    begun: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    running = asyncio.create_task(_run(ctx, request, begun, sent))
    stopping = asyncio.create_task(_stop(ctx.engine, begun, cancel))
    try:
        while (message := await sent.get()) is not None:
            yield message
    finally:
        stopping.cancel()
        either: set[asyncio.Future[Any]] = {running, begun}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            await cancel_turn(ctx.engine, begun.result())
        await running
        if stopping.done() and not stopping.cancelled():
            stopping.result()  # that it could not be asked to stop is not kept from whoever asked


async def _run(
    ctx: LoopContext,
    request: RunRequest,
    begun: "asyncio.Future[str]",
    sent: "asyncio.Queue[WireMessage | None]",
) -> None:
    result: RunResult[Any] | None = None
    try:
        async with WireSender(sent.put_nowait, keys=tuple(ctx.engine.surroundings.secrets())) as sender:

            def on_turn(turn_id: str, agent_id: str) -> None:
                sender.begun(turn_id, agent_id)
                begun.set_result(turn_id)

            request.watcher, request.on_turn = sender, on_turn
            result = await run_turn(ctx.engine, request)
            sender.facts(result.facts())  # whatever somebody else did with the turn: a cancel that ended it at rest
    finally:
        try:
            await ctx.leave(begun.result() if begun.done() else None, result)
        finally:
            sent.put_nowait(None)  # whatever happens, whoever reads comes to an end


async def _stop(engine: Engine, begun: "asyncio.Future[str]", cancel: asyncio.Event) -> None:
    await cancel.wait()
    await cancel_turn(engine, await asyncio.shield(begun))


def _below(message: WireMessage, depth: int, parent: str | None) -> WireMessage:
    """Where it is in the tree that the level is a part of. Its calls are named apart from those of other levels."""
    if not isinstance(message, Chunk | ToolCallUpdate | PlanningUpdate | TaskUpdate):
        return message
    above = parent if message.parent_id is None else f"{parent}/{message.parent_id}"
    places: dict[str, Any] = {"parent_id": above, "depth": message.depth or depth}
    if not isinstance(message, Chunk):
        places["tool_call_id"] = f"{parent}/{message.tool_call_id}"
    return message.model_copy(update=places)
