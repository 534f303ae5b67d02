"""What the Messages API answered, as a Reply: from a stream or from one body, the same Reply both ways.

Rule: nothing is believed before the end was said. A stream is whole when every block was closed, `message_delta` gave a
stop reason and `message_stop` came; anything less is a lost attempt. What is not known here (events, blocks, deltas,
fields) is kept and never fatal.
"""

import json
from collections.abc import Callable
from typing import Any

from pydantic_core import from_json

from wakeful.contracts.content import Part, Thinking
from wakeful.contracts.conversation import AssistantItem, CallPart, UserItem
from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.findings import SEARCHES, citation, with_findings
from wakeful.contracts.models import ModelGlimpse, Reply, Stage, StopReason, TokenUsage
from wakeful.providers.anthropic.block_reader import TEXT_FIELDS, GrowingBlock
from wakeful.providers.wire.failures import Peer, from_error_object, interrupted, invalid
from wakeful.providers.wire.names import WireNames
from wakeful.providers.wire.sse import SseEvent
from wakeful.providers.wire.usage_counts import UnknownCount, count, portion

ANTHROPIC = Peer("anthropic")
MAX_UNKNOWN_EVENTS = 16
"""So many unknown events are kept with a reply; of the rest only their number."""
MAX_UNKNOWN_BYTES = 2_000
_STOPS: dict[str, StopReason] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
    "pause_turn": "pause",
}
_MESSAGE_FIELDS = frozenset({"id", "type", "role", "content", "model", "stop_reason", "usage"})
GO_ON = (UserItem(parts=(), origin="runtime"),)
"""What follows a paused reply: no words at all. The encoder leaves it out, so that the paused message comes back as it
was, and the round is not the last."""


class AnthropicDecoder:
    """Takes events in as they come and shows what can be seen of them; `finish` gives the reply, or says it is lost."""

    __slots__ = ("_blocks", "_ended", "_message", "_names", "_peer", "_stop", "_unknown", "_unknown_count")

    def __init__(self, names: WireNames, peer: Peer = ANTHROPIC) -> None:
        self._names = names
        self._peer = peer
        self._message: dict[str, Any] | None = None
        self._blocks: dict[int, GrowingBlock] = {}
        self._stop: str | None = None
        self._ended = False
        self._unknown: list[Any] = []
        self._unknown_count = 0

    @property
    def ended(self) -> bool:
        """The last event came: whatever follows is not part of the reply."""
        return self._ended

    def feed(self, event: SseEvent) -> list[ModelGlimpse]:
        """What this event shows. Raises ModelFailure for an error event and for what is no event of this protocol."""
        name, data = event
        if self._ended:
            return []
        try:
            said = from_json(data)
        except ValueError:
            if not data or data == b"[DONE]":
                return []
            said = self._leniently(data)
        if not isinstance(said, dict):
            raise self._broken(f"an event is not an object: {_shown(data)}")
        kind = said.get("type") or name
        try:
            take = _TAKERS.get(kind)
            return self._keep(said) if take is None else take(self, said)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            why = f"an event of type {kind} has another shape ({type(error).__name__}: {error}): {_shown(data)}"
            raise self._broken(why) from None

    def finish(self) -> Reply:
        """The reply. Raises ModelFailure unless its end was said."""
        missing = self._missing()
        if missing or self._message is None or self._stop is None:
            raise self._with_usage(interrupted(self._peer, f"the stream ended before its end: {missing}"))
        blocks = [self._blocks[index] for index in sorted(self._blocks)]
        unknown = {}
        if self._unknown_count:
            unknown = {"unknown_events": self._unknown, "unknown_event_count": self._unknown_count}
        try:
            return _reply(self._message, blocks, self._peer, unknown)
        except ModelFailure as failure:
            raise self._with_usage(failure) from None

    @property
    def usage(self) -> TokenUsage | None:
        """As far as it was reported."""
        return usage_of(self._message.get("usage")) if self._message is not None else None

    def _delta(self, said: dict[str, Any]) -> list[ModelGlimpse]:
        glimpses = self._open_block(said["index"]).grow(said["delta"])
        return self._keep(said) if glimpses is None else glimpses

    def _block_start(self, said: dict[str, Any]) -> list[ModelGlimpse]:
        self._started("content_block_start")
        index = said["index"]
        if not isinstance(index, int) or index in self._blocks:
            raise self._broken(f"content block {index!r} has no place of its own")
        block = self._blocks[index] = GrowingBlock(said["content_block"], self._names)
        return block.opening()

    def _block_stop(self, said: dict[str, Any]) -> list[ModelGlimpse]:
        self._open_block(said["index"]).closed = True
        return []

    def _message_start(self, said: dict[str, Any]) -> list[ModelGlimpse]:
        if self._message is not None:
            raise self._broken("a second message_start came: these are two answers")
        message = said["message"]
        if not isinstance(message, dict):
            raise TypeError("message is not an object")
        self._message = message
        return []

    def _message_delta(self, said: dict[str, Any]) -> list[ModelGlimpse]:
        message = self._started("message_delta")
        message.update({key: value for key, value in said["delta"].items() if value is not None})
        self._stop = message.get("stop_reason")
        if said.get("context_management") is not None:
            message["context_management"] = said["context_management"]  # what the provider cleared on its side
        # Counts are totals so far: they replace, and what is left out stays as message_start said.
        told = {key: value for key, value in (said.get("usage") or {}).items() if value is not None}
        message["usage"] = {**(message.get("usage") or {}), **told}
        return []

    def _message_stop(self, said: dict[str, Any]) -> list[ModelGlimpse]:
        self._started("message_stop")
        self._ended = True
        return []

    def _error(self, said: dict[str, Any]) -> list[ModelGlimpse]:
        raise self._with_usage(_error(said, self._peer, "body"))

    def _nothing(self, said: dict[str, Any]) -> list[ModelGlimpse]:
        return []

    def _started(self, kind: str) -> dict[str, Any]:
        if self._message is None:
            raise self._broken(f"{kind} came before message_start")
        return self._message

    def _open_block(self, index: int) -> GrowingBlock:
        block = self._blocks.get(index)
        if block is None or block.closed:
            raise self._broken(f"content block {index} is not open: an event before this one was lost")
        return block

    def _missing(self) -> str:
        if self._message is None:
            return "message_start is missing"
        open_blocks = [index for index, block in self._blocks.items() if not block.closed]
        if open_blocks:
            return f"content block {open_blocks[0]} is not closed"
        if self._stop is None:
            return "no stop reason came"
        return "" if self._ended else "message_stop is missing"

    def _keep(self, said: dict[str, Any]) -> list[ModelGlimpse]:
        self._unknown_count += 1
        if len(self._unknown) < MAX_UNKNOWN_EVENTS and _can_be_kept(said):
            self._unknown.append(said)
        return []

    def _leniently(self, data: bytes) -> Any:
        """The stricter parser refuses half a surrogate pair; a reply is not lost for that."""
        try:
            return json.loads(data)
        except ValueError as error:
            raise self._broken(f"an event is not JSON ({error}): {_shown(data)}") from None

    def _broken(self, what: str) -> ModelFailure:
        return self._with_usage(invalid(self._peer, what))

    def _with_usage(self, failure: ModelFailure) -> ModelFailure:
        """What an answer used that had ended: until then its output is counted as it was when it began."""
        failure.usage = self.usage if self._stop is not None else None
        return failure


