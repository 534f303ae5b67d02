"""What a turn does next.

`decide` reads the state and names the steps that may begin now, beyond what is already under way. It is asked after
every outcome, not every batch. A step's facts are folded as soon as it is decided, so that asking again gives only what
is new; an empty answer means: wait, or it is over.

The order of precedence: a stop (cancel, limit) first, then a pause or a full spend window, then whatever the levels of
the turn can do: a lost attempt, open calls, the end of a round. The deepest come first, so that a tree is walked to its
leaves before it is widened. What runs and what is asked, in the whole tree, never exceeds the turn's width.
"""

from collections.abc import Sequence
from typing import Any, Literal

from wakeful.contracts.budgets import MAX_PARALLEL_PER_TURN, Limits
from wakeful.contracts.controls import awareness_limit
from wakeful.contracts.events import ActionRequired, RuntimeToolRequested
from wakeful.decisions.answer_ends import CutAnswer, cut_answer
from wakeful.decisions.compaction import context_tokens, cut_of, due, stop_words
from wakeful.decisions.levels import Call, ChildRole, Level, SummaryRole, too_many_rounds
from wakeful.decisions.policy.patterns import bare
from wakeful.decisions.retries import MAX_ATTEMPTS, backoff, wait_for
from wakeful.decisions.spend_windows import window_words
from wakeful.decisions.state import Stop, TurnState
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
    Scheduling,
    SkipCall,
    StartPlanning,
    Step,
    StopWork,
    Suspend,
    TakeUp,
    WaitForProvider,
)

MAX_CUT_TEXT = 2_000
"""How much of a child's unfinished answer its parent is told."""
RULES = 1
"""The number of the rules in `decisions`, as a turn names them when it begins and when it is taken up.

One more whenever what is decided of the same facts changes, once a release: replay then says of an older turn that it
was decided by earlier rules, and does not take the difference for a fault.
"""
CALLED_OFF = "another call of the round failed, and its tool calls off the others"


class _Room:
    """What is left while one answer of `decide` is put together: steps of the same answer share it."""

    __slots__ = ("asks", "calls", "limits", "requests", "slots", "state", "tools")

    def __init__(self, state: TurnState, more_places: int = 0) -> None:
        self.state = state
        limits = self.limits = state.limits
        self.slots = places_left(state) + more_places
        ledger = state.ledger
        self.requests = None if limits.model_calls is None else limits.model_calls - ledger.model_calls
        self.asks = False
        """A request is among the steps of this answer; what it would cost may yet keep it from being made."""
        self.calls = None if limits.tool_calls is None else limits.tool_calls - ledger.tool_calls
        self.tools: dict[str, int] = {}
        """Calls of tools with a limit of their own, decided in this answer."""


def places_left(state: TurnState) -> int:
    """How much more may be under way at a time."""
    width = state.limits.width if state.limits.width is not None else MAX_PARALLEL_PER_TURN
    return width - state.tree.in_flight


def decide(state: TurnState, more_places: int = 0) -> list[Step]:
    """The steps that may begin now; with `more_places`, those that would if there were so many more places."""
    if state.phase in ("new", "ended", "suspended"):
        return []
    if state.stop is not None:
        return _stopping(state)
    rest, tree = state.rest, state.tree
    if rest.is_paused:
        return [] if tree.in_flight else [Suspend("paused", ("pause",))]
    if rest.full_window is not None:
        return [] if tree.in_flight else [Suspend("budget_window", (window_words(rest.full_window),))]
    steps: list[Step] = []
    passed: HitLimit | TakeUp | None = None
    if tree.able:
        room = _Room(state, more_places)
        levels: Sequence[Level] = list(tree.able.values())
        if len(levels) > 1:
            levels = sorted(levels, key=_turn_of)
        for level in levels:
            found = _of_level(state, level, room)
            last = found[-1] if found else None
            if isinstance(last, HitLimit) or (isinstance(last, TakeUp) and last.beyond is not None):
                passed = passed or last
            elif passed is None or (found and isinstance(found[0], EndLevel)):
                steps.extend(found)  # after a limit that is passed nothing begins; what is at its end still ends
        if passed is not None and not steps:
            return [passed]
    if not steps and (tree.waiting or tree.away) and not tree.in_flight:
        return [_suspend(state)]
    return steps


def _depth(level: Level) -> int:
    return level.depth


def _turn_of(level: Level) -> tuple[int, int]:
    """The deepest first, and of those the one that was opened first."""
    return -level.depth, level.rank


