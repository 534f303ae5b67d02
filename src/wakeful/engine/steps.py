"""Carrying out one step: the facts it begins with, and what starts once they are on disk."""

from collections.abc import Callable
from functools import partial
from typing import Any, assert_never

from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import (
    ActionRequired,
    ModelResponseReattached,
    ModelWaitEnded,
    ToolDispatched,
    TurnInterruptApplied,
    TurnInterruptIgnored,
    TurnSuspended,
)
from wakeful.decisions.answer_ends import cut_answer
from wakeful.decisions.levels import Call, Level, PlannerRole, SummaryRole, as_child
from wakeful.decisions.provider_waits import wait_fact
from wakeful.decisions.state import Stop
from wakeful.decisions.step import (
    AskCaller,
    AskModel,
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
    WaitForProvider,
)
from wakeful.decisions.turn_end import ending
from wakeful.engine.call_intake import CallIntake, limit_reached
from wakeful.engine.calls import Calls
from wakeful.engine.children import RuntimeCalls
from wakeful.engine.level_gates import LevelGates
from wakeful.engine.model_requests import Attention, Requests
from wakeful.engine.outside_answers import OpenQuestions
from wakeful.engine.reply_ends import asked_again
from wakeful.engine.runtime_levels import HistoryCompactor, PlanWriter
from wakeful.engine.starts import Start
from wakeful.engine.turn_work import TurnWork
from wakeful.engine.workflow_nodes import WorkflowNodes


class LevelRequests:
    """What each level asks models, made when it is first needed."""

    def __init__(self, work: TurnWork, post: Callable[[list[Fact]], None], attention: Attention) -> None:
        self._work = work
        self._post = post
        self._attention = attention
        self._by_level: dict[str | None, Requests] = {}

    def of(self, level: Level) -> Requests:
        found = self._by_level.get(level.id)
        if found is None:
            found = self._by_level[level.id] = Requests(self._work, self._post, level, self._attention)
        return found

    def all(self) -> list[Requests]:
        return list(self._by_level.values())

    def forget(self, level: str) -> None:
        if (gone := self._by_level.pop(level, None)) is not None:
            self._attention.held_back.pop(gone, None)

    def arguments_of(self, call: Call) -> dict[str, Any] | None:
        """A call's arguments; None when the model did not write a JSON object."""
        if call.part.arguments is not None:
            return call.part.arguments
        return self.of(call.level).arguments.get(call.call_id)


