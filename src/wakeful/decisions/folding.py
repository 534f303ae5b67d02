"""What becomes of a summary that was written: it takes the place of what it stands for, or the original stays.

Pure, so that replaying a turn comes to the same end: from the state and the summariser's words alone.
"""

from wakeful.contracts.events import CompactionCompleted, CompactionFailed
from wakeful.contracts.events.context import CompactionError
from wakeful.contracts.tools import PREVIEW_CHARS
from wakeful.decisions.compaction import context_tokens, kept_by, lost_by, summary_item
from wakeful.decisions.levels import Level
from wakeful.decisions.prompt_size import characters, tokens
from wakeful.decisions.state import TurnState
from wakeful.decisions.turn import EndLevel


def settled_fold(
    state: TurnState, level: Level, writer: Level, step: EndLevel, now: int = 0, continuation: str = ""
) -> CompactionCompleted | CompactionFailed:
    """The end of a compaction: what was written, held to what had to be kept."""
    trigger = writer.trigger
    assert trigger is not None
    cut, before = writer.cut, context_tokens(level)
    turns = tuple(dict.fromkeys(heard.turn_id for heard in level.heard if heard.place < cut))

    def failed(category: CompactionError, message: str) -> CompactionFailed:
        return CompactionFailed(
            compaction_id=writer.fold_id,
            trigger=trigger,
            affected_turn_ids=turns,
            error_category=category,
            message=message[:2000],
            retryable=category == "summarizer_failed",
            tokens_before=before,
            continuation_ref=continuation,
        )

    if step.error:
        return failed("cancelled" if step.error == "cancelled" else "summarizer_failed", step.message)
    words = writer.final_text.strip()
    if not words:
        return failed("summarizer_failed", "the summariser wrote nothing")
    open_actions = {call.pending.action_id for call in state.waiting.values() if call.pending is not None}
    kept = kept_by(level, cut, open_actions, state.unknown)
    model_ref = writer.config.model_ref if writer.config is not None else None
    item = summary_item(words, level.items[:cut], kept, model_ref)
    lost = lost_by(kept, item.text)
    if lost:
        return failed("conservation_violated", f"the summary lost {', '.join(lost[:5])}")
    after = tokens(characters([item, *level.items[cut:]]))
    if after >= tokens(characters(level.items)):
        return failed("still_too_large", "the summary is not shorter than what it stands for")
    return CompactionCompleted(
        compaction_id=writer.fold_id,
        trigger=trigger,
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
        folded_message_ids=tuple(message_id for message_id, _ in kept.messages),
        model_ref=model_ref,
        duration_ms=max(0, now - writer.began_at) // 1000,
        cut=cut,
        summary=item,
    )
