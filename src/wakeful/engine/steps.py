"""Carrying out one step: the facts it begins with, and what starts once they are on disk."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import takewhile
from typing import Any, NamedTuple, assert_never

from wakeful.contracts.envelope import Fact, before, step_id
from wakeful.contracts.events import (
    ActionRequired,
    ActionResolved,
    AnyEvent,
    CompactionCompleted,
    CompactionStarted,
    FilesTainted,
    LimitChanged,
    ModelResponseReattached,
    PermissionEvaluated,
    RuntimeToolRequested,
    RuntimeToolResolved,
    SubagentStarted,
    ToolDispatched,
    ToolFailed,
    ToolResult,
    TurnInterruptApplied,
    TurnInterruptIgnored,
    TurnSuspended,
)
from wakeful.contracts.events.tools import AbortReason, ErrorCategory
from wakeful.contracts.tools import Effects, ToolError
from wakeful.decisions.compaction_outcome import settled_fold, turns_before
from wakeful.decisions.levels import Call, Level, OutsideRequest, SummaryRole, artifacts_of, as_child, payload_schema
from wakeful.decisions.policy.provenance import what_it_does
from wakeful.decisions.run_ahead import may_run_ahead
from wakeful.decisions.runtime_answers import ANSWERED_HERE, FINISH
from wakeful.decisions.state import Stop
from wakeful.decisions.step import (
    DEPENDENCY_FAILED,
    AskCaller,
    AskModel,
    Because,
    CheckAnswer,
    EndLevel,
    Finish,
    Fold,
    HitLimit,
    IgnoreInterrupt,
    ResolveNode,
    SkipCall,
    StartPlanning,
    Step,
    StopWork,
    Suspend,
    TakeUp,
)
from wakeful.decisions.turn import CALLED_OFF
from wakeful.decisions.turn_end import ending
from wakeful.engine.calls import Calls
from wakeful.engine.children import RuntimeCalls
from wakeful.engine.context_facts import resolved_again
from wakeful.engine.model_requests import Attention, Requests
from wakeful.engine.outside_answers import OpenQuestions
from wakeful.engine.turn_work import TurnWork
from wakeful.engine.workflow_nodes import WorkflowNodes
from wakeful.gate.call_at_gate import Admission, CallAtGate
from wakeful.gate.outcomes import failed
from wakeful.gate.outside_answers import unanswered
from wakeful.gate.passage import Mediator
from wakeful.tools.artifact_reader import artifact_reader, with_reader
from wakeful.tools.results import READ_ARTIFACT
from wakeful.tools.runtime_tools import AnsweredHere
from wakeful.tools.workflows import BUILD_WORKFLOW
from wakeful.views.approval_record import cancelled as withdrawn

_SKIPPED: dict[Because, tuple[str, str, ErrorCategory, AbortReason | None]] = {
    "cancelled": ("skipped", "the turn was told to stop before this call began", "canceled", "user_interrupt"),
    "budget": ("budget_exceeded", "a limit of the turn was reached before this call began", "canceled", "budget"),
    "dependency": (DEPENDENCY_FAILED, "a node that it depends on did not succeed", "sibling_canceled", None),
    "sibling": ("sibling_canceled", CALLED_OFF, "sibling_canceled", "sibling_failed"),
    "completed": ("sibling_skipped", "the run was complete before this call began", "sibling_canceled", None),
}
"""What a call is told that was not run, by why."""
_ANSWERED_TOO_LATE: dict[Because, str] = {
    "cancelled": "cancelled",
    "budget": "budget_exceeded",
    "completed": "sibling_canceled",
    "sibling": "sibling_canceled",
    "dependency": "sibling_canceled",
}
"""What a call is told whose client had run it when the turn was over."""
_WITHDRAWN: dict[Because, str] = {"cancelled": "run_cancelled", "sibling": "sibling_failed"}
"""What is said of a question that nobody has to answer any more; of any other: `run_ended`."""

_PLAIN_ADMISSION = 2
"""The verdict and the beginning: no hook was heard, nothing holds the call."""
MAX_CAUSE = 300
"""How much is said of why files are tainted."""


class Start(NamedTuple):
    """Something that begins once its facts are on disk. `begin` is given the number of its first fact."""

    begin: Callable[[int], None]
    needs_barrier: bool = False
    """Its facts have to survive a power cut before it may begin."""
    fact_index: int = 0
    """Which fact of the pass is its first."""
    asks: bool = False
    """It asks an approver, if there is one: until it has begun, nobody knows whether the turn has to rest."""
    runs: bool = False
    """It is a call that runs."""
    alone: bool = False
    """Nothing may begin beside it."""
    ahead: "CallAhead | None" = None
    """A call that may begin before its facts are on disk."""


class CallAhead(NamedTuple):
    """A lone pure call on its way out of the gate."""

    dispatch: CallAtGate
    admission: Admission

    @property
    def verdict_at(self) -> int:
        """Which fact of its admission is the verdict."""
        assert self.admission.permission_at is not None
        return self.admission.permission_at


class Steps:
    """Turns decided steps into facts and work."""

    def __init__(self, work: TurnWork, post: Callable[[list[Fact]], None]) -> None:
        self._work = work
        self._post = post
        self._mediators: dict[str | None, Mediator] = {}
        self._artifact_gates: dict[str | None, Mediator] = {}
        self._requests: dict[str | None, Requests] = {}
        """Of each level, made when it is first needed."""
        self.attention = Attention()
        self.calls = Calls(work, post)
        self.delegating = RuntimeCalls(work, post)
        self.nodes = WorkflowNodes(work, post)
        self.folding = HistoryCompactor(work)
        self.waiting = OpenQuestions(work)
        self._at_gate: dict[str, asyncio.Task[None]] = {}
        """Calls for which somebody (a hook, a lock) is waited for."""
        self._through: dict[str, Callable[[], Admission]] = {}
        """What the gate says now of calls that had to wait there, until that is on disk."""
        self.slow: set[str] = set()
        """Tools with a call that ran ahead and was not over soon: theirs go the usual way from then on."""

    def requests_of(self, level: Level) -> Requests:
        found = self._requests.get(level.id)
        if found is None:
            found = self._requests[level.id] = Requests(self._work, self._post, level, self.attention)
        return found

    def mediator_of(self, call: Call) -> Mediator:
        """The gate as the configuration of the call's level makes it: a child has fewer tools than its parent."""
        level = call.level
        if call.part.name == READ_ARTIFACT and (reads := self._artifact_gate(level)) is not None:
            return reads
        found = self._mediators.get(level.id)
        if found is None:
            work = self._work
            config = work.config if level.id is None else level.config
            assert config is not None
            tools = work.code.tools_of(level)
            if payload_schema(level) is not None and (finish := config.tool(FINISH)) is not None:
                tools = {**tools, FINISH: AnsweredHere(finish)}
            found = self._mediators[level.id] = Mediator(config, tools, work.place.row.turn_id, work.gate)
        return found

    def _artifact_gate(self, level: Level) -> Mediator | None:
        """The gate for `read_artifact`, which no configuration names; None where nothing was spilled."""
        work = self._work
        config = work.config if level.id is None else level.config
        assert config is not None
        if not artifacts_of(level) or config.tool(READ_ARTIFACT) is not None:
            return None
        found = self._artifact_gates.get(level.id)
        if found is None:
            reader = artifact_reader(lambda: artifacts_of(level), work.place.store.get_blob)
            tools = {READ_ARTIFACT: reader}
            turn_id = work.place.row.turn_id
            found = self._artifact_gates[level.id] = Mediator(with_reader(config), tools, turn_id, work.gate)
        return found

    @property
    def every_request(self) -> list[Requests]:
        return list(self._requests.values())

    def begin(self, step: Step, starts: list[Start], fact_index: int) -> list[Fact]:
        """The facts a step begins with; what is to start goes to `starts`."""
        work = self._work
        match step:
            case TakeUp():
                return self._take_up(step, starts, fact_index)
            case AskModel():
                requests = self.requests_of(work.state.level(step.level))
                intent = requests.intent(step)
                if intent.sends:
                    starts.append(Start(lambda _: requests.send(step, intent)))
                return intent.facts
            case SkipCall():
                return self._skipped(step)
            case ResolveNode():
                call = work.state.tree.calls[step.call_id]
                return self.nodes.resolve(call, self.requests_of(call.level).arguments)
            case Suspend():
                about_to_ask = work.people.approver is not None and any(start.asks for start in starts)
                if self.waiting.is_busy or about_to_ask:
                    return []  # an approver is being asked: its word, or that it has none, will be an outcome
                return [work.fact(TurnSuspended(reason=step.reason, waiting_for=step.waiting_for))]
            case HitLimit():
                return [self._limited(step)]
            case StopWork():
                return [self._stop_work(step, starts)]
            case IgnoreInterrupt():
                return [work.fact(TurnInterruptIgnored(interrupt_id=step.interrupt_id, ignore_reason="already_ending"))]
            case EndLevel():
                level = work.state.tree.levels[step.level]
                child = as_child(level)
                has_finished = child is not None and child.has_finished
                if not step.error and not has_finished and not work.texts.is_here(level):
                    return []  # what it came to is on its way
                is_summary = isinstance(level.role, SummaryRole)
                facts = self.folding.end(level, step) if is_summary else self.delegating.end(step)
                if facts:
                    self._requests.pop(step.level, None)
                    self._mediators.pop(step.level, None)
                return facts
            case Fold():
                return self.folding.begin(step)
            case StartPlanning():
                return self.delegating.plan()
            case CheckAnswer():
                assert work.code.check_answer is not None
                if not work.texts.is_here(work.state):
                    return []  # it is on its way
                return [work.fact(work.code.check_answer(work.texts.of(work.state), work.state.answer.rejections))]
            case AskCaller():
                requests = self.requests_of(work.state)
                if not requests.busy:
                    requests.ask_caller()
                return []
            case Finish():
                return [work.fact(ending(work.state, step, work.clock.now()))]
            case _:
                assert_never(step)

    @property
    def expects_outcomes(self) -> bool:
        """May there be something to start among the outcomes? Looked at once a pass."""
        return bool(self.calls.repeats) or self.calls.asked or bool(self.attention.reattaching)

    def repeated(self, outcomes: list[Fact]) -> list[Start]:
        """Second runs whose intents are among these facts, answers that are asked for again, questions of tools."""
        starts = []
        for index, fact in enumerate(outcomes):
            repeat = self.calls.repeats.get(fact.call_id or "")
            if isinstance(fact.event, ModelResponseReattached):
                requests = self.requests_of(self._work.state.level(fact.level))
                starts.append(Start(partial(self._reattach, requests)))
            elif repeat is not None and isinstance(fact.event, ToolDispatched):
                pure = repeat.dispatch.declaration.effect == "pure"
                starts.append(Start(partial(self.calls.run_again, repeat), not pure))
            elif isinstance(fact.event, ActionRequired):
                starts.append(Start(partial(self._opened, fact.call_id or ""), True, index, asks=True))
        return starts

    def _opened(self, call_id: str, _: int) -> None:
        self._through.pop(call_id, None)
        call = self._work.state.tree.calls.get(call_id)
        if call is not None:
            self.waiting.opened(call)

    def close(self) -> None:
        """The turn rests, or this runner goes down: nobody waits here any more, and no lock stays behind."""
        self.waiting.close()
        self._work.tasks.close()
        for at_gate in self._at_gate.values():
            at_gate.cancel()
        self._at_gate.clear()
        self.calls.release_locks()
        for mediator in self._mediators.values():
            for call_id in mediator.locks.claimants - self.calls.with_locks:
                mediator.locks.let_go(call_id)

    def arguments_of(self, call: Call) -> dict[str, Any] | None:
        """A call's arguments; None when the model did not write a JSON object."""
        if call.part.arguments is not None:
            return call.part.arguments
        return self.requests_of(call.level).arguments.get(call.call_id)

    def _take_up(self, step: TakeUp, starts: list[Start], fact_index: int) -> list[Fact]:
        work = self._work
        call = work.state.tree.calls[step.call_id]
        mediator = self.mediator_of(call)
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
                self.arguments_of(call),
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
            return [*facts, self._limited(step.beyond)]
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
        if dispatch is not None and self._is_answered_here(dispatch.declaration.name):
            return [*facts, *self._answer_here(call, dispatch, admission, starts, fact_index)]
        if dispatch is not None:
            is_quick = waited is None and self._may_run_ahead(call, dispatch, admission)
            ahead = CallAhead(dispatch, admission) if is_quick else None
            facts += self._about_to_write(call, dispatch)
            pure = dispatch.declaration.effect == "pure"
            begin = partial(self._let_run, dispatch, admission)
            starts.append(Start(begin, not pure, fact_index, False, True, alone, ahead))
        elif isinstance(admission.events[-1], ActionRequired | RuntimeToolRequested):
            # An approver is asked about an action; a client that runs a call is outside, and the turn rests on it.
            asks = isinstance(admission.events[-1], ActionRequired)
            starts.append(Start(partial(self._opened, call.call_id), True, fact_index, asks=asks))
        return facts

    def _may_run_ahead(self, call: Call, dispatch: CallAtGate, admission: Admission) -> bool:
        """Not where anybody looks at the log before or after the call, or sees what it does while it does it."""
        work, tool = self._work, dispatch.tool
        return (
            may_run_ahead(work.state, call, dispatch.declaration)
            and len(admission.events) == _PLAIN_ADMISSION
            and dispatch.declaration.name not in self.slow
            and work.after_call is None
            and work.terms.windows is None
            and (work.audience.watcher is None or not tool.sees_cancel)
            and not tool.write_roots
        )

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

    def _limited(self, step: HitLimit) -> Fact:
        event = LimitChanged(limit_name=step.name, limit=step.limit, observed=step.observed, what=step.what)
        return self._work.fact(event, self._work.state.step or None)

    def _is_answered_here(self, name: str) -> bool:
        work = self._work
        return (
            name in ANSWERED_HERE
            or name in work.code.others
            or (name == BUILD_WORKFLOW.name and work.code.desk is not None)
        )

    def _answer_here(
        self, call: Call, dispatch: CallAtGate, admission: Admission, starts: list[Start], fact_index: int
    ) -> list[Fact]:
        """What is asked of the runtime itself is done in the commit of its intent."""
        self._through.pop(call.call_id, None)
        facts = self.delegating.begin(call, dispatch)
        at = admission.permission_at
        for place, fact in enumerate(facts):
            if isinstance(fact.event, ToolResult | ToolFailed) and at is not None:
                ref = before(len(admission.events) - at + place)
                fact.event = fact.event.model_copy(update={"permission_ref": ref})
        if isinstance(facts[0].event, SubagentStarted):
            starts.append(Start(partial(self.delegating.began, call.call_id, at), False, fact_index))
        return facts

    def _batch_id(self, call: Call) -> str:
        return step_id(self._work.place.row.turn_id, call.step, call.level.id)

    def _let_run(self, dispatch: CallAtGate, admission: Admission, first_seq: int) -> None:
        self._through.pop(dispatch.call_id, None)
        self.calls.run(dispatch, admission, first_seq)

    async def _wait_at_gate(self, call: Call, later: Callable[[], Awaitable[Callable[[], Admission]]]) -> None:
        """Wait where the gate has to wait. What it then says is asked for when the call may be taken up, if ever."""
        judged = await later()
        if self._at_gate.pop(call.call_id, None) is None:
            self.mediator_of(call).locks.let_go(call.call_id)  # the turn went on without it meanwhile
            return
        self._through[call.call_id] = judged
        assert self._work.on_look is not None
        self._work.on_look()

    async def leave_gate(self) -> None:
        """The process or the caller goes away: nobody waits at the gate any more."""
        waiting = list(self._at_gate.values())
        self._at_gate.clear()
        for task in waiting:
            task.cancel()
        if waiting:
            await asyncio.wait(waiting)

    def _skipped(self, step: SkipCall) -> list[Fact]:
        work = self._work
        call = work.state.tree.calls[step.call_id]
        at_gate = self._at_gate.pop(call.call_id, None)
        if at_gate is not None:
            at_gate.cancel()
        self._through.pop(call.call_id, None)
        mediator = self.mediator_of(call)
        mediator.locks.let_go(call.call_id)
        kind, message, category, _ = _SKIPPED[step.because]
        now = work.now()
        if call.pending is not None and isinstance(call.pending.asked, RuntimeToolRequested):
            return self._unanswered(call, call.pending, step.because)
        outcome = failed(
            _record(work, call, now),
            ToolError(kind=kind, message=message),
            now=now,
            status="skipped",
            category=category,
            effects="none",
            abort_reason=self._abort_reason(step.because),
        )
        events: list[AnyEvent] = []
        if call.pending is None:
            events.append(mediator.passed_over(call, self.arguments_of(call), self._batch_id(call)))
        elif call.is_waiting:
            events.append(withdrawn(call.pending, _WITHDRAWN.get(step.because, "run_ended")))
        return [work.fact(event, call.step, call.call_id, call.level) for event in (*events, outcome)]

    def _abort_reason(self, because: Because) -> AbortReason | None:
        stop = self._work.state.stop
        return stop.abort if because == "cancelled" and stop is not None else _SKIPPED[because][-1]

    def _unanswered(self, call: Call, pending: OutsideRequest, because: Because) -> list[Fact]:
        """A client was asked to run the call, and the turn ends before an answer was taken in."""
        work, now = self._work, self._work.now()
        at = CallAtGate(call, call.started_at / 1_000_000 or now)
        events: list[AnyEvent] = []
        said = pending.said
        if said is None:
            said = withdrawn(pending, _WITHDRAWN.get(because, "run_ended"))
            events.append(said)
        assert isinstance(said, RuntimeToolResolved)
        if said.status == "runtime_tool_completed" and said.success:
            _, _, category, _ = _SKIPPED[because]
            error = ToolError(
                kind=_ANSWERED_TOO_LATE[because],
                message=f"the client ran {call.part.name}, and the turn was over before its answer was taken in",
            )
            effects: Effects = "none" if call.effect == "pure" else "possible"
            outcome = failed(
                *(at, error),
                now=now,
                status="cancelled",
                category=category,
                effects=effects,
                abort_reason=self._abort_reason(because),
            )
        else:
            outcome = unanswered(at, said, call.effect, now)
        return [work.fact(event, call.step, call.call_id, call.level) for event in (*events, outcome)]

    def _stop_work(self, step: StopWork, starts: list[Start]) -> Fact:
        work = self._work
        stop = work.state.stop
        assert stop is not None
        starts.append(Start(lambda _: self._tell_running(stop, step.blocking)))
        event = TurnInterruptApplied(
            interrupt_id=stop.told_as,
            cancelled_tool_call_ids=step.running,
            blocking_tool_call_ids=step.blocking,
            skipped_tool_call_ids=step.waiting,
            cancelled_children=step.children,
            latency_ms=max(0, (work.clock.now() - stop.requested_at) // 1000),
        )
        return work.fact(event)

    def _tell_running(self, stop: Stop, spared: tuple[str, ...] = ()) -> None:
        for requests in self.every_request:
            requests.give_up()
        self.calls.stop("cancel" if stop.status == "cancelled" else "budget", stop.abort, spared)

    def stop_again(self) -> None:
        """A turn that was told to stop is taken up: what is begun again on its way to the end is told at once."""
        stop = self._work.state.stop
        if stop is not None and stop.applied:
            self._tell_running(stop)

    def call_off(self) -> None:
        """Tell calls and levels that another call of their round failed. Telling them twice changes nothing."""
        state = self._work.state
        for name in state.tree.to_call_off:
            level = state.tree.levels.get(name)
            if level is None:
                self.calls.call_off(name)
            elif level.phase == "asking":
                self.requests_of(level).give_up()

    def _reattach(self, requests: Requests, _: int) -> None:
        requests.reattach()
        stop = self._work.state.stop
        if stop is not None and stop.applied:
            requests.give_up()


def _is_let_through(admission: Admission) -> bool:
    """Would it run now, or once somebody has been asked?"""
    asks = isinstance(admission.events[-1], ActionRequired | RuntimeToolRequested)
    return admission.dispatch is not None or asks


def _record(work: TurnWork, call: Call, now: float) -> CallAtGate:
    """What is on record about a call that will not be run: a person may have been asked about it."""
    at = CallAtGate(call, now)
    if call.pending is None:
        return at
    if isinstance(call.pending.asked, ActionRequired):
        at.approval_id = call.pending.action_id
        said = call.pending.said
        at.approval_status = said.status if isinstance(said, ActionResolved) else "rejected"
    verdicts = (entry for entry in work.place.known() if isinstance(entry.fact.event, PermissionEvaluated))
    for entry in verdicts:
        if entry.fact.call_id == call.call_id:
            at.permission_ref = entry.event_id
    return at


class HistoryCompactor:
    """Has summaries written, and puts them in the place of what they stand for."""

    def __init__(self, work: TurnWork) -> None:
        self._work = work

    def begin(self, step: Fold) -> list[Fact]:
        work = self._work
        level = work.state.level(step.level)
        number = level.conversation.compactions + 1
        event = CompactionStarted(
            compaction_id=f"cmp_{work.place.row.turn_id}_{level.step + 1}_{step.level or 'root'}",
            trigger=step.trigger,
            affected_turn_ids=turns_before(level, step.cut),
            tokens_before=step.tokens_before,
            cut=step.cut,
            level_id=f"{step.level or ''}~compaction:{number}.{level.step + 1}",
        )
        return [work.fact(event, None, None, level)]

    def end(self, writer: Level, step: EndLevel) -> list[Fact]:
        work, level = self._work, writer.parent
        assert level is not None
        event = settled_fold(
            work.state, level, writer, step, work.clock.now(), before(0), None if step.error else work.texts.of(writer)
        )
        facts = [work.fact(event, None, None, level)]
        if level.id is None and isinstance(event, CompactionCompleted):
            facts += map(work.fact, resolved_again(work.state, "compaction", folded=event))
        return facts
