"""`run`, `run_sync`, `resume`, `resume_all`."""

import asyncio
import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from typing_extensions import TypeVar, Unpack

from wakeful.agents.definition import Agent, ModelChoice
from wakeful.contracts.budgets import Budget
from wakeful.contracts.content import Prompt
from wakeful.contracts.errors import AgentBusy, AgentMissing, ToolMissing
from wakeful.contracts.tools import Principal
from wakeful.contracts.values import JsonValue
from wakeful.surfaces.library.asking import NO_CONTEXT, RunOptions, StorePlace, request_of
from wakeful.surfaces.library.sync import wait_for
from wakeful.tools.function import Tool
from wakeful.tools.source import ToolSource

if TYPE_CHECKING:
    from wakeful.ports import TurnRow
    from wakeful.service.requests import Runtime
    from wakeful.service.results import RunResult

Deps = TypeVar("Deps")
Out = TypeVar("Out")
AT_ONCE = 64
"""How many turns `resume_all` takes up at the same time."""


@overload
async def run(
    agent: Agent[None, Out], prompt: Prompt, *, deps: None = None, **options: Unpack[RunOptions]
) -> "RunResult[Out]": ...
@overload
async def run(
    agent: Agent[Deps, Out], prompt: Prompt, *, deps: Deps, **options: Unpack[RunOptions]
) -> "RunResult[Out]": ...
async def run(
    agent: Agent[Any, Any],
    prompt: Prompt,
    *,
    deps: Any = None,
    context: Mapping[str, JsonValue] = NO_CONTEXT,
    principal: Principal | None = None,
    store: StorePlace = None,
    thread: str | None = None,
    key: str | None = None,
    supersede: bool = False,
    history: Any = None,
    budget: Budget | None = None,
    approver: Any = None,
    model: "ModelChoice | None" = None,
    instructions: Any = None,
    tools: Sequence[Tool[Any] | ToolSource] | None = None,
    settings: Mapping[str, Any] | None = None,
    hooks: Sequence[Any] = (),
) -> "RunResult[Any]":
    """Run an agent on a prompt until it answers, waits or is stopped.

    A message of a thread waits for those before it; with `supersede`, they are stopped first.
    With `key`, the same line also resumes the run after a crash and returns its stored result once it is finished.
    Cancelling the task is like a crash: what is open is settled when the run is taken up again.
    """
    request = request_of(
        agent,
        prompt,
        deps=deps,
        context=context,
        principal=principal,
        thread=thread,
        key=key,
        supersede=supersede,
        history=history,
        budget=budget,
        approver=approver,
        model=model,
        instructions=instructions,
        tools=tools,
        settings=settings,
        hooks=hooks,
    )
    from wakeful.surfaces.library import engine

    async with engine.opened_store(store) as opened:
        return await engine.run_turn(engine.runtime(opened), request)


@overload
def run_sync(
    agent: Agent[None, Out], prompt: Prompt, *, deps: None = None, **options: Unpack[RunOptions]
) -> "RunResult[Out]": ...
@overload
def run_sync(
    agent: Agent[Deps, Out], prompt: Prompt, *, deps: Deps, **options: Unpack[RunOptions]
) -> "RunResult[Out]": ...
def run_sync(agent: Agent[Any, Any], prompt: Prompt, **options: Any) -> "RunResult[Any]":
    """`run`, for a program that is not async; works inside a running loop (notebooks) too."""
    result: RunResult[Any] = wait_for(run(agent, prompt, **options))
    return result


run_sync.__signature__ = inspect.signature(run)  # type: ignore[attr-defined]  # it takes what `run` takes


async def resume(
    store: StorePlace, turn_id: str, agents: Iterable[Agent[Any, Any]], deps: Any = None
) -> "RunResult[Any]":
    """Take a turn up where it was, also one that was paused. Code comes from `agents`, never from the store."""
    from wakeful.surfaces.library import engine

    async with engine.opened_store(store) as opened:
        return await engine.resume_turn(engine.runtime(opened), turn_id, list(agents), deps=deps, lift_pause=True)


async def resume_all(store: StorePlace, agents: Iterable[Agent[Any, Any]], deps: Any = None) -> "list[RunResult[Any]]":
    """Take up every unfinished turn; one that was paused rests on.

    What lacks its agent or a tool is left as it is and says so in its result.
    """
    from wakeful.surfaces.library import engine

    supplied = list(agents)
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(system: "Runtime", row: "TurnRow") -> "RunResult[Any] | None":
        async with slots:
            try:
                return await engine.resume_turn(system, row.turn_id, supplied, deps=deps)
            except AgentBusy:
                return None  # another process is at it
            except (AgentMissing, ToolMissing) as missing:
                result = await engine.recall(system, row, None)
                result.message = result.message or missing.message
                return result

    async with engine.opened_store(store) as opened:
        system = engine.runtime(opened)
        await engine.time_out_late_requests(system)  # also those that no turn here waits for
        rows = sorted(await opened.turns(open_only=True), key=lambda row: row.created_at)
        results = await asyncio.gather(*(one(system, row) for row in rows), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result  # one whose log is damaged, say: all others have gone as far as they could
        return [result for result in results if result is not None and not isinstance(result, BaseException)]
