"""Working memory: derived from records, compared by field, and put into the words that a prompt has for it.

Words that derive from no instruction are left out here, with their number: a snapshot stands in every prompt, and one
tainted line would make every later turn a turn with untrusted input. They are in episodes and briefs, where a search
finds them and says so.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from wakeful.contracts.memory import MemoryLine, TurnMemoryDelta, WorkingMemoryDelta, WorkingMemorySnapshot
from wakeful.contracts.work_items import ActiveWait, WorkItem
from wakeful.decisions.policy.provenance import is_instruction

T = TypeVar("T")
FIELDS = tuple(name for name in WorkingMemorySnapshot.model_fields if name != "work_principal")
MOST_FILES = 10
MOST_LINES = 8
LINE = 200
PLAN = 600
_WITHHELD = "(its words derive from no instruction; get_work_item shows them)"
_LABELS: Mapping[str, str] = {
    "current_work_item_id": "Current work item",
    "objective": "Objective",
    "work_summary": "State",
    "plan": "Plan",
    "todo_list": "Left to do",
    "working_set_files": "Files in use",
    "recent_decisions": "Recent decisions and results",
    "pending_followups": "Other open work",
    "waiting_on": "Waiting for",
}


class WorkEvidence(NamedTuple):
    """What is on record when a turn ends."""

    current: WorkItem | None
    plan: str
    """How the plan of the current item begins."""
    others: Sequence[WorkItem]
    """The agent's other open items, the newest first."""
    waits: Sequence[ActiveWait]
    """Without the words of those that derive from no instruction."""
    turn: TurnMemoryDelta
    forgotten: Collection[str] = ()
    """Keys of entries that a person corrected or wants shown no more."""


def item_key(work_item_id: str) -> str:
    return f"work_item:{work_item_id}"


def brief_key(brief_id: str) -> str:
    return f"brief:{brief_id}"


def derive(before: WorkingMemorySnapshot, evidence: WorkEvidence) -> WorkingMemorySnapshot:
    """Working memory after a turn. The same records come to the same snapshot."""
    item, turn = evidence.current, evidence.turn
    trusted = not turn.untrusted
    files = (*turn.touched_files, *before.working_set_files) if trusted else before.working_set_files
    decided = (*turn.decisions, *before.recent_decisions) if trusted else before.recent_decisions
    others = [
        MemoryLine(
            text=f"{each.work_item_id}: {line_of(each.objective)}",
            source=item_key(each.work_item_id),
            principal=each.principal,
        )
        for each in evidence.others
        if is_instruction(each.derived_from)
    ]
    found = WorkingMemorySnapshot(
        working_set_files=few(files, MOST_FILES),
        recent_decisions=few(decided, MOST_LINES),
        pending_followups=tuple(others[:MOST_LINES]),
        waiting_on=waiting_lines(evidence.waits),
    )
    if item is not None:
        said = is_instruction(item.derived_from)
        found = found.model_copy(
            update={
                "current_work_item_id": item.work_item_id,
                "work_principal": item.principal,
                "objective": line_of(item.objective, 500) if said else _WITHHELD,
                "work_summary": work_summary(item) if said else "",
                "plan": evidence.plan[:PLAN].strip() if said else "",
                "todo_list": tuple(line_of(each["text"]) for each in item.todos_left[:MOST_FILES]) if said else (),
            }
        )
    return without(found, evidence.forgotten)


def work_summary(item: WorkItem) -> str:
    """How far an item is, in one line."""
    done = len(item.todo_list) - len(item.todos_left)
    parts = [f"plan {item.plan_status}"]
    if item.todo_list:
        parts.append(f"{done} of {len(item.todo_list)} steps done")
    if item.blocked_by:
        parts.append(f"blocked by {line_of(item.blocked_by)}")
    return "; ".join(parts) if item.is_open else "completed"


