"""Episodes: what turns in a row came to. A turn is merged into the open one; a semantic boundary ends it."""

from collections.abc import Collection, Sequence

from wakeful.contracts.memory import (
    EPISODE_FILES,
    EPISODE_LINES,
    EPISODE_SUMMARY,
    EPISODE_TURNS,
    EpisodeBoundary,
    EpisodeBuilder,
    MemoryLine,
    TurnMemoryDelta,
)
from wakeful.decisions.memory.working_memory import few, item_key


def merged(
    builder: EpisodeBuilder | None,
    turn: TurnMemoryDelta,
    *,
    episode_id: str,
    thread_id: str,
    workspace_id: str,
    principal: str,
    at: int,
    turn_index: int,
    message_count: int,
) -> EpisodeBuilder:
    """The open episode with one more turn. `turn_index` and `message_count` count over all turns of the agent."""
    if builder is None:
        builder = EpisodeBuilder(
            id=episode_id,
            thread_id=thread_id,
            workspace_id=workspace_id,
            principal=principal,
            created_at=at,
            start_turn_index=turn_index,
            end_turn_index=turn_index,
            start_message_count=message_count - turn.messages,
            end_message_count=message_count,
            turns=0,
        )
    return builder.model_copy(
        update={
            "end_turn_index": turn_index,
            "end_message_count": message_count,
            "turns": builder.turns + 1,
            # Work for two people in one stretch belongs to neither of them alone: nobody's chat finds it.
            "principal": builder.principal if builder.principal == principal else _SHARED,
            "workspace_id": builder.workspace_id or workspace_id,
            "current_work_item_id": turn.current_work_item_id or builder.current_work_item_id,
            "objective": turn.objective or builder.objective,
            "working_set_files": few((*turn.touched_files, *builder.working_set_files), EPISODE_FILES),
            "commands": few((*turn.commands, *builder.commands), EPISODE_LINES),
            "verification": few((*turn.verification, *builder.verification), EPISODE_LINES),
            "decisions": few((*turn.decisions, *builder.decisions), EPISODE_LINES),
            "carry_forward": turn.pending_followups[:EPISODE_LINES],
            "waiting_on": turn.waiting_on[:EPISODE_LINES],
            "untrusted": builder.untrusted or turn.untrusted,
        }
    )


_SHARED = "*"
"""Whom an episode belongs to that several people's turns are in: the operator alone finds it."""


def boundary(
    builder: EpisodeBuilder | None, turn: TurnMemoryDelta, *, completed: bool, waits: bool, rejoined: bool
) -> EpisodeBoundary | None:
    """Is the episode over with this turn? `builder` is the open one before it; the first reason that holds is given."""
    if completed:
        return "result"
    if turn.active_work_changed and builder is not None and builder.current_work_item_id is not None:
        return "work_switched"
    if waits:
        return "waiting"
    if rejoined:
        return "task_rejoined"
    if builder is not None and builder.turns + 1 >= EPISODE_TURNS:
        return "turn_cap"
    return None


def episode_text(
    objective: str,
    work_item_id: str,
    work_summary: str,
    boundary_reason: str,
    files: Sequence[str],
    commands: Sequence[str],
    verification: Sequence[str],
    decisions: Sequence[MemoryLine],
    carry_forward: Sequence[MemoryLine],
    waiting_on: Sequence[MemoryLine],
    forgotten: Collection[str] = (),
) -> str:
    """An episode as one bounded text, without the words of entries that a person took back."""
    is_kept = item_key(work_item_id) not in forgotten
    lines = [objective if objective and is_kept else "A stretch of work without a work item."]
    if work_summary and is_kept:
        lines.append(f"How it stood: {work_summary}")
    lines.append(f"It ended with: {boundary_reason.replace('_', ' ')}.")
    parts: tuple[tuple[str, Sequence[str]], ...] = (
        ("Decisions and results", _said(decisions, forgotten)),
        ("Files", files),
        ("Commands", commands),
        ("Verification", verification),
        ("Carried forward", _said(carry_forward, forgotten)),
        ("Waiting for", _said(waiting_on, forgotten)),
    )
    for label, said in parts:
        if said:
            lines += [f"{label}:", *(f"- {each}" for each in said)]
    return "\n".join(lines)[:EPISODE_SUMMARY]


def _said(lines: Sequence[MemoryLine], forgotten: Collection[str]) -> list[str]:
    return [line.text for line in lines if line.source not in forgotten]
