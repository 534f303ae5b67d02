"""Carrying out one step: the facts it begins with, and what starts once they are on disk."""

from collections.abc import Callable
from typing import Any, NamedTuple, assert_never

from wakeful.agents.calls import Calls
from wakeful.agents.requests import Requests
from wakeful.agents.work import TurnWork
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import LimitChanged, ModelResponseReattached, ToolDispatched, TurnInterruptApplied
from wakeful.contracts.tools import ToolError
from wakeful.decisions.ending import ending
from wakeful.decisions.state import Call
from wakeful.decisions.turn import (
    AskCaller,
    AskModel,
    CheckAnswer,
    Finish,
    HitLimit,
    SkipCall,
    Step,
    StopWork,
    TakeUp,
)
from wakeful.mediation.mediator import Mediator
from wakeful.mediation.outcomes import CallRecord, failed


class Start(NamedTuple):
    """Something that begins once its facts are on disk. `begin` is given the number of its first fact."""

    begin: Callable[[int], None]
    needs_barrier: bool = False
    """Its facts have to survive a power cut before it may begin."""
    fact_index: int = 0
    """Which fact of the pass is its first."""


class Steps:
    """Turns decided steps into facts and work."""

    def __init__(self, work: TurnWork, post: Callable[[list[Fact]], None]) -> None:
        self._work = work
        self.mediator = Mediator(work.config, work.tools, work.row.turn_id)
        self.calls = Calls(work, post)
        self.requests = Requests(work, post)

    def begin(self, step: Step, starts: list[Start], fact_index: int) -> list[Fact]:
        """The facts a step begins with; what is to start goes to `starts`."""
        work = self._work
        match step:
            case TakeUp():
                return self._take_up(step, starts, fact_index)
            case AskModel():
                intent = self.requests.intent(step)
                if intent.sends:
                    starts.append(Start(lambda _: self.requests.send(step, intent.model, intent.wait_ms)))
                return intent.facts
            case SkipCall():
                return self._skipped(step)
            case HitLimit():
                event = LimitChanged(limit_name=step.name, limit=step.limit, observed=step.observed)
                return [work.fact(event, work.state.step or None)]
            case StopWork():
                return [self._stop_work(step, starts)]
            case CheckAnswer():
                assert work.check_answer is not None
                return [work.fact(work.check_answer(work.state.final_text, work.state.answer_rejections))]
            case AskCaller():
                if not self.requests.busy:
                    self.requests.ask_caller()
                return []
            case Finish():
                return [work.fact(ending(work.state, step, work.clock.now()))]
            case _:
                assert_never(step)

    @property
    def may_repeat(self) -> bool:
        """Something that was begun before this process may be among the next facts."""
        return bool(self.calls.repeats) or self.requests.to_reattach is not None

    def repeated(self, outcomes: list[Fact]) -> list[Start]:
        """Second runs whose intents are among these facts."""
        starts = []
        for fact in outcomes:
            if isinstance(fact.event, ModelResponseReattached):
                starts.append(Start(lambda _: self.requests.reattach()))
            if isinstance(fact.event, ToolDispatched) and fact.call_id in self.calls.repeats:
                dispatch, probe_first = self.calls.repeats.pop(fact.call_id)
                pure = dispatch.declaration.effect == "pure"
                run = _run_again(self.calls, dispatch, probe_first)
                starts.append(Start(run, needs_barrier=not pure))
        return starts

    def arguments_of(self, call: Call) -> dict[str, Any] | None:
        """A call's arguments; None when the model did not write a JSON object."""
        if call.part.arguments is not None:
            return call.part.arguments
        return self.requests.arguments.get(call.call_id)

    def _take_up(self, step: TakeUp, starts: list[Start], fact_index: int) -> list[Fact]:
        work = self._work
        call = work.state.calls[step.call_id]
        admission = self.mediator.admit(
            call,
            self.arguments_of(call),
            now=work.now(),
            batch_id=f"{work.row.turn_id}/{call.step}",
            scheduling=step.scheduling,
        )
        dispatch = admission.dispatch
        if dispatch is not None:
            pure = dispatch.declaration.effect == "pure"
            starts.append(Start(lambda seq: self.calls.run(dispatch, seq), not pure, fact_index))
        return [work.fact(event, call.step, call.call_id) for event in admission.events]

    def _skipped(self, step: SkipCall) -> list[Fact]:
        work = self._work
        call = work.state.calls[step.call_id]
        cancelled = step.because == "cancelled"
        now = work.now()
        outcome = failed(
            CallRecord(call.call_id, call.part.name, now),
            ToolError(
                kind="skipped" if cancelled else "budget_exceeded",
                message="the turn was told to stop before this call began"
                if cancelled
                else "a limit of the turn was reached before this call began",
            ),
            now=now,
            status="skipped",
            category="canceled",
            effects="none",
            abort_reason="user_interrupt" if cancelled else "budget",
        )
        started = self.mediator.passed_over(call, self.arguments_of(call), f"{work.row.turn_id}/{call.step}")
        return [work.fact(event, call.step, call.call_id) for event in (started, outcome)]

    def _stop_work(self, step: StopWork, starts: list[Start]) -> Fact:
        work = self._work
        stop = work.state.stop
        assert stop is not None
        starts.append(Start(lambda _: self._tell_running(cancelled=stop.status == "cancelled")))
        event = TurnInterruptApplied(
            interrupt_id=stop.interrupt_id or f"limit:{stop.reason}",
            cancelled_tool_call_ids=step.running,
            skipped_tool_call_ids=step.waiting,
            latency_ms=max(0, (work.clock.now() - stop.requested_at) // 1000),
        )
        return work.fact(event)

    def _tell_running(self, *, cancelled: bool) -> None:
        self.requests.give_up()
        self.calls.stop("cancel" if cancelled else "budget")


def _run_again(calls: Calls, dispatch: Any, probe_first: bool) -> Callable[[int], None]:
    return lambda _: calls.run(dispatch, None, probe_first=probe_first)