def without(snapshot: WorkingMemorySnapshot, keys: Collection[str]) -> WorkingMemorySnapshot:
    """The snapshot without the words of these entries."""
    if not keys:
        return snapshot
    changed: dict[str, object] = {
        name: tuple(line for line in getattr(snapshot, name) if line.source not in keys)
        for name in ("recent_decisions", "pending_followups", "waiting_on")
    }
    if snapshot.current_work_item_id is not None and item_key(snapshot.current_work_item_id) in keys:
        changed |= {"objective": "", "work_summary": "", "plan": "", "todo_list": ()}
    return snapshot.model_copy(update=changed)


def for_reader(snapshot: WorkingMemorySnapshot, own: Collection[str] | None) -> WorkingMemorySnapshot:
    """What a turn is shown that may find entries of these; blank is the agent itself. None: everything."""
    if own is None:
        return snapshot
    changed: dict[str, object] = {
        name: tuple(line for line in getattr(snapshot, name) if line.principal in own)
        for name in ("recent_decisions", "pending_followups")
    }
    changed |= {"working_set_files": (), "waiting_on": ()}  # nobody knows for whom
    if snapshot.work_principal not in own:
        changed |= {"current_work_item_id": None, "objective": "", "work_summary": "", "plan": "", "todo_list": ()}
    return snapshot.model_copy(update=changed)


def changed_fields(before: WorkingMemorySnapshot, now: WorkingMemorySnapshot) -> tuple[str, ...]:
    return tuple(name for name in FIELDS if getattr(before, name) != getattr(now, name))


def delta_since(
    now: WorkingMemorySnapshot, revisions: Mapping[str, int], since: int, revision: int, turn_index: int, reason: str
) -> WorkingMemoryDelta | None:
    """What changed after a revision, as it is now. None: nothing."""
    empty = WorkingMemorySnapshot()
    fields = tuple(
        name
        for name in FIELDS
        if revisions.get(name, 0) > since and (since or getattr(now, name) != getattr(empty, name))
    )
    if not fields:
        return None
    return WorkingMemoryDelta(
        from_revision=since,
        to_revision=revision,
        created_at_turn=turn_index,
        reason=reason,
        changed_fields=fields,
        summary_lines=tuple(_field_lines(now, fields)),
    )


# --- in words -----------------------------------------------------------------------------------------------------


def snapshot_words(snapshot: WorkingMemorySnapshot) -> str:
    """The block of the prompt; blank for one that holds nothing."""
    lines = _field_lines(snapshot, [name for name in FIELDS if getattr(snapshot, name)])
    if not lines:
        return ""
    head = "# Working memory\nKept by the runtime from your records, as of your last stretch of work."
    return "\n".join([head, *lines])


def delta_words(delta: WorkingMemoryDelta) -> str:
    """What follows the conversation."""
    return "\n".join(["Working memory: this changed, and is now:", *delta.summary_lines])


def _field_lines(snapshot: WorkingMemorySnapshot, fields: Collection[str]) -> list[str]:
    lines: list[str] = []
    for name in FIELDS:
        if name not in fields:
            continue
        held, label = getattr(snapshot, name), _LABELS[name]
        if isinstance(held, tuple):
            said = [each.text if isinstance(each, MemoryLine) else each for each in held]
            lines.append(f"{label}:" if said else f"{label}: none")
            lines += [f"- {each}" for each in said]
        else:
            lines.append(f"{label}: {held or 'none'}")
    return lines


def line_of(text: str, most: int = LINE) -> str:
    """A text in one line."""
    return " ".join(text.split())[:most]


def waiting_lines(waits: Sequence[ActiveWait]) -> tuple[MemoryLine, ...]:
    return tuple(MemoryLine(text=f"{wait.kind}: {line_of(wait.reason)}") for wait in waits[:MOST_LINES])


def few(lines: Iterable[T], most: int) -> tuple[T, ...]:
    """Each once, the first of them."""
    return tuple(dict.fromkeys(lines))[:most]
