"""LangChain messages, by attribute; and their dumped form, `{"type": "human", "data": {...}}`."""

from collections.abc import Iterator, Mapping
from typing import Any

from wakeful.contracts.conversation import AssistantItem, AssistantPart, ToolItem, UserItem
from wakeful.engine.foreign_history.blocks import call, refused, shown, thinking

TYPES = frozenset({"human", "ai", "system", "tool", "HumanMessageChunk", "AIMessageChunk"})


def is_one(message: Any) -> bool:
    """By the class's module, or by the shape of a dump."""
    if isinstance(message, Mapping):
        return message.get("type") in TYPES and isinstance(message.get("data"), Mapping)
    return type(message).__module__.partition(".")[0] in ("langchain", "langchain_core") and hasattr(message, "content")


def read(message: Any, at: str) -> Iterator[UserItem | AssistantItem | ToolItem]:
    """One message is one item."""
    kind = _get(message, "type")
    fields = message["data"] if isinstance(message, Mapping) else message
    content = _get(fields, "content")
    match kind:
        case "human" | "HumanMessageChunk":
            yield UserItem(parts=shown(content, f"{at}.content"))
        case "system":
            yield UserItem(parts=shown(content, f"{at}.content"), origin="runtime")
        case "ai" | "AIMessageChunk":
            yield AssistantItem(parts=tuple(_reply(fields, content, at)))
        case "tool":
            call_id = _get(fields, "tool_call_id")
            if not call_id:
                raise refused(at, "a tool message without tool_call_id")
            yield ToolItem(
                call_id=str(call_id),
                name=str(_get(fields, "name") or ""),
                parts=shown(content, f"{at}.content"),
                is_error=_get(fields, "status") == "error",
            )
        case _:
            raise refused(at, f"a message of type {kind!r} cannot be converted")


def _reply(fields: Any, content: Any, at: str) -> Iterator[AssistantPart]:
    blocks = content if isinstance(content, list | tuple) else [content]
    for index, block in enumerate(blocks):
        place = f"{at}.content[{index}]"
        if isinstance(block, Mapping) and block.get("type") in ("tool_use", "tool_call", "function_call"):
            continue  # the same calls stand in tool_calls, in one shape for every provider
        thought = thinking(block) if isinstance(block, Mapping) else None
        if thought is not None:
            yield thought
        else:
            yield from shown(block, place)
    for field in ("tool_calls", "invalid_tool_calls"):
        for index, made in enumerate(_get(fields, field) or ()):
            yield call(_get(made, "id"), _get(made, "name"), _get(made, "args"), f"{at}.{field}[{index}]")


def _get(thing: Any, name: str) -> Any:
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)
