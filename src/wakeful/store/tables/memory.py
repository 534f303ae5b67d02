"""Rules of the tables of memory.

Revisions are counted here and not by who writes: two threads of an agent may end their turns at the same moment. What
prompts begin with is renewed when an episode or a conversation is folded, and when a person takes an entry back.
"""

from collections.abc import Sequence
from typing import Any

from wakeful.contracts.envelope import MAIN_THREAD, Fact
from wakeful.contracts.events import (
    CompactionCompleted,
    MemoryEntryEdited,
    MemoryEntryForgotten,
    MemoryEpisodeFinalized,
    MemoryProjected,
    MemoryTurnRecorded,
    MemoryUsed,
)
from wakeful.contracts.memory import EpisodeBuilder, MemoryLine, WorkingMemorySnapshot
from wakeful.decisions.memory.episodes import merged
from wakeful.decisions.memory.working_memory import changed_fields, delta_since, without
from wakeful.ports.memory import (
    CHANGES_OF_AGENT,
    MEMORY_CHANGES,
    MEMORY_USES,
    WORKING_MEMORY,
    EpisodeRow,
    MemoryChangeRow,
    MemoryUseRow,
    PromptedMemoryRow,
    WorkingMemoryRow,
)
from wakeful.store.tables.row_rules import AtHand, LogEntry, Need, RowKey, RowList, RowRule, Rules


def _own(agent_id: str, fact: Fact, event: Any) -> Sequence[Need]:
    return [RowKey(WORKING_MEMORY, (agent_id,))]


def _own_and_corrected(agent_id: str, fact: Fact, event: Any) -> Sequence[Need]:
    return [RowKey(WORKING_MEMORY, (agent_id,)), RowList(MEMORY_CHANGES, CHANGES_OF_AGENT, (agent_id,))]


def _recorded(entry: LogEntry, event: MemoryTurnRecorded, rows: AtHand) -> list[WorkingMemoryRow]:
    row = rows.get(WORKING_MEMORY, entry.agent_id) or _blank(entry)
    corrected = {each.entry for each in rows.list(MEMORY_CHANGES, CHANGES_OF_AGENT, entry.agent_id)}
    turn_index, message_count = row.turn_index + 1, row.message_count + event.turn.messages
    builder = merged(
        _builder(row),
        event.turn,
        episode_id=f"ep_{entry.fact.turn_id or entry.seq}",
        thread_id=entry.fact.thread_id or MAIN_THREAD,
        workspace_id=event.workspace_id,
        principal=event.principal,
        at=entry.fact.at,
        turn_index=turn_index,
        message_count=message_count,
    )
    row = row._replace(
        turn_index=turn_index,
        message_count=message_count,
        active_episode=builder.model_dump(mode="json"),
        updated_at=entry.fact.at,
    )
    return [_revised(row, without(event.working_memory, corrected), f"turn {turn_index}")]


def _revised(row: WorkingMemoryRow, now: WorkingMemorySnapshot, reason: str) -> WorkingMemoryRow:
    """The row with another working memory: one revision on, where anything in it differs."""
    fields = changed_fields(_snapshot(row.current), now)
    if not fields:
        return row
    revision = row.revision + 1
    revisions = {**row.field_revisions, **dict.fromkeys(fields, revision)}
    pending = delta_since(now, revisions, row.last_prompted_revision or 0, revision, row.turn_index, reason)
    return row._replace(
        revision=revision,
        current=now.model_dump(mode="json"),
        field_revisions=revisions,
        pending_delta=pending.model_dump(mode="json") if pending is not None else None,
    )


def _renewed(row: WorkingMemoryRow) -> WorkingMemoryRow:
    """Prompts begin with working memory as it is now."""
    return row._replace(snapshot=row.current, snapshot_revision=row.revision)


def _finalized(entry: LogEntry, event: MemoryEpisodeFinalized, rows: AtHand) -> list[WorkingMemoryRow]:
    row = rows.get(WORKING_MEMORY, entry.agent_id)
    builder = _builder(row) if row is not None else None
    if row is None or builder is None or builder.id != event.episode_id:
        return []  # another thread ended it first
    return [_renewed(row._replace(active_episode=None, archived_episodes=row.archived_episodes + 1))]


def _archived(entry: LogEntry, event: MemoryEpisodeFinalized, rows: AtHand) -> list[EpisodeRow]:
    row = rows.get(WORKING_MEMORY, entry.agent_id)
    builder = _builder(row) if row is not None else None
    if builder is None or builder.id != event.episode_id:
        return []
    return [
        EpisodeRow(
            episode_id=builder.id,
            agent_id=entry.agent_id,
            finalized_seq=entry.seq,
            thread_id=builder.thread_id,
            workspace_id=builder.workspace_id,
            principal=builder.principal,
            created_at=builder.created_at,
            finalized_at=entry.fact.at,
            start_turn_index=builder.start_turn_index,
            end_turn_index=builder.end_turn_index,
            start_message_count=builder.start_message_count,
            end_message_count=builder.end_message_count,
            boundary_reason=event.boundary_reason,
            current_work_item_id=builder.current_work_item_id or "",
            objective=builder.objective,
            work_summary=event.work_summary,
            working_set_files=builder.working_set_files,
            commands=builder.commands,
            verification=builder.verification,
            decisions=_lines(builder.decisions),
            carry_forward=_lines(builder.carry_forward),
            waiting_on=_lines(builder.waiting_on),
            untrusted=builder.untrusted,
        )
    ]