class Steps:
    """Turns decided steps into facts and work."""

    def __init__(self, work: TurnWork, post: Callable[[list[Fact]], None]) -> None:
        self._work = work
        self.attention = Attention()
        self.requests = LevelRequests(work, post, self.attention)
        self.calls = Calls(work, post)
        self.delegating = RuntimeCalls(work, post)
        self.nodes = WorkflowNodes(work, post)
        self.folding = HistoryCompactor(work)
        self.planning = PlanWriter(work)
        self.waiting = OpenQuestions(work)
        self.gates = LevelGates(work)
        self.intake = CallIntake(
            work, self.gates, self.calls, self.delegating, self.waiting, self.requests.arguments_of
        )

    def begin(self, step: Step, starts: list[Start], fact_index: int) -> list[Fact]:
        """The facts a step begins with; what is to start goes to `starts`."""
        work = self._work
        match step:
            case TakeUp():
                return self.intake.take_up(step, starts, fact_index)
            case AskModel():
                requests = self.requests.of(work.state.level(step.level))
                intent = requests.intent(step)
                if intent.sends:
                    starts.append(Start(lambda _: requests.send(step, intent)))
                return intent.facts
            case SkipCall():
                return self.intake.skip(step)
            case ResolveNode():
                call = work.state.tree.calls[step.call_id]
                return self.nodes.resolve(call, self.requests.of(call.level).arguments)
            case Suspend():
                about_to_ask = work.people.approver is not None and any(start.asks for start in starts)
                if self.waiting.is_busy or about_to_ask:
                    return []  # an approver is being asked: its word, or that it has none, will be an outcome
                event = TurnSuspended(reason=step.reason, waiting_for=step.waiting_for, next_try=step.next_try)
                return [work.fact(event)]
            case WaitForProvider():
                level = work.state.level(step.level)
                waits = wait_fact(work.state, step, step.wait.draw(work.terms.jitter()))
                return [work.fact(waits, step.step, None, level)]
            case HitLimit():
                return [limit_reached(work, step)]
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
                facts = self._end_level(level, step)
                if facts:
                    self.requests.forget(step.level)
                    self.gates.forget(step.level)
                return facts
            case Fold():
                return self.folding.begin(step)
            case StartPlanning():
                return self.planning.begin()
            case CheckAnswer():
                assert work.code.check_answer is not None
                if not work.texts.is_here(work.state):
                    return []  # it is on its way
                if (cut := cut_answer(work.state)) is not None:
                    return [work.fact(asked_again(work.state, work.code.models_of(work.state), cut.message))]
                return [work.fact(work.code.check_answer(work.texts.of(work.state), work.state.answer.rejections))]
            case AskCaller():
                requests = self.requests.of(work.state)
                if not requests.busy:
                    requests.ask_caller()
                return []
            case Finish():
                return [work.fact(ending(work.state, step, work.clock.now()))]
            case _:
                assert_never(step)

    def _end_level(self, level: Level, step: EndLevel) -> list[Fact]:
        match level.role:
            case SummaryRole():
                return self.folding.end(level, step)
            case PlannerRole():
                return self.planning.end(level, step)
            case _:
                return self.delegating.end(step)

    @property
    def expects_outcomes(self) -> bool:
        """May there be something to start among the outcomes? Looked at once a pass."""
        return bool(self.calls.repeats) or self.calls.surroundings.asked or bool(self.attention.reattaching)

    def repeated(self, outcomes: list[Fact]) -> list[Start]:
        """Second runs whose intents are among these facts, answers that are asked for again, questions of tools."""
        starts = []
        for index, fact in enumerate(outcomes):
            repeat = self.calls.repeats.get(fact.call_id or "")
            if isinstance(fact.event, ModelResponseReattached):
                requests = self.requests.of(self._work.state.level(fact.level))
                starts.append(Start(partial(self._reattach, requests)))
            elif repeat is not None and isinstance(fact.event, ToolDispatched):
                pure = repeat.dispatch.declaration.effect == "pure"
                starts.append(Start(partial(self.calls.run_again, repeat), not pure))
            elif isinstance(fact.event, ActionRequired):
                starts.append(Start(partial(self.intake.opened, fact.call_id or ""), True, index, asks=True))
        return starts

    def under_way(self) -> list[tuple[str, float]]:
        """Requests and calls that were begun: the name of the tool, blank for a model, and the seconds since."""
        asked = [("", requests.seconds) for requests in self.requests.all() if requests.busy]
        return [*asked, *self.calls.under_way()]

    def next_due(self) -> int | None:
        """The earliest time at which something that is waited for in this process is over."""
        waits = [level.round.wait for level in self._work.state.tree.away.values()]
        times = [*(wait.next_try for wait in waits if wait is not None), *self.attention.held_back.values()]
        return min(times, default=None)

    def waits_over(self, rung: int) -> list[Fact]:
        """What was waited for until this time goes on: quick attempts, and levels, of which the facts say so."""
        held_back, work = self.attention.held_back, self._work
        for requests in [each for each, due in held_back.items() if due <= rung]:
            del held_back[requests]
        return [
            work.fact(ModelWaitEnded(), level.step, None, level)
            for level in work.state.tree.away.values()
            if level.round.wait is not None and level.round.wait.next_try <= rung
        ]

    def close(self) -> None:
        """The turn rests, or this runner goes down: nobody waits here any more, and no lock stays behind."""
        self.waiting.close()
        self.intake.close()
        self.calls.release_locks()
        self.gates.let_go(spared=self.calls.with_locks)

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
        for requests in self.requests.all():
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
                self.requests.of(level).give_up()

    def _reattach(self, requests: Requests, _: int) -> None:
        requests.reattach()
        stop = self._work.state.stop
        if stop is not None and stop.applied:
            requests.give_up()
