"""What facts about a turn as a whole do to it: its beginnings and rests, its stops and limits, its end."""

from wakeful.contracts.authority import lowest
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import AssistantItem, UserItem
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import (
    AnswerRejected,
    ContextResolved,
    GrantRenewed,
    GrantReserved,
    GrantSettled,
    HistoryImported,
    KnowledgeRetrieved,
    LimitChanged,
    MemoryFact,
    MemoryProjected,
    MemoryUsed,
    MessageAdmitted,
    SkillActivated,
    StopCause,
    TurnCompleted,
    TurnFailed,
    TurnInterjected,
    TurnInterruptRequested,
    TurnPatienceEnded,
    TurnResumed,
    TurnRetried,
    TurnStarted,
    TurnSuspended,
    TurnTimeSkipped,
    WorkFact,
    WorkItemCompleted,
    WorkItemCreated,
    WorkItemPicked,
    WorkItemReminded,
    WorkItemUpdated,
    WorkQueueProjected,
)
from wakeful.contracts.messages import RESULTS
from wakeful.contracts.skills import ActiveSkill
from wakeful.decisions.answer_ends import cut_answer
from wakeful.decisions.evolve.models import wait_ended
from wakeful.decisions.evolve.rounds import is_last_round
from wakeful.decisions.grants import at_most, given_again, given_back, without
from wakeful.decisions.ledger import KEPT_FOR_ANSWER
from wakeful.decisions.level_conversation import MessagePlace, TurnBeginning
from wakeful.decisions.levels import Level, LevelError
from wakeful.decisions.limit_words import money_words
from wakeful.decisions.message_header import shown_item
from wakeful.decisions.policy.provenance import Exposure, begun, is_instruction, merged
from wakeful.decisions.provider_waits import waiting_levels
from wakeful.decisions.state import Stop, TurnState


def admitted(state: TurnState, fact: Fact, event: MessageAdmitted) -> None:
    turn_id = fact.turn_id or ""
    talk = state.conversation
    place = len(talk.items)
    if not state.thread.begins or state.thread.begins[-1].turn_id != turn_id:
        state.thread.begins.append(TurnBeginning(turn_id, place, place))
    talk.heard.append(MessagePlace(place, event.message_id, event.authority_class, turn_id))
    talk.items.append(shown_item(event))
    of_message = lowest((event.authority_class, event.derived_from or event.authority_class))
    state.terms.derived_from = lowest((state.terms.derived_from, of_message))
    state.thread.exposure = merged(state.thread.exposure, begun(of_message))
    if event.task_id is not None and event.message_kind == "internal_followup":
        # A parent said it: it may hold anything that the parent has read, and is not the owner's own word.
        state.thread.exposure = merged(state.thread.exposure, Exposure(private=f"task {event.task_id}"))
    elif is_instruction(of_message) and event.message_kind not in RESULTS:
        state.thread.owner_said.add(event.item.text, turn_id)
    state.scratchpad.visible.update(event.notes)
    state.depth = event.depth


def history_imported(state: TurnState, event: HistoryImported) -> None:
    """The message opens its turn and is stored first; in the conversation it comes after what it follows."""
    talk = state.conversation
    talk.items[-1:-1] = event.items
    replies = (each for each in event.items if isinstance(each, AssistantItem))
    found = next((each for each in replies if each.server_tools or each.citations), None)
    if found is not None:  # anybody may have written what a provider found, whoever hands it over
        cause = found.server_tools[0] if found.server_tools else "citations"
        state.thread.exposure = merged(state.thread.exposure, Exposure(untrusted=cause))
    talk.heard.append(talk.heard.pop()._replace(place=len(talk.items) - 1))


def knowledge_retrieved(state: TurnState, fact: Fact, event: KnowledgeRetrieved) -> None:
    state.conversation.items.append(event.item)
    if event.untrusted:
        state.thread.exposure = merged(state.thread.exposure, Exposure(untrusted=", ".join(event.collections)))
    else:
        state.thread.owner_files.add(event.item.text, fact.turn_id or "")


def memory_shown(state: TurnState, event: MemoryFact) -> None:
    """What changed in working memory stands behind the conversation. A tainted entry is untrusted input."""
    if isinstance(event, MemoryProjected):
        state.terms.memory_revision, state.terms.compression_epoch = event.revision, event.compression_epoch
        if event.text:
            state.conversation.items.append(event.item)
    elif isinstance(event, MemoryUsed) and event.untrusted:
        state.thread.exposure = merged(state.thread.exposure, Exposure(untrusted=event.untrusted))


def context_resolved(state: TurnState, event: ContextResolved) -> None:
    """What the requests rest on. Files that the owner has not accepted are untrusted input."""
    state.terms.context = event
    if event.untrusted_refs:
        first = event.untrusted_refs[0]
        cause = f"{first}, which the owner has not accepted: wakeful trust {first}"
        state.thread.exposure = merged(state.thread.exposure, Exposure(untrusted=cause))


def grant_reserved(state: TurnState, event: GrantReserved) -> None:
    """A child has it, and the turn has so much less."""
    state.grants[event.task_id] = event.grant
    state.limits = without(state.limits, event.grant)


