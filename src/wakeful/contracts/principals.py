"""Who a conversation runs for. A principal records identity: it decides nothing, grants nothing and holds no token."""

from collections.abc import Mapping
from typing import Any

from pydantic import field_validator, model_validator

from wakeful.contracts.jsonable import JsonDict
from wakeful.contracts.validation import validated
from wakeful.contracts.values import Value

INVALID = "invalid_execution_principal"
AUTH_SOURCES: frozenset[str] = frozenset({"user", "agent_token", "audience", "runtime", "system"})


class ExecutionPrincipal(Value):
    """Identity behind a run, as the host attests it."""

    acting_user_id: str | None = None
    """None: no human is behind the run."""
    effective_agent_id: str
    auth_source: str
    """One of `AUTH_SOURCES`, or a word of the host's own."""
    request_context: str
    """rest, cli, cron, chat, runtime ..."""
    token_id: str | None = None
    request_metadata: JsonDict = {}
    workspace_id: str | None = None
    client_id: str | None = None
    capability_ceiling: JsonDict | None = None
    caller_context: JsonDict | None = None
    audience_id: str | None = None
    audience_claims: JsonDict = {}
    owner_type: str | None = None
    owner_key: str | None = None
    binding: JsonDict | None = None
    """The host's own cryptographic claims; never part of safe metadata."""

    @field_validator("effective_agent_id", "auth_source", "request_context")
    @classmethod
    def _not_empty(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("must not be empty")
        return value

    @model_validator(mode="after")
    def _owner_is_whole(self) -> "ExecutionPrincipal":
        if (self.owner_type is None) != (self.owner_key is None):
            missing = "owner_key" if self.owner_key is None else "owner_type"
            raise ValueError(f"{missing} is missing: owner_type and owner_key are given together or not at all")
        return self

    @classmethod
    def normalise(cls, raw: "ExecutionPrincipal | Mapping[str, Any]", at: str = "") -> "ExecutionPrincipal":
        """Raises InvalidValue `invalid_execution_principal` naming the field."""
        return validated(cls, raw, INVALID, at)
