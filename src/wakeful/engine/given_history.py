"""`history=` in any of its spellings, as conversation items: every call with its one result.

Taken are our own items and their dicts, `wakeful.message` envelopes, OpenAI Chat messages, OpenAI Responses items,
Anthropic messages, Pydantic AI and LangChain messages; a history may mix them. A system message becomes a note before
what follows it: the agent that goes on has instructions of its own.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from wakeful.contracts import transcript
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import ITEM, AssistantItem, Item, ToolItem, UserItem
from wakeful.contracts.errors import InvalidValue
from wakeful.engine.foreign_history import langchain, pydantic_ai, wires
from wakeful.engine.foreign_history.blocks import call, checked, refused, shown
from wakeful.tools.results import NO_OUTPUT

_RESPONSE_ITEMS = frozenset({"function_call", "function_call_output", "reasoning", "web_search_call"})
_SDKS = frozenset({"openai", "anthropic"})


def items_from(history: Iterable[Any]) -> tuple[Item, ...]:
    """The items of a history. Raises InvalidValue, naming the message that cannot be taken over or has no partner."""
    if isinstance(history, str | bytes | Mapping) or not isinstance(history, Iterable):
        raise refused("history", f"expected a list of messages, not a {type(history).__name__}")
    placed: list[tuple[int, Item]] = []
    joins_last = False
    for index, message in enumerate(history):
        at = f"history[{index}]"
        # The Responses API spreads one reply over several items: reasoning, calls and words that follow each other.
        joins = _is_response_item(message)
        try:
            items = list(_read(message, at))
        except ValidationError as error:
            raise checked(error, at) from None
        for item in items:
            last = placed[-1][1] if placed else None
            if joins and joins_last and isinstance(item, AssistantItem) and isinstance(last, AssistantItem):
                placed[-1] = (placed[-1][0], _joined(last, item))
            elif isinstance(item, UserItem) and not item.parts:
                continue  # a message without content says nothing
            else:
                placed.append((index, item))
        joins_last = joins
    return _paired([(index, item) for index, item in placed if isinstance(item, ToolItem) or item.parts])


def _joined(first: AssistantItem, more: AssistantItem) -> AssistantItem:
    """One reply of two pieces, with what the provider found for either."""
    return first.model_copy(
        update={
            "parts": (*first.parts, *more.parts),
            "citations": (*(first.citations or ()), *(more.citations or ())) or None,
            "server_tools": first.server_tools or more.server_tools,
        }
    )


def _read(message: Any, at: str) -> Iterator[Item]:
    if isinstance(message, UserItem | AssistantItem | ToolItem):
        yield message
    elif isinstance(message, str):
        raise refused(at, "a bare string does not say who speaks: write {'role': 'user', 'content': ...}")
    elif isinstance(message, transcript.Message):
        yield from _envelope(message, at)
    elif pydantic_ai.is_one(message):
        yield from pydantic_ai.read(message, at)
    elif langchain.is_one(message):
        yield from langchain.read(message, at)
    else:
        yield from _from_dict(_as_dict(message, at), at)


def _as_dict(message: Any, at: str) -> Mapping[str, Any]:
    if isinstance(message, Mapping):
        return message
    if type(message).__module__.partition(".")[0] in _SDKS and hasattr(message, "model_dump"):
        dumped: Mapping[str, Any] = message.model_dump(exclude_none=True)
        return dumped
    kind = type(message)
    raise refused(at, f"a {kind.__module__}.{kind.__qualname__} is not a known kind of message")


def _from_dict(message: Mapping[str, Any], at: str) -> Iterator[Item]:
    if message.get("schema") == transcript.SCHEMA:
        yield from _envelope(transcript.normalise(message, at=at), at)
    elif "parts" in message and "role" in message:
        yield ITEM.validate_python(dict(message))
    elif message.get("type") in (None, "message") and "role" in message:
        yield from wires.from_message(message, at)
    elif "type" in message:
        yield from wires.from_response_item(message, at)
    else:
        raise refused(at, f"not a known kind of message: it has {', '.join(map(repr, message)) or 'nothing'}")


def _is_response_item(message: Any) -> bool:
    kind = message.get("type") if isinstance(message, Mapping) else getattr(message, "type", None)
    if kind == "message":
        role = message.get("role") if isinstance(message, Mapping) else getattr(message, "role", None)
        return role == "assistant"
    return kind in _RESPONSE_ITEMS


def _envelope(message: transcript.Message, at: str) -> Iterator[Item]:
    """An entry of our own transcript."""
    call_id, payload = message.tool_call_id, message.payload
    if message.type == "tool_call":
        yield AssistantItem(parts=(call(call_id, payload.get("tool_name"), payload.get("parameters"), at),))
    elif message.type == "tool_result":
        if call_id is None:
            raise refused(at, "a tool result without metadata.tool_call_id")
        failed = payload.get("success") is False
        name = str(payload.get("tool_name") or "")
        yield ToolItem(call_id=call_id, name=name, parts=shown(message.content, f"{at}.content"), is_error=failed)
    elif message.type in ("text", "multimodal_part", "final_result"):
        yield from wires.from_message({"role": message.role, "content": message.content}, at)
    else:
        raise refused(at, f"an entry of type {message.type!r} is not part of a conversation")


def _paired(placed: list[tuple[int, Item]]) -> tuple[Item, ...]:
    """Every call has exactly one result, after it; results get their tool's name from their call."""
    asked: dict[str, tuple[int, str]] = {}
    answered: set[str] = set()
    items: list[Item] = []
    for index, item in placed:
        if isinstance(item, AssistantItem):
            for part in item.calls:
                if part.call_id in asked:
                    raise _unpaired(index, f"a second tool call with the id {part.call_id!r}")
                asked[part.call_id] = (index, part.name)
        elif isinstance(item, ToolItem):
            if item.call_id not in asked:
                raise _unpaired(index, f"a tool result for {item.call_id!r}, but no call before it has this id")
            if item.call_id in answered:
                raise _unpaired(index, f"a second tool result for {item.call_id!r}")
            answered.add(item.call_id)
            item = item.model_copy(
                update={"name": item.name or asked[item.call_id][1], "parts": item.parts or (Text(NO_OUTPUT),)}
            )
        items.append(item)
    for call_id, (index, name) in asked.items():
        if call_id not in answered:
            raise _unpaired(index, f"the call {call_id!r} of {name} has no result")
    return tuple(items)


def _unpaired(index: int, reason: str) -> InvalidValue:
    return InvalidValue(
        transcript.UNPAIRED, f"history[{index}]", reason, "give the missing message, or leave its partner out too"
    )