_TAKERS: dict[str, Callable[[AnthropicDecoder, dict[str, Any]], list[ModelGlimpse]]] = {
    "content_block_delta": AnthropicDecoder._delta,
    "content_block_start": AnthropicDecoder._block_start,
    "content_block_stop": AnthropicDecoder._block_stop,
    "message_start": AnthropicDecoder._message_start,
    "message_delta": AnthropicDecoder._message_delta,
    "message_stop": AnthropicDecoder._message_stop,
    "error": AnthropicDecoder._error,
    "ping": AnthropicDecoder._nothing,
}
"""What takes in an event of each type; others are kept."""


def decode_response(body: bytes, names: WireNames, peer: Peer = ANTHROPIC) -> Reply:
    """The reply of a request that did not stream. Raises ModelFailure for anything that is not a whole message."""
    try:
        said = json.loads(body)
    except ValueError as error:
        raise invalid(peer, f"the answer is not JSON ({error}): {_shown(body)}") from None
    if isinstance(said, dict) and said.get("type") == "error":
        raise _error(said, peer, "decode")
    if not isinstance(said, dict) or not isinstance(said.get("content"), list):
        raise invalid(peer, f"the answer is not a message: {_shown(body)}")
    try:
        if not said.get("stop_reason"):
            raise invalid(peer, f"the message has no stop_reason, so it may not be whole: {_shown(body)}")
        return _reply(said, [GrowingBlock(dict(block), names) for block in said["content"]], peer, {})
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        why = f"the message has another shape ({type(error).__name__}: {error}): {_shown(body)}"
        broken = invalid(peer, why)
    except ModelFailure as failure:
        broken = failure
    broken.usage = usage_of(said.get("usage"))
    raise broken


