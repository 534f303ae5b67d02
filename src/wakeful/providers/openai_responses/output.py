"""The output of a response as parts of a reply, and its usage as numbers.

Calls are `function_call` and `custom_tool_call` items; no text is ever read as a call. What this version does not know,
items and fields, is kept whole for the provider it came from.
"""

from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json

from wakeful.contracts.content import Text, Thinking
from wakeful.contracts.conversation import AssistantItem, AssistantPart, CallPart
from wakeful.contracts.findings import SEARCHES, citation, with_findings
from wakeful.contracts.models import Reply, StopReason, TokenUsage
from wakeful.providers.wire.failures import Peer, invalid
from wakeful.providers.wire.names import WireNames
from wakeful.providers.wire.usage_counts import UnknownCount, count, portion

SAID = {"output_text": "text", "refusal": "refusal"}
"""Content of a message that holds words, and the field they stand in."""


def reply_of(
    response: dict[str, Any], output: list[Any], names: WireNames, peer: Peer, unknown: dict[str, int]
) -> Reply:
    """The reply that a response is. Raises ModelFailure for output that has no shape."""
    parts: list[AssistantPart] = []
    refused = False
    for item in output:
        if not isinstance(item, dict):
            raise invalid(peer, f"an output item is {type(item).__name__}, not an object")
        if response.get("status") == "completed" and item.get("status") == "in_progress":
            item = {**item, "status": "completed"}  # OpenAI leaves it so in calls that a program of its own makes
        refused |= _read_item(item, parts, names, peer)
    metadata = {
        key: response[name]
        for name, key in (("id", "response_id"), ("model", "model"), ("service_tier", "service_tier"))
        if isinstance(response.get(name), str)
    }
    stop_reason = _stop_reason(response, parts, refused)
    if response.get("status") == "incomplete":
        metadata["incomplete_details"] = response.get("incomplete_details")
    if unknown:
        metadata["unknown_events"] = unknown
    if searches := sum(each.get("type") == "web_search_call" for each in output):
        metadata[SEARCHES] = searches
    return Reply(
        item=_with_findings(AssistantItem(parts=tuple(parts), provider=peer.provider), output),
        stop_reason=stop_reason,
        finish_reason=_finish_reason(response),
        usage=usage_of(response),
        request_metadata=metadata,
    )


def _with_findings(item: AssistantItem, output: list[Any]) -> AssistantItem:
    """A reply with what its annotations say, and whether the provider searched."""
    searched = any(each.get("type") == "web_search_call" for each in output)
    found: list[dict[str, Any] | None] = []
    for message in output if searched else ():
        for piece in message.get("content") or () if message.get("type") == "message" else ():
            said = text(piece, "text") if isinstance(piece, dict) else ""
            for each in piece.get("annotations") or () if isinstance(piece, dict) else ():
                if isinstance(each, dict) and each.get("type") == "url_citation":
                    first, last = each.get("start_index"), each.get("end_index")
                    words = said[first:last] if isinstance(first, int) and isinstance(last, int) else None
                    found.append(citation(each.get("url"), each.get("title"), supports=words))
    return with_findings(item, found, searched=searched)


def _stop_reason(response: dict[str, Any], parts: list[AssistantPart], refused: bool) -> StopReason:
    if response.get("status") == "incomplete":
        match _mapping(response, "incomplete_details").get("reason"):
            case "max_output_tokens" | "max_tokens":
                return "length"
            case "content_filter":
                return "content_filter"
            case _:
                return "other"
    if any(isinstance(part, CallPart) for part in parts):
        return "tool_calls"
    return "refusal" if refused else "end"


def _finish_reason(response: dict[str, Any]) -> str:
    """Why it ended, in OpenAI's word: the status, or what made it incomplete."""
    status = text(response, "status") or "completed"
    return text(_mapping(response, "incomplete_details"), "reason") or status if status == "incomplete" else status


def _read_item(item: dict[str, Any], parts: list[AssistantPart], names: WireNames, peer: Peer) -> bool:
    """Append an output item's parts; True when it is a refusal."""
    match item.get("type"):
        case "message":
            return _read_message(item, parts, peer)
        case "function_call":
            parts.append(_call(item, names, peer))
        case "custom_tool_call":
            parts.append(_bare_call(item, names, peer))
        case "reasoning":
            parts.append(Thinking(text=_reasoning_text(item), provider=peer.provider, opaque=item))
        case _:
            # An item this version does not know is the provider's own: it goes back as it came.
            parts.append(Thinking(provider=peer.provider, opaque=item))
    return False


