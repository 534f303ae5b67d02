"""A call on its way to its run: through the gate, to whom it has to wait for, and on."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import takewhile
from typing import Any

from wakeful.contracts.envelope import Fact, before, step_id
from wakeful.contracts.events import (
    ActionRequired,
    FilesTainted,
    LimitChanged,
    PermissionEvaluated,
    RuntimeToolRequested,
    SubagentStarted,
    TaskCreated,
    ToolFailed,
    ToolResult,
)
from wakeful.decisions.levels import Call
from wakeful.decisions.policy.provenance import what_it_does
from wakeful.decisions.runtime_answers import is_answered_here
from wakeful.decisions.step import HitLimit, SkipCall, TakeUp
from wakeful.engine.calls import Calls
from wakeful.engine.children import RuntimeCalls
from wakeful.engine.level_gates import LevelGates
from wakeful.engine.outside_answers import OpenQuestions
from wakeful.engine.skipped_calls import skipped
from wakeful.engine.starts import Start
from wakeful.engine.turn_work import TurnWork
from wakeful.gate.call_at_gate import Admission, CallAtGate
from wakeful.tools.workflows import BUILD_WORKFLOW

MAX_CAUSE = 300
"""How much is said of why files are tainted."""


class CallIntake:
    """Takes up calls of a round, one by one."""

    def __init__(
        self,
        work: TurnWork,
        gates: LevelGates,
        calls: Calls,
        delegating: RuntimeCalls,
        waiting: OpenQuestions,
        arguments_of: Callable[[Call], dict[str, Any] | None],
    ) -> None:
        self._work = work
        self._gates = gates
        self._calls = calls
        self._delegating = delegating
        self._waiting = waiting
        self._arguments_of = arguments_of
        self._at_gate: dict[str, asyncio.Task[None]] = {}
        """Calls for which somebody (a hook, a lock) is waited for."""
        self._through: dict[str, Callable[[], Admission]] = {}
        """What the gate says now of calls that had to wait there, until that is on disk."""

    def take_up(self, step: TakeUp, starts: list[Start], fact_index: int) -> list[Fact]:
        """The facts with which a call passes the gate, or is held there; what is to start goes to `starts`."""
        work = self._work
        call = work.state.tree.calls[step.call_id]
        mediator = self._gates.of(call)
        if call.call_id in self._at_gate:
            return []  # it stands there already; asking again would ask predicates and hooks twice
        if starts and any(start.alone for start in starts):
            return []  # its turn comes when that one has ended
        waited = self._through.get(call.call_id)
        if waited is not None:
            admission = waited()
        else:
            admission = mediator.admit(
                call,
                self._arguments_of(call),
                now=work.now(),
                batch_id=self._batch_id(call),
                scheduling=step.scheduling,
            )
        if admission.later is not None:
            self._at_gate[call.call_id] = work.tasks.spawn(self._wait_at_gate(call, admission.later))
            return []
        if step.beyond is not None and _is_let_through(admission):
            # Hooks were heard about it, and that stays on record; the call itself is closed with the turn.
            heard = takewhile(lambda event: not isinstance(event, PermissionEvaluated), admission.events)
            facts = [work.fact(event, call.step, call.call_id, call.level) for event in heard]
            return [*facts, limit_reached(work, step.beyond)]
        dispatch = admission.dispatch
        alone = dispatch is not None and dispatch.declaration.serial
        if alone and (call.level.round.running or any(start.runs for start in starts)):
            # Its arguments make it stricter than its tool: it begins when nothing else runs, and is judged anew then.
            if waited is None:
                mediator.locks.let_go(call.call_id)
            return []
        if dispatch is None and call.call_id in mediator.locks.claimants:
            mediator.locks.let_go(call.call_id)  # it may have had its locks, and is not let through any more
        facts = [work.fact(event, call.step, call.call_id, call.level) for event in admission.events]
        if dispatch is not None and self._is_answered_here(dispatch):
            return [*facts, *self._answer_here(call, dispatch, admission, starts, fact_index)]
        if dispatch is not None:
            facts += self._about_to_write(call, dispatch)
            pure = dispatch.declaration.effect == "pure"
            begin = partial(self._let_run, dispatch, admission)
            starts.append(Start(begin, not pure, fact_index, runs=True, alone=alone))
        elif isinstance(admission.events[-1], ActionRequired | RuntimeToolRequested):
            # An approver is asked about an action; a client that runs a call is outside, and the turn rests on it.
            asks = isinstance(admission.events[-1], ActionRequired)
            starts.append(Start(partial(self.opened, call.call_id), True, fact_index, asks=asks))
        return facts

    def _about_to_write(self, call: Call, dispatch: CallAtGate) -> list[Fact]:
        """In a turn with untrusted input: whatever changes from now on may be of this call's making. So it is with a
        command where tainted files lie: it may read them, and write what it read elsewhere.

        On record before it begins, so that a crash leaves the files tainted; once it is over, it is told which ones.
        """
        work, declaration, roots = self._work, dispatch.declaration, dispatch.tool.write_roots
        cause = work.state.thread.exposure.untrusted
        if not cause and what_it_does(declaration).untrusted_result:
            cause = declaration.name
        if not cause and declaration.permission_class == "execute":
            cause = next((work.tainted_roots[root] for root in roots if root in work.tainted_roots), "")
        if not roots or not cause or declaration.is_read_only:
            return []
        since = dispatch.taints_since = work.clock.now()
        events = [FilesTainted(workspace=root, cause=cause[:MAX_CAUSE], since=since) for root in roots]
        return [work.fact(event, call.step, call.call_id, call.level) for event in events]

    def _is_answered_here(self, dispatch: CallAtGate) -> bool:
        work, name = self._work, dispatch.declaration.name
        return (
            is_answered_here(dispatch.declaration)
            or name in work.code.others
            or (name == BUILD_WORKFLOW.name and work.code.desk is not None)
        )

    def _answer_here(
        self, call: Call, dispatch: CallAtGate, admission: Admission, starts: list[Start], fact_index: int
    ) -> list[Fact]:
        """What is asked of the runtime itself is done in the commit of its intent."""
        self._through.pop(call.call_id, None)
        facts = self._delegating.begin(call, dispatch)
        at = admission.permission_at
        for place, fact in enumerate(facts):
            if isinstance(fact.event, ToolResult | ToolFailed) and at is not None:
                ref = before(len(admission.events) - at + place)
                fact.event = fact.event.model_copy(update={"permission_ref": ref})
        if isinstance(facts[0].event, SubagentStarted):
            starts.append(Start(partial(self._delegating.began, call.call_id, at), False, fact_index))
        elif isinstance(facts[0].event, TaskCreated):
            starts.append(Start(partial(self._begin_child, facts[0].event.task_id), True, fact_index))
        return facts

    def _begin_child(self, task_id: str, _: int) -> None:
        """The task that makes an agent is on disk: the agent may be made."""
        assert self._work.spawn_desk is not None
        self._work.spawn_desk.board.begin_child(task_id)

    def _batch_id(self, call: Call) -> str:
        return step_id(self._work.place.row.turn_id, call.step, call.level.id)

    def _let_run(self, dispatch: CallAtGate, admission: Admission, first_seq: int) -> None:
        self._through.pop(dispatch.call_id, None)
        self._calls.run(dispatch, admission, first_seq)

    async def _wait_at_gate(self, call: Call, later: Callable[[], Awaitable[Callable[[], Admission]]]) -> None:
        """Wait where the gate has to wait. What it then says is asked for when the call may be taken up, if ever."""
        judged = await later()
        if self._at_gate.pop(call.call_id, None) is None:
            self._gates.of(call).locks.let_go(call.call_id)  # the turn went on without it meanwhile
            return
        self._through[call.call_id] = judged
        self._work.inbox.look_again()

    async def leave(self) -> None:
        """The process or the caller goes away: nobody waits at the gate any more."""
        waiting = list(self._at_gate.values())
        self._at_gate.clear()
        for task in waiting:
            task.cancel()
        if waiting:
            await asyncio.wait(waiting)

    def opened(self, call_id: str, _: int) -> None:
        """What the call asks of somebody outside is on disk."""
        self._through.pop(call_id, None)
        call = self._work.state.tree.calls.get(call_id)
        if call is not None:
            self._waiting.opened(call)

    def skip(self, step: SkipCall) -> list[Fact]:
        """The facts with which a call ends that will not be run."""
        call = self._work.state.tree.calls[step.call_id]
        at_gate = self._at_gate.pop(call.call_id, None)
        if at_gate is not None:
            at_gate.cancel()
        self._through.pop(call.call_id, None)
        mediator = self._gates.of(call)
        mediator.locks.let_go(call.call_id)
        verdict = partial(mediator.passed_over, call, self._arguments_of(call), self._batch_id(call))
        return skipped(self._work, call, step.because, verdict)

    def close(self) -> None:
        """Nobody waits at the gate any more."""
        for at_gate in self._at_gate.values():
            at_gate.cancel()
        self._at_gate.clear()


def limit_reached(work: TurnWork, step: HitLimit) -> Fact:
    """That the turn has come to one of its limits."""
    event = LimitChanged(limit_name=step.name, limit=step.limit, observed=step.observed, what=step.what)
    return work.fact(event, work.state.step or None)


def _is_let_through(admission: Admission) -> bool:
    """Would it run now, or once somebody has been asked?"""
    asks = isinstance(admission.events[-1], ActionRequired | RuntimeToolRequested)
    return admission.dispatch is not None or asks
