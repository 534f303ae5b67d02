"""`run`, `run_sync`, `resume`, `resume_all`."""

import asyncio
import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from typing_extensions import TypeVar, Unpack

from wakeful.contracts.budgets import Budget
from wakeful.contracts.content import Prompt
from wakeful.contracts.errors import AgentBusy, AgentMissing, ToolMissing
from wakeful.contracts.model_settings import ModelSettings
from wakeful.contracts.retries import Retry
from wakeful.contracts.tools import Principal
from wakeful.contracts.values import JsonValue
from wakeful.service import Agent, Ask, Hook, ModelChoice, Tool, ToolSource
from wakeful.service.entrance import arrivals
from wakeful.surfaces.library.run_checks import StorePlace, check_prompt, check_store, existing_store, settled
from wakeful.surfaces.library.run_options import (
    NO_CONTEXT,
    Approver,
    History,
    Instructions,
    RunOptions,
    patient,
    request_of,
)
from wakeful.surfaces.library.sync import wait_for

if TYPE_CHECKING:
    from wakeful.service import Engine, TurnRow
    from wakeful.service.run_result import RunResult

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
    history: History = None,
    budget: Budget | None = None,
    approver: Approver = None,
    model: "ModelChoice | None" = None,
    instructions: Instructions = None,
    tools: Sequence[Tool[Any] | ToolSource] | None = None,
    settings: ModelSettings | Mapping[str, Any] | None = None,
    hooks: Sequence[Hook | Ask] = (),
    retry: Retry | None = None,
) -> "RunResult[Any]":
    """Run an agent on a prompt until it answers, waits or is stopped.

    A message of a thread waits for those before it; with `supersede`, they are stopped first.
    `model` replaces the agent's model and its fallbacks in this run.
    With `key`, the same line also resumes the run after a crash and returns its stored result once it is finished.
    `retry` says how long to wait while no model answers; after that the run returns with status `waiting`, and the
    same line with its `key`, `resume` or `resume_all` continues it.
    Cancelling the task is like a crash: what is open is settled when the run is taken up again.
    """
    await arrivals.enter()
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
        retry=retry,
    )
    check_prompt(prompt)
    check_store(request.agent, store, key=key, thread=thread, approver=approver)
    from wakeful.surfaces.library import late_imports

    async with late_imports.opened_store(store) as opened:
        engine = late_imports.new_engine(opened)
        return await settled(engine, await late_imports.run_turn(engine, request), request, store)


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
    store: StorePlace, turn_id: str, agents: Iterable[Agent[Any, Any]], deps: Any = None, retry: Retry | None = None
) -> "RunResult[Any]":
    """Take a turn up where it was, also one that was paused. Code comes from `agents`, never from the store.

    A provider that it waits for is asked at once, whenever it was to be asked.

    `turn_id` is its id, its key or the beginning of its id.
    """
    from wakeful.surfaces.library import late_imports

    async with late_imports.opened_store(existing_store(store)) as opened:
        row = await late_imports.find_turn(opened, turn_id)
        return await late_imports.resume_turn(
            late_imports.new_engine(opened), row.turn_id, patient(agents, retry), deps=deps, lift_pause=True
        )


async def retry(
    store: StorePlace,
    turn_id: str,
    agents: Iterable[Agent[Any, Any]],
    deps: Any = None,
    *,
    budget: Budget | None = None,
    max_steps: int | None = None,
) -> "RunResult[Any]":
    """Try a failed turn again: the same turn goes on where it failed, and calls that have finished stay finished.

    `turn_id` is its id, its key or the beginning of its id. After a limit, `budget` (or `max_steps`) says what the turn
    may use in all, what it has used included. Raises RetryRefused for a turn that cannot be tried again.
    """
    from wakeful.surfaces.library import late_imports

    async with late_imports.opened_store(existing_store(store)) as opened:
        system = late_imports.new_engine(opened)
        row = await late_imports.find_turn(opened, turn_id)
        supplied = list(agents)
        late_imports.agent_named(row, supplied)
        await late_imports.retry_turn(system, row.turn_id, requested_by="program", budget=budget, max_steps=max_steps)
        return await late_imports.resume_turn(system, row.turn_id, supplied, deps=deps, lift_pause=True)


async def resume_all(
    store: StorePlace, agents: Iterable[Agent[Any, Any]], deps: Any = None, retry: Retry | None = None
) -> "list[RunResult[Any]]":
    """Take up every unfinished turn; one that was paused rests on.

    A turn whose agent or tools are missing is left as it is, and its result says so.
    """
    from wakeful.surfaces.library import late_imports

    supplied = patient(agents, retry)
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(system: "Engine", row: "TurnRow") -> "RunResult[Any] | None":
        async with slots:
            try:
                return await late_imports.resume_turn(system, row.turn_id, supplied, deps=deps)
            except AgentBusy:
                return None  # another process is at it
            except (AgentMissing, ToolMissing) as missing:
                result = await late_imports.recall(system, row, None)
                result.message = result.message or missing.message
                result.status, result.waiting_for = "waiting", "code"
                return result

    async with late_imports.opened_store(existing_store(store)) as opened:
        system = late_imports.new_engine(opened)
        await late_imports.time_out_late_requests(system)  # also those that no turn here waits for
        rows = [row async for row in opened.open_turns()]
        results = await asyncio.gather(*(one(system, row) for row in rows), return_exceptions=True)
        broken = [result for result in results if isinstance(result, BaseException)]
        for other in broken[1:]:
            broken[0].add_note(f"and of another turn: {type(other).__name__}: {other}")
        for first in broken[:1]:
            raise first  # one whose log is damaged, say: all others have gone as far as they could
        return [result for result in results if result is not None and not isinstance(result, BaseException)]
