"""Running a turn for somebody: admit, claim, run, report.

One path for every entrance. A key makes it repeatable: absent, the turn starts; unfinished, it is taken up where it
was; finished, the stored result comes back for free. The same program, run again, is the recovery procedure.
"""

from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack, suppress
from decimal import Decimal
from functools import partial
from typing import Any

from wakeful.contracts.amounts import InvalidBudget
from wakeful.contracts.approvals import Approval, Decided
from wakeful.contracts.budgets import Limits
from wakeful.contracts.content import parts_of
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.envelope import StoredFact
from wakeful.contracts.errors import AgentBusy, AgentMissing, StoreProblem, TurnNotFound, TurnUnreadable
from wakeful.contracts.events import ModelFailed, ModelRequested, TurnInterruptRequested
from wakeful.decisions.prompt_size import characters, tokens
from wakeful.engine.admission import (
    NewTurn,
    admit,
    allowed,
    check_bound,
    check_deps,
    check_names,
    fingerprint_of,
    reused,
    storable,
)
from wakeful.engine.agent import Agent
from wakeful.engine.given_history import items_from
from wakeful.engine.model_requests import short_answer
from wakeful.engine.outside_answers import Approver
from wakeful.engine.prepare.agents_inside import check_called
from wakeful.engine.prepare.conversation import checkpoint, keep_warm
from wakeful.engine.prepare.models import ModelChoices, check_window, model_choices
from wakeful.engine.prepare.retrieval import check_collections
from wakeful.engine.prepare.start_facts import start_facts
from wakeful.engine.prepare.turn import prepare
from wakeful.engine.run_request import Engine, RunRequest, WorkflowTerms
from wakeful.engine.runner import TurnRunner
from wakeful.engine.state_loader import fold
from wakeful.engine.turn_messages import in_log_order
from wakeful.engine.watchers import Watcher
from wakeful.ports import Claim, Model, TurnRow
from wakeful.service.commands.approvals import decide
from wakeful.service.commands.client_requests import announce
from wakeful.service.commands.cut_off_turns import close_cut_off
from wakeful.service.commands.interruption import supersede
from wakeful.service.commands.run_report import report
from wakeful.service.commands.spend_windows import still_full
from wakeful.service.commands.steering import is_paused, unpause_turn
from wakeful.service.commands.turns_at_rest import end_unreadable, rest_until_due
from wakeful.service.entrance import starts
from wakeful.service.hooks import HookRegistry
from wakeful.service.hooks import hooks as default_hooks
from wakeful.service.run_result import RunResult
from wakeful.views.conversation_export import turn_facts


async def run_turn(engine: Engine, request: RunRequest) -> RunResult[Any]:
    """Start, resume or recall a turn, and wait until it rests."""
    await starts.enter()
    agent, store = request.agent, engine.store
    check_names(request)
    message = UserItem(parts=storable(parts_of(request.prompt)))
    fingerprint = fingerprint_of(agent.name, message, request.workflows.run)
    known = await store.turn_of_key(request.key) if request.key is not None else None
    new: NewTurn | None = None
    choices: ModelChoices | None = None
    if known is None:
        # Whatever can be wrong with the request is wrong before its message is safe: afterwards it is owed an answer.
        check_deps(agent, request.deps, "a new turn")
        check_bound(agent, request.context)
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
        known = new.turn
    try:
        if known.fingerprint != fingerprint:
            raise reused(request.key or "", known, agent.name, message)
        return await _answer(engine, request, known, new, choices)
    except BaseException:
        if new is not None and new.reservation is not None:
            with suppress(StoreProblem):
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
    if known.agent_id != known.agent_name:  # made for this one turn: there is no other
        return await run_on(engine, known, request, choices, waits=True, new=new)
    for earlier in await store.turns_of_thread(known.agent_id, known.thread_id, open_only=True):
        # One turn a thread, in the order they were admitted: what was acknowledged first is answered first.
        if earlier.first_seq < known.first_seq:
            await run_on(engine, earlier, request, choices, waits=True)
    return await run_on(engine, known, request, choices, waits=True, new=new)


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
            f"see which there are: wakeful resume --list --store {engine.store.location}",
        )
    agent = next((agent for agent in agents if agent.name == row.agent_name), None)
    if not row.is_open:
        return await recall(engine, row, agent)
    if agent is None:
        given = ", ".join(repr(agent.name) for agent in agents) or "none"
        raise AgentMissing(
            f"turn {turn_id} belongs to agent {row.agent_name!r}, which was not supplied (given: {given})",
            "nothing was changed; pass it in agents=[...], or name its tools with --tools module:name",
        )
    if lift_pause:
        await unpause_turn(engine, turn_id)
    others = tuple(agents)
    request = RunRequest(
        agent, "", deps=deps, watcher=watcher, stream=stream, approver=approver, workflows=WorkflowTerms(agents=others)
    )
    return await run_on(engine, row, request)


