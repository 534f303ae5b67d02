"""Folding a transcript: where to cut, what a summary has to be, and what comes out. Pure: asking for the summary is
somebody else's (`hosts.loop.compaction`).

    planned = plan(messages, policy)        Skipped | Overflow | Fold
    archived(planned)                       the older part is moved out, a stub in its place
    folded(planned, answer)                 a summary in its place, or the original when that would lose too much

A call that waits for its result, and a question that waits for an answer, always stay. Whatever goes wrong, the
transcript is what it was.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.transcript import Message, originals, text
from wakeful.decisions.redaction import stable_hash
from wakeful.hosts.loop.compaction_items import (
    CompactionItem,
    byte_count,
    conservation,
    items_of,
    made,
    normalise_items,
    provenance,
)
from wakeful.hosts.loop.compaction_policy import TranscriptCompactionPolicy

STARTED, COMPLETED = "compaction_started", "compaction_completed"
FAILED, ARCHIVED = "compaction_failed", "compaction_overflow_archived"
QUESTIONS = ("approval_required", "input_required")
DISABLED, SHORT = "disabled", "within_max_messages"
UNSPLITTABLE, NO_BOUNDARY = "overflow_input_unsplittable", "no_safe_boundary"


@dataclass(slots=True, frozen=True)
class Compaction:
    """What came out: `messages` to go on with, and what is to be said about it."""

    messages: tuple[Message, ...]
    metadata: dict[str, Any]
    """`{"compaction": {...}}`, with its `status`."""
    events: tuple[dict[str, Any], ...] = ()
    """`{type, metadata}`, in order."""
    archive_items: tuple[CompactionItem, ...] = ()

    @property
    def status(self) -> str:
        return str(self.metadata["compaction"]["status"])

    @property
    def changed(self) -> bool:
        return self.status in ("compacted", "archived")

    def to_wire(self) -> dict[str, Any]:
        """As JSON data."""
        wire: dict[str, Any] = {
            "messages": [message.to_wire() for message in self.messages],
            "metadata": self.metadata,
            "events": list(self.events),
        }
        if self.archive_items:
            wire["archive_items"] = [item.to_wire() for item in self.archive_items]
        return wire


@dataclass(slots=True, frozen=True)
class Skipped:
    """Nothing is to be done."""

    messages: tuple[Message, ...]
    reason: str
    policy: TranscriptCompactionPolicy


@dataclass(slots=True, frozen=True)
class Cut:
    """Where the transcript is cut: `older` goes, `kept` stays."""

    messages: tuple[Message, ...]
    at: int
    policy: TranscriptCompactionPolicy
    context: dict[str, Any] = field(init=False)
    """What whoever summarises is told."""

    def __post_init__(self) -> None:
        context = {
            "policy": self.policy.model_dump(mode="json"),
            "total_messages": len(self.messages),
            "compact_count": self.at,
            "retained_count": len(self.messages) - self.at,
            "boundary": {"compact_until": self.at - 1, "retain_from": self.at},
        }
        object.__setattr__(self, "context", context)

    @property
    def older(self) -> tuple[Message, ...]:
        return self.messages[: self.at]

    @property
    def kept(self) -> tuple[Message, ...]:
        return self.messages[self.at :]


class Fold(Cut):
    """The older part is to be summarised."""


class Overflow(Cut):
    """The older part is to be moved out."""


def plan(
    messages: Sequence[Message], policy: TranscriptCompactionPolicy, *, summarises: bool = True
) -> Skipped | Fold | Overflow:
    """What is to be done with a transcript. `summarises`: there is somebody who would write the summary."""
    given = tuple(messages)
    if not policy.enabled:
        return Skipped(given, DISABLED, policy)
    if _overflows(given, policy):
        at = _safe(given, _overflow_from(given, policy), policy)
        return Overflow(given, at, policy) if at else Skipped(given, UNSPLITTABLE, policy)
    if not summarises:
        return Skipped(given, DISABLED, policy)
    if len(given) <= policy.max_messages:
        return Skipped(given, SHORT, policy)
    at = _safe(given, len(given) - policy.recent_messages, policy)
    return Fold(given, at, policy) if at else Skipped(given, NO_BOUNDARY, policy)


def skipped(planned: Skipped) -> Compaction:
    """The transcript as it was, and why."""
    total = len(planned.messages)
    about = {"status": "skipped", "reason": planned.reason, "total_messages": total, "retained_count": total}
    return Compaction(planned.messages, {"compaction": about})


def started(cut: Cut) -> dict[str, Any]:
    """The event before anybody is asked for a summary."""
    return {"type": STARTED, "metadata": dict(cut.context)}


def failed(cut: Cut, error: str, about: Mapping[str, Any] | None = None) -> Compaction:
    """The transcript as it was, and what went wrong."""
    known = {**cut.context, **(about or {}), "error": error[:2000]}
    return Compaction(
        cut.messages,
        {"compaction": {"status": "failed", **known}},
        (started(cut), {"type": FAILED, "metadata": known}),
    )


def folded(cut: Fold, answer: Any) -> Compaction:
    """The transcript with a summary in it. An answer that is none, or that loses too much, leaves it as it was."""
    policy = cut.policy
    try:
        summary, archive = _read(answer)
    except InvalidValue as error:
        return failed(cut, str(error))
    words = policy.summary_prefix + summary
    counted = provenance(items_of(cut.messages), (made("summary", words, 0),), items_of(cut.kept), archive)
    held = conservation(
        counted,
        enabled=policy.conservation_enabled,
        ratio=policy.minimum_conserved_byte_ratio,
        fails=policy.fail_on_conservation_failure,
    )
    summarizer = {"provider": policy.summary_provider, "model": policy.summary_model}
    about = {
        "provenance": counted.model_dump(mode="json"),
        "summarizer": summarizer,
        "conservation": held.model_dump(mode="json"),
    }
    if held.failed_closed:
        lost = f"{held.conserved_byte_count} of {held.required_byte_count} bytes that have to be conserved are"
        return failed(cut, f"conservation failed: {lost}", about)
    noted = {name: cut.context[name] for name in ("total_messages", "compact_count", "retained_count")}
    message = text(
        policy.summary_role,
        words,
        metadata={
            "compaction": {**noted, "summary_provider": policy.summary_provider, "summary_model": policy.summary_model}
        },
    )
    known = {**cut.context, **about}
    return Compaction(
        (message, *cut.kept),
        {"compaction": {"status": "compacted", **known}},
        (started(cut), {"type": COMPLETED, "metadata": known}),
        archive,
    )


def archived(cut: Overflow) -> Compaction:
    """The older part moved out. The id follows from what was moved: the same input gives the same archive."""
    policy = cut.policy
    items = items_of(cut.older)
    archive_id = "archive-" + stable_hash([message.to_wire() for message in cut.older]).removeprefix("sha256:")[:16]
    noted: dict[str, Any] = {"archive_id": archive_id, "archived_count": len(items)}
    if policy.overflow_archive_pointer:
        noted["archive_pointer"] = policy.overflow_archive_pointer
    words = f"{policy.overflow_stub_prefix}\n\n{len(items)} messages, archive {archive_id}."
    stub = text(policy.overflow_stub_role, words, metadata={"compaction": noted})
    counted = provenance(items_of(cut.messages), (made("stub", words, 0),), items_of(cut.kept), items)
    held = conservation(
        counted,
        enabled=policy.conservation_enabled,
        ratio=policy.minimum_conserved_byte_ratio,
        fails=policy.fail_on_conservation_failure,
    )
    about = {
        **cut.context,
        **noted,
        "provenance": counted.model_dump(mode="json"),
        "conservation": held.model_dump(mode="json"),
    }
    if held.failed_closed:  # a ratio above 1 asks for more than there was
        return failed(cut, "conservation failed: more is to be conserved than there was", about)
    return Compaction(
        (stub, *cut.kept),
        {"compaction": {"status": "archived", **about}},
        ({"type": ARCHIVED, "metadata": about},),
        items,
    )


# --- where to cut ----------------------------------------------------------------------------------------------------


def _overflows(messages: tuple[Message, ...], policy: TranscriptCompactionPolicy) -> bool:
    if not policy.overflow_archive_enabled or not policy.overflow_threshold_bytes:
        return False
    return byte_count(items_of(messages)) > policy.overflow_threshold_bytes


def _overflow_from(messages: tuple[Message, ...], policy: TranscriptCompactionPolicy) -> int:
    """The first message that stays, as far as numbers and bytes say."""
    at = max(0, len(messages) - (policy.overflow_retained_messages or policy.recent_messages))
    if policy.overflow_retained_bytes:
        sizes = [item.byte_count for item in items_of(messages)]
        left = sum(sizes[at:])
        while at < len(sizes) - 1 and left > policy.overflow_retained_bytes:  # the newest message always stays
            left -= sizes[at]
            at += 1
    return at


def _safe(messages: tuple[Message, ...], at: int, policy: TranscriptCompactionPolicy) -> int:
    """The cut, moved back until nothing that belongs together is on both sides, and nothing open is in the part that
    goes."""
    called: dict[str, int] = {}
    ends: dict[str, int] = {}
    asks: list[tuple[str, int]] = []
    for place, message in enumerate(messages):
        for original in originals(message):
            call_id = original.tool_call_id or ""
            if original.type == "tool_call":
                called[call_id] = place
            elif original.type == "tool_result":
                ends[call_id] = place
            elif original.type in QUESTIONS:
                asks.append((call_id, place))
    open_calls = [place for call_id, place in called.items() if call_id not in ends]
    open_questions = [place for call_id, place in asks if ends.get(call_id, -1) < place]
    at = min([at, *open_calls, *open_questions])
    if policy.preserve_tool_boundaries:
        pairs = sorted(((called[call_id], end) for call_id, end in ends.items() if call_id in called), reverse=True)
        for begin, end in pairs:  # the latest first: moving back over one pair may cut an earlier one
            if begin < at <= end:
                at = begin
    return max(0, at)


def _read(answer: Any) -> tuple[str, tuple[CompactionItem, ...]]:
    """A summary, and what whoever wrote it put aside."""
    archive: Any = ()
    if isinstance(answer, Mapping):
        answer, archive = answer.get("summary"), answer.get("archived_items") or ()
    if not isinstance(answer, str) or not answer.strip():
        found = "an empty text" if isinstance(answer, str) else f"a {type(answer).__name__}"
        raise InvalidValue("invalid_summary", "summary", f"is a text that says something, not {found}")
    return answer, normalise_items(archive, at="archived_items")