def _error(said: dict[str, Any], peer: Peer, stage: Stage) -> ModelFailure:
    """An error that came inside a 200: the server began to answer and could not go on."""
    error = said.get("error")
    failure = from_error_object(
        peer.provider,
        peer.model_ref,
        error if isinstance(error, dict) else {"message": str(error)},
        stage=stage,
        peer=peer,
    )
    if failure.kind == "unknown":
        failure.kind = "server_error"  # it had accepted the request, so what went wrong is on its side
    return failure


def usage_of(usage: Any) -> TokenUsage | None:
    """Tokens in our words: all input together, and what of it was read from or written to the cache."""
    if not isinstance(usage, dict):
        return None
    try:
        read = count(usage.get("cache_read_input_tokens"), missing=0)
        written = count(usage.get("cache_creation_input_tokens"), missing=0)
        taken = count(usage.get("input_tokens")) + read + written
        given = count(usage.get("output_tokens"))
    except UnknownCount:
        return None
    details = usage.get("output_tokens_details")
    return TokenUsage(
        input_tokens=taken,
        output_tokens=given,
        total_tokens=taken + given,
        cached_input_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=portion(details.get("thinking_tokens")) if isinstance(details, dict) else 0,
    )


def _reply(message: dict[str, Any], blocks: list[GrowingBlock], peer: Peer, more: dict[str, Any]) -> Reply:
    parts: list[Part | CallPart] = []
    for block in blocks:
        parts += block.parts(peer.provider)
    item = _with_findings(AssistantItem(parts=tuple(parts), provider=peer.provider))
    raw = str(message["stop_reason"])
    stop = _STOPS.get(raw, "other")
    if stop == "refusal" and (item.calls or not item.text):
        raise _refused(message, peer)
    paused = stop == "pause"
    kept = [part.opaque for part in item.parts if isinstance(part, Thinking) and part.opaque]
    if searches := sum(each.get("type") == "server_tool_use" for each in kept):
        more = {**more, SEARCHES: searches}
    return Reply(
        item=item,
        stop_reason=stop,
        finish_reason=raw,
        usage=usage_of(message.get("usage")),
        request_metadata={**_metadata(message), **more} if more else _metadata(message),
        continuation=GO_ON if paused and not item.calls else (),
        may_be_empty=paused,  # it may have been in the middle of a search, before any word
    )


def _with_findings(item: AssistantItem) -> AssistantItem:
    """A reply with what its citations say, and whether the provider searched."""
    kept = [part.opaque for part in item.parts if isinstance(part, Thinking) and part.opaque]
    if not kept:
        return item
    searched = any(each.get("type") in ("server_tool_use", "web_search_tool_result") for each in kept)
    cited = [each for opaque in kept for each in (opaque.get(TEXT_FIELDS) or {}).get("citations") or ()]
    web = [each for each in cited if isinstance(each, dict) and each.get("type") == "web_search_result_location"]
    found = [citation(each.get("url"), each.get("title"), excerpt=each.get("cited_text")) for each in web]
    return with_findings(item, found, searched=searched)


def _refused(message: dict[str, Any], peer: Peer) -> ModelFailure:
    """The provider stopped its own model before it said anything that could be taken for an answer."""
    details = message.get("stop_details")
    details = details if isinstance(details, dict) else {}
    why = ": ".join(str(details[key]) for key in ("category", "explanation") if details.get(key))
    who = peer.model_ref or "the model"
    said = f"{peer.provider}: {who} refused to answer{f' ({why})' if why else ''}; ask differently, or another model"
    return ModelFailure(said, kind="content_filtered", stage="decode")


def _metadata(message: dict[str, Any]) -> dict[str, Any]:
    """What is kept for replay: ids, the model that answered, the reason in the provider's own word, and what is new."""
    usage = message.get("usage")
    told = {
        "response_id": message.get("id"),
        "model": message.get("model"),
        "provider_stop_reason": message.get("stop_reason"),
        "service_tier": usage.get("service_tier") if isinstance(usage, dict) else None,
    }
    for key in message.keys() - _MESSAGE_FIELDS:
        told[key] = message[key]
    kept = {key: value for key, value in told.items() if value is not None and _can_be_kept(value)}
    lost = [key for key, value in told.items() if value is not None and key not in kept]
    return {**kept, "not_kept": sorted(map(str, lost))[:16]} if lost else kept


def _can_be_kept(value: Any) -> bool:
    """Small enough for the log, and of characters that it can hold."""
    if isinstance(value, int) or (isinstance(value, str) and len(value) < MAX_UNKNOWN_BYTES and value.isascii()):
        return True  # nearly always
    try:
        return len(json.dumps(value, ensure_ascii=False).encode()) <= MAX_UNKNOWN_BYTES
    except ValueError:
        return False


def _shown(data: bytes) -> str:
    return repr(data[:200].decode("utf-8", "replace"))
