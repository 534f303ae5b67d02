"""The words of the runtime to a model about its work items, beside the prompt: with a completion, and in a long turn.

A completion's report is explicit: the text of the very reply that calls `complete_work_item`, once, for the item that
was current when the round began. Nothing is made up where there is none; the result of the call says so.

The reminder in a long turn is a note to the model alone, after many rounds in which it changed no work item. It marks
no progress, and asks for an update only where something really changed.
"""

from typing import Any, Final, Literal, NamedTuple, TypeAlias

from wakeful.contracts.work_items import WorkItem

CompletionWarning: TypeAlias = Literal["missing_completion_report", "several_completions", "not_current"]

_WORDS: dict[CompletionWarning, str] = {
    "missing_completion_report": (
        "The item is completed without a report: your reply had no text beside the call. The operator sees no report."
    ),
    "several_completions": (
        "The item is completed without a report: your reply completed several items, and its text belongs to none of "
        "them. Complete one item a reply."
    ),
    "not_current": (
        "The item is completed without a report: it was not your current item when this reply began. Pick an item "
        "before you complete it."
    ),
}


class CompletionVerdict(NamedTuple):
    """Is the round's text the report of the item?"""

    is_reported: bool
    warning: CompletionWarning | None = None

    def told(self) -> dict[str, Any]:
        """What the result of the call says about it."""
        if self.warning is None:
            return {"reported": True}
        return {"reported": False, "warning": {"kind": self.warning, "message": _WORDS[self.warning]}}


def completion_verdict(work_item_id: str, *, text: str, completions: int, focus: str | None) -> CompletionVerdict:
    """`text` is the round's own, `completions` how many items it completes, `focus` the current item when it began."""
    if completions > 1:
        return CompletionVerdict(False, "several_completions")
    if focus != work_item_id:
        return CompletionVerdict(False, "not_current")
    if not text.strip():
        return CompletionVerdict(False, "missing_completion_report")
    return CompletionVerdict(True)


# --- the reminder -----------------------------------------------------------------------------------------------

_CHARACTERS_A_TOKEN: Final = 4
_PLAN_CHARACTERS: Final = 400
_ASKS: Final = (
    "This is a reminder by the runtime, not an instruction, and not progress by itself. Update the item only if "
    "something really changed: material progress, another scope, a blocker, or an entry of the checklist that is done."
)


class ReminderTerms(NamedTuple):
    """When the model is reminded, and how much it is told."""

    rounds: int = 10
    """Rounds without a change of a work item until the first reminder."""
    cooldown: int = 10
    """Rounds until the next one."""
    max_tokens: int = 512


USUAL_TERMS: Final = ReminderTerms()


def is_reminder_due(terms: ReminderTerms, *, step: int, changed_in: int, reminded_in: int) -> bool:
    """After this round, given the newest ones in which an item was changed and in which the model was reminded."""
    if step - changed_in < terms.rounds:
        return False
    return reminded_in <= changed_in or step - reminded_in >= terms.cooldown


def reminder_text(item: WorkItem, plan: str, terms: ReminderTerms) -> str:
    """The current item, without what is done, in at most so many tokens."""
    lines = [
        f"Your current work item is {item.work_item_id} ({item.plan_status}): {item.objective}",
        *([f"It is blocked by: {item.blocked_by}"] if item.blocked_by is not None else ()),
        *([f"Its plan begins: {plan[:_PLAN_CHARACTERS]}"] if plan else ()),
        *(f"- {entry['text']} ({entry['state']})" for entry in item.todos_left),
    ]
    room = max(0, terms.max_tokens * _CHARACTERS_A_TOKEN - len(_ASKS) - 2)
    told = "\n".join(lines)
    return f"{told[:room]}\n\n{_ASKS}" if room else _ASKS[: terms.max_tokens * _CHARACTERS_A_TOKEN]


def fits_prompt(text: str, *, baseline_tokens: int, prompt_budget: int | None) -> bool:
    """Is there room for it beside what the next request says anyway?"""
    return prompt_budget is None or baseline_tokens + len(text) // _CHARACTERS_A_TOKEN + 1 <= prompt_budget
