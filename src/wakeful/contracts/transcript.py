"""The transcript entry `wakeful.message` version 1: what callers, persisters and replays exchange.

`normalise` is the one way in: it takes plain `{role, content}` dicts and envelopes alike and refuses everything else
with `invalid_message_envelope`, naming the field. A tool call and its result pair by `metadata.tool_call_id`.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

from pydantic import ConfigDict, Field, field_validator

from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.jsonable import JsonDict, plain
from wakeful.contracts.validation import validated
from wakeful.contracts.values import Value

SCHEMA = "wakeful.message"
INVALID = "invalid_message_envelope"
UNPAIRED = "unpaired_input_messages"

MessageType: TypeAlias = Literal[
    "text",
    "tool_call",
    "tool_result",
    "input_required",
    "approval_required",
    "final_result",
    "error",
    "delta",
    "multimodal_part",
]
TYPES: frozenset[str] = frozenset(get_args(MessageType))
TOOL_ROLE_TYPES: frozenset[str] = frozenset({"tool_result", "input_required", "approval_required"})
"""Types that belong to a tool when the role is missing."""


class Message(Value):
    """One entry of a transcript."""

    model_config = ConfigDict(serialize_by_alias=True)

    schema_id: Literal["wakeful.message"] = Field("wakeful.message", alias="schema")
    version: Literal[1] = 1
    type: MessageType
    role: str
    """The role of the speaker. Default: by the type."""
    content: str | list[Any]
    """Words, or parts."""
    payload: JsonDict = {}
    """The data of the type: a call's name and parameters, a result's fields, the parts of a merged message."""
    metadata: JsonDict = {}
    """`tool_call_id` pairs a call with its result; the rest is the caller's."""
    id: str | None = None
    created_at: str | None = None
    updated_at: str | None = None

    @field_validator("role")
    @classmethod
    def _somebody_speaks(cls, role: str) -> str:
        if not role.strip():
            raise ValueError("is empty; say who speaks, or leave it out")
        return role

    @field_validator("content", mode="before")
    @classmethod
    def _words_or_parts(cls, content: Any) -> Any:
        if not isinstance(content, str | list):
            raise ValueError(f"is a text or a list of parts, not a {type(content).__name__}")
        return plain(content)

    @property
    def tool_call_id(self) -> str | None:
        """The id that pairs a call with its result."""
        found = self.metadata.get("tool_call_id")
        return found if isinstance(found, str) and found else None

    def to_wire(self) -> dict[str, Any]:
        """The envelope as JSON data; what was never set is absent."""
        return self.model_dump(mode="json", exclude_none=True)

    def to_provider(self) -> dict[str, Any]:
        """As `{role, content, metadata?}`. Type and payload travel in the metadata unless they say nothing new."""
        metadata = dict(self.metadata)
        if self.type != _type_of_plain(self.content, metadata):
            metadata["type"] = self.type
        if self.payload:
            metadata["payload"] = self.payload
        message: dict[str, Any] = {"role": self.role, "content": self.content}
        if metadata:
            message["metadata"] = metadata
        return message


def default_role(kind: str) -> str:
    """The role of a message of this type that does not name one."""
    return "tool" if kind in TOOL_ROLE_TYPES else "assistant"


def _type_of_plain(content: Any, metadata: Mapping[str, Any]) -> str:
    named = metadata.get("type")
    if isinstance(named, str) and named in TYPES:
        return named
    if isinstance(content, list):
        return "multimodal_part"
    return "error" if metadata.get("error") else "text"


def normalise(raw: "Message | Mapping[str, Any]", *, code: str = INVALID, at: str = "") -> Message:
    """A message in any accepted spelling as an envelope. Raises InvalidValue naming the field."""
    if isinstance(raw, Message):
        return raw
    if not isinstance(raw, Mapping):
        raise InvalidValue(code, at, f"a message is an object, not a {type(raw).__name__}")
    fields = dict(raw)
    if not {"schema", "version", "type"} & fields.keys():
        metadata = fields.get("metadata")
        fields["type"] = _type_of_plain(fields.get("content"), metadata if isinstance(metadata, Mapping) else {})
    if "role" not in fields and isinstance(fields.get("type"), str):
        fields["role"] = default_role(fields["type"])
    return validated(Message, fields, code, at)


def normalise_all(
    raws: Iterable["Message | Mapping[str, Any]"], *, code: str = INVALID, at: str = "messages"
) -> tuple[Message, ...]:
    """Every message of a transcript; an error names its place, `messages[2].role`."""
    if isinstance(raws, str | bytes | Mapping) or not isinstance(raws, Iterable):
        raise InvalidValue(code, at, f"expected a list of messages, not a {type(raws).__name__}")
    return tuple(normalise(raw, code=code, at=f"{at}[{index}]") for index, raw in enumerate(raws))


