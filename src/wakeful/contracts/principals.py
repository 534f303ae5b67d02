"""The principal of a conversation. A principal records identity: it decides nothing, grants nothing and holds no token.

The host attests it. Only `to_safe_metadata` leaves the process.
"""

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, TypedDict, Unpack

from pydantic import ValidationError, ValidationInfo, field_validator, model_validator

from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.jsonable import JsonDict
from wakeful.contracts.validation import refused
from wakeful.contracts.values import JsonValue, Value

INVALID = "invalid_execution_principal"
AUTH_SOURCES: frozenset[str] = frozenset({"user", "agent_token", "audience", "runtime", "system"})
AUTONOMOUS: frozenset[str] = frozenset({"system", "runtime", "agent_token"})
"""Sources behind which no person stands at the moment of the run."""
_DECLARED = "auth_sources"


class ConversationOwner(NamedTuple):
    """The owner of a conversation. Two owners are the same only when both parts are."""

    type: str
    key: str


class CapabilityCeiling(Value):
    """The most that a principal may do. A ceiling permits or denies; it never grants."""

    allowed: tuple[str, ...] | None = None
    """Nothing but these; None for everything that is not denied."""
    denied: tuple[str, ...] = ()
    denied_words: tuple[str, ...] = ()
    """Denied is a capability that has one of these words in its name: `edit` denies `posts.edit` and `edit_posts`."""

    def permits(self, capability: str) -> bool:
        """Is the capability below the ceiling? Deny wins."""
        words = {word for word in re.split(r"[^a-z0-9]+", capability.lower()) if word}
        if capability in self.denied or words & set(self.denied_words):
            return False
        return self.allowed is None or capability in self.allowed


WRITE_WORDS = (
    *("create", "add", "edit", "write", "update", "publish", "delete", "remove", "unpublish", "moderate"),
    *("upload", "import"),
    *("setting", "settings", "option", "options", "configure"),
    *("install", "activate", "enable", "deactivate", "disable", "extension", "extensions", "plugin", "plugins"),
    *("user", "users", "promote", "role", "roles"),
    *("manage", "admin"),
)
"""Words of capabilities that change something: content, files, settings, extensions, people."""
DEFAULT_AUTONOMOUS_CEILING = CapabilityCeiling(denied_words=WRITE_WORDS)


class Circumstances(TypedDict, total=False):
    """Fields that a host may add to a principal."""

    request_metadata: JsonDict
    workspace_id: str
    client_id: str
    capability_ceiling: CapabilityCeiling | Mapping[str, JsonValue]
    caller_context: JsonDict
    audience_claims: JsonDict
    binding: JsonDict


class OwnedCircumstances(Circumstances, total=False):
    """The same, with whose the conversation is."""

    owner_type: str
    owner_key: str


