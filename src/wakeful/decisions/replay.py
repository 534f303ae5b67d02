"""Deciding again: fold a turn's facts one after another, and hold every recorded decision to what is decided now.

Before each fact that stands for a decision the state is asked (`decide`, `settle`, the gate, `ending`), and the fact
has to be among the answers, with the same numbers. What came from outside (a model's words, a tool's result, a
deadline, the code) is taken as it was. The first difference ends the replay: nothing after it means anything.

Somebody outside may write between two appends of the owner, who learns of it with its next append. So such a fact is
held back until a decision cannot be explained without it, and for as long as the owner could have decided without it:
at its end and when it is taken up again, a turn has seen everything.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, TypeAlias

from wakeful.contracts.budgets import MAX_TOOL_RESULT_BYTES
from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.events import (
    AnswerAccepted,
    AnswerRejected,
    AnyEvent,
    CompactionCompleted,
    CompactionFailed,
    CompactionStarted,
    ContinuationDecided,
    CostEstimated,
    FilesTainted,
    HookCompleted,
    HookFailed,
    HookStarted,
    LimitChanged,
    ModelFailed,
    ModelRequested,
    ModelResponseReattached,
    PermissionEvaluated,
    PlanningCompleted,
    PlanningFailed,
    PlanningStarted,
    RoutingFallbackApplied,
    SandboxApplied,
    ScratchWritten,
    SubagentCompleted,
    SubagentFailed,
    SubagentStarted,
    ToolCatalogResolved,
    ToolDispatched,
    ToolFailed,
    ToolResult,
    ToolStarted,
    TurnCompleted,
    TurnConfigChanged,
    TurnFailed,
    TurnInterruptApplied,
    TurnResumed,
    TurnSuspended,
    TurnTimeSkipped,
    WarningIssued,
    WorkflowNodeResolved,
)
from wakeful.contracts.events.tools import Opinion
from wakeful.contracts.spending import WindowPassed
from wakeful.contracts.tools import BY_DANGER
from wakeful.contracts.workflows import EDITOR_TOOLS
from wakeful.decisions.compaction_outcome import settled_fold
from wakeful.decisions.delegation import Refusal, child_of, jobs_of
from wakeful.decisions.differences import Difference, compared, spelled, words
from wakeful.decisions.evolve.conversations import writer_of
from wakeful.decisions.evolve.facts import evolve
from wakeful.decisions.ledger import KEPT_FOR_ANSWER, UNPRICED
from wakeful.decisions.levels import Call, Level, as_child, payload_schema
from wakeful.decisions.recovery import (
    CloseUnknown,
    LoseAttempt,
    ProbeStep,
    Reattach,
    Rerun,
    Settlement,
    resume_cause,
    settle,
    unknown_among,
)
from wakeful.decisions.retries import NO_BACKOFF, dispose
from wakeful.decisions.runtime_answers import ANSWERED_HERE, DELEGATING, SPAWN_PARALLEL
from wakeful.decisions.spend_windows import window_words
from wakeful.decisions.state import TurnState
from wakeful.decisions.turn import (
    DEPENDENCY_FAILED,
    AskCaller,
    AskModel,
    Because,
    CheckAnswer,
    EndLevel,
    Finish,
    Fold,
    HitLimit,
    ResolveNode,
    SkipCall,
    StartPlanning,
    Step,
    StopWork,
    Suspend,
    TakeUp,
    decide,
    places_left,
    stopped_level,
)
from wakeful.decisions.turn_end import ending

Gate: TypeAlias = Callable[[TurnState, Call, Literal["parallel", "serial"], tuple[Opinion, ...]], Sequence[AnyEvent]]
"""The events with which a call is let through, asked about or refused, given what code outside the log said."""


class Divergence(NamedTuple):
    """The first decision that does not come out the same."""

    event_id: str
    kind: str
    recorded: str
    recomputed: str


@dataclass(slots=True)
class Replay:
    """One turn, decided again. Feed it the turn's facts in the order of the log."""

    state: TurnState
    gate: Gate
    checked: dict[str, int] = field(default_factory=dict)
    """Decisions that came out the same, by the kind of their event."""
    divergence: Divergence | None = None
    _unseen: list[Fact] = field(default_factory=list)
    """What outsiders wrote and no decision has needed so far."""
    _decided: list[Step] = field(default_factory=list)
    """What was decided together with the last decision and has not come yet."""
    _late: bool = False
    """Something was seen since the last outcome, that may have been seen before what was decided since."""
    _unmade: int = 0
    """Requests decided since the last outcome that were not made: too dear for a level, or turned down."""
    _admission: list[AnyEvent] = field(default_factory=list)
    """The rest of what a call is let through or refused with."""
    _settlements: list[Settlement] = field(default_factory=list)
    """What a recovery has settled and has not written yet."""

    def feed(self, recorded: StoredFact) -> None:
        """Take in the next fact. Nothing is taken in after a divergence."""
        if self.divergence is not None:
            return
        fact = recorded.fact
        if fact.event.outsider and self.state.phase != "new":
            self._unseen.append(fact)
            return
        try:
            difference = self._check(fact)
            if difference is None:
                evolve(self.state, fact)
        except Exception as error:  # a log that was tampered with can break any step of the fold
            difference = Difference("a fact that cannot be folded", f"{type(error).__name__}: {error}")
        if difference is not None:
            self.divergence = Divergence(recorded.event_id, fact.event.kind, *difference)

    def same_page(self, recorded: StoredFact, differs: Sequence[str]) -> None:
        """A page of the conversation is what the thread's facts make of it, or differs in something."""
        kind = recorded.fact.event.kind
        if differs:
            what = f"pages that differ in {', '.join(differs)}"
            self.divergence = Divergence(recorded.event_id, kind, what, "pages with what the thread's facts come to")
        else:
            self.checked[kind] = self.checked.get(kind, 0) + 1

    # --- one fact ---------------------------------------------------------------------------------------------------

    def _check(self, fact: Fact) -> Difference | None:
        event = fact.event
        if isinstance(event, SandboxApplied | FilesTainted):
            return None  # what this machine can hold a call to, and what is in its files, is not in the log
        if self._admission:
            return self._rest_of_admission(fact)
        if self._settlements and not isinstance(event, TurnConfigChanged | ToolCatalogResolved | TurnTimeSkipped):
            return self._settled(fact, self._settlements.pop(0))
        match event:
            case ModelRequested():
                return self._asked(fact, event)
            case PermissionEvaluated():
                return self._taken_up(fact, None, event.said)
            case ToolDispatched(cause="approval"):
                return Difference("run what was approved", "nothing was asked")
            case HookStarted() | HookCompleted() | HookFailed() | WarningIssued() | ToolCatalogResolved():
                if fact.call_id is not None:
                    self._hold(lambda each: isinstance(each, TakeUp) and each.call_id == fact.call_id)
                return None  # what hooks say is outside the log; what follows from it is held to it
            case ToolStarted(dispatched=False) if self._is_passed_over(fact.call_id or ""):
                return None  # its end follows, and is held to the decision
            case ToolStarted():
                return self._taken_up(fact, event.scheduling if event.dispatched else None)
            case ToolFailed(status="skipped"):
                return self._one_of(fact, SkipCall(fact.call_id or "", _because(event)))
            case LimitChanged():
                return self._limited(fact, event)
            case TurnInterruptApplied():
                stop = StopWork(
                    event.cancelled_tool_call_ids,
                    event.skipped_tool_call_ids,
                    event.blocking_tool_call_ids,
                    event.cancelled_children,
                )
                return self._one_of(fact, stop) or self._same_interrupt(event)
            case AnswerRejected() if fact.level is not None:
                return self._one_of(fact, EndLevel(fact.level))  # what is wrong with it is judged by code
            case AnswerAccepted() | AnswerRejected():
                return self._one_of(fact, CheckAnswer()) or self._same_patience(event)
            case ContinuationDecided():
                return None if self.state.phase == "closing" else self._one_of(fact, AskCaller())
            case TurnCompleted() | TurnFailed():
                return self._ended(fact, event)
            case TurnResumed():
                return self._resumed(event)
            case TurnSuspended():
                return self._suspended(fact, event)
            case SubagentStarted():
                return self._child_began(fact, event)
            case SubagentCompleted() | SubagentFailed():
                return self._child_ended(fact, event)
            case WorkflowNodeResolved():
                return self._one_of(fact, ResolveNode(fact.call_id or ""))
            case CompactionStarted():
                fold = Fold(fact.level, event.trigger, event.cut, event.tokens_before)
                return self._one_of(fact, fold)
            case CompactionCompleted() | CompactionFailed():
                return self._folded(fact, event)
            case PlanningStarted():
                return self._one_of(fact, StartPlanning())
            case PlanningCompleted() | PlanningFailed():
                return self._planned(fact, event)
            case ToolDispatched():
                return self._repeated(fact, event)
            case ModelFailed():
                return self._lost(fact, event)
            case RoutingFallbackApplied() | CostEstimated():
                self._hold(lambda each: self._asks_for(each, fact))
                return None  # the request it explains follows, and is held to the decision
            case ScratchWritten():
                return None
            case ToolResult() | ToolFailed() if event.tool_name in ANSWERED_HERE:
                return None  # in the commit of a decision: what was decided together with it still follows
        self._decided = []  # an outcome: what is decided from here on is decided anew
        self._unmade = 0
        self._late = False
        return None

    def _find(self, is_it: Callable[[Step], bool]) -> Step | None:
        """The step among those that may be taken now, with as little of what is unseen as it needs."""
        found = next(filter(is_it, self._decided), None)
        if found is None:
            self._decided = decide(self.state)
            found = next(filter(is_it, self._decided), None)
        while found is None and self._unseen:
            self._see_next()
            self._decided = decide(self.state)
            found = next(filter(is_it, self._decided), None)
        if found is not None:
            self._decided.remove(found)
        elif self._late and places_left(self.state) > 0:
            # What was decided together with this may have brought up steps that now stand before it. Its owner had
            # given out the places before; that there is one is all that can be held to it.
            enough = len(self.state.tree.calls) + len(self.state.tree.levels) + 1
            found = next(filter(is_it, decide(self.state, more_places=enough)), None)
        return found

    def _hold(self, is_it: Callable[[Step], bool]) -> None:
        """Decide before the first of a step's facts: by the time of the next one, the turn's seconds may be used up."""
        if any(map(is_it, self._decided)):
            return
        decided = decide(self.state)
        if any(map(is_it, decided)):
            self._decided = decided

    @staticmethod
    def _asks_for(step: Step, fact: Fact) -> bool:
        """Is the step the request that the fact is about?"""
        return isinstance(step, AskModel) and (step.level, step.step) == (fact.level, fact.step)

    def _one_of(self, fact: Fact, step: Step, or_this: Callable[[Step], bool] = lambda _: False) -> Difference | None:
        if self._find(lambda each: each == step or or_this(each)) is None:
            return Difference(words(step), self._would())
        return self._same(fact)

    def _would(self) -> str:
        return "; ".join(map(words, self._decided)) or "nothing: wait for what is under way"

    def _same(self, fact: Fact) -> Difference | None:
        self.checked[fact.event.kind] = self.checked.get(fact.event.kind, 0) + 1
        return None

    def _see_next(self) -> None:
        evolve(self.state, self._unseen.pop(0))
        self._late = True

    def _see_all(self) -> None:
        while self._unseen:
            self._see_next()

    # --- the model --------------------------------------------------------------------------------------------------

    def _asked(self, fact: Fact, event: ModelRequested) -> Difference | None:
        wanted = AskModel(fact.step or 0, event.candidate, event.attempt, level=fact.level, final=event.final)

        def is_it(step: Step) -> bool:
            if not isinstance(step, AskModel):
                return False
            # What the next request would cost is outside the log: the money may be enough for one more.
            final = step.final or (event.final and fact.level is None and self._keeps_money())
            if replace(step, backoff=NO_BACKOFF, final=final) != wanted:
                return False
            return self._shown(wanted) == event.items

        step = self._find(is_it)
        if not isinstance(step, AskModel):
            said = f"{words(wanted)}, on {event.items} items"
            return Difference(said, f"{self._would()}, on {self._shown(wanted)} items")
        longest = step.backoff
        if event.backoff_ms > longest.ms or (not longest.jitter and event.backoff_ms != longest.ms):
            return Difference(
                f"wait {event.backoff_ms} ms", f"wait {'up to ' if longest.jitter else ''}{longest.ms} ms"
            )
        ref = self.state.model_at(event.candidate, self._level(fact.level))
        if ref is not None and spelled(ref) != spelled(event.model_ref):
            return Difference(f"ask {event.model_ref}", f"ask {ref}")
        return self._same(fact)

    def _keeps_money(self) -> bool:
        return self.state.limits.usd is not None and self.state.limits.final_answer_reserve

    def _shown(self, step: AskModel) -> int:
        """How many items the next request shows the model: a request takes along the notes there are."""
        level = self._level(step.level)
        return (
            len(level.conversation.items)
            + len(level.next_request.notes)
            + (step.final and not level.next_request.told_last)
        )

    def _level(self, level_id: str | None) -> Level:
        """The level of a fact; of one that names none that is open, the root: the decision will not fit."""
        return self.state.tree.levels.get(level_id, self.state) if level_id is not None else self.state

    def _lost(self, fact: Fact, event: ModelFailed) -> Difference | None:
        """What follows from a lost attempt is decided with it; only the provider knew whether it may be tried again."""
        level = self._level(fact.level)
        if level.phase != "asking":
            return self._turned_down(fact, event)
        asked = level.round.request
        self._unmade = 0
        if event.stage == "crash":
            self._decided = []
            if asked is not None and asked.reattached and event.disposition == "retry":
                return self._same(fact)  # the provider did not have the answer any more
            return Difference("lost in a crash", "nothing was taken up again here")
        more = self.state.has_model_after(event.candidate, level)
        allowed = {
            dispose(
                event.failure_kind,
                retryable=retryable,
                attempt=event.attempt,
                retry_after_ms=event.retry_after_ms,
                more_candidates=more,
            )
            for retryable in (None, True, False)
        }
        self._decided = []
        if event.disposition not in allowed:
            return Difference(f"{event.failure_kind}: {event.disposition}", " or ".join(sorted(allowed)))
        return self._same(fact)

    def _turned_down(self, fact: Fact, event: ModelFailed) -> Difference | None:
        """No request: the model said beforehand that it cannot be asked for this, or it cannot end such a level."""
        wanted = AskModel(fact.step or 0, event.candidate, event.attempt, level=fact.level)
        step = self._find(
            lambda each: isinstance(each, AskModel) and replace(each, backoff=NO_BACKOFF, final=False) == wanted
        )
        if step is None:
            return Difference(words(wanted), self._would())
        self._unmade += 1
        level = self._level(fact.level)
        disposition = "fallback" if self.state.has_model_after(event.candidate, level) else "abort"
        kinds = ("unsupported_transport", *(("contract_error",) if payload_schema(level) is not None else ()))
        if event.failure_kind not in kinds or event.disposition != disposition:
            return Difference(f"{event.failure_kind}: {event.disposition}", f"{' or '.join(kinds)}: {disposition}")
        return self._same(fact)

    # --- calls ------------------------------------------------------------------------------------------------------

    def _taken_up(self, fact: Fact, scheduling: str | None, said: tuple[Opinion, ...] = ()) -> Difference | None:
        call_id = fact.call_id or ""
        step = self._find(
            lambda each: isinstance(each, TakeUp) and each.call_id == call_id and scheduling in (None, each.scheduling)
        )
        if not isinstance(step, TakeUp):
            how = f" ({scheduling})" if scheduling else ""
            return Difference(f"take up {call_id}{how}", self._would())
        while True:
            admission = self.gate(self.state, self.state.tree.calls[call_id], step.scheduling, said)
            self._admission = [event for event in admission if not isinstance(event, SandboxApplied)]
            difference = self._rest_of_admission(fact)
            if difference is None or not self._unseen:
                return difference
            self._see_next()  # a rule that somebody gave or took back may be why

    def _is_passed_over(self, call_id: str) -> bool:
        if any(isinstance(each, TakeUp) and each.call_id == call_id for each in (*self._decided, *decide(self.state))):
            return False  # refused at the gate, whatever has arrived unseen
        skip = self._find(lambda each: isinstance(each, SkipCall) and each.call_id == call_id)
        if skip is not None:
            self._decided.append(skip)
        return skip is not None

    def _rest_of_admission(self, fact: Fact) -> Difference | None:
        event, expected = fact.event, self._admission.pop(0)
        if isinstance(event, ToolStarted) and isinstance(expected, ToolStarted) and event.policy == "sandboxed":
            # That something held it follows from the machine it ran on; that it was let through follows from the log.
            policy = "sandboxed" if expected.policy == "allowed" else expected.policy
            expected = expected.model_copy(update={"policy": policy})
        return compared(event, _as_strict(event, expected)) or self._same(fact)

    def _repeated(self, fact: Fact, event: ToolDispatched) -> Difference | None:
        """Not a recovery: a keyed call that ran out of time is tried once more, with the same key."""
        call = self.state.tree.calls[fact.call_id or ""]
        said = Difference(f"run {call.call_id} again, attempt {event.attempt} ({event.cause})", "")
        if call.effect != "keyed" or event.cause != "timeout" or not call.running:
            return said._replace(recomputed=f"no repeat: {call.part.name} is {call.effect}")
        if event.attempt != call.dispatches + 1:
            return said._replace(recomputed=f"attempt {call.dispatches + 1}")
        self._decided = []
        return self._same(fact)

    # --- levels -----------------------------------------------------------------------------------------------------

    def _child_began(self, fact: Fact, event: SubagentStarted) -> Difference | None:
        """A child follows from its call: from who made it, and from the arguments where they stand in the log."""
        call = self.state.tree.calls.get(fact.call_id or "")
        said = Difference(f"start {event.level_id}", "")
        if call is None or not call.running:
            return said._replace(recomputed="no call to start it")
        level, arguments = call.level, call.replaced or call.part.arguments
        if event.depth != level.depth + 1:
            return said._replace(recomputed=f"depth {level.depth + 1}")
        if arguments is not None and level.config is not None and call.part.name in DELEGATING:
            jobs = jobs_of(call.part.name, arguments, level.config)
            if isinstance(jobs, Refusal):
                return said._replace(recomputed=f"no child: {jobs.message}")
            if event.index >= len(jobs):
                return said._replace(recomputed=f"only {len(jobs)} jobs")
            alone = call.part.name != SPAWN_PARALLEL
            expected = child_of(call.part.name, call, level, jobs[event.index], event.index, alone)
            return compared(event, expected) or self._same(fact)
        return self._same(fact)

    def _child_ended(self, fact: Fact, event: SubagentCompleted | SubagentFailed) -> Difference | None:
        error = event.error if isinstance(event, SubagentFailed) else ""
        level = self._level(event.level_id)

        def is_it(step: Step) -> bool:
            return isinstance(step, EndLevel) and (step.level, step.error) == (event.level_id, error)

        self._hold(is_it)
        if not any(map(is_it, self._decided)) and isinstance(event, SubagentFailed) and self._gave_way(level, event):
            self._decided.append(EndLevel(event.level_id, error))
        step = self._find(is_it)
        if step is None and self._is_dropped_draft(level, error):
            step = self._find(lambda each: isinstance(each, EndLevel) and each.level == event.level_id)
        if step is None:
            return Difference(words(EndLevel(event.level_id, error)), self._would())
        if event.steps != level.step:
            return Difference(f"{event.steps} rounds", f"{level.step} rounds")
        return self._same(fact)

    def _gave_way(self, level: Level, event: SubagentFailed) -> bool:
        """In older logs a child also ended when others were about to make the last requests, made or not."""
        limits = self.state.limits
        if level.phase not in ("ready", "lost") or event.details.get("reason") != "llm_calls":
            return False
        if limits.model_calls is None or not limits.final_answer_reserve:
            return False
        others = sum(isinstance(each, AskModel) and each.level != level.id for each in decide(self.state))
        return limits.model_calls - self.state.ledger.model_calls - others - self._unmade <= 1

    def _is_dropped_draft(self, level: Level, error: str) -> bool:
        """What a child drew is judged by code. A turn that is ended at rest, without any, drops it."""
        stop, child = self.state.stop, as_child(level)
        draws = child is not None and child.started.tool in EDITOR_TOOLS
        return draws and stop is not None and error == stopped_level(level, stop).error

    def _planned(self, fact: Fact, event: PlanningCompleted | PlanningFailed) -> Difference | None:
        step = self._find(lambda each: isinstance(each, EndLevel) and each.level == event.level_id)
        if not isinstance(step, EndLevel):
            return Difference(words(EndLevel(event.level_id)), self._would())
        if isinstance(event, PlanningCompleted) and step.error:
            return Difference(event.kind, words(step))
        return self._same(fact)

    def _folded(self, fact: Fact, event: CompactionCompleted | CompactionFailed) -> Difference | None:
        """Who wrote the summary is outside the log; that nothing was lost that had to be kept is held to it."""
        level = self._level(fact.level)
        writer = writer_of(self.state, event.compaction_id)
        if writer is None:
            return Difference(f"fold {event.compaction_id}", "nothing is being folded here")
        step = self._find(lambda each: isinstance(each, EndLevel) and each.level == writer.id)
        if not isinstance(step, EndLevel):
            return Difference(words(EndLevel(writer.id or "")), self._would())
        while (difference := self._same_fold(level, writer, step, event)) is not None and self._unseen:
            self._see_next()  # something that was open may have been settled meanwhile
        return difference or self._same(fact)

    def _same_fold(
        self, level: Level, writer: Level, step: EndLevel, event: CompactionCompleted | CompactionFailed
    ) -> Difference | None:
        if any(getattr(part, "ref", None) is not None for part in writer.conversation.items[-1].parts):
            return None  # what it wrote is too long for the log, and is not read here
        expected = settled_fold(self.state, level, writer, step)
        if isinstance(expected, CompactionCompleted) and isinstance(event, CompactionCompleted):
            if event.summary_form != expected.summary_form:
                return None if event.cut == expected.cut else Difference("a summary", "another cut")
            held = ("cut", "pinned", "summary", "preserved_artifact_refs", "window")
            same = all(getattr(expected, name) == getattr(event, name) for name in held)
            return None if same else Difference("a summary", "another summary")
        return None if expected.kind == event.kind else Difference(event.kind, expected.kind)

    # --- limits, stops, answers -------------------------------------------------------------------------------------

    def _limited(self, fact: Fact, event: LimitChanged) -> Difference | None:
        if event.limit_name in ("tokens", "cost", "subtasks", "bytes") and event.what != "history":
            return self._weighed(fact, event)
        step = HitLimit(event.limit_name, event.limit, event.observed, event.what)
        difference = self._one_of(fact, step, lambda each: isinstance(each, TakeUp) and each.beyond == step)
        seconds = self.state.limits.seconds
        if difference is None or event.limit_name != "wall_clock" or seconds != event.limit:
            return difference
        stop = self.state.stop
        if stop is not None and (stop.interrupt_id is None or stop.is_overdue):
            return difference
        # The timer's own word: it watches what is under way, and needs no decision to speak.
        state = self.state
        worked = (state.time.active_us + max(0, fact.at - state.time.stretch_from)) / 1_000_000
        if worked < seconds:
            return Difference(words(step), f"{worked:g} s were used")
        return self._same(fact)

    def _weighed(self, fact: Fact, event: LimitChanged) -> Difference | None:
        """What a step would have taken is outside the log; that it would have been too much is not."""
        limits = self.state.limits
        if event.window is not None:
            return self._passed_window(fact, event, event.window)
        if event.what == UNPRICED and event.limit_name == "cost" and event.limit == 0 and limits.usd is None:
            self._decided = []  # under a spend window, which is the owner's and outside the log
            return self._same(fact)
        allowed = {
            "tokens": (limits.tokens, limits.input_tokens, limits.output_tokens),
            "cost": (float(limits.usd) if limits.usd is not None else None, limits.unpriced_token_ceiling),
            "subtasks": (limits.subtasks,),
            "bytes": (limits.result_bytes, MAX_TOOL_RESULT_BYTES),
        }[event.limit_name]
        if event.limit not in allowed:
            return Difference(f"stop at {event.limit_name}={event.limit:g}", f"the limits are {allowed}")
        if event.observed <= event.limit and not event.what:
            return Difference(f"observed {event.observed:g}", f"not more than {event.limit:g}")
        if event.what == KEPT_FOR_ANSWER and fact.level in self.state.tree.levels:
            # Only its level ends: what was decided together with the request still follows.
            if self._find(lambda each: self._asks_for(each, fact)) is None:
                return Difference(f"ask in step {fact.step} of {fact.level}", self._would())
            self._unmade += 1
            return self._same(fact)
        self._decided = []
        return self._same(fact)

    def _passed_window(self, fact: Fact, event: LimitChanged, window: WindowPassed) -> Difference | None:
        """What others spent is outside the turn's log; that this was too much beside it is not."""
        if event.observed <= event.limit or event.limit != float(window.allowed):
            return Difference(f"rest: {window_words(window)}", f"{event.observed:g} of {event.limit:g} is no more")
        self._decided = []
        return self._same(fact)

    def _same_interrupt(self, event: TurnInterruptApplied) -> Difference | None:
        stop = self.state.stop
        wanted = stop.told_as if stop is not None else "none"
        return None if event.interrupt_id == wanted else Difference(event.interrupt_id, wanted)

    def _same_patience(self, event: AnswerAccepted | AnswerRejected) -> Difference | None:
        config = self.state.config
        if isinstance(event, AnswerAccepted) or config is None:
            return None
        final = self.state.answer.rejections >= config.output_retries
        return None if event.final == final else Difference(f"final={event.final}", f"final={final}")

    def _ended(self, fact: Fact, event: TurnCompleted | TurnFailed) -> Difference | None:
        self._see_all()  # a turn may not rest while there is something it has not seen
        step = self._find(
            lambda each: isinstance(each, Finish) and (each.status, each.reason) == (event.status, event.stop_reason)
        )
        if not isinstance(step, Finish):
            return Difference(words(Finish(event.status, event.stop_reason)), self._would())
        return compared(event, ending(self.state, step, fact.at)) or self._same(fact)

    # --- rest and recovery ------------------------------------------------------------------------------------------

    def _suspended(self, fact: Fact, event: TurnSuspended) -> Difference | None:
        """Which code was there is not in the log; what could not be settled without it is."""
        self._see_all()
        if event.reason in ("approval_required", "runtime_tool_pending", "paused", "budget_window"):
            self._decided = []
            return self._one_of(fact, Suspend(event.reason, event.waiting_for))
        needed = sorted({self._tool_of(each) for each in settle(self.state) if isinstance(each, Rerun | ProbeStep)})
        self._decided = []
        if set(event.waiting_for) <= set(needed):
            return None
        return Difference(f"wait for {', '.join(event.waiting_for)}", f"only {', '.join(needed) or 'nothing'} is open")

    def _tool_of(self, settlement: Rerun | ProbeStep) -> str:
        return self.state.tree.calls[settlement.call_id].part.name

    def _resumed(self, event: TurnResumed) -> Difference | None:
        self._see_all()  # whoever takes a turn up reads all of it first
        cause = resume_cause(self.state)
        settlements = settle(self.state, from_late_owner=event.taken_from == "late")
        closing = unknown_among(settlements) if cause == "recovery" and event.cause == "closing" else []
        if event.cause != cause and not closing:
            return Difference(f"resumed: {event.cause}", f"resumed: {cause}")
        self._settlements = [*(closing or settlements)]
        self._decided = []
        self._unmade = 0
        self.checked["turn.resumed"] = self.checked.get("turn.resumed", 0) + 1
        return None

    def _settled(self, fact: Fact, settlement: Settlement) -> Difference | None:
        """The facts with which a recovery closes or repeats what was open, in its order."""
        written = _settlement(fact)
        # Whether the model that is there today can take an answer up again is not in the log: it may be lost, too.
        if isinstance(settlement, LoseAttempt | Reattach) and isinstance(written, LoseAttempt):
            asked, event = self._level(settlement.level).round.request, fact.event
            assert isinstance(event, ModelFailed) and asked is not None
            here = (fact.level, fact.step, event.candidate, event.attempt)
            there = (settlement.level, asked.step, asked.candidate, asked.attempt)
            return Difference(f"lose {here}", f"lose {there}") if here != there else self._same(fact)
        wanted: Settlement = settlement
        if isinstance(settlement, ProbeStep):  # asking the probe begins like a repeat
            wanted = Rerun(settlement.call_id, self.state.tree.calls[settlement.call_id].dispatches + 1)
        if written != wanted:
            return Difference(str(written) if written else f"{fact.event.kind} {fact.call_id or ''}", str(settlement))
        return self._same(fact)


