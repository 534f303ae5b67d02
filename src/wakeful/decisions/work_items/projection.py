"""What a prompt shows of an agent's work items: the current one in full, others by class, in order, each class bounded.

The records stay what counts; this is a view of them for one turn. An agent without items is shown nothing, and none is
made up for it. A completed item is shown with its report alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from wakeful.contracts.authority import lowest
from wakeful.contracts.work_items import ActiveWait, WorkItem
from wakeful.decisions.policy.provenance import is_instruction
from wakeful.decisions.work_items.readiness import is_triggered, readiness

CandidateClass: TypeAlias = Literal[
    "triggered_blocked", "queued_runnable", "waiting_for_operator", "blocked", "completed_recent"
]
CAPS: Final[Mapping[CandidateClass, int | None]] = {
    "triggered_blocked": 3,
    "queued_runnable": 5,
    "waiting_for_operator": None,
    "blocked": 3,
    "completed_recent": 3,
}
"""Every class in the order of the prompt, and how many of its items are shown; None: all."""
MAX_SHOWN_TEXT: Final = 300
"""How much of an objective or a report stands in a line about an item that is not current."""
MAX_SHOWN_PLAN: Final = 2_000
MAX_TRACE: Final = 1_500

_HEADS: Final[Mapping[CandidateClass, str]] = {
    "triggered_blocked": "Blocked, and what they wait for may have happened",
    "queued_runnable": "Ready to be picked",
    "waiting_for_operator": "Waiting for the operator",
    "blocked": "Blocked",
    "completed_recent": "Completed lately",
}


class CurrentDetails(NamedTuple):
    """What is looked up for the current item beside its record."""

    plan_path: str = ""
    plan_preview: str = ""
    plan_complete: bool = True
    trace: Sequence[str] = ()
    """What the newest turns did for it: their words and calls, the oldest first."""


class Projection(NamedTuple):
    """The block of a prompt, and what stands in it."""

    text: str
    """Blank: there is nothing to show."""
    current: WorkItem | None = None
    others: tuple[WorkItem, ...] = ()
    triggered: tuple[WorkItem, ...] = ()

    @property
    def untrusted(self) -> str:
        """An item among them whose words derive from no instruction, and from what; blank: there is none."""
        shown = [item for item in (self.current, *self.others) if item is not None]
        tainted = [item for item in shown if not is_instruction(item.derived_from)]
        if not tainted:
            return ""
        worst = lowest(item.derived_from for item in tainted)
        first = next(item for item in tainted if item.derived_from == worst)
        return f"work item {first.work_item_id}, which derives from {worst}"


def candidates(
    items: Sequence[WorkItem], focus: str | None, waits: Iterable[ActiveWait], now: int
) -> dict[CandidateClass, list[WorkItem]]:
    """The items that are not current, by class, in order; all of them."""
    active = list(waits)
    found: dict[CandidateClass, list[WorkItem]] = {name: [] for name in CAPS}
    for item in items:
        if item.is_open and item.work_item_id == focus:
            continue
        found[_class_of(item, active, now)].append(item)
    found["triggered_blocked"].sort(key=lambda item: item.triggered_at or item.recheck_at or 0, reverse=True)
    found["queued_runnable"].sort(key=lambda item: (item.updated_at, item.work_item_id))
    for name in ("waiting_for_operator", "blocked", "completed_recent"):
        found[name].sort(key=lambda item: (item.updated_at, item.work_item_id), reverse=True)
    found["completed_recent"] = [item for item in found["completed_recent"] if item.report_event_id]
    return found


def _class_of(item: WorkItem, waits: Sequence[ActiveWait], now: int) -> CandidateClass:
    label = readiness(item, waits)
    if label == "completed":
        return "completed_recent"
    if is_triggered(item, now):
        return "triggered_blocked"
    return "queued_runnable" if label == "runnable" else label


def project(
    items: Sequence[WorkItem],
    focus: str | None,
    now: int,
    *,
    waits: Sequence[ActiveWait] = (),
    details: CurrentDetails | None = None,
    reports: Mapping[str, str] | None = None,
) -> Projection:
    """The block, given the open items and the newest completed ones. `reports` are those of completed items, by id."""
    current = next((item for item in items if item.is_open and item.work_item_id == focus), None)
    by_class = candidates(items, focus, waits, now)
    shown = {name: found[: CAPS[name]] for name, found in by_class.items()}
    others = [item for found in shown.values() for item in found]
    if current is None and not others:
        return Projection("")
    sections = ["# Your work items"]
    if current is not None:
        sections.append(_current(current, waits, details or CurrentDetails()))
    else:
        sections.append("You have no current work item. Pick one before you work on it.")
    for name, found in shown.items():
        if found:
            left = len(by_class[name]) - len(found)
            more = [f"- and {left} more: list_work_items shows them"] if left else []
            lines = [_line(item, (reports or {}).get(item.work_item_id, "")) for item in found]
            sections.append("\n".join([f"## {_HEADS[name]}", *lines, *more]))
    triggered = [item for item in (current, *others) if item is not None and is_triggered(item, now)]
    return Projection("\n\n".join(sections), current, tuple(others), tuple(triggered))


def _current(item: WorkItem, waits: Sequence[ActiveWait], details: CurrentDetails) -> str:
    lines = [
        f"## Current: {item.work_item_id}",
        f"Objective: {item.objective}",
        f"Plan: {item.plan_status}. Readiness: {readiness(item, waits)}.",
    ]
    if item.blocked_by is not None:
        lines.append(f"Blocked by: {item.blocked_by}")
    lines += [f"Waits for: {wait.reason} ({wait.kind})" for wait in waits if wait.work_item_id == item.work_item_id]
    if item.todo_list:
        lines += ["Checklist:", *(f"- [{entry['state']}] {entry['text']}" for entry in item.todo_list)]
    if details.plan_path:
        whole = "" if details.plan_complete else " (its beginning; read the file for the rest)"
        lines += [f"Plan file {details.plan_path}{whole}:", details.plan_preview[:MAX_SHOWN_PLAN]]
    if details.trace:
        lines += ["What was done for it lately:", "\n".join(f"- {each}" for each in details.trace)[-MAX_TRACE:]]
    return "\n".join(lines)


def _line(item: WorkItem, report: str) -> str:
    said = " ".join((report or item.objective).split())
    cut = said if len(said) <= MAX_SHOWN_TEXT else f"{said[:MAX_SHOWN_TEXT]}..."
    blocker = f" (blocked by {item.blocked_by[:MAX_SHOWN_TEXT]})" if item.blocked_by else ""
    return f"- {item.work_item_id}: {cut}{blocker}"