class ExecutionPrincipal(Value):
    """Identity behind a run, as the host attests it."""

    acting_user_id: str | None = None
    """None: no human is behind the run."""
    effective_agent_id: str
    auth_source: str
    """One of `AUTH_SOURCES`, or a word that the host declared."""
    request_context: str
    """rest, cli, cron, chat, runtime ..."""
    token_id: str | None = None
    request_metadata: JsonDict = {}
    workspace_id: str | None = None
    client_id: str | None = None
    capability_ceiling: CapabilityCeiling | None = None
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

    @field_validator("auth_source")
    @classmethod
    def _declared_source(cls, value: str, info: ValidationInfo) -> str:
        known = AUTH_SOURCES | frozenset((info.context or {}).get(_DECLARED, ()))
        if value not in known:
            raise ValueError(f"{value!r} is none of {', '.join(sorted(known))}; a host declares others of its own")
        return value

    @model_validator(mode="after")
    def _owner_is_whole(self) -> "ExecutionPrincipal":
        if bool(self.owner_type) != bool(self.owner_key):
            missing = "owner_type" if self.owner_key else "owner_key"
            raise ValueError(f"{missing} is missing: owner_type and owner_key are given together or not at all")
        return self

    @classmethod
    def normalise(
        cls,
        raw: "ExecutionPrincipal | Mapping[str, Any]",
        at: str = "",
        *,
        auth_sources: Collection[str] = (),
    ) -> "ExecutionPrincipal":
        """Raises InvalidValue `invalid_execution_principal` naming the field. `auth_sources` are the host's own."""
        if isinstance(raw, ExecutionPrincipal):
            return raw
        if not isinstance(raw, Mapping):
            raise InvalidValue(INVALID, at, f"expected an object, not a {type(raw).__name__}")
        try:
            return cls.model_validate(dict(raw), context={_DECLARED: frozenset(auth_sources)})
        except ValidationError as error:
            raise refused(error, INVALID, at) from None

    # --- builders ---------------------------------------------------------------------------------------------------

    @classmethod
    def user_session(
        cls,
        acting_user_id: str,
        effective_agent_id: str,
        *,
        request_context: str = "chat",
        **more: Unpack[OwnedCircumstances],
    ) -> "ExecutionPrincipal":
        """A person is there."""
        return cls.normalise(
            {
                **more,
                "acting_user_id": acting_user_id,
                "effective_agent_id": effective_agent_id,
                "auth_source": "user",
                "request_context": request_context,
            }
        )

    @classmethod
    def agent_token(
        cls,
        token_id: str,
        effective_agent_id: str,
        *,
        request_context: str = "rest",
        **more: Unpack[OwnedCircumstances],
    ) -> "ExecutionPrincipal":
        """An agent came with a token; the id of it is kept, the token never."""
        return cls.normalise(
            {
                **more,
                "token_id": token_id,
                "effective_agent_id": effective_agent_id,
                "auth_source": "agent_token",
                "request_context": request_context,
            }
        )

    @classmethod
    def audience(
        cls,
        audience_id: str,
        effective_agent_id: str,
        *,
        request_context: str = "chat",
        **more: Unpack[OwnedCircumstances],
    ) -> "ExecutionPrincipal":
        """A member of an audience that the host knows."""
        return cls.normalise(
            {
                **more,
                "audience_id": audience_id,
                "effective_agent_id": effective_agent_id,
                "auth_source": "audience",
                "request_context": request_context,
            }
        )

    @classmethod
    def runtime(
        cls, runtime_id: str, effective_agent_id: str, *, owner_key: str = "", **more: Unpack[Circumstances]
    ) -> "ExecutionPrincipal":
        """A runtime that the host attests, and no person. Its conversations are its own."""
        return cls.normalise(
            {
                **more,
                "effective_agent_id": effective_agent_id,
                "auth_source": "runtime",
                "request_context": "runtime",
                "audience_id": runtime_id,
                "owner_type": "runtime",
                "owner_key": owner_key or runtime_id,
            }
        )

    # --- what follows from it ----------------------------------------------------------------------------------------

    def conversation_owner(self) -> ConversationOwner | None:
        """The owner of the conversation: the explicit owner, else the user or the token behind the run, else None."""
        if self.owner_type and self.owner_key:
            return ConversationOwner(self.owner_type, self.owner_key)
        if self.auth_source == "user" and self.acting_user_id:
            return ConversationOwner("user", self.acting_user_id)
        if self.auth_source == "agent_token" and self.token_id:
            return ConversationOwner("token", self.token_id)
        return None

    def is_autonomous(self, host: "Callable[[ExecutionPrincipal], Any] | None" = None) -> bool:
        """Does no person stand behind the run? A host may say so of more principals, and of none that it does not."""
        return self.auth_source in AUTONOMOUS or (host is not None and bool(host(self)))

    def effective_ceiling(self, host: "Callable[[ExecutionPrincipal], Any] | None" = None) -> CapabilityCeiling | None:
        """The host's ceiling as it is; without one, autonomous principals may not write. None: no ceiling."""
        if self.capability_ceiling is not None:
            return self.capability_ceiling
        return DEFAULT_AUTONOMOUS_CEILING if self.is_autonomous(host) else None

    def to_safe_metadata(self) -> dict[str, Any]:
        """The fields that are safe to show: no token, no key, no claims."""
        return {
            "schema_version": 1,
            "effective_agent_id": self.effective_agent_id,
            "auth_source": self.auth_source,
            "request_context": self.request_context,
            "acting_user_id": self.acting_user_id,
            "workspace_id": self.workspace_id,
            "client_id": self.client_id,
            "audience_id": self.audience_id,
            "owner_type": self.owner_type,
            "has_conversation_owner": self.conversation_owner() is not None,
            "has_capability_ceiling": self.capability_ceiling is not None,
            "has_caller_context": bool(self.caller_context),
        }


SAFE_METADATA: tuple[str, ...] = (
    "schema_version",
    "effective_agent_id",
    "auth_source",
    "request_context",
    "acting_user_id",
    "workspace_id",
    "client_id",
    "audience_id",
    "owner_type",
    "has_conversation_owner",
    "has_capability_ceiling",
    "has_caller_context",
)
"""The keys of `to_safe_metadata`."""
