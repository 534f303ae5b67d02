"""Transcript entries as conversation items, for the log. The runner itself gets the entries as they are."""

from collections.abc import Iterable
from typing import Any

from wakeful.contracts.content import Text
from wakeful.contracts.conversation import AssistantItem, CallPart, ToolItem, UserItem
from wakeful.contracts.transcript import Message


def items_of(messages: Iterable[Message]) -> list[UserItem | AssistantItem | ToolItem]:
    """Every entry in its place. What is no word of a person, the model or a tool is a note of the runtime."""
    return [_item(message) for message in messages]


def _item(message: Message) -> UserItem | AssistantItem | ToolItem:
    words = _words(message.content)
    if message.type == "tool_call":
        parameters = message.payload.get("parameters")
        call = CallPart(
            call_id=message.tool_call_id or "",
            name=str(message.payload.get("tool_name", "")),
            arguments=parameters if isinstance(parameters, dict) else {},
        )
        return AssistantItem(parts=(Text(words), call) if words else (call,), provider="caller")
    if message.type == "tool_result":
        return ToolItem(
            call_id=message.tool_call_id or "",
            name=str(message.payload.get("tool_name", "")),
            parts=(Text(words),),
            is_error=message.payload.get("success") is False,
        )
    if message.role == "assistant":
        return AssistantItem(parts=(Text(words),), provider="caller")
    is_persons = message.role == "user" and message.metadata.get("origin") != "runtime"
    return UserItem(parts=(Text(words),), origin="person" if is_persons else "runtime")


def _words(content: str | list[Any]) -> str:
    """The text of a content; a part that is not text is named, not shown."""
    if isinstance(content, str):
        return content
    return "\n".join(_of_part(part) for part in content)


def _of_part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return str(part["text"])
    kind = part.get("type", "part") if isinstance(part, dict) else type(part).__name__
    return f"[{kind}]"