def grant_settled(state: TurnState, event: GrantSettled) -> None:
    """What a child has left comes back: once, and never more than it was given."""
    grant = state.grants.pop(event.task_id, None)
    if grant is not None:
        state.limits = given_back(state.limits, at_most(event.left, grant))


def grant_renewed(state: TurnState, event: GrantRenewed) -> None:
    """A child that was over has what it had left of its grant again. One whose grant never came back still has it."""
    if event.task_id not in state.grants:
        state.grants[event.task_id] = event.grant
        state.limits = given_again(state.limits, event.grant)


def skill_activated(state: TurnState, event: SkillActivated) -> None:
    skill = ActiveSkill(
        name=event.skill, entrypoint_path=event.entrypoint_path, state="restored", load_reason=event.load_reason
    )
    state.skills_used.setdefault(event.entrypoint_path, skill)


def turn_started(state: TurnState, fact: Fact, event: TurnStarted) -> None:
    state.phase = "ready"
    state.config = state.configs.get(event.config_ref.digest)
    state.limits = event.limits
    state.terms.stop_rule = event.stop_rule
    state.terms.structured = event.structured
    state.terms.turn_index = event.turn_index
    state.time.started_at = fact.at
    _begin_stretch(state, fact)


def turn_suspended(state: TurnState, fact: Fact, event: TurnSuspended) -> None:
    if state.phase != "suspended":
        state.rest.phase_before = state.phase
    state.phase = "suspended"
    state.rest.suspended_for = event
    state.time.active_us += max(0, fact.at - state.time.stretch_from)
    state.time.stretch_from = fact.at


def turn_resumed(state: TurnState, fact: Fact, event: TurnResumed) -> None:
    """A new stretch of work: what lay between the last fact and this one was downtime."""
    state.rest.full_window = None
    if state.phase == "suspended":
        state.rest.suspended_for = None
        state.phase = state.rest.phase_before
    elif not state.time.idle:
        state.time.active_us += max(0, state.time.worked_until - state.time.stretch_from)
    _begin_stretch(state, fact)
    for call in state.all_open_calls():
        if not call.dispatches and not call.is_waiting and call.taken_up:
            call.taken_up = False  # nothing of it has begun: through the gate again
            call.level.round.untaken += 1
            state.tree.touched(call.level)
    _ask_again(state, fact, event)


def _ask_again(state: TurnState, fact: Fact, event: TurnResumed) -> None:
    """Levels that wait for a provider and are due go on. Whoever resumes a turn before wants it asked at once."""
    away = waiting_levels(state)
    due = [level for level in away if level.round.wait is None or level.round.wait.next_try <= fact.at]
    if not due and event.cause == "provider":
        due = away
        for level in away:
            level.round.lost.clear()  # what was asked for then does not hold any more
    for level in due:
        wait_ended(state, level)


def patience_ended(state: TurnState, fact: Fact, event: TurnPatienceEnded) -> None:
    """The turn ends like one that was told to stop, if it still waits."""
    waits = [level.round.wait for level in waiting_levels(state) if level.round.wait is not None]
    if state.stop is not None or not waits:
        return
    names = ", ".join(dict.fromkeys(wait.model_ref for wait in waits))
    words = f"{names}: {waits[0].message}"
    if not waits[0].rests:
        waited = f" for {event.seconds:g} s" if event.seconds >= 1 else ""
        words = f"{names} did not answer{waited} (retries exhausted): {waits[0].message}"
    state.stop = Stop("failed", "provider_error", words, requested_at=fact.at, abort="runtime_shutdown")


def _begin_stretch(state: TurnState, fact: Fact) -> None:
    """Work is counted from here, by the clock of whoever works. What was written before may have a later time: that
    clock has been set back since, and the difference is nobody's work."""
    state.time.now = state.time.stretch_from = fact.at


def time_skipped(state: TurnState, fact: Fact, event: TurnTimeSkipped) -> None:
    """Nobody worked in that time. While somebody outside is waited for, no time counts anyway."""
    if not state.time.idle:
        state.time.stretch_from += event.skipped_us
    elif fact.at < state.time.now:
        state.time.stretch_from += fact.at - state.time.now
    state.time.now = fact.at  # a clock that was set back goes on from there


def turn_retried(state: TurnState, fact: Fact, event: TurnRetried) -> None:
    """Open again, at rest where it failed: a lost request is made anew, and an answer that did not fit is told why."""
    rest, time = state.rest, state.time
    lost = rest.phase_before in ("lost", "asking", "waiting")
    if lost:
        state.step -= 1  # the round that was lost is asked for again
    if state.answer.correction is not None and rest.phase_before == "answered":
        state.conversation.items.append(state.answer.correction)
        state.answer.correction, state.answer.rejections = None, 0
        lost = True
    rest.phase_before = "ready" if lost else rest.phase_before
    state.phase, rest.suspended_for = "suspended", None
    state.stop = state.terminal = None
    ahead = state.next_request
    ahead.told_last = False
    # What a person said last joined the conversation when the turn ended.
    ahead.notes[:] = [note for note in ahead.notes if note.origin != "person"]
    if event.limits is not None:
        state.limits = event.limits
        for grant in state.grants.values():
            state.limits = without(state.limits, grant)
    time.active_us += max(0, time.worked_until - time.stretch_from)
    time.stretch_from = fact.at


