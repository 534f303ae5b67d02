"""An action that waits for a person's decision: its preview, its state and its outcome."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from pydantic import Field, model_validator

from wakeful.contracts.errors import ForTheCaller
from wakeful.contracts.jsonable import JsonAny, JsonDict
from wakeful.contracts.transcript import Message, normalise
from wakeful.contracts.validation import validated
from wakeful.contracts.values import Value

INVALID = "invalid_pending_action"
INVALID_DECISION = "pending_action_invalid_decision"
NO_STORE = "pending_action_no_store"
NO_RESOLVER = "pending_action_no_resolver"
MISSING_RESOLVER = "pending_action_missing_resolver"
ActionStatus: TypeAlias = Literal["pending", "accepted", "rejected", "expired", "deleted"]
Decision: TypeAlias = Literal["accepted", "rejected"]


class PendingActionError(ForTheCaller):
    """A decision that cannot be applied; `code` is one of the four above."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(f"{code}: {message}", hint)
        self.code = code


class PendingAction(Value):
    """One action that is not to happen unasked."""

    action_id: str = Field(min_length=1)
    kind: str = Field(min_length=1)
    summary: str = Field(min_length=1)
    """One line for whoever decides."""
    preview: JsonAny
    """A preview of the action."""
    apply_input: JsonAny
    """Exactly what is executed after acceptance, and nothing else."""
    created_at: str = Field(min_length=1)
    status: ActionStatus = "pending"
    workspace: JsonDict | None = None
    agent: str | None = None
    creator: str | None = None
    expires_at: str | None = None
    resolved_at: str | None = None
    resolver: str | None = None
    """The person who decided."""
    resolution_result: JsonAny = None
    resolution_error: str | None = None
    resolution_metadata: JsonDict = {}
    metadata: JsonDict = {}

    @model_validator(mode="after")
    def _an_end_says_when_and_by_whom(self) -> "PendingAction":
        if self.status == "pending":
            return self
        if not self.resolved_at:
            raise ValueError(f"resolved_at is missing: an action that is {self.status} says since when")
        if self.status != "expired" and not self.resolver:
            raise ValueError(f"resolver is missing: an action that is {self.status} says who decided")
        return self

    @property
    def is_pending(self) -> bool:
        return self.status == "pending"

    @classmethod
    def normalise(cls, raw: "PendingAction | Mapping[str, Any]") -> "PendingAction":
        """Raises InvalidValue `invalid_pending_action` naming the field."""
        return validated(cls, raw, INVALID)


def approval_envelope(
    action: PendingAction,
    *,
    ability_name: str,
    staged: bool,
    instruction: str | None = None,
    grants: Sequence[Mapping[str, Any]] | None = None,
) -> Message:
    """The message that stands where the result would: `approval_required`."""
    payload = action.model_dump(mode="json", exclude_none=True)
    payload.update(preview=action.preview, apply_input=action.apply_input)  # there, also when they are null
    if instruction is not None:
        payload["instruction"] = instruction
    if grants is not None:
        payload["grants"] = [dict(grant) for grant in grants]
    return normalise(
        {
            "type": "approval_required",
            "role": "tool",
            "content": action.summary,
            "payload": payload,
            "metadata": {"ability_name": ability_name, "staged": staged},
        }
    )
