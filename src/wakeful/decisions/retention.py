"""What may go, and what stays: the rules of retention, on values.

An event may expire when nothing follows from it any more: no row of a table, no state of a later turn, no answer that
somebody may ask for again. So the kinds are named here, and a test holds every one of them against the rules of the
tables and against `evolve`. Everything else stays, whatever its age.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from wakeful.contracts.events import AnyEvent

FOR_READERS = frozenset(
    {
        "routing.single_candidate",
        "tool.catalog.resolved",
        "tool.progress",
        "tool.args",
        "hook.started",
        "hook.completed",
        "hook.failed",
        "sandbox.applied",
        "sandbox.violation",
        "output.truncated",
        "output.redacted",
        "runtime.warning",
    }
)
"""Nothing is ever decided from these: they tell readers how a turn was run."""
FOLLOWED = frozenset({"context.resolved", "routing.decided", "routing.fallback.applied"})
"""The same events of a later turn take the place of these."""
OF_ITS_TURN = FOLLOWED | {"thread.checkpointed"}
"""A later turn of the thread may still begin with these, as long as its window reaches them."""


OF_A_CONVERSATION = (
    FOR_READERS
    | OF_ITS_TURN
    | {
        "answer.accepted",
        "answer.rejected",
        "context.compaction.started",
        "context.compaction.failed",
        "context.retrieved",
        "context.skill_activated",
        "output.spilled",
        "permission.evaluated",
        "planning.started",
        "planning.completed",
        "planning.failed",
        "subagent.started",
        "subagent.noted",
        "subagent.completed",
        "subagent.failed",
        "tool.started",
        "tool.dispatched",
        "turn.config_changed",
        "workflow.started",
        "workflow.node_resolved",
    }
)
"""Nothing follows from these once their thread was deleted: no row that stays, and no later turn begins with them."""
_NO_WORDS: Mapping[str, Callable[[Any], dict[str, Any]]] = {
    "message.admitted": lambda event: {
        "item": event.item.model_copy(update={"parts": ()}),
        "body": None,
        "prompt_preview": "",
        "metadata": None,
        "context": {},
        "notes": {},
        "editing": None,
    },
    "turn.started": lambda event: {
        "prompt_preview": None if event.prompt_preview is None else "",
        "config_ref": event.config_ref.model_copy(update={"digest": ""}),
        "context": {},
    },
    "turn.interjected": lambda event: {"item": event.item.model_copy(update={"parts": ()}), "prompt_preview": ""},
    "turn.completed": lambda event: {"final_preview": ""},
    "turn.failed": lambda event: {"final_preview": ""},
    "history.imported": lambda event: {"items": (), "items_ref": None},
    "assistant.recorded": lambda event: {
        "item": event.item.model_copy(update={"parts": (), "citations": None}),
        "text_preview": "",
        "continuation": tuple(each.model_copy(update={"parts": ()}) for each in event.continuation),
    },
    "tool.result": lambda event: {
        **_of_call(event),
        "structured_ref": None,
        "images": (),
        "details": {},
        "untrusted": "",
        "preview": "",
    },
    "tool.failed": lambda event: {
        **_of_call(event),
        "message": "",
        "error": "",
        "tool_error": event.tool_error.model_copy(update={"message": "", "details": None, "recovery_hint": None}),
        "recovery_advice": None,
        "preview": None,
        "traceback": None,
        "untrusted": "",
    },
    "context.compaction.completed": lambda event: {"summary": None, "summary_preview": "", "folded_message_ids": ()},
}
"""Rows follow from these. They stay, without what was said: an event to the fields that are different then."""


def _of_call(event: Any) -> dict[str, Any]:
    return {
        "item": event.item.model_copy(update={"parts": ()}),
        "result_ref": None,
        "artifact_refs": (),
        "evidence_refs": (),
        "metadata": event.metadata.model_copy(update={"injected_args": {}, "offloaded_artifact_id": None}),
    }


def is_of_conversation(event: AnyEvent) -> bool:
    """Does it leave the log with its deleted thread, for good or but for what is left of it?"""
    return event.kind in OF_A_CONVERSATION or event.kind in _NO_WORDS


def without_words(event: AnyEvent) -> AnyEvent | None:
    """What is left of an event of a conversation; None: nothing has to be."""
    change = _NO_WORDS.get(event.kind)
    return None if change is None else event.model_copy(update=change(event))


def expiring_kinds(
    *, last_seq: int, keep_from: int, is_followed: bool = False, is_tainted: bool = True
) -> frozenset[str]:
    """The kinds of events of a closed turn that may expire at its age, given its last event and the first one that the
    next turn of its thread, or one that may still be replayed, begins to read with.

    `is_followed`: a later turn of the thread has begun. `is_tainted`: the turn was shown files that the owner has not
    accepted, which its context says, and which every later turn has to know.
    """
    if last_seq < keep_from:
        return FOR_READERS | OF_ITS_TURN
    return FOR_READERS | FOLLOWED if is_followed and not is_tainted else FOR_READERS


def why_log_stays(*, is_temporary: bool, open_turns: int, keys: int, other_tables: Collection[str]) -> str | None:
    """Why the whole log of an agent may not go, however old it is; None: it may."""
    if not is_temporary:
        return "it belongs to an agent, or to threads that nobody deleted"
    if open_turns:
        return f"{open_turns} of its turns have not ended"
    if keys:
        return f"{keys} of its turns have a key, by which their result may be asked for again"
    if other_tables:
        return f"it has rows in {', '.join(sorted(other_tables))}"
    return None


def is_noticed(size_bytes: int, notice_bytes: int, *, was_noticed: bool) -> bool:
    """Is the owner to be told of the size now? Once, until it has been smaller again."""
    return bool(notice_bytes) and size_bytes > notice_bytes and not was_noticed