def _of_level(state: TurnState, level: Level, room: _Room) -> list[Step]:
    phase = level.phase
    if phase in ("ready", "lost") and isinstance(level.role, ChildRole) and level.role.called_off:
        return [_ended(level, "cancelled", CALLED_OFF)]
    if phase == "acting":
        return _acting(state, level, room)
    if phase == "ready":
        return _next_round(state, level, room)
    if phase == "lost":
        return _lost(state, level, room)
    cut = cut_answer(level)
    if phase == "closing":
        return [AskCaller()] if level.round.go_on is None else [_finished(cut)]
    if level.id is not None:
        return [EndLevel(level.id) if cut is None or _has_result(level) else _cut_level(level, cut)]
    if level.config is not None and level.config.workflow is not None:
        lost = [call.call_id for call in level.round.batch if call.answer is None or call.answer.is_error]
        return [Finish("failed", "node_failed", level.answer.final_text) if lost else Finish("completed", "natural")]
    may_be_mended = cut is None or cut.cause == "cut_off"  # it may be asked for again, with more room
    if state.terms.structured and may_be_mended and not level.answer.is_checked and not state.is_to_rest:
        return [CheckAnswer()]
    return [_finished(cut)]


def _finished(cut: CutAnswer | None) -> Finish:
    return Finish("completed", "natural") if cut is None else Finish("incomplete", cut.cause, cut.message)


def _has_result(level: Level) -> bool:
    return isinstance(level.role, ChildRole) and level.role.has_finished


def _cut_level(level: Level, cut: CutAnswer) -> EndLevel:
    """Whoever made the level is told that its answer is not whole, and what there is of it."""
    said = {"output": level.answer.final_text[:MAX_CUT_TEXT]} if isinstance(level.role, ChildRole) else {}
    return _ended(level, cut.cause, cut.message, said)


def _next_round(state: TurnState, level: Level, room: _Room) -> list[Step]:
    """Another round, unless it would be one too many."""
    limits = state.limits
    if (
        level is state
        and not state.planning.is_over
        and level.step == 0
        and level.config
        and level.config.planning_enabled
    ):
        return [StartPlanning()]
    if level.id is not None and level.stop_error is not None:
        return [_ended(level, *level.stop_error)]
    if (stalled := _stalled(level)) is not None:
        return [stalled]
    most = limits.max_steps
    if most is not None and level.step >= most:
        if level.id is not None:
            return [_ended(level, *too_many_rounds(level, most))]
        return [HitLimit("max_steps", most, level.step + 1)]
    if (shorten := _too_long(state, level)) is not None:
        return [shorten]
    return _ask(state, level, room, AskModel(level.step + 1, 0, 1, level=level.id))


def _stalled(level: Level) -> HitLimit | EndLevel | None:
    """The same call, made once more and once more, gets nobody anywhere."""
    repeated = level.repeats.spinning.repeated if level.repeats.spinning is not None else None
    if repeated is None:
        return None
    words = f"{repeated.tool_name} with the same arguments"
    if level.id is None:
        return HitLimit("stalled", repeated.threshold, repeated.repeat_count, words)
    details = {"reason": "stalled", "limit": repeated.threshold, "observed": repeated.repeat_count}
    return _ended(level, "budget_exceeded", f"it called {words} {repeated.repeat_count} times in a row", details)