def _projected(entry: LogEntry, event: MemoryProjected, rows: AtHand) -> list[WorkingMemoryRow]:
    row = rows.get(WORKING_MEMORY, entry.agent_id)
    if row is None:
        return []
    newest = max(event.revision, row.last_prompted_revision or 0)
    pending = row.pending_delta if row.revision > newest else None
    return [row._replace(last_prompted_revision=newest, pending_delta=pending)]


def _prompted(entry: LogEntry, event: MemoryProjected, rows: AtHand) -> list[PromptedMemoryRow]:
    thread = entry.fact.thread_id or MAIN_THREAD
    return [PromptedMemoryRow(entry.agent_id, thread, event.snapshot_revision, event.revision)]


def _folded(entry: LogEntry, event: CompactionCompleted, rows: AtHand) -> list[WorkingMemoryRow]:
    row = rows.get(WORKING_MEMORY, entry.agent_id)
    if row is None or event.window is None:
        return []
    return [_renewed(row._replace(compression_epoch=row.compression_epoch + 1))]


def _corrected(
    entry: LogEntry, event: MemoryEntryEdited | MemoryEntryForgotten, rows: AtHand
) -> list[WorkingMemoryRow]:
    row = rows.get(WORKING_MEMORY, entry.agent_id)
    if row is None:
        return []
    return [_renewed(_revised(row, without(_snapshot(row.current), {event.entry}), f"{event.kind} {event.entry}"))]


def _changed(entry: LogEntry, event: MemoryEntryEdited | MemoryEntryForgotten, rows: AtHand) -> list[MemoryChangeRow]:
    edited = isinstance(event, MemoryEntryEdited)
    return [
        MemoryChangeRow(
            agent_id=entry.agent_id,
            entry=event.entry,
            kind=event.entry_kind,
            state="edited" if edited else "forgotten",
            text=event.text if isinstance(event, MemoryEntryEdited) else "",
            changed_by=event.edited_by if isinstance(event, MemoryEntryEdited) else event.forgotten_by,
            changed_seq=entry.seq,
            changed_at=entry.fact.at,
        )
    ]


def _used(entry: LogEntry, event: MemoryUsed, rows: AtHand) -> list[MemoryUseRow]:
    found: dict[str, MemoryUseRow] = {}
    for each in event.entries:
        before = rows.get(MEMORY_USES, entry.agent_id, each.ref)
        uses = before.uses if before is not None else 0
        found[each.ref] = MemoryUseRow(entry.agent_id, each.ref, entry.fact.turn_id or "", uses + 1, entry.fact.at)
    return [*found.values()]


def _uses(agent_id: str, fact: Fact, event: MemoryUsed) -> Sequence[Need]:
    return [RowKey(MEMORY_USES, (agent_id, each.ref)) for each in event.entries]


def _blank(entry: LogEntry) -> WorkingMemoryRow:
    empty = WorkingMemorySnapshot().model_dump(mode="json")
    return WorkingMemoryRow(entry.agent_id, 0, 0, empty, {}, 0, empty, None, None, 0, 0, None, 0, entry.fact.at)


def _snapshot(held: dict[str, Any]) -> WorkingMemorySnapshot:
    return WorkingMemorySnapshot.model_validate(held)


def _builder(row: WorkingMemoryRow) -> EpisodeBuilder | None:
    return EpisodeBuilder.model_validate(row.active_episode) if row.active_episode is not None else None


def _lines(lines: Sequence[MemoryLine]) -> tuple[dict[str, Any], ...]:
    return tuple(line.model_dump(mode="json") for line in lines)


WORKING_MEMORY_RULES: Rules = {
    MemoryTurnRecorded: RowRule(_recorded, (_own_and_corrected,)),
    MemoryEpisodeFinalized: RowRule(_finalized, (_own,)),
    MemoryProjected: RowRule(_projected, (_own,)),
    CompactionCompleted: RowRule(_folded, (_own,)),
    MemoryEntryEdited: RowRule(_corrected, (_own,)),
    MemoryEntryForgotten: RowRule(_corrected, (_own,)),
}
PROMPTED_RULES: Rules = {MemoryProjected: RowRule(_prompted)}
EPISODE_RULES: Rules = {MemoryEpisodeFinalized: RowRule(_archived, (_own,))}
CHANGE_RULES: Rules = {MemoryEntryEdited: RowRule(_changed), MemoryEntryForgotten: RowRule(_changed)}
USE_RULES: Rules = {MemoryUsed: RowRule(_used, (_uses,))}
