"""OpenAI Chat messages, OpenAI Responses items and Anthropic messages, as dicts."""

from collections.abc import Iterator, Mapping
from typing import Any

from wakeful.contracts.content import Text
from wakeful.contracts.conversation import AssistantItem, AssistantPart, ToolItem, UserItem
from wakeful.contracts.findings import WEB_SEARCH, with_findings
from wakeful.engine.foreign_history.blocks import Shown, call, refused, shown, sources, thinking

_SEARCHES = frozenset({"server_tool_use", "web_search_tool_result"})
"""Blocks of a search that Anthropic ran. Other models cannot read them: it is kept that there was one."""
AnyItem = UserItem | AssistantItem | ToolItem


def from_response_item(entry: Mapping[str, Any], at: str) -> Iterator[AnyItem]:
    """One item of the Responses API that is not a message: a call, its output, or reasoning."""
    match entry.get("type"):
        case "function_call":
            part = call(entry.get("call_id") or entry.get("id"), entry.get("name"), entry.get("arguments"), at)
            yield AssistantItem(parts=(part,), provider="openai")
        case "function_call_output":
            yield _result(entry.get("call_id"), entry.get("output"), at, False)
        case "reasoning":
            thought = thinking(entry)
            assert thought is not None
            yield AssistantItem(parts=(thought,), provider="openai")
        case "web_search_call":
            yield AssistantItem(provider="openai", server_tools=(WEB_SEARCH,))
        case kind:
            raise refused(at, f"an item of type {kind!r} cannot be converted")


def from_message(message: Mapping[str, Any], at: str) -> Iterator[AnyItem]:
    """A message with a role, of either maker."""
    role, content = message.get("role"), message.get("content")
    match role:
        case "system" | "developer":
            # Not a person's words; the agent has instructions of its own, so these come before them as a note.
            yield UserItem(parts=shown(content, f"{at}.content"), origin="runtime")
        case "user":
            yield from _user(content, f"{at}.content")
        case "assistant":
            yield _assistant(message, at)
        case "tool" | "function":
            yield _result(message.get("tool_call_id"), content, at, False, message.get("name"))
        case _:
            raise refused(at, f"{role!r} is not a role; use user, assistant, system or tool")


def _user(content: Any, at: str) -> Iterator[AnyItem]:
    """What a person said, and (Anthropic) the results of tools, in the order they stand in."""
    if not isinstance(content, list | tuple):
        yield UserItem(parts=shown(content, at))
        return
    said: list[Shown] = []
    for index, block in enumerate(content):
        place = f"{at}[{index}]"
        if isinstance(block, Mapping) and block.get("type") == "tool_result":
            if said:
                yield UserItem(parts=tuple(said))
                said = []
            yield _result(block.get("tool_use_id"), block.get("content"), place, bool(block.get("is_error")))
        else:
            said.extend(shown(block, place))
    if said:
        yield UserItem(parts=tuple(said))


def _assistant(message: Mapping[str, Any], at: str) -> AssistantItem:
    parts: list[AssistantPart] = []
    content, provider = message.get("content"), ""
    found, searched = sources(message), False
    if isinstance(content, list | tuple):
        for index, block in enumerate(content):
            place = f"{at}.content[{index}]"
            thought = thinking(block) if isinstance(block, Mapping) else None
            if thought is not None:
                parts.append(thought)
                provider = thought.provider
            elif isinstance(block, Mapping) and block.get("type") == "tool_use":
                parts.append(call(block.get("id"), block.get("name"), block.get("input"), place))
                provider = "anthropic"
            elif isinstance(block, Mapping) and block.get("type") in _SEARCHES:
                searched = True
            else:
                found += sources(block)
                parts.extend(shown(block, place))
    else:
        parts.extend(shown(content, f"{at}.content"))
    if message.get("refusal"):
        parts.append(Text(str(message["refusal"])))
    for index, made in enumerate(message.get("tool_calls") or ()):
        place = f"{at}.tool_calls[{index}]"
        function = made.get("function") if isinstance(made, Mapping) else None
        if not isinstance(function, Mapping):
            raise refused(place, "a tool call without a function")
        parts.append(call(made.get("id"), function.get("name"), function.get("arguments"), place))
    if message.get("function_call"):
        raise refused(f"{at}.function_call", "the old function_call has no id; use tool_calls")
    return with_findings(AssistantItem(parts=tuple(parts), provider=provider), found, searched=searched)


def _result(call_id: Any, content: Any, at: str, is_error: bool, name: Any = None) -> ToolItem:
    if not isinstance(call_id, str) or not call_id:
        raise refused(at, "a tool result without the id of its call")
    # Most formats leave the tool's name to the call; pairing fills it in.
    return ToolItem(call_id=call_id, name=str(name or ""), parts=shown(content, f"{at}.content"), is_error=is_error)
