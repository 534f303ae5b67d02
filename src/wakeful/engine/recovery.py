"""Taking up a turn that was begun before: what a crash left open is settled, and only that.

Recovery decides nothing anew. It says that the turn goes on (`turn.resumed`), closes or repeats what was open by the
effect class of its own intent, and leaves the rest to the loop. It needs the store and the caller's code, nothing else.
"""

from typing import assert_never

from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import (
    AnyEvent,
    ModelResponseReattached,
    ToolDispatched,
    ToolFailed,
    TurnResumed,
)
from wakeful.contracts.tools import ToolError
from wakeful.decisions.levels import Call, Level, artifacts_of
from wakeful.decisions.recovery import (
    CloseUnknown,
    LoseAttempt,
    ProbeStep,
    Reattach,
    Rerun,
    ResumeCause,
    Settlement,
    resume_cause,
    settle,
    unknown_among,
)
from wakeful.decisions.turn import RULES
from wakeful.engine.calls import Repeat
from wakeful.engine.model_attempt import lost_in_crash
from wakeful.engine.steps import Steps
from wakeful.engine.turn_work import TurnWork
from wakeful.gate.call_at_gate import CallAtGate, CallRecord
from wakeful.gate.large_content import arguments_of
from wakeful.gate.outcomes import failed, unknown_error
from wakeful.gate.result_shape import shaped
from wakeful.ports.tasks import TaskRow
from wakeful.tools.results import READ_ARTIFACT
from wakeful.views.approval_record import expired

EXEC_COMMAND = "wakeful/exec_command"
NEWEST_TASKS = 100
"""Of the tasks of an agent, those among which a call's own is looked for: it was made just before the process ended."""


def missing_tools(work: TurnWork) -> list[str]:
    """Tools without which what is open cannot be settled."""
    calls = [work.state.tree.calls[each.call_id] for each in _settlements(work) if isinstance(each, Rerun | ProbeStep)]
    return sorted({call.part.name for call in calls if not _has_code(work, call)})


def _has_code(work: TurnWork, call: Call) -> bool:
    name = call.part.name
    return name in work.code.tools_of(call.level) or (name == READ_ARTIFACT and bool(artifacts_of(call.level)))


async def recovered(work: TurnWork, steps: Steps) -> list[Fact]:
    """The facts that take the turn up again. Every tool they need is there (`missing_tools`)."""
    state = work.state
    settlements = _settlements(work)
    facts = [resumed(work)]
    for call in state.all_open_calls():
        if call.part.arguments_ref is not None:
            known = steps.requests.of(call.level).arguments
            known[call.call_id] = await arguments_of(call.part, work.place.store.get_blob)
    for settlement in settlements:
        match settlement:
            case LoseAttempt():
                facts.append(_lost_attempt(work, state.level(settlement.level)))
            case Reattach():
                facts.append(_taken_up_again(work, steps, state.level(settlement.level), settlement.response_id))
            case Rerun() | ProbeStep():
                facts.append(
                    _again(work, steps, state.tree.calls[settlement.call_id], isinstance(settlement, ProbeStep))
                )
            case CloseUnknown():
                facts += await _known_or_unknown(work, settlement)
            case _:
                assert_never(settlement)
    now = work.clock.now()
    facts.extend(
        work.fact(expired(call.pending), call.step, call.call_id, call.level)  # nobody saw its time run out
        for call in state.tree.waiting.values()
        if call.is_waiting and call.pending is not None and call.pending.expires_at <= now
    )
    return facts


async def given_up(work: TurnWork) -> list[Fact]:
    """The facts that take a turn up only to end it: what is open is closed, and none of its code is needed."""
    facts = [resumed(work)]
    for settlement in _settlements(work):
        if isinstance(settlement, LoseAttempt | Reattach):
            facts.append(_lost_attempt(work, work.state.level(settlement.level)))
            continue
        call = work.state.tree.calls[settlement.call_id]
        if isinstance(settlement, CloseUnknown) and call.effect != "pure":
            facts += await _known_or_unknown(work, settlement)
        else:
            closed = _closed(work, call, "interrupted") if call.effect != "pure" else _not_again(work, call)
            facts.append(work.fact(closed, call.step, call.call_id, call.level))
    return facts


def _not_again(work: TurnWork, call: Call) -> ToolFailed:
    """It changed nothing, whether it happened or not."""
    told = f"The process ended while {call.part.name} ran, and it is not run again."
    return failed(
        _record(work, call),
        ToolError(kind="cancelled", message=told),
        now=work.now(),
        status="interrupted",
        category="canceled",
        effects="none",
        abort_reason="runtime_shutdown",
    )


