"""A model's reply made fit to be stored: whatever a provider hands over, the log can hold it.

Every call has an id of its own, unique in the turn. Text that UTF-8 cannot hold is mended; arguments that JSON cannot
hold are not a JSON object, and that one call is told so. What cannot be mended is no reply: the attempt is lost.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

from wakeful.contracts.content import Text, Thinking
from wakeful.contracts.conversation import AssistantItem, CallPart
from wakeful.contracts.envelope import MAX_PAYLOAD_BYTES
from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.events import AssistantRecorded
from wakeful.contracts.models import MOST_TOKENS, TokenUsage
from wakeful.contracts.tools import ToolDeclaration
from wakeful.tools.results import clean

_NAME = attrgetter("name")
MAX_NAME_CHARS = 128
MAX_ID_CHARS = 256
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})").fullmatch
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,17})?([eE][+-]?[0-9]{1,2})?").fullmatch
_BOOLEANS = {"true": True, "false": False}


def fit(item: AssistantItem, step: int, used: set[str], tools: Sequence[ToolDeclaration] = ()) -> AssistantItem:
    """The reply with storable words and exact pairing. `used` are the call ids the conversation has seen.

    A call may name a tool of the request by the last part of its name, as people do, where only one tool has it.
    """
    calls = item.calls
    if calls and tools and not all(_is_declared(call.name, tools) for call in calls):
        item = item.model_copy(update={"parts": tuple(_with_whole_name(part, tools) for part in item.parts)})
        calls = item.calls
    if calls and tools and any(map(_has_texts, calls)):
        item = item.model_copy(update={"parts": tuple(_with_declared_values(part, tools) for part in item.parts)})
        calls = item.calls
    if not all(map(_is_plain, item.parts)):
        item = item.model_copy(update={"parts": tuple(_mended(part) for part in item.parts)})
        calls = item.calls
    return _with_unique_calls(item, calls, step, used) if calls else item


def _has_texts(call: CallPart) -> bool:
    return bool(call.arguments) and str in map(type, (call.arguments or {}).values())


def _with_declared_values(part: Any, tools: Sequence[ToolDeclaration]) -> Any:
    declared = next((tool for tool in tools if tool.name == part.name), None) if isinstance(part, CallPart) else None
    if declared is None or not part.arguments:
        return part
    read = _as_declared(part.arguments, declared.input_schema)
    return part if read is part.arguments else part.model_copy(update={"arguments": read})


def _as_declared(arguments: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with such texts as values; the same object where there are none.

    Only a text that is exactly one such value is taken for it, and only where the schema takes no text: `{"x": "5"}`.
    """
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return arguments
    read = {
        name: value
        for name, text in arguments.items()
        if type(text) is str and (value := _value(text, _types(properties.get(name)))) is not None
    }
    return {**arguments, **read} if read else arguments


def _value(text: str, types: frozenset[str]) -> int | float | bool | None:
    if "string" in types:
        return None
    if ("integer" in types or "number" in types) and _INTEGER(text):
        return int(text)
    if "number" in types and _NUMBER(text):
        return float(json.loads(text))
    return _BOOLEANS.get(text) if "boolean" in types else None


def _types(schema: Any) -> frozenset[str]:
    """What a property may be; nothing where its schema says it in another way than by plain types."""
    if not isinstance(schema, Mapping) or "$ref" in schema or "allOf" in schema:
        return frozenset()
    given = schema.get("type")
    if isinstance(given, str):
        return frozenset({given})
    if isinstance(given, list | tuple):
        return frozenset(each for each in given if isinstance(each, str))
    choices = schema.get("anyOf", schema.get("oneOf"))
    found = [_types(each) for each in choices] if isinstance(choices, list | tuple) else []
    return frozenset().union(*found) if found and all(found) else frozenset()


def _is_declared(name: str, tools: Sequence[ToolDeclaration]) -> bool:
    return name in map(_NAME, tools)


def _with_whole_name(part: Any, tools: Sequence[ToolDeclaration]) -> Any:
    if not isinstance(part, CallPart) or _is_declared(part.name, tools):
        return part
    meant = [tool.name for tool in tools if tool.name.rpartition("/")[2] == part.name]
    return part.model_copy(update={"name": meant[0]}) if len(meant) == 1 else part