def _too_long(state: TurnState, level: Level) -> Fold | HitLimit | None:
    """What has to be done about a conversation that has grown too long for the next request; tried once for each."""
    found = due(level, state.limits.history_tokens)
    if found is None:
        return None
    percent = awareness_limit(level.config.budget_awareness) if level.config is not None else None
    if level.next_request.folds_for != level.step + 1 and (percent is None or percent > 0):
        cut = cut_of(level, found.allowed)
        if cut:
            return Fold(level.id, found.trigger, cut, found.used)
    if found.trigger == "context_budget" and percent is not None:
        words = stop_words(found.used, found.window, percent)
        return HitLimit("context_budget", percent, found.used * 100 // found.window, words)
    if state.limits.history_tokens is not None and found.used > state.limits.history_tokens:
        return HitLimit("tokens", state.limits.history_tokens, found.used, "history")
    return None  # the provider may still take it; if it does not, it says so


def _ask(state: TurnState, level: Level, room: _Room, step: AskModel) -> list[Step]:
    """The request, if it can be afforded and there is a place for it."""
    limits, left = state.limits, room.requests
    keeps_one = limits.final_answer_reserve and level.id is not None
    if left is not None and left <= keeps_one:
        if keeps_one and room.asks:
            return []  # another level is about to make the last one; if it is not made, there is room for this level
        if keeps_one:
            return [_ended(level, "budget_exceeded", *_no_requests(limits, state))]
        return [HitLimit("llm_calls", limits.model_calls or 0, state.ledger.model_calls + 1)]
    if late := _out_of_time(state):
        return [late]
    if room.slots <= 0:
        return []
    room.slots -= 1
    room.asks = True
    if left is not None:
        room.requests = left - 1
    if limits.final_answer_reserve and level is state and (left == 1 or step.step == limits.max_steps):
        step = AskModel(step.step, step.candidate, step.attempt, step.backoff, step.level, final=True)
    return [step]


def _no_requests(limits: Limits, state: TurnState) -> tuple[str, dict[str, Any]]:
    used = state.ledger.model_calls
    return (
        f"the turn may make {limits.model_calls} model calls; what is left is kept for its final answer",
        {"reason": "llm_calls", "limit": limits.model_calls, "observed": used + 1},
    )


def _ended(level: Level, error: str, message: str, details: dict[str, Any] | None = None) -> EndLevel:
    assert level.id is not None
    return EndLevel(level.id, error, message, tuple((details or {}).items()))


def _out_of_time(state: TurnState) -> HitLimit | None:
    seconds = state.limits.seconds
    if seconds is not None and state.time.active_ms() >= seconds * 1000:
        return HitLimit("wall_clock", seconds, state.time.active_ms() / 1000)
    return None


def _lost(state: TurnState, level: Level, room: _Room) -> list[Step]:
    asked = level.round.request
    if asked is None or asked.failure is None:
        return []
    failure, at = asked.failure, level.id
    if at is not None and level.stop_error is not None:
        return [_ended(level, *level.stop_error)]
    if level.round.asks_again:
        return _ask(state, level, room, AskModel(asked.step, _first_candidate(state, level), 1, level=at))
    if failure.stage == "crash":
        # Not one of the provider's attempts: the same one again.
        return _ask(state, level, room, AskModel(asked.step, asked.candidate, asked.attempt, level=at))
    if failure.disposition == "retry":
        wait = backoff(asked.attempt + 1, failure.retry_after_ms)
        return _ask(state, level, room, AskModel(asked.step, asked.candidate, asked.attempt + 1, wait, at))
    if failure.disposition == "fallback":
        return _ask(state, level, room, AskModel(asked.step, asked.candidate + 1, 1, level=at))
    too_long = failure.failure_kind == "context_length_exceeded"
    if too_long and level.next_request.folds_for != level.step and not isinstance(level.role, SummaryRole):
        window = level.config.context_window if level.config is not None else None
        used = context_tokens(level)
        cut = cut_of(level, min(window or used, used))  # whatever the window is, this did not fit
        if cut:
            return [Fold(level.id, "context_exceeded", cut, used)]
    number = 1 if level.round.wait is None else level.round.wait.wait + 1
    if (later := wait_for(level.round.lost.values(), number)) is not None:
        return [WaitForProvider(asked.step, at, later)]
    tried = len(level.round.attempts)
    spent = " (retries exhausted)" if failure.attempt >= MAX_ATTEMPTS else ""
    again = f" after {tried} attempts{spent}" if tried > 1 else ""
    message = f"{failure.model_ref}{again}: {failure.message}"
    if level.id is None:
        return [Finish("failed", "provider_error", message)]
    return [_ended(level, "subtask_failed", message, {"failure_kind": failure.failure_kind})]


def _first_candidate(state: TurnState, level: Level) -> int:
    """Where the chain begins after a wait: passed over is what asked to be left alone for longer."""
    chain, lost = state.chain_of(level), level.round.lost
    free = (at for at in range(len(chain)) if at not in lost or lost[at].not_before <= state.time.now)
    return next(free, 0)


def _acting(state: TurnState, level: Level, room: _Room) -> list[Step]:
    """Reads together, a writer alone: a serial call waits for all before it, and all after it wait.

    A call that waits for somebody outside holds nobody up. When only such calls are left, the turn rests.
    """
    completed, this = state.completed_by, level.round
    if completed is not None and level is state and any(call.call_id == completed for call in this.batch):
        return [SkipCall(call.call_id, "completed") for call in this.open_calls() if not call.running]
    steps: list[Step] = []
    running = this.running
    config = level.config
    for call in this.batch[this.front :]:
        if call.called_off and call.end is None:
            if not call.running:
                steps.append(SkipCall(call.call_id, "sibling"))
            continue
        if call.is_waiting:
            continue
        if (node := call.node) is not None and node.unresolved and call.end is None:
            if not node.open_before:
                failed = any(before.answer is None or before.answer.is_error for before in node.after)
                steps.append(SkipCall(call.call_id, "dependency") if failed else ResolveNode(call.call_id))
            continue
        serial = _is_serial(level, call)
        if call.end is None and not call.taken_up:
            if config is None or room.slots <= 0 or (serial and running):
                break
            scheduling: Scheduling = "serial" if serial else "parallel"
            if not _was_counted(call) and (passed := _too_many_calls(state, room, call)):
                return steps or [TakeUp(call.call_id, scheduling, passed)]
            if not steps and (late := _out_of_time(state)):
                return [late]
            steps.append(TakeUp(call.call_id, scheduling))
            running += 1
            room.slots -= 1
            if room.calls is not None:
                room.calls -= 1
        if serial and call.answer is None:
            break
    return steps


def _too_many_calls(state: TurnState, room: _Room, call: Call) -> HitLimit | None:
    """The limit that one more call would pass."""
    limits, ledger = state.limits, state.ledger
    if room.calls is not None and room.calls <= 0:
        return HitLimit("tool_calls", limits.tool_calls or 0, ledger.tool_calls + 1)
    if not limits.per_tool:
        return None
    name = call.part.name
    own = [each for each in dict.fromkeys((name, bare(name))) if each in limits.per_tool]
    for each in own:
        made = ledger.calls_of(each)
        if made + room.tools.get(each, 0) >= limits.per_tool[each]:
            return HitLimit("tool_calls", limits.per_tool[each], made + 1, name)
    for each in own:
        room.tools[each] = room.tools.get(each, 0) + 1
    return None


def _suspend(state: TurnState) -> Suspend:
    waits = [level.round.wait for level in state.tree.away.values() if level.round.wait is not None]
    next_try = min((wait.next_try for wait in waits), default=None)
    pending = [call.pending for call in state.tree.waiting.values() if call.pending is not None]
    if not pending:
        away = sorted({wait.model_ref.partition(":")[0] for wait in waits})
        return Suspend("provider", tuple(away), next_try)
    person = any(isinstance(each.asked, ActionRequired) for each in pending)
    names = tuple(each.action_id for each in pending)
    return Suspend("approval_required" if person else "runtime_tool_pending", names, next_try)


def _was_counted(call: Call) -> bool:
    """A call that a client was asked to run counted then; its answer is no second one."""
    return call.pending is not None and isinstance(call.pending.asked, RuntimeToolRequested)


def _is_serial(level: Level, call: Call) -> bool:
    declaration = level.config.tool(call.part.name) if level.config is not None else None
    return call.is_alone or (declaration is not None and declaration.serial)


def _stopping(state: TurnState) -> list[Step]:
    """Running work is told once; waiting calls are closed; then levels end from below, and last the turn."""
    stop = state.stop
    assert stop is not None
    if state.unheeded:
        return [IgnoreInterrupt(interrupt_id) for interrupt_id in state.unheeded]
    below = sorted(state.tree.levels.values(), key=_depth, reverse=True)
    levels = [*below, state] if below else [state]
    open_calls = [
        call for level in levels if level.phase in ("acting", "suspended") for call in level.round.open_calls()
    ]
    idle = [call for call in open_calls if not call.running]
    if not stop.applied:
        lets_finish = stop.interrupt_id is not None and not stop.is_overdue
        running = [call for call in open_calls if call.running and not call.children]
        return [
            StopWork(
                tuple(call.call_id for call in running if not (call.is_let_finish and lets_finish)),
                tuple(call.call_id for call in idle),
                tuple(call.call_id for call in running if call.is_let_finish and lets_finish),
                tuple(level.id for level in below if level.id is not None),
            )
        ]
    because: Literal["cancelled", "budget"] = "cancelled" if stop.status == "cancelled" else "budget"
    if idle:
        return [SkipCall(call.call_id, because) for call in idle]
    # One that is apart ends after who works for it: that one's end is a fact of its own. All that can end now may: a
    # long result is on its way for a while, and the others need not wait for it.
    over = [
        level
        for level in below
        if level.phase not in ("asking", "apart") and all(call.answer is not None for call in level.round.batch)
    ]
    if over:
        # One that came to its result has it, whatever stops the others.
        return [
            EndLevel(each.id) if each.phase == "answered" and each.id else stopped_level(each, stop) for each in over
        ]
    if below or state.phase == "asking" or open_calls:
        return []
    return [Finish(stop.status, stop.reason, stop.message)]


def stopped_level(level: Level, stop: Stop) -> EndLevel:
    """A level that ends because its turn does."""
    assert level.id is not None
    if stop.status == "cancelled":
        return EndLevel(level.id, "cancelled", stop.message)
    if stop.status == "failed":
        return EndLevel(level.id, "subtask_failed", stop.message)
    return EndLevel(level.id, "budget_exceeded", stop.message, (("reason", stop.reason),))