# --- builders ------------------------------------------------------------------------------------------------------


def text(role: str, content: str, *, metadata: dict[str, Any] | None = None) -> Message:
    """Words."""
    return normalise({"type": "text", "role": role, "content": content, "metadata": metadata or {}})


def tool_call(
    tool_name: str,
    parameters: dict[str, Any],
    *,
    tool_call_id: str,
    turn: int,
    payload: dict[str, Any] | None = None,
    metadata: dict[str, Any] | None = None,
) -> Message:
    """The model asked for a tool."""
    return normalise(
        {
            "type": "tool_call",
            "content": "",
            "payload": {**(payload or {}), "tool_name": tool_name, "parameters": parameters, "turn": turn},
            "metadata": {**(metadata or {}), "tool_call_id": tool_call_id},
        }
    )


def tool_result(
    tool_name: str,
    result: Mapping[str, Any],
    *,
    tool_call_id: str,
    content: str,
    metadata: dict[str, Any] | None = None,
) -> Message:
    """The tool's answer: `result` is the normalised tool result."""
    return normalise(
        {
            "type": "tool_result",
            "content": content,
            "payload": {**result, "tool_name": tool_name},
            "metadata": {**(metadata or {}), "tool_call_id": tool_call_id},
        }
    )


def parts(role: str, content: list[Any], *, metadata: dict[str, Any] | None = None) -> Message:
    """Words, pictures and files together."""
    return normalise({"type": "multimodal_part", "role": role, "content": content, "metadata": metadata or {}})


# --- for providers -------------------------------------------------------------------------------------------------


def merge_same_role(messages: Iterable[Message]) -> list[Message]:
    """Consecutive messages of one role as one `multimodal_part`, for providers that want roles to alternate.

    The originals are whole in `payload.parts`; their texts, joined by a blank line, are the content. Nothing that was
    given is changed, and merging what is merged changes nothing.
    """
    merged: list[Message] = []
    run: list[Message] = []
    for message in messages:
        if run and run[0].role != message.role:
            merged.append(_merged(run))
            run = []
        run.append(message)
    if run:
        merged.append(_merged(run))
    return merged


def _merged(run: Sequence[Message]) -> Message:
    if len(run) == 1:
        return run[0]
    whole = [original for message in run for original in originals(message)]
    words = [message.content for message in whole if message.type == "text" and isinstance(message.content, str)]
    return normalise(
        {
            "type": "multimodal_part",
            "role": run[0].role,
            "content": "\n\n".join(word for word in words if word),
            "payload": {"parts": [message.to_wire() for message in whole]},
        }
    )


def originals(message: Message) -> Iterator[Message]:
    """The message itself, or those it was merged from."""
    inner = message.payload.get("parts")
    if message.type != "multimodal_part" or not isinstance(inner, list):
        yield message
        return
    for index, part in enumerate(inner):
        yield from originals(normalise(part, at=f"payload.parts[{index}]"))


# --- pairing -------------------------------------------------------------------------------------------------------


def check_pairing(messages: Iterable[Message], *, pending: Collection[str] = ()) -> None:
    """Every call has its result and every result its call, or InvalidValue `unpaired_input_messages`.

    `pending` names the calls whose result is still to come: a stored request or approval waits for them.
    """
    asked: dict[str, str] = {}
    answered: set[str] = set()
    for index, message in enumerate(messages):
        for original in originals(message):
            place = f"messages[{index}]"
            call_id = original.tool_call_id
            if original.type == "tool_call":
                if call_id is None:
                    raise InvalidValue(UNPAIRED, place, "a tool call without metadata.tool_call_id cannot be answered")
                if call_id in asked:
                    raise InvalidValue(UNPAIRED, place, f"a second tool call with the id {call_id!r}")
                asked[call_id] = place
            elif original.type == "tool_result":
                if call_id is None or call_id not in asked:
                    raise InvalidValue(
                        UNPAIRED, place, f"a tool result for {call_id!r}, but no call before it has this id"
                    )
                if call_id in answered:
                    raise InvalidValue(UNPAIRED, place, f"a second tool result for {call_id!r}")
                answered.add(call_id)
    for call_id, place in asked.items():
        if call_id not in answered and call_id not in pending:
            raise InvalidValue(UNPAIRED, place, f"the tool call {call_id!r} has no result")
