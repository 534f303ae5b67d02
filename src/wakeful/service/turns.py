"""Running a turn for somebody: admit, claim, run, report.

One path for every entrance. A key makes it repeatable: absent, the turn starts; unfinished, it is taken up where it
was; finished, the stored result comes back for free. The same program, run again, is the recovery procedure.
"""

import asyncio
from collections.abc import Iterable
from contextlib import AsyncExitStack
from typing import Any

from wakeful.agents.definition import Agent
from wakeful.agents.folding import fold
from wakeful.agents.history import items_from
from wakeful.agents.runner import TurnRunner
from wakeful.agents.waiting import Approver
from wakeful.agents.watching import Watcher
from wakeful.contracts.content import parts_of
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.errors import AgentBusy, AgentMissing, TurnNotFound, TurnUnreadable
from wakeful.contracts.events import TurnInterruptRequested
from wakeful.decisions.conversation_export import turn_facts
from wakeful.ports import TurnRow, Watch
from wakeful.service.admission import admit, check_bound, check_deps, fingerprint_of, reused, storable
from wakeful.service.client_requests import announce
from wakeful.service.cut_off import after_what_was_cut_off
from wakeful.service.interrupting import supersede
from wakeful.service.node_agents import check_called
from wakeful.service.phase_models import check_window, phase_models
from wakeful.service.preparing import opening, prepare
from wakeful.service.reports import report
from wakeful.service.requests import RunRequest, Runtime
from wakeful.service.results import RunResult
from wakeful.service.retries import tell_retries
from wakeful.service.retrieving import check_collections
from wakeful.service.routing import choices_of
from wakeful.service.spending import still_full, turns_soon
from wakeful.service.steering import is_paused, unpause_turn
from wakeful.service.turns_at_rest import end_unreadable


async def run_turn(runtime: Runtime, request: RunRequest) -> RunResult[Any]:
    """Start, resume or recall a turn, and wait until it rests."""
    agent, store = request.agent, runtime.store
    message = UserItem(parts=storable(parts_of(request.prompt)))
    fingerprint = fingerprint_of(agent.name, message, request.workflow)
    known = await store.turn_of_key(request.key) if request.key is not None else None
    if known is None:
        # Whatever can be wrong with the request is wrong before its message is safe: afterwards it is owed an answer.
        check_deps(agent, request.deps, "a new turn")
        check_bound(agent, request.context)
        check_collections(f"Agent {agent.name!r}", agent.collections, request.collections)
        choices = choices_of(runtime.resolve_model, agent)
        check_called(runtime, agent)
        phase_models(runtime, agent)
        check_window(agent, choices[0].model if choices else None)
        history = items_from(request.history) if request.history is not None else ()
        if request.supersede and request.thread is not None:
            speaker = request.principal.id if request.principal is not None else "caller"
            await supersede(runtime, agent.name, request.thread, requested_by=speaker)
        known = await admit(runtime, request, message, fingerprint, history)
    if known.fingerprint != fingerprint:
        raise reused(request.key or "", known, agent.name, message)
    if request.on_turn is not None:
        request.on_turn(known.turn_id, known.agent_id)
    if not known.is_open:
        return await recall(runtime, known, agent)
    for earlier in await store.turns_of_thread(known.agent_id, known.thread_id):
        # One turn a thread, in the order they were admitted: what was acknowledged first is answered first.
        if earlier.is_open and earlier.first_seq < known.first_seq:
            await _run_on(runtime, earlier, request)
    return await _run_on(runtime, known, request)


