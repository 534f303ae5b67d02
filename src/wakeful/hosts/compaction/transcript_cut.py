"""When a host's transcript is folded, and where it is cut. Pure, and nothing is folded unasked.

The policy is the host's, with its defaults; the cut is the one of every conversation (`decisions.conversation_cut`). A
call that waits for its result, a question that waits for an answer and the newest message of the user always stay.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import Field, model_validator

from wakeful.contracts.jsonable import JsonDict
from wakeful.contracts.transcript import Message, originals
from wakeful.contracts.validation import validated
from wakeful.contracts.values import Value
from wakeful.decisions.conversation_cut import folded_part, kept_part, newest_place, tail_start, untied
from wakeful.hosts.compaction.compaction_items import byte_count, items_of

INVALID = "invalid_compaction_policy"
QUESTIONS = ("approval_required", "input_required")
DISABLED, SHORT = "disabled", "within_max_messages"
UNSPLITTABLE, NO_BOUNDARY = "overflow_input_unsplittable", "no_safe_boundary"


class TranscriptCompactionPolicy(Value):
    """The rules of one compaction."""

    enabled: bool = False
    max_messages: int = Field(40, ge=2)
    """A transcript of at most this many messages is left alone."""
    recent_messages: int = Field(12, ge=1)
    """How many of the newest stay as they are."""
    summary_role: str = "system"
    summary_prefix: str = "Summary of the earlier conversation:\n\n"
    summary_model: str = ""
    summary_provider: str = ""
    preserve_tool_boundaries: bool = True
    """A call and its result stay on one side of the cut."""
    conservation_enabled: bool = False
    minimum_conserved_byte_ratio: float = Field(1.0, ge=0)
    fail_on_conservation_failure: bool = True
    overflow_archive_enabled: bool = False
    overflow_threshold_bytes: int = Field(0, ge=0)
    """Above this the older part is moved out; 0: never."""
    overflow_retained_messages: int = Field(0, ge=0)
    """0: as many as `recent_messages`."""
    overflow_retained_bytes: int = Field(0, ge=0)
    """The most that may stay, however few messages that is; 0: no such limit."""
    overflow_archive_pointer: JsonDict = {}
    """Where the host keeps what was moved out: its own words, shown in the stub."""
    overflow_stub_role: str = "system"
    overflow_stub_prefix: str = "Earlier messages were moved to an archive."

    @model_validator(mode="before")
    @classmethod
    def _keep_fewer_than_there_may_be(cls, raw: Any) -> Any:
        """As many kept as there may be would leave nothing to fold, before every turn again."""
        if not isinstance(raw, Mapping):
            return raw
        fields = dict(raw)
        most, recent = fields.get("max_messages", 40), fields.get("recent_messages", 12)
        if isinstance(most, int) and isinstance(recent, int) and 2 <= most <= recent:
            fields["recent_messages"] = most - 1
        return fields

    @classmethod
    def normalise(cls, raw: "TranscriptCompactionPolicy | Mapping[str, Any] | None") -> "TranscriptCompactionPolicy":
        """A policy from outside; None is the default. Raises InvalidValue `invalid_compaction_policy`."""
        return validated(cls, {} if raw is None else raw, INVALID)


@dataclass(slots=True, frozen=True)
class NoCut:
    """Nothing is to be done."""

    messages: tuple[Message, ...]
    reason: str
    policy: TranscriptCompactionPolicy


@dataclass(slots=True, frozen=True)
class TranscriptCut:
    """Where the transcript is cut: `older` goes, `kept` stays."""

    messages: tuple[Message, ...]
    at: int
    policy: TranscriptCompactionPolicy
    pinned: int | None = None
    """The newest message of the user, where it lies before the cut: it stays, in front of the rest."""

    @property
    def older(self) -> tuple[Message, ...]:
        return tuple(folded_part(self.messages, self.at, self.pinned))

    @property
    def kept(self) -> tuple[Message, ...]:
        return tuple(kept_part(self.messages, self.at, self.pinned))

    @property
    def context(self) -> dict[str, Any]:
        """What whoever summarises is told."""
        boundary = {"compact_until": self.at - 1, "retain_from": self.at}
        return {
            "policy": self.policy.model_dump(mode="json"),
            "total_messages": len(self.messages),
            "compact_count": len(self.older),
            "retained_count": len(self.kept),
            "boundary": boundary if self.pinned is None else {**boundary, "pinned": self.pinned},
        }


class SummaryCut(TranscriptCut):
    """The older part is to be summarised."""


class ArchiveCut(TranscriptCut):
    """The older part is to be moved out."""


def plan(
    messages: Sequence[Message], policy: TranscriptCompactionPolicy, *, summarises: bool = True
) -> NoCut | SummaryCut | ArchiveCut:
    """What is to be done with a transcript. `summarises`: there is somebody who would write the summary."""
    given = tuple(messages)
    if not policy.enabled:
        return NoCut(given, DISABLED, policy)
    if _overflows(given, policy):
        stay = policy.overflow_retained_messages or policy.recent_messages
        archive = ArchiveCut(given, *_cut(given, policy, stay, policy.overflow_retained_bytes))
        return archive if _is_worth_it(archive) else NoCut(given, UNSPLITTABLE, policy)
    if not summarises:
        return NoCut(given, DISABLED, policy)
    if len(given) <= policy.max_messages:
        return NoCut(given, SHORT, policy)
    fold = SummaryCut(given, *_cut(given, policy, policy.recent_messages))
    return fold if _is_worth_it(fold) else NoCut(given, NO_BOUNDARY, policy)


def is_users(message: Message) -> bool:
    """Is it the user's own, and not what the loop said to the model in the user's place?"""
    return message.role == "user" and message.metadata.get("origin") != "runtime" and not _stands_for_others(message)


def _stands_for_others(message: Message) -> bool:
    """A summary, or the stub of an archive."""
    return isinstance(message.metadata.get("compaction"), Mapping)


def _is_worth_it(cut: TranscriptCut) -> bool:
    """Something goes, and it is not only what stands for others already."""
    return not all(map(_stands_for_others, cut.older))


def _overflows(messages: tuple[Message, ...], policy: TranscriptCompactionPolicy) -> bool:
    if not policy.overflow_archive_enabled or not policy.overflow_threshold_bytes:
        return False
    return byte_count(items_of(messages)) > policy.overflow_threshold_bytes


def _cut(
    messages: tuple[Message, ...], policy: TranscriptCompactionPolicy, most_messages: int, most_bytes: int = 0
) -> tuple[int, TranscriptCompactionPolicy, int | None]:
    """Where it is cut, under which policy, and what stays all the same. `most_bytes` 0: no such limit."""
    sizes = [item.byte_count for item in items_of(messages)] if most_bytes else [0] * len(messages)
    at = tail_start(len(messages), sizes.__getitem__, most=most_bytes or None, most_entries=most_messages)
    pairs, waiting = _ties(messages)
    at = untied(at, pairs if policy.preserve_tool_boundaries else (), waiting)
    asked = newest_place(len(messages), lambda place: is_users(messages[place]))
    return at, policy, asked if asked is not None and asked < at else None


def _ties(messages: tuple[Message, ...]) -> tuple[list[tuple[int, int]], list[int]]:
    """Calls with their results, by place; and the places of what waits: calls without one, open questions."""
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
    pairs = [(called[call_id], end) for call_id, end in ends.items() if call_id in called]
    open_calls = [place for call_id, place in called.items() if call_id not in ends]
    return pairs, [*open_calls, *(place for call_id, place in asks if ends.get(call_id, -1) < place)]
