"""What the Responses API says, as replies: from a stream or from one body, the same facts from both.

A reply is made of the terminal event and of nothing before it. A stream that ends without one is a failed attempt,
however much of an answer was seen. An event that this version does not know is counted, and never stops anything.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pydantic_core import from_json

from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.models import (
    ArgumentsDelta,
    FailureKind,
    ModelGlimpse,
    ReasoningDelta,
    Reply,
    TextDelta,
)
from wakeful.providers.openai_responses.output import reply_of, text, usage_of
from wakeful.providers.wire.failures import Peer, from_error_object, interrupted, invalid
from wakeful.providers.wire.names import WireNames
from wakeful.providers.wire.sse import SseEvent

OPENAI = Peer("openai")
TERMINAL = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled"})
_SILENT = frozenset(
    {
        "response.created",
        "response.queued",
        "response.in_progress",
        "response.content_part.added",
        "response.content_part.done",
        "response.output_text.done",
        "response.output_text.annotation.added",
        "response.refusal.done",
        "response.function_call_arguments.done",
        "response.custom_tool_call_input.done",
        "response.reasoning_text.done",
        "response.reasoning_summary_text.done",
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_part.done",
        "keepalive",
    }
)
"""Events that say nothing the terminal event does not say; they are not even parsed."""
_WORDS = frozenset({"response.output_text.delta", "response.refusal.delta"})
_THOUGHTS = frozenset({"response.reasoning_summary_text.delta", "response.reasoning_text.delta"})
_ARGUMENTS = frozenset({"response.function_call_arguments.delta", "response.custom_tool_call_input.delta"})
_MAX_UNKNOWN = 16


class ResponsesDecoder:
    """One stream. `feed` gives glimpses, `finish` the reply; both raise ModelFailure."""

    __slots__ = ("_calls", "_done", "_names", "_open", "_peer", "_terminal", "_unknown")

    def __init__(self, names: WireNames, peer: Peer = OPENAI) -> None:
        self._names = names
        self._peer = peer
        self._open: set[int] = set()
        """Items that were begun and not finished."""
        self._done: dict[int, dict[str, Any]] = {}
        """Finished items by their place in the output."""
        self._calls: dict[int, tuple[str, str]] = {}
        self._terminal: dict[str, Any] | None = None
        self._unknown: dict[str, int] = {}

    @property
    def ended(self) -> bool:
        """The terminal event was seen: nothing after it matters."""
        return self._terminal is not None

    def feed(self, event: SseEvent) -> list[ModelGlimpse]:
        """What can be shown of an event. Raises ModelFailure when the event says that the attempt is lost."""
        kind = event.event
        if kind in _SILENT or self._terminal is not None:
            return []
        if kind in ("", "message"):
            # Some servers leave the name out: it stands in the data too.
            if event.data == b"[DONE]":
                return []
            body = _parsed(event.data, self._peer)
            kind = str(body.get("type", ""))
        elif kind in _WORDS or kind in _THOUGHTS or kind in _READ:
            body = _parsed(event.data, self._peer)
        else:
            self._count_unknown(kind)
            return []
        return self._read(kind, body)

    def finish(self) -> Reply:
        """The reply. Raises ModelFailure: without its terminal event nothing of a stream is believed."""
        response = self._terminal
        if response is None:
            raise interrupted(self._peer, "the stream ended without its terminal event")
        with _paid(response):
            return reply_of(response, self._output(response), self._names, self._peer, self._unknown)

    def _read(self, kind: str, body: dict[str, Any]) -> list[ModelGlimpse]:
        if kind in _WORDS:
            return [TextDelta.model_construct(text=text(body, "delta"))]
        if kind in _THOUGHTS:
            return [ReasoningDelta.model_construct(text=text(body, "delta"))]
        if kind in _ARGUMENTS:
            call_id, name = self._calls.get(_place(body), ("", ""))
            return [ArgumentsDelta.model_construct(call_id=call_id, name=name, text=text(body, "delta"))]
        if kind == "response.output_item.added":
            self._begin(body)
        elif kind == "response.output_item.done":
            self._end(body)
        elif kind in TERMINAL:
            response = self._object(body, "response", kind)
            response.setdefault("status", kind.removeprefix("response."))
            with _paid(response):
                _refuse_failed(response, self._peer)
            self._terminal = response
        elif kind == "error":
            raise reported_error(self._peer, body)
        elif kind not in _SILENT:
            self._count_unknown(kind)
        return []

    def _begin(self, body: dict[str, Any]) -> None:
        item, place = self._object(body, "item", "response.output_item.added"), _place(body)
        self._open.add(place)
        if item.get("type") in ("function_call", "custom_tool_call"):
            self._calls[place] = (text(item, "call_id"), self._names.from_wire(text(item, "name")))

    def _end(self, body: dict[str, Any]) -> None:
        item, place = self._object(body, "item", "response.output_item.done"), _place(body)
        self._open.discard(place)
        self._done[place] = item

    def _output(self, response: dict[str, Any]) -> list[Any]:
        """The terminal event's output, or what was streamed when it has none.

        A finished reasoning item is taken from its own event: there its encrypted content is the one to hand back.
        """
        output = response.get("output")
        if isinstance(output, list) and output:
            thoughts = {item["id"]: item for item in self._done.values() if _is_thought(item)}
            return [thoughts.get(item["id"], item) if _is_thought(item) else item for item in output]
        if self._open or sorted(self._done) != list(range(len(self._done))):
            raise interrupted(self._peer, "the stream ended with no output and an item unfinished")
        return [self._done[place] for place in sorted(self._done)]

    def _object(self, body: dict[str, Any], field: str, kind: str) -> dict[str, Any]:
        value = body.get(field)
        if not isinstance(value, dict):
            raise invalid(self._peer, f"{kind} has no {field}")
        return value

    def _count_unknown(self, kind: str) -> None:
        if kind in self._unknown or len(self._unknown) < _MAX_UNKNOWN:
            self._unknown[kind] = self._unknown.get(kind, 0) + 1


_READ = TERMINAL | {
    "error",
    "response.output_item.added",
    "response.output_item.done",
    *_ARGUMENTS,
}


def decode_response(body: bytes, names: WireNames, peer: Peer = OPENAI) -> Reply:
    """The reply of a request that did not stream."""
    response = _parsed(body, peer)
    if "output" not in response and response.get("error") is not None:
        raise reported_error(peer, response)
    with _paid(response):
        _refuse_failed(response, peer)
        output = response.get("output")
        if not isinstance(output, list):
            raise invalid(peer, f"the response's output is {type(output).__name__}, not a list")
        return reply_of(response, output, names, peer, {})


@contextmanager
def _paid(response: dict[str, Any]) -> Iterator[None]:
    """What a response used was used, also where nothing can be made of it."""
    try:
        yield
    except ModelFailure as failure:
        failure.usage = usage_of(response)
        raise


def _refuse_failed(response: dict[str, Any], peer: Peer) -> None:
    """Raises ModelFailure for a response that says itself that it is none, from what it says."""
    status = response.get("status", "completed")
    if status in ("completed", "incomplete"):
        return
    if status == "failed":
        raise failed_response(peer, response.get("error"))
    if status == "cancelled":
        raise interrupted(peer, "the response was cancelled on the other side before it was whole")
    raise invalid(peer, f"the response's status is {status!r}: it is not finished, and nothing more will come")


def _parsed(data: bytes, peer: Peer) -> dict[str, Any]:
    try:
        value = from_json(data, cache_strings="keys")
    except ValueError as error:
        value = _with_lone_surrogates(data)
        if value is None:
            raise invalid(peer, f"the answer is not JSON ({error})") from None
    if not isinstance(value, dict):
        raise invalid(peer, f"the answer is JSON, but a {type(value).__name__} and not an object")
    return value


def _with_lone_surrogates(data: bytes) -> Any:
    """Half a character, which a delta may hold, is JSON all the same; the runtime mends it before it is stored."""
    try:
        return json.loads(data) if b"\\ud" in data.lower() else None
    except (ValueError, RecursionError):
        return None


def _is_thought(item: Any) -> bool:
    return isinstance(item, dict) and item.get("type") == "reasoning" and isinstance(item.get("id"), str)


def _place(body: Mapping[str, Any]) -> int:
    value = body.get("output_index")
    return value if isinstance(value, int) else -1


_KINDS: dict[str, FailureKind] = {
    "usage_limit_reached": "quota_exhausted",
    "usage_not_included": "quota_exhausted",
    "bio_policy": "content_filtered",
    "cyber_policy": "content_filtered",
    "misalignment_policy_violation": "content_filtered",
    "image_content_policy_violation": "content_filtered",
    "data_residency_mismatch": "contract_error",
    "failed_to_download_image": "contract_error",
    "empty_image_file": "contract_error",
    "unsupported_image_media_type": "contract_error",
}
_ABOUT_THE_REQUEST = ("invalid_", "image_")


def failed_response(peer: Peer, error: Any) -> ModelFailure:
    """A response whose status is `failed`, classified from its own error."""
    return reported_error(peer, error if isinstance(error, dict) else {})


def reported_error(peer: Peer, error: dict[str, Any]) -> ModelFailure:
    """An error object: of a response, or of an `error` event, there beside its type or in an object of its own."""
    inner = error.get("error")
    fields = inner if isinstance(inner, dict) else error
    failure = from_error_object(peer.provider, peer.model_ref, fields, peer=peer)
    code = fields.get("code")
    if isinstance(code, str):
        if code in _KINDS:
            failure.kind = _KINDS[code]
        elif failure.kind == "unknown" and code.startswith(_ABOUT_THE_REQUEST):
            failure.kind = "contract_error"
    return failure
