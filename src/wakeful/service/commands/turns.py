"""Running a turn for somebody: admit, claim, run, report.

One path for every entrance. A key makes it repeatable: absent, the turn starts; unfinished, it is taken up where it
was; finished, the stored result comes back for free. The same program, run again, is the recovery procedure.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any

from wakeful.contracts.amounts import InvalidBudget
from wakeful.contracts.budgets import Limits
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.errors import AgentMissing, StoreProblem, TurnNotFound
from wakeful.decisions.prompt_size import characters, tokens
from wakeful.engine.admission import (
    NewTurn,
    admit,
    allowed,
    check_bound,
    check_deps,
    check_names,
    check_thread,
    fingerprint_of,
    prompt_parts,
    reused,
)
from wakeful.engine.agent import Agent
from wakeful.engine.given_history import items_from
from wakeful.engine.outside_answers import Approver
from wakeful.engine.prepare.agents_inside import check_called
from wakeful.engine.prepare.models import ModelChoices, check_window, model_choices
from wakeful.engine.prepare.retrieval import check_collections
from wakeful.engine.request_budget import short_answer
from wakeful.engine.run_request import Engine, Patience, RunRequest, WorkflowTerms
from wakeful.engine.watchers import Watcher
from wakeful.ports import Model, TurnRow
from wakeful.service.commands.interruption import supersede
from wakeful.service.commands.steering import unpause_turn
from wakeful.service.commands.thread_queue import follow_queued, message_of_key
from wakeful.service.commands.turn_claims import recall, run_on
from wakeful.service.commands.turns_at_rest import end_waiting
from wakeful.service.entrance import starts
from wakeful.service.run_result import RunResult


async def run_turn(engine: Engine, request: RunRequest) -> RunResult[Any]:
    """Start, resume or recall a turn, and wait until it rests."""
    await starts.enter()
    agent, store = request.agent, engine.store
    request.patience.seconds = agent.retry.patience
    check_names(request)
    message = UserItem(parts=prompt_parts(request.prompt))
    fingerprint = fingerprint_of(agent.name, message, request.workflows.run)
    known = await store.turn_of_key(request.key) if request.key is not None else None
    if known is None and request.key is not None and (queued := await message_of_key(engine, agent.name, request.key)):
        return await follow_queued(engine, request, queued, fingerprint)
    new: NewTurn | None = None
    choices: ModelChoices | None = None
    if known is None:
        # Whatever can be wrong with the request is wrong before its message is safe: afterwards it is owed an answer.
        check_deps(agent, request.deps, "a new turn")
        check_bound(agent, request.context)
        check_thread(request)
        check_collections(f"Agent {agent.name!r}", agent.collections, request.collections)
        choices = model_choices(engine.resolve_model, agent)
        check_called(engine, agent)
        check_window(agent, choices.chain[0].model)
        limits = allowed(engine, request)
        await check_money(engine, request, limits, message, choices.models)
        history = items_from(request.history) if request.history is not None else ()
        if request.supersede and request.thread is not None:
            speaker = request.principal.id if request.principal is not None else "caller"
            await supersede(engine, agent.name, request.thread, requested_by=speaker)
        new = await admit(engine, request, limits, message, fingerprint, history)
        if new is None:  # somebody has just queued the message of this key
            queued = await message_of_key(engine, agent.name, request.key or "")
            assert queued is not None
            return await follow_queued(engine, request, queued, fingerprint)
        known = new.turn
    try:
        if known.fingerprint != fingerprint:
            raise reused(request.key or "", known, agent.name, message)
        return await _answer(engine, request, known, new, choices)
    except BaseException:
        if new is not None:
            with suppress(StoreProblem):
                if new.claim is not None:
                    await store.release(new.claim)
                if new.reservation is not None:
                    await store.give_up(known.turn_id, new.reservation)
        raise


async def _answer(
    engine: Engine,
    request: RunRequest,
    known: TurnRow,
    new: NewTurn | None,
    choices: ModelChoices | None,
) -> RunResult[Any]:
    """The answer to a message that is safe: from the log, from whoever runs it already, or by running it here."""
    agent, store = request.agent, engine.store
    if request.on_turn is not None:
        request.on_turn(known.turn_id, known.agent_id)
    if not known.is_open:
        return await recall(engine, known, agent)
    # Nothing else is open in its thread, or the session was made for this one turn: there is no other.
    if (new is not None and new.claim is not None) or known.agent_id != known.agent_name:
        return await run_on(engine, known, request, choices, waits=True, new=new)
    for earlier in await store.turns_of_thread(known.agent_id, known.thread_id, open_only=True):
        # One turn a thread, in the order they were admitted: what was acknowledged first is answered first.
        if earlier.first_seq < known.first_seq:
            first = await run_on(engine, earlier, request, choices, waits=True)
            if first.waiting_for == "provider":
                return await _behind(engine, known, agent, first)
    return await run_on(engine, known, request, choices, waits=True, new=new)


async def _behind(engine: Engine, row: TurnRow, agent: Agent[Any, Any], first: RunResult[Any]) -> RunResult[Any]:
    """The result of a message whose thread has an older turn that waits for a provider: it comes after that."""
    result = await recall(engine, row, agent)
    result.status, result.stop_reason = "waiting", first.stop_reason
    result.waiting_for, result.next_try = first.waiting_for, first.next_try
    result.message = f"turn {first.turn_id} of the same thread comes first: {first.message}"
    return result


async def give_up_waiting(engine: Engine, result: RunResult[Any], request: RunRequest) -> RunResult[Any]:
    """End a turn that waits for a provider and that nobody could continue: it failed, and may be tried again."""
    waited = request.agent.retry.patience - request.patience.seconds
    await end_waiting(engine, result.turn_id, round(waited, 1))
    row = await engine.store.turn(result.turn_id)
    assert row is not None, f"{result.turn_id} was run here"
    return await recall(engine, row, request.agent)


async def resume_turn(
    engine: Engine,
    turn_id: str,
    agents: Iterable[Agent[Any, Any]],
    *,
    deps: Any = None,
    watcher: Watcher | None = None,
    stream: bool = True,
    approver: Approver | None = None,
    lift_pause: bool = False,
) -> RunResult[Any]:
    """Take a turn up where it was; a finished one is recalled. Code comes from `agents`, never from the store.

    One that was paused rests on, unless whoever resumes it says that it may go on.
    """
    agents = list(agents)
    row = await engine.store.turn(turn_id)
    if row is None:
        raise TurnNotFound(
            f"there is no turn {turn_id} in {engine.store.location}",
            f"list the unfinished turns: wakeful resume --list --store {engine.store.location}",
        )
    if not row.is_open:
        return await recall(engine, row, next((agent for agent in agents if agent.name == row.agent_name), None))
    agent = agent_named(row, agents)
    if lift_pause:
        await unpause_turn(engine, turn_id)
    others = tuple(agents)
    request = RunRequest(
        agent, "", deps=deps, watcher=watcher, stream=stream, approver=approver, workflows=WorkflowTerms(agents=others)
    )
    request.patience = Patience(agent.retry.patience, is_pressing=lift_pause)
    return await run_on(engine, row, request)


def agent_named(row: TurnRow, agents: Sequence[Agent[Any, Any]]) -> Agent[Any, Any]:
    """The agent of a turn among those that were supplied. Raises AgentMissing."""
    for agent in agents:
        if agent.name == row.agent_name:
            return agent
    given = ", ".join(repr(agent.name) for agent in agents) or "none"
    raise AgentMissing(
        f"turn {row.turn_id} belongs to agent {row.agent_name!r}, which was not supplied (given: {given})",
        "nothing was changed; pass it in agents=[...], or name its tools with --tools module:name",
    )


async def continue_turn(engine: Engine, turn_id: str, request: RunRequest) -> RunResult[Any]:
    """Go on with a turn that this request began and that rested on something which is there now."""
    row = await engine.store.turn(turn_id)
    assert row is not None, f"{turn_id} was begun here"
    return await run_on(engine, row, request, waits=True)


async def check_money(
    engine: Engine, request: RunRequest, limits: Limits, message: UserItem, models: Sequence[Model]
) -> None:
    """Raises InvalidBudget where the money is less than the price of the input and a short answer, with any model."""
    if limits.usd is None or not limits.final_answer_reserve or request.workflows.run is not None:
        return
    await engine.pricing.ready(models)
    instructions = request.agent.instructions
    told = len(instructions) if isinstance(instructions, str) else 0
    heard = tokens(told + characters([message]))
    now = engine.clock.now()
    settings = request.agent.settings
    prices = [engine.pricing.estimate(model, lambda: heard, short_answer(model, settings), now) for model in models]
    known = [Decimal(price.amount) for price in prices if price is not None]
    least = min(known, default=Decimal(0))
    if len(known) == len(prices) and least > Decimal(limits.usd):
        raise InvalidBudget(
            f"Budget(usd={limits.usd}) is less than one short answer costs: about {least:f} USD, with {heard:,} tokens "
            "of input",
            f"give at least {least:f}, or name a cheaper model",
        )