async def closed_beforehand(work: TurnWork) -> list[Fact]:
    """The facts that close what nobody can find out about, and leave the rest of the turn to who takes it up."""
    closed = [fact for each in unknown_among(_settlements(work)) for fact in await _known_or_unknown(work, each)]
    return [resumed(work, "closing"), *closed] if closed else []


def resumed(work: TurnWork, cause: ResumeCause | None = None) -> Fact:
    """The turn goes on: why, and who ran it before."""
    before = "late" if _is_from_late_owner(work) else work.place.claim.taken_from
    return work.fact(TurnResumed(cause=cause or resume_cause(work.state), taken_from=before, rules=RULES))


def _settlements(work: TurnWork) -> list[Settlement]:
    return settle(work.state, from_late_owner=_is_from_late_owner(work))


def _is_from_late_owner(work: TurnWork) -> bool:
    """Was the turn last run by an owner that lives and was only late? Whoever resumed it since then settled that."""
    upto = work.place.claim.late_upto
    return upto > 0 and work.place.known.resumed_at <= upto


def _lost_attempt(work: TurnWork, level: Level) -> Fact:
    asked = level.round.request
    assert asked is not None
    words = "the process ended before the answer was stored"
    return work.fact(lost_in_crash(asked.model_ref, asked.candidate, asked.attempt, words), asked.step, None, level)


def _taken_up_again(work: TurnWork, steps: Steps, level: Level, response_id: str) -> Fact:
    """An answer that the provider has, or is making, is asked for by its id, unless today's model cannot do that."""
    asked = level.round.request
    assert asked is not None
    if not steps.requests.of(level).will_reattach(asked):
        return _lost_attempt(work, level)
    event = ModelResponseReattached(
        model_ref=asked.model_ref, candidate=asked.candidate, attempt=asked.attempt, response_id=response_id
    )
    return work.fact(event, asked.step, None, level)


def _again(work: TurnWork, steps: Steps, call: Call, probe_first: bool) -> Fact:
    attempt = call.dispatches + 1
    mediator = steps.gates.of(call)
    arguments = steps.requests.arguments_of(call) or {}
    at = CallAtGate(_record(work, call))
    is_there = mediator.again(at, arguments, attempt)
    assert is_there, "missing_tools was asked before"
    may_begin = mediator.still_approved(call, arguments)
    steps.calls.repeats[call.call_id] = Repeat(at, probe_first, may_begin=may_begin)
    return work.fact(ToolDispatched(attempt=attempt, cause="recovery"), call.step, call.call_id, call.level)


async def _known_or_unknown(work: TurnWork, settlement: CloseUnknown) -> list[Fact]:
    """The end of a call that was cut off: it became a task, which knows its turn and its call, or nobody knows."""
    call = work.state.tree.calls[settlement.call_id]
    row = await _task_of(work, call)
    if row is None:
        events: list[AnyEvent] = [_closed(work, call, settlement.why)]
    else:
        from wakeful.tools.local.task_commands import promoted_to_task, told

        result, gate = told(promoted_to_task(row), row), work.gate
        events = await shaped(
            _record(work, call), result, now=work.now, keep=gate.keep, keys=gate.keys(), most=gate.result_bytes()
        )
    return [work.fact(event, call.step, call.call_id, call.level) for event in events]


async def _task_of(work: TurnWork, call: Call) -> TaskRow | None:
    if call.part.name != EXEC_COMMAND:
        return None
    turn = work.place.row
    newest = await work.place.store.tasks_of(turn.agent_id, limit=NEWEST_TASKS)
    # Another thread may have a call of the same id: some providers give none, and those of a thread are counted.
    its_own = (turn.turn_id, call.call_id)
    return next((row for row in newest if (row.parent_turn_id, row.parent_call_id) == its_own), None)


def _closed(work: TurnWork, call: Call, why: str) -> ToolFailed:
    name = call.part.name
    told = (
        f"The process ended {call.dispatches} times while {name} ran, so it is not tried again."
        if why == "crash_loop"
        else f"The process that ran {name} was stopped or hung, and may still finish it."
        if why == "late_owner"
        else f"The process ended while {name} ran."
    )
    error = unknown_error(name, told)
    if why == "late_owner":
        error = error.model_copy(update={"details": {"reason": "late_owner"}})
    if why == "crash_loop":
        error = error.model_copy(update={"details": {"reason": "crash_loop", "dispatches": call.dispatches}})
    return failed(
        _record(work, call),
        error,
        now=work.now(),
        status="interrupted",
        category="execution_failed",
        effects="unknown",
        abort_reason="runtime_shutdown",
    )


def _record(work: TurnWork, call: Call) -> CallRecord:
    record = CallRecord(call, (call.started_at or work.clock.now()) / 1_000_000)
    record.permission_ref, record.sandbox_ref = work.place.known.refs_of(call.call_id)
    return record
