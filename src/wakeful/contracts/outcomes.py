"""How a run ended: `wakeful.run-outcome` version 1. One a run; every status keeps its own name."""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from pydantic import ConfigDict, Field, model_validator

from wakeful.contracts.jsonable import JsonDict
from wakeful.contracts.validation import validated
from wakeful.contracts.values import Value

INVALID = "invalid_run_outcome"

OutcomeStatus: TypeAlias = Literal[
    "completed",
    "failed",
    "runtime_tool_pending",
    "approval_required",
    "budget_exceeded",
    "stalled",
    "cancelled",
    "interrupted",
    "incomplete",
]
RETRYABLE: frozenset[str] = frozenset({"budget_exceeded", "failed", "incomplete"})
"""Running the same request again may end otherwise, unless an adapter knows better."""


class RunFailure(Value):
    """Why a run failed, for programs."""

    type: str
    message: str
    code: str | None = None
    turn_count: int | None = None


class RunOutcome(Value):
    """The terminal outcome of a run. `completed`, `stop_reason` and `retryable` follow from the status unless given."""

    model_config = ConfigDict(serialize_by_alias=True)

    schema_id: Literal["wakeful.run-outcome"] = Field("wakeful.run-outcome", alias="schema")
    version: Literal[1] = 1
    status: OutcomeStatus
    completed: bool
    stop_reason: str
    """`natural`, `max_turns`, `provider_error`, else the status."""
    retryable: bool
    failure: RunFailure | None = None
    provider_error: JsonDict | None = None
    assertions: tuple[JsonDict, ...] | None = None
    metadata: JsonDict | None = None

    @model_validator(mode="before")
    @classmethod
    def _follow_from_status(cls, raw: Any) -> Any:
        if not isinstance(raw, dict) or not isinstance(raw.get("status"), str):
            return raw
        status = raw["status"]
        filled = {"stop_reason": stop_reason(status), "retryable": status in RETRYABLE, **raw}
        # whatever was said: nothing but a completion is completed
        filled["completed"] = status == "completed"
        return filled

    @model_validator(mode="after")
    def _natural_is_completed(self) -> "RunOutcome":
        if (self.stop_reason == "natural") != self.completed:
            raise ValueError(f"stop_reason {self.stop_reason!r} does not go with status {self.status!r}")
        if self.retryable and self.status not in (*RETRYABLE, "stalled"):
            raise ValueError(f"a run that ended as {self.status!r} is not one to try again")
        return self

    @classmethod
    def of(cls, status: OutcomeStatus, **fields: Any) -> "RunOutcome":
        """The outcome of a status, with what else is known."""
        return cls.normalise({"status": status, **fields})

    @classmethod
    def normalise(cls, raw: "RunOutcome | Mapping[str, Any]") -> "RunOutcome":
        """Raises InvalidValue for an unknown status; none is ever read as another."""
        return validated(cls, raw, INVALID)


def stop_reason(status: str, *, turn_limit: bool = False, provider_error: bool = False) -> str:
    """The word for why a run stopped."""
    if status == "completed":
        return "natural"
    if turn_limit:
        return "max_turns"
    return "provider_error" if provider_error else status
