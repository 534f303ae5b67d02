"""Folding a host's transcript: `compact`. The host's summarizer writes the summary; here is what comes out.

    plan(messages, policy)        where to cut (`transcript_cut`), or why not
    archived(cut)                 the older part is moved out, a stub in its place
    folded(cut, answer)           a summary in its place, or the original when that would lose too much

Whatever goes wrong, the transcript is what it was.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.transcript import Message, normalise_all, text
from wakeful.decisions.redaction import stable_hash
from wakeful.hosts.compaction.compaction_items import (
    CompactionItem,
    conservation,
    items_of,
    made,
    normalise_items,
    provenance,
)
from wakeful.hosts.compaction.transcript_cut import (
    ArchiveCut,
    NoCut,
    SummaryCut,
    TranscriptCompactionPolicy,
    TranscriptCut,
    plan,
)
from wakeful.hosts.host_calls import in_its_place

STARTED, COMPLETED = "compaction_started", "compaction_completed"
FAILED, ARCHIVED = "compaction_failed", "compaction_overflow_archived"
Summarizer: TypeAlias = Callable[[list[dict[str, Any]], dict[str, Any]], Any]
"""(messages, context) -> the summary, or `{summary, archived_items?}`. Plain or async."""


@dataclass(slots=True, frozen=True)
class Compaction:
    """The result of a compaction: the `messages` to continue with, and its report."""

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


async def compact(
    messages: Iterable[Message | Mapping[str, Any]],
    policy: TranscriptCompactionPolicy | Mapping[str, Any] | None,
    summarizer: Summarizer | None = None,
) -> Compaction:
    """Fold a transcript. Without a policy that says so, and somebody who summarises, it is left as it was."""
    given = normalise_all(messages)
    return await carry_out(given, TranscriptCompactionPolicy.normalise(policy), summarizer)


async def carry_out(
    messages: tuple[Message, ...],
    policy: TranscriptCompactionPolicy,
    summarizer: Summarizer | None,
    *,
    show: Callable[[Message], Message] = lambda message: message,
    begun: Callable[[dict[str, Any]], Awaitable[None]] | None = None,
) -> Compaction:
    """The same. `show` is how a message looks to the summarizer; `begun` hears the event before that is asked."""
    planned = plan(messages, policy, summarises=summarizer is not None)
    if isinstance(planned, NoCut):
        return skipped(planned)
    if isinstance(planned, ArchiveCut):
        return archived(planned)
    assert summarizer is not None, "without one nothing is planned"
    if begun is not None:
        await begun(started(planned))
    older = [show(message).to_wire() for message in planned.older]
    try:
        answer = await in_its_place(summarizer, older, planned.context)
    except Exception as error:
        return failed(planned, f"{type(error).__name__}: {error}")
    return folded(planned, answer)


def skipped(planned: NoCut) -> Compaction:
    """The transcript as it was, and why."""
    total = len(planned.messages)
    about = {"status": "skipped", "reason": planned.reason, "total_messages": total, "retained_count": total}
    return Compaction(planned.messages, {"compaction": about})


def started(cut: TranscriptCut) -> dict[str, Any]:
    """The event before anybody is asked for a summary."""
    return {"type": STARTED, "metadata": cut.context}


def failed(cut: TranscriptCut, error: str, about: Mapping[str, Any] | None = None) -> Compaction:
    """The transcript as it was, and what went wrong."""
    known = {**cut.context, **(about or {}), "error": error[:2000]}
    return Compaction(
        cut.messages,
        {"compaction": {"status": "failed", **known}},
        (started(cut), {"type": FAILED, "metadata": known}),
    )


def folded(cut: SummaryCut, answer: Any) -> Compaction:
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


def archived(cut: ArchiveCut) -> Compaction:
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


def _read(answer: Any) -> tuple[str, tuple[CompactionItem, ...]]:
    """A summary, and what whoever wrote it put aside."""
    archive: Any = ()
    if isinstance(answer, Mapping):
        answer, archive = answer.get("summary"), answer.get("archived_items") or ()
    if not isinstance(answer, str) or not answer.strip():
        found = "an empty text" if isinstance(answer, str) else f"a {type(answer).__name__}"
        raise InvalidValue("invalid_summary", "summary", f"is a text that says something, not {found}")
    return answer, normalise_items(archive, at="archived_items")