async def continue_turn(engine: Engine, turn_id: str, request: RunRequest) -> RunResult[Any]:
    """Go on with a turn that this request began and that rested on something which is there now."""
    row = await engine.store.turn(turn_id)
    assert row is not None, f"{turn_id} was begun here"
    return await run_on(engine, row, request, waits=True)


async def recall(engine: Engine, row: TurnRow, agent: Agent[Any, Any] | None) -> RunResult[Any]:
    """A turn that is over or at rest, from the log, for free."""
    recorded = await engine.store.read(row.agent_id, after=row.window_from - 1, thread_id=row.thread_id)
    folded = await fold(engine.store, row, recorded, lost=True)
    facts = await in_log_order(engine.store, row.turn_id, turn_facts(recorded, row.turn_id))
    return await report(engine.store, row, folded.state, lambda: facts, agent)


async def run_on(
    engine: Engine,
    row: TurnRow,
    request: RunRequest,
    choices: ModelChoices | None = None,
    *,
    waits: bool = False,
    new: NewTurn | None = None,
) -> RunResult[Any]:
    """Run it until it rests. A spend window that turns in a moment is waited for, with the turn at rest meanwhile."""
    result = await _run(engine, row, request, choices, waits, new)
    while result.stop_reason == "cost":
        # Before looking: nothing is missed in between.
        watch = engine.store.watch(row.agent_id, thread_id=row.thread_id, feed="outsiders")
        try:
            now = await engine.store.turn(row.turn_id) or row
            if not now.is_open:
                return await recall(engine, now, request.agent)
            if not await rest_until_due(engine, now, watch):
                break
        finally:
            watch.close()
        try:
            result = await _run(engine, row, request, choices, waits, None)
        except AgentBusy:
            break  # somebody else was faster with it, and goes on
    return result


async def _run(
    engine: Engine,
    row: TurnRow,
    request: RunRequest,
    choices: ModelChoices | None,
    waits: bool,
    new: NewTurn | None,
) -> RunResult[Any]:
    """Claim the turn and run it until it rests, after what another process left open in the thread's turns.

    While somebody else runs it, or another turn of its thread, it is waited for: in this process always, in another one
    by those whose caller wants the answer. Raises AgentBusy for all others.
    """
    store, watch = engine.store, None
    reservation = new.reservation if new is not None else None
    try:
        while True:
            try:
                await close_cut_off(engine, row)
                claim = await store.claim(row.turn_id, reservation=reservation)
                break
            except AgentBusy as busy:
                if not waits and not busy.here:
                    raise
            if watch is None:  # and look again: nothing is missed in between
                watch = store.watch(row.agent_id, thread_id=row.thread_id, feed="lease")
                continue
            now = await store.turn(row.turn_id)
            if now is not None and not now.is_open:
                return await recall(engine, now, request.agent)
            await watch.wait()
    finally:
        if watch is not None:
            watch.close()
    return await run_claimed(engine, row, request, choices, claim, new.facts if new is not None else ())