def check_size(recorded: AssistantRecorded) -> None:
    """Raises ModelFailure for a reply that no log can hold, however much of it stands behind references."""
    if len(recorded.calls) < 32 and all(map(_is_short, recorded.item.parts)):
        return
    try:
        size = len(recorded.model_dump_json().encode())
    except ValueError as error:
        raise ModelFailure(f"the reply is not JSON: {error}", kind="invalid_response", stage="decode") from None
    if size > MAX_PAYLOAD_BYTES:
        many = f"the reply has {len(recorded.calls)} calls and needs {size:,} bytes; {MAX_PAYLOAD_BYTES:,} can be kept"
        raise ModelFailure(many, kind="invalid_response", stage="decode")


def is_countable(usage: TokenUsage | None) -> bool:
    """Whether the log and the budgets can hold it; a model of somebody else's may say anything."""
    # A sum of several counts is a little larger than one may be.
    return usage is None or all(0 <= tokens <= 10 * MOST_TOKENS for tokens in vars(usage).values())


def _is_short(part: Any) -> bool:
    """What is long in it stands behind a reference."""
    return isinstance(part, Text) or (isinstance(part, CallPart) and not part.opaque)


def _is_plain(part: Any) -> bool:
    """True for what surely needs no mending: looked at for every reply, so it looks at little."""
    if isinstance(part, Text):
        return part.text.isascii()
    if isinstance(part, CallPart):
        return (
            not part.opaque
            and part.raw_arguments is None
            and len(part.name) <= MAX_NAME_CHARS
            and len(part.call_id) <= MAX_ID_CHARS
            and part.name.isascii()
            and part.call_id.isascii()
            and (not part.arguments or _are_plain(part.arguments))
        )
    return False


def _are_plain(arguments: dict[str, Any]) -> bool:
    for key, value in arguments.items():
        kind = type(value)
        if not key.isascii() or not (kind is int or value is None or kind is bool or (kind is str and value.isascii())):
            return False
    return True


def _mended(part: Any) -> Any:
    if isinstance(part, Text):
        return part.model_copy(update={"text": clean(part.text)})
    if isinstance(part, Thinking):
        return part.model_copy(update={"text": clean(part.text)})
    if not isinstance(part, CallPart):
        return part
    arguments, raw = _json_object(part)
    name = clean(part.name)
    return part.model_copy(
        update={
            "name": name if len(name) <= MAX_NAME_CHARS else f"{name[: MAX_NAME_CHARS - 1]}…",
            # An id that cannot be kept is as good as none: `_with_unique_calls` gives one of ours.
            "call_id": part.call_id if _is_storable_id(part.call_id) else "",
            "arguments": arguments,
            "raw_arguments": clean(raw) if raw is not None else None,
        }
    )


def _is_storable_id(call_id: str) -> bool:
    return len(call_id) <= MAX_ID_CHARS and call_id == clean(call_id)


def _json_object(part: CallPart) -> tuple[dict[str, Any] | None, str | None]:
    """The arguments, or what the model wrote when JSON has no place for them (NaN, endless nesting)."""
    if part.arguments is None:
        return None, part.raw_arguments
    try:
        mended = _mended_json(part.arguments)
        json.dumps(mended, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        return None, repr(part.arguments)[:MAX_PAYLOAD_BYTES]
    return mended, part.raw_arguments


def _mended_json(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() else clean(value)
    if isinstance(value, dict):
        return {_mended_json(key): _mended_json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_mended_json(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is not JSON")
    return value


def _with_unique_calls(item: AssistantItem, calls: Sequence[CallPart], step: int, used: set[str]) -> AssistantItem:
    """A call without an id, or with one that this turn has seen, gets one of ours: pairing stays exact."""
    ids = {call.call_id for call in calls}
    if len(ids) == len(calls) and "" not in ids and used.isdisjoint(ids):
        for call in calls:  # in their order
            used.add(call.call_id)
        return item
    parts: list[Any] = []
    position = 0
    for part in item.parts:
        if isinstance(part, CallPart):
            position += 1
            if not part.call_id or part.call_id in used:
                part = part.model_copy(update={"call_id": _free(f"tool-call-{step}-{position}", used, ids)})
            used.add(part.call_id)
        parts.append(part)
    return item.model_copy(update={"parts": tuple(parts)})


def _free(name: str, used: set[str], beside: set[str]) -> str:
    """A name that no call has. Levels of a tree number their rounds alike: the count of what was used tells them apart,
    so that a name stays short and is found at once, however many there are."""
    free, number = name, len(used)
    while free in used or free in beside:
        free, number = f"{name}-{number}", number + 1
    return free
