"""What becomes of a summary that was written: it takes the place of what it stands for, or the original stays.

Pure, so that replaying a turn comes to the same end: from the state and the summariser's words alone.
"""

from collections.abc import Callable

from wakeful.contracts.conversation import UserItem
from wakeful.contracts.events import CompactionCompleted, CompactionFailed
from wakeful.contracts.events.context import CompactionError, WindowStart
from wakeful.contracts.tools import PREVIEW_CHARS
from wakeful.decisions.compaction import context_tokens, folded_items, heard_before, kept_by, moved, pinned_of
from wakeful.decisions.conversation_cut import kept_part
from wakeful.decisions.levels import Level, SummaryRole
from wakeful.decisions.prompt_size import characters, tokens
from wakeful.decisions.state import TurnState
from wakeful.decisions.step import EndLevel
from wakeful.decisions.summary import differences, named, summary_item

MAX_EVENT_BYTES = 44_000
"""Of the summary and the references; names of turns and messages need the rest of what an event may have."""
REF_BYTES = 80
SUMMARY_FORM = 2
"""How summaries are put together from the words of their writer."""


def turns_before(level: Level, cut: int) -> tuple[str, ...]:
    """The turns whose messages are folded, as an event names them."""
    return named(list(dict.fromkeys(heard.turn_id for heard in heard_before(level, cut))))


def _window(state: TurnState, cut: int) -> WindowStart | None:
    """Where later turns begin to read: with the oldest turn of which something stays word for word."""
    begun = next((each for each in reversed(state.thread.begins) if each.place <= cut), None)
    if begun is None:
        return None
    return WindowStart(
        from_turn=begun.turn_id,
        items=begun.items,
        untrusted=state.thread.exposure.untrusted,
        private=state.thread.exposure.private,
        skills=tuple(state.thread.skills.values()),
        advised=moved(state.conversation.advised, cut, pinned_of(state, cut)),
    )


def settled_fold(
    state: TurnState,
    level: Level,
    writer: Level,
    step: EndLevel,
    now: int = 0,
    continuation: str = "",
    whole: str | None = None,
    write: Callable[..., UserItem] = summary_item,
) -> CompactionCompleted | CompactionFailed:
    """The end of a compaction: what was written, held to what had to be kept.

    `whole` is the summariser's text where it is too long for the log; `write` puts the summary together from it.
    """
    job = writer.role
    assert isinstance(job, SummaryRole)
    cut, before = job.cut, context_tokens(level)
    pinned = pinned_of(level, cut)
    turns = turns_before(level, cut)

    def failed(category: CompactionError, message: str) -> CompactionFailed:
        return CompactionFailed(
            compaction_id=job.compaction_id,
            trigger=job.trigger,
            affected_turn_ids=turns,
            error_category=category,
            message=message[:2000],
            retryable=category == "summarizer_failed",
            tokens_before=before,
            continuation_ref=continuation,
        )

    if step.error:
        return failed("cancelled" if step.error == "cancelled" else "summarizer_failed", step.message)
    words = (whole if whole is not None else writer.answer.final_text).strip()
    if not words:
        return failed("summarizer_failed", "the summariser wrote nothing")
    open_actions = {call.pending.action_id for call in state.tree.waiting.values() if call.pending is not None}
    kept = kept_by(level, cut, open_actions, state.unknown)
    model_ref = writer.config.model_ref if writer.config is not None else None
    rests_on = state.thread.compaction_id if level is state else None
    window = level.config.context_window if level.config is not None else None
    item = write(words, folded_items(level, cut), kept, model_ref, rests_on, window)
    apart = differences(kept, item)
    if apart:
        return failed("conservation_violated", f"before and after the summary differ: {'; '.join(apart[:5])}")
    items = level.conversation.items
    after = tokens(characters([item, *kept_part(items, cut, pinned)]))
    if after >= tokens(characters(items)):
        return failed("still_too_large", "the summary is not shorter than what it stands for")
    if len(item.model_dump_json().encode()) + REF_BYTES * len(kept.refs) > MAX_EVENT_BYTES:
        return failed("still_too_large", f"what has to be kept ({len(kept.refs)} references) leaves no room for it")
    return CompactionCompleted(
        compaction_id=job.compaction_id,
        trigger=job.trigger,
        affected_turn_ids=turns,
        summary_preview=words[:PREVIEW_CHARS],
        summary_ref=continuation,
        continuation_ref=continuation,
        tokens_before=before,
        tokens_after=after + (level.config.prompt_tokens if level.config is not None else 0),
        preserved_action_ids=tuple(sorted(kept.actions)),
        preserved_incident_refs=tuple(sorted(kept.incidents)),
        preserved_evidence_refs=tuple(sorted(kept.evidence)),
        preserved_artifact_refs=tuple(sorted(kept.artifacts)),
        folded_message_ids=named([message_id for message_id, _ in kept.messages]),
        folded_messages=len(kept.messages),
        rests_on=rests_on,
        window=_window(state, cut) if level is state else None,
        model_ref=model_ref,
        duration_ms=max(0, now - job.began_at) // 1000,
        cut=cut,
        pinned=pinned,
        summary=item,
        summary_form=SUMMARY_FORM,
    )