def turn_ended(state: TurnState, event: TurnCompleted | TurnFailed) -> None:
    state.rest.phase_before = state.phase
    state.phase = "ended"
    state.terminal = event
    # What a person said and no request took along stays in the conversation: the thread's next turn reads it.
    state.conversation.items.extend(note for note in state.next_request.notes if note.origin == "person")


def interrupted(state: TurnState, fact: Fact, event: TurnInterruptRequested) -> None:
    """The first request holds; of any other one it is told that it changes nothing. Where the turn's time is over,
    it comes to the same whichever of the two was heard first."""
    if state.phase == "ended":
        return
    before = state.stop
    if before is not None and before.interrupt_id is not None:
        state.unheeded.append(event.interrupt_id)
        return
    cause: StopCause = "cancelled"
    message = f"{event.requested_by} asked the turn to stop"
    if event.reason == "superseded":
        cause, message = "superseded", f"a newer message of {event.requested_by} took its place"
    elif event.reason == "runtime_shutdown":
        cause = "interrupted"
    stop = state.stop = Stop("cancelled", cause, message, event.interrupt_id, fact.at, abort=event.reason)
    if before is not None and before.reason == "wall_clock":
        stop.is_overdue, stop.applied = True, before.applied


def limited(state: TurnState, fact: Fact, event: LimitChanged) -> None:
    stop = state.stop
    if stop is not None and stop.interrupt_id is not None and event.limit_name == "wall_clock":
        stop.is_overdue, stop.applied = True, False
    if event.window is not None and not event.window.is_hopeless:
        state.rest.full_window = event.window
    elif event.what == KEPT_FOR_ANSWER and fact.level is not None and fact.level in state.tree.levels:
        # The level ends, and its parent goes on with the rest.
        details = {"reason": "cost", "limit": event.limit, "observed": event.observed}
        state.tree.levels[fact.level].stop_error = LevelError("budget_exceeded", _limit_words(event), details)
    elif stop is None:
        if event.limit_name == "context_budget":
            state.answer.final_text = state.answer.last_text = (
                event.what
            )  # a stop like this is a result, and says so in words
        state.stop = Stop(
            "incomplete",
            event.limit_name,
            _limit_words(event),
            applied=event.limit_name != "wall_clock" and not state.tree.levels,
            requested_at=fact.at,
        )


def _limit_words(event: LimitChanged) -> str:
    if event.limit_name == "context_budget":
        return event.what
    if event.needed is not None:
        return money_words(event)
    of = f" ({event.what})" if event.what else ""
    return f"the limit {event.limit_name}={event.limit:g} was reached{of}"


def interjected(state: TurnState, fact: Fact, event: TurnInterjected) -> None:
    """The next request takes it along; a turn that was about to end with its answer makes that request."""
    if state.phase == "ended":
        return
    state.next_request.notes.append(event.item)
    state.thread.owner_said.add(event.item.text, fact.turn_id or "")
    if is_last_round(state):
        return  # whichever of the two came first; the thread's next turn reads it
    if state.phase == "answered":
        state.phase = "ready"
        state.answer.is_checked = False
    elif state.phase == "suspended" and state.rest.phase_before == "answered":
        state.rest.phase_before = "ready"
        state.answer.is_checked = False


def answer_rejected(state: TurnState, level: Level, event: AnswerRejected) -> None:
    level.answer.rejections += 1
    level.answer.is_checked = False
    if event.max_tokens is not None:
        level.answer.max_tokens = event.max_tokens
    if event.final and (cut := cut_answer(level)) is not None:
        state.stop = Stop("incomplete", cut.cause, cut.message, applied=True)
        return
    if event.final:
        state.stop = Stop(
            "failed", "invalid_output", "; ".join(event.errors) or "the answer does not fit", applied=True
        )
        level.answer.correction = event.item
        return
    level.conversation.items.append(event.item)
    level.phase = "ready"


def work_items_changed(state: TurnState, fact: Fact, event: WorkFact) -> None:
    items, step = state.work_items, fact.step or 0
    match event:
        case WorkQueueProjected():
            items.bound = items.focus = event.current
            if event.untrusted:
                state.thread.exposure = merged(state.thread.exposure, Exposure(untrusted=event.untrusted))
        case WorkItemPicked():
            items.changed_in = step
            _focus(state, step, event.work_item_id)
        case WorkItemCompleted():
            items.changed_in = step
            if items.focus == event.work_item_id:
                _focus(state, step, None)
        case WorkItemCreated() | WorkItemUpdated():
            items.changed_in = step
        case WorkItemReminded():
            items.reminded_in = state.step
            state.next_request.notes.append(UserItem(parts=(Text(event.text),), origin="runtime"))


def _focus(state: TurnState, step: int, work_item_id: str | None) -> None:
    items = state.work_items
    if items.focus_before[0] != step:
        items.focus_before = step, items.focus
    items.focus = work_item_id
