"""The request a conversation was started with: a record for adapters and persisters, the same during the whole run."""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import Field

from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.jsonable import JsonDict
from wakeful.contracts.principals import ExecutionPrincipal
from wakeful.contracts.transcript import Message, normalise_all
from wakeful.contracts.validation import validated
from wakeful.contracts.values import Value
from wakeful.hosts.tools.declaration_reader import normalize_for_conversation_request
from wakeful.hosts.tools.tool_declaration import RuntimeToolDeclaration

INVALID = "invalid_conversation_request"


class RequestWorkspace(Value):
    """Where the work belongs."""

    workspace_type: str
    workspace_id: str


class RuntimeOverrides(Value):
    """What the caller wants otherwise than the agent says."""

    system_prompt: str | None = None
    provider_id: str | None = None
    model_id: str | None = None
    temperature: float | None = None
    max_iterations: int | None = None
    tier_1_tools: tuple[str, ...] | None = None
    greeting: str | None = None


class ConversationRequest(Value):
    """Messages, tools, who asks, and the limits. Immutable; `with_messages` makes a copy."""

    messages: tuple[Message, ...]
    tools: tuple[RuntimeToolDeclaration, ...] = ()
    principal: ExecutionPrincipal | None = None
    runtime_context: JsonDict = {}
    """The caller's own; non-empty overrides stand in it under their names."""
    metadata: JsonDict = {}
    max_turns: int = Field(10, ge=1)
    single_turn: bool = False
    """Stop after one turn."""
    workspace: RequestWorkspace | None = None
    runtime_overrides: RuntimeOverrides = RuntimeOverrides()

    @classmethod
    def normalise(cls, raw: "ConversationRequest | Mapping[str, Any]") -> "ConversationRequest":
        """A request from outside. Raises InvalidValue; a bad tool is named `tools[<index>]`."""
        if isinstance(raw, ConversationRequest):
            return raw
        if not isinstance(raw, Mapping):
            raise InvalidValue(INVALID, "", f"expected an object, not a {type(raw).__name__}")
        fields = dict(raw)
        fields["messages"] = normalise_all(fields.get("messages", ()))
        fields["tools"] = tuple(_tool(tool, index) for index, tool in enumerate(fields.get("tools", ())))
        if fields.get("principal") is not None:
            fields["principal"] = ExecutionPrincipal.normalise(fields["principal"], at="principal")
        overrides = validated(RuntimeOverrides, fields.get("runtime_overrides", {}), INVALID, "runtime_overrides")
        fields["runtime_overrides"] = overrides
        request = validated(cls, fields, INVALID)
        given = {
            name: value for name, value in overrides.model_dump(mode="json").items() if value not in (None, "", [])
        }
        return request.model_copy(update={"runtime_context": {**request.runtime_context, **given}})

    def with_messages(self, messages: Iterable[Message]) -> "ConversationRequest":
        """The same request around the transcript as it is now."""
        return self.model_copy(update={"messages": tuple(messages)})


def _tool(raw: Any, index: int) -> RuntimeToolDeclaration:
    try:
        return normalize_for_conversation_request(raw)
    except InvalidValue as error:
        raise InvalidValue(f"tools[{index}]: {error.code}", error.path, error.reason) from None