def _read_message(item: dict[str, Any], parts: list[AssistantPart], peer: Peer) -> bool:
    """A message is a frame, whose words are taken out, and the words as text: together they are the message again."""
    content = item.get("content")
    if not isinstance(content, list):
        raise invalid(peer, "a message has no content")
    frame: list[Any] = []
    words: list[Text] = []
    refused = False
    for piece in content:
        kind = piece.get("type") if isinstance(piece, dict) else None
        field = SAID.get(kind) if isinstance(kind, str) else None
        if field is None:
            frame.append(piece)
            continue
        refused |= kind == "refusal"
        words.append(Text(text(piece, field)))
        frame.append({key: value for key, value in piece.items() if key != field})
    parts.append(Thinking(provider=peer.provider, opaque={**item, "content": frame}))
    parts.extend(words)
    return refused


def _call(item: dict[str, Any], names: WireNames, peer: Peer) -> CallPart:
    name, written = item.get("name"), item.get("arguments")
    if not isinstance(name, str) or not name:
        raise invalid(peer, "a function_call has no name")
    if not isinstance(written, str):
        raise invalid(peer, f"the arguments of {name!r} are {type(written).__name__}, not a text")
    opaque = {key: value for key, value in item.items() if key not in ("type", "call_id", "name", "arguments")}
    # A call that was cut off is no call, even where what there is of its arguments happens to be JSON.
    whole = item.get("status", "completed") == "completed"
    arguments = _arguments(written) if whole else None
    return CallPart(
        call_id=text(item, "call_id"),
        name=names.from_wire(name),
        arguments=arguments,
        raw_arguments=written if arguments is None else None,
        opaque=opaque,
    )


def _bare_call(item: dict[str, Any], names: WireNames, peer: Peer) -> CallPart:
    """A call whose one text stands there bare: the same call as with JSON around it."""
    name, written = item.get("name"), item.get("input")
    if not isinstance(name, str) or not name:
        raise invalid(peer, "a custom_tool_call has no name")
    if not isinstance(written, str):
        raise invalid(peer, f"the input of {name!r} is {type(written).__name__}, not a text")
    opaque = {key: value for key, value in item.items() if key not in ("type", "call_id", "name", "input")}
    canonical = names.from_wire(name)
    whole = item.get("status", "completed") == "completed"
    return CallPart(
        call_id=text(item, "call_id"),
        name=canonical,
        arguments={names.freeform.get(canonical, "input"): written} if whole else None,
        raw_arguments=None if whole else written,
        opaque=opaque,
    )


def _arguments(written: str) -> dict[str, Any] | None:
    if not written:
        return {}
    try:
        value = from_json(written)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _reasoning_text(item: dict[str, Any]) -> str:
    pieces = item.get("summary") or item.get("content")
    if not isinstance(pieces, list):
        return ""
    return "\n".join(text(piece, "text") for piece in pieces if isinstance(piece, dict))


def usage_of(response: Mapping[str, Any]) -> TokenUsage | None:
    """Tokens as they were reported; None when nothing was that can be read."""
    usage = response.get("usage")
    if not isinstance(usage, Mapping):
        return None
    heard, said = _mapping(usage, "input_tokens_details"), _mapping(usage, "output_tokens_details")
    try:
        heard_tokens, said_tokens = count(usage.get("input_tokens")), count(usage.get("output_tokens"))
    except UnknownCount:
        return None
    return TokenUsage(
        input_tokens=heard_tokens,
        output_tokens=said_tokens,
        total_tokens=portion(usage.get("total_tokens")) or heard_tokens + said_tokens,
        cached_input_tokens=portion(heard.get("cached_tokens")),
        cache_write_tokens=portion(heard.get("cache_write_tokens")),
        reasoning_tokens=portion(said.get("reasoning_tokens")),
        audio_tokens=portion(heard.get("audio_tokens")) + portion(said.get("audio_tokens")),
    )


def text(body: Mapping[str, Any], field: str) -> str:
    """A field that is a text, or nothing."""
    value = body.get(field)
    return value if isinstance(value, str) else ""


def _mapping(body: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    value = body.get(field)
    return value if isinstance(value, Mapping) else {}