def _because(event: ToolFailed) -> Because:
    if event.tool_error.kind == DEPENDENCY_FAILED:
        return "dependency"
    if event.abort_reason == "sibling_failed":
        return "sibling"
    if event.error_category == "sibling_canceled":
        return "completed"
    return "budget" if event.abort_reason == "budget" else "cancelled"


def _settlement(fact: Fact) -> Settlement | None:
    """What a fact settles, if it settles anything."""
    call_id, event = fact.call_id or "", fact.event
    match event:
        case ModelFailed(stage="crash"):
            return LoseAttempt(fact.level)
        case ModelResponseReattached():
            return Reattach(event.response_id, fact.level)
        case ToolDispatched(cause="recovery"):
            return Rerun(call_id, event.attempt)
        case ToolFailed(effects="unknown", status="interrupted"):
            reason = (event.tool_error.details or {}).get("reason")
            return CloseUnknown(call_id, reason if reason in ("crash_loop", "late_owner") else "interrupted")
    return None


def _as_strict(event: AnyEvent, expected: AnyEvent) -> AnyEvent:
    """What is expected, as strict as what was recorded: a tool's code may have been stricter about this one call.

    What a declaration says stands in the log, what code said about the arguments does not. Looser it cannot have been.
    """
    if isinstance(event, PermissionEvaluated) and isinstance(expected, PermissionEvaluated):
        strict = event.destructive and not expected.destructive
        return expected.model_copy(update={"destructive": True}) if strict else expected
    if not (isinstance(event, ToolStarted) and isinstance(expected, ToolStarted)):
        return expected
    flags = {
        "effect": max(event.effect, expected.effect, key=BY_DANGER.index),
        "is_read_only": event.is_read_only and expected.is_read_only,
        "is_concurrency_safe": event.is_concurrency_safe and expected.is_concurrency_safe,
        "is_destructive": event.is_destructive or expected.is_destructive,
    }
    same = all(getattr(expected, name) == value for name, value in flags.items())
    return expected if same else expected.model_copy(update=flags)
