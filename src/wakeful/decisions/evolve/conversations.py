"""What is kept of a conversation whose beginning is folded, and what its model is told of its length."""

from dataclasses import replace

from wakeful.contracts.content import Text
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import CompactionCompleted, CompactionFailed, CompactionStarted, ToolResult
from wakeful.decisions.compaction import folded_items, item_tokens, moved
from wakeful.decisions.conversation_cut import kept_part, place_after
from wakeful.decisions.evolve.levels import close, opened
from wakeful.decisions.level_conversation import LevelConversation, PreservedRefs
from wakeful.decisions.levels import Level, SummaryRole
from wakeful.decisions.prompt_size import Measure
from wakeful.decisions.state import TurnState
from wakeful.decisions.summary import summary_config, transcript

_LINKS = ("url", "source_url", "id", "source_id", "item_id", "ref")
"""Where a citation says what it points to; the first that is there."""


def refers(level: Level, fact: Fact, event: ToolResult) -> None:
    """A result that names artifacts or evidence: neither may be lost with its place in the conversation."""
    cited = event.details.get("citations") if event.details else None
    evidence = tuple(
        str(link)
        for citation in (cited if isinstance(cited, list | tuple) else ())
        if isinstance(citation, dict) and (link := next(filter(None, map(citation.get, _LINKS)), None))
    )
    if event.artifact_refs or evidence:
        level.conversation.references[fact.call_id or ""] = event.artifact_refs, evidence


def advise(level: Level) -> None:
    """The model is told how full its context is with what was just added; worked out once."""
    config = level.config
    if config is not None and config.budget_awareness == "per-message" and config.context_window is not None:
        level.conversation.advised[len(level.conversation.items) - 1] = item_tokens(level)


def fold_started(state: TurnState, level: Level, event: CompactionStarted) -> None:
    level.next_request.folds_for = level.step + 1
    if event.level_id is None:
        return
    assert level.config is not None
    level.phase = "apart"
    folded = folded_items(level, event.cut)
    told = transcript(folded, level.config.context_window)
    writer = Level(
        id=event.level_id,
        role=SummaryRole(event.compaction_id, event.cut, event.trigger, state.time.now),
        parent=level,
        depth=level.depth,
        config=summary_config(level.config),
        conversation=LevelConversation([UserItem(parts=(Text(told),), origin="runtime")]),
        phase="ready",
    )
    opened(state, writer)


def writer_of(state: TurnState, compaction_id: str) -> Level | None:
    """The level that writes that summary."""
    for level in state.tree.levels.values():
        if isinstance(level.role, SummaryRole) and level.role.compaction_id == compaction_id:
            return level
    return None


def fold_ended(state: TurnState, level: Level, event: CompactionCompleted | CompactionFailed) -> None:
    """From here on the model is shown the summary; the log keeps what it stands for."""
    writer = writer_of(state, event.compaction_id)
    if writer is not None:
        close(state, writer)
    if level.phase == "apart":
        level.phase = "ready"
    if isinstance(event, CompactionFailed) or event.summary is None:
        return
    cut = event.cut
    evidence, artifacts = set(event.preserved_evidence_refs), set(event.preserved_artifact_refs)
    talk, pinned = level.conversation, event.pinned
    talk.conserved = PreservedRefs(evidence=evidence, artifacts=artifacts)
    talk.measure = Measure()
    talk.items[:] = [event.summary, *kept_part(talk.items, cut, pinned)]
    talk.heard = [
        heard._replace(place=place)
        for heard in talk.heard
        if (place := place_after(heard.place, cut, pinned)) is not None
    ]
    talk.advised = moved(talk.advised, cut, pinned)
    talk.compactions += 1
    level.next_request.known_tokens = level.next_request.known_at = 0
    if level is state:
        state.thread.compaction_id = event.compaction_id
        _move_window(state, event)


def _move_window(state: TurnState, event: CompactionCompleted) -> None:
    """What lies before the turn that is the first with words of its own is known from the fact alone.

    So a later turn that never reads it comes to the same state as one that read everything.
    """
    cut, window = event.cut, event.window
    first = next(
        (place for place in reversed(range(len(state.thread.begins))) if state.thread.begins[place].place <= cut), 0
    )
    kept = state.thread.begins[first:]
    state.thread.begins = [begun._replace(place=place_after(begun.place, cut, event.pinned) or 1) for begun in kept]
    if window is not None:
        state.conversation.advised = dict(window.advised)
        state.thread.skills = {**{skill.entrypoint_path: skill for skill in window.skills}, **state.thread.skills}
        told = {begun.turn_id for begun in state.thread.begins}
        state.thread.owner_said.keep(told)
        state.thread.owner_files.keep(told)
        seen = state.thread.exposure
        state.thread.exposure = replace(
            seen, untrusted=window.untrusted or seen.untrusted, private=window.private or seen.private
        )