async def run_claimed(
    engine: Engine,
    row: TurnRow,
    request: RunRequest,
    choices: ModelChoices | None,
    claim: Claim,
    facts: Sequence[StoredFact],
) -> RunResult[Any]:
    """Run a turn that is in our hands until it rests, and let go of it. `facts` are its own, where they are known; of a
    turn that is to be opened, the messages that it takes."""
    store = engine.store
    stack = AsyncExitStack()
    try:
        if not claim.opens and (
            not facts or claim.head != facts[-1].seq
        ):  # somebody has written since, or nobody knows
            facts, row = (), await store.turn(row.turn_id) or row
        if not row.is_open or await _still_waits(engine, row, request):
            return await recall(engine, row, request.agent)
        try:
            prepared = await prepare(engine, row, claim, request, stack, partial(_decided, engine), choices, facts)
        except TurnUnreadable as gone:
            if claim.opens:
                raise  # its messages stay in the queue
            await end_unreadable(engine, row, claim, gone)
            return await recall(engine, await store.turn(row.turn_id) or row, request.agent)
        work, record = prepared
        runner = TurnRunner(work, partial(checkpoint, work, record.conversation))
        if work.audience.watcher is not None:
            work.audience.tell(work.place.known())  # what is known already, before what is new
        known = work.place.known.last_seq
        await runner.run(await start_facts(request, work, record, runner.steps))
        if work.state.phase == "ended":
            keep_warm(work.place, work.state, record.conversation)
        if runner.steps.calls.is_awaiting_late_answers:
            engine.linger(runner.steps.calls.late_answers())
        if request.host.announce_requests and any(tool.answered_by == "client" for tool in work.config.tools):
            await announce(engine, [entry for entry in work.place.known() if entry.seq > known])
        # Without a lost attempt there is nothing to look for.
        if work.state.ledger.model_calls > work.state.model_usage.answers:
            await tell_retries([entry for entry in work.place.known() if entry.seq > known])
        return await report(store, row, work.state, work.place.known, request.agent)
    finally:
        await stack.aclose()
        await store.release(claim)


async def _decided(engine: Engine, record: Approval, decided: Decided, by: str) -> None:
    """An approver at hand decides as anybody would from outside."""
    await decide(engine, record.approval_id, decided, by=by)


async def _still_waits(engine: Engine, row: TurnRow, request: RunRequest) -> bool:
    """Does everything it rests on still rest with somebody outside? Then taking it up would change nothing."""
    if row.state != "suspended":
        return False
    recorded = await engine.store.read(row.agent_id, turn_id=row.turn_id)
    if any(isinstance(entry.fact.event, TurnInterruptRequested) for entry in recorded):
        return False
    if is_paused(recorded) or await still_full(engine, request.agent, recorded):
        return True
    if request.approver is not None:
        return False
    now = engine.clock.now()
    pending = {
        action.action_id
        for action in await engine.store.actions(pending_only=True, turn_id=row.turn_id)
        if action.expires_at > now
    }
    return bool(row.waiting_for) and pending.issuperset(row.waiting_for)


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


HOOK = "provider_turn_retry"


async def tell_retries(facts: Sequence[StoredFact], hooks: HookRegistry = default_hooks) -> None:
    """Tell the observers of `provider_turn_retry` of every attempt that followed a lost one, in the log's order."""
    lost: dict[str | None, ModelFailed] = {}
    for entry in facts:
        event, level = entry.fact.event, entry.fact.level
        if isinstance(event, ModelFailed):
            lost[level] = event
        elif isinstance(event, ModelRequested) and event.attempt > 1 and level in lost:
            failure = lost[level]
            provider, _, model = event.model_ref.partition(":")
            payload = {
                "provider_id": provider,
                "model_id": model,
                "attempt": event.attempt,
                "max_attempts": event.max_attempts,
                "delay_seconds": event.backoff_ms / 1000,
                "status": failure.status,
                "retry_after": failure.retry_after_ms / 1000 if failure.retry_after_ms is not None else None,
                "message": failure.message,
            }
            await hooks.observe(HOOK, payload)