async def resume_turn(
    runtime: Runtime,
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
    row = await runtime.store.turn(turn_id)
    if row is None:
        raise TurnNotFound(
            f"there is no turn {turn_id} in {runtime.store.location}",
            f"see which there are: wakeful resume --list --store {runtime.store.location}",
        )
    agent = next((agent for agent in agents if agent.name == row.agent_name), None)
    if not row.is_open:
        return await recall(runtime, row, agent)
    if agent is None:
        given = ", ".join(repr(agent.name) for agent in agents) or "none"
        raise AgentMissing(
            f"turn {turn_id} belongs to agent {row.agent_name!r}, which was not supplied (given: {given})",
            "nothing was changed; pass it in agents=[...], or name its tools with --tools module:name",
        )
    if lift_pause:
        await unpause_turn(runtime, turn_id)
    others = tuple(agents)
    request = RunRequest(agent, "", deps=deps, watcher=watcher, stream=stream, approver=approver, agents=others)
    return await _run_on(runtime, row, request)


async def continue_turn(runtime: Runtime, turn_id: str, request: RunRequest) -> RunResult[Any]:
    """Go on with a turn that this request began and that rested on something which is there now."""
    row = await runtime.store.turn(turn_id)
    assert row is not None, f"{turn_id} was begun here"
    return await _run_on(runtime, row, request)


async def recall(runtime: Runtime, row: TurnRow, agent: Agent[Any, Any] | None) -> RunResult[Any]:
    """A turn that is over or at rest, from the log, for free."""
    recorded = await runtime.store.read(row.agent_id, after=row.window_from - 1, thread_id=row.thread_id)
    folded = await fold(runtime.store, row, recorded, lost=True)
    facts = turn_facts(recorded, row.turn_id)
    return await report(runtime.store, row, folded.state, lambda: facts, agent)


async def _run_on(runtime: Runtime, row: TurnRow, request: RunRequest) -> RunResult[Any]:
    """Run it until it rests. A spend window that turns in a moment is waited for, with the turn at rest meanwhile."""
    result = await _run(runtime, row, request)
    while result.stop_reason == "cost":
        watch = runtime.store.watch(row.agent_id, outsiders_only=True)  # before looking: nothing is missed in between
        try:
            now = await runtime.store.turn(row.turn_id) or row
            if not now.is_open:
                return await recall(runtime, now, request.agent)
            seconds = await turns_soon(runtime, now)
            if seconds is None:
                break
            await _sleep_unless_told(runtime, watch, seconds)
        finally:
            watch.close()
        try:
            result = await _run(runtime, row, request)
        except AgentBusy:
            break  # somebody else was faster with it, and goes on
    return result


async def _sleep_unless_told(runtime: Runtime, watch: Watch, seconds: float) -> None:
    """Until then, or until somebody says something to the turn: that it is to end, for one."""
    waiting = [asyncio.ensure_future(runtime.clock.sleep(seconds)), asyncio.ensure_future(watch.wait())]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waiting:
            each.cancel()


async def _run(runtime: Runtime, row: TurnRow, request: RunRequest) -> RunResult[Any]:
    """Claim the turn and run it until it rests, after what another process left open in the agent's other turns."""
    async with after_what_was_cut_off(runtime, row):
        return await _claimed(runtime, row, request)


async def _claimed(runtime: Runtime, row: TurnRow, request: RunRequest) -> RunResult[Any]:
    store = runtime.store
    while True:
        try:
            claim = await store.claim(row.turn_id)
            break
        except AgentBusy as busy:
            if not busy.here:
                raise
            finished = await _wait_for(runtime, row)
            if finished is not None:
                return await recall(runtime, finished, request.agent)
    stack = AsyncExitStack()
    try:
        row = await store.turn(row.turn_id) or row
        if not row.is_open or await _still_waits(runtime, row, request):
            return await recall(runtime, row, request.agent)
        try:
            prepared = await prepare(runtime, row, claim, request, stack)
        except TurnUnreadable as gone:
            await end_unreadable(runtime, row, claim, gone)
            return await recall(runtime, await store.turn(row.turn_id) or row, request.agent)
        work = prepared.work
        runner = TurnRunner(work)
        if work.watcher is not None:
            work.tell(work.known())  # what is known already, before what is new
        known = work.known.last_seq
        await runner.run(await opening(runtime, request, prepared, runner))
        if runner.steps.calls.is_awaiting_late_answers:
            runtime.linger(runner.steps.calls.late_answers())
        if request.announce_requests and any(tool.answered_by == "client" for tool in work.config.tools):
            await announce(runtime, [entry for entry in work.known() if entry.seq > known])
        if work.state.ledger.model_calls > work.state.answered:  # without a lost attempt there is nothing to look for
            await tell_retries([entry for entry in work.known() if entry.seq > known])
        return await report(store, row, work.state, work.known, request.agent)
    finally:
        await stack.aclose()
        await store.release(claim)


async def _still_waits(runtime: Runtime, row: TurnRow, request: RunRequest) -> bool:
    """Does everything it rests on still rest with somebody outside? Then taking it up would change nothing."""
    if row.state != "suspended":
        return False
    recorded = await runtime.store.read(row.agent_id, turn_id=row.turn_id)
    if any(isinstance(entry.fact.event, TurnInterruptRequested) for entry in recorded):
        return False
    if is_paused(recorded) or await still_full(runtime, request.agent, recorded):
        return True
    if request.approver is not None:
        return False
    now = runtime.clock.now()
    pending = {
        action.action_id
        for action in await runtime.store.actions(pending_only=True, turn_id=row.turn_id)
        if action.expires_at > now
    }
    return bool(row.waiting_for) and pending.issuperset(row.waiting_for)


async def _wait_for(runtime: Runtime, row: TurnRow) -> TurnRow | None:
    """Another task of this process runs the turn: wait until it rests or lets go."""
    watch = runtime.store.watch(row.agent_id)
    try:
        await watch.wait(timeout=0.2)
        now = await runtime.store.turn(row.turn_id)
        return now if now is not None and now.state not in ("admitted", "running") else None
    finally:
        watch.close()
