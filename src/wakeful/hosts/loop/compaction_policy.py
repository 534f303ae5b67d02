"""When a transcript is folded, and how: the policy of `compact`, with its defaults. Nothing is folded unasked."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field, model_validator

from wakeful.contracts.jsonable import JsonDict
from wakeful.contracts.validation import validated
from wakeful.contracts.values import Value

INVALID = "invalid_compaction_policy"


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
