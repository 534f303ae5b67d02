"""What a Chat Completions server answered, as glimpses and one Reply. Pure.

There are three signs of a stream's end: a finish reason, `[DONE]`, and a body that ended as its server had announced.
Two of them make it whole; without a finish reason only where something was said. An answer that came at once is whole
when it is one JSON object that says something. Anything less is a lost attempt, whatever it said so far. An error
object counts wherever it stands, also after a finish reason; one that refuses the model's own tool call is an answer:
that call, which cannot be run.
"""

from typing import Any

from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.models import ModelGlimpse, Reply, TokenUsage
from wakeful.providers.openai_chat.calls import WrongShape
from wakeful.providers.openai_chat.draft import Draft, small
from wakeful.providers.wire.failures import Peer, from_error_object, interrupted, invalid
from wakeful.providers.wire.names import WireNames
from wakeful.providers.wire.sse import DONE, SseEvent
from wakeful.providers.wire.text import parsed
from wakeful.providers.wire.usage_counts import UnknownCount, count, portion

_LONGEST_DONE = 16
_ENVELOPE = ("id", "model", "created", "system_fingerprint", "service_tier", "provider")
_KNOWN = frozenset({*_ENVELOPE, "object", "choices", "usage", "obfuscation", "error"})
_KNOWN_OF_CHOICE = frozenset({"index", "delta", "message", "finish_reason", "logprobs", "usage", "error"})
_MILD = frozenset({None, "stop"})
_BROKEN_OFF = ("error", "network_error", "insufficient_system_resource", "abort")
"""Finish reasons of an answer that its server gave up."""
_UNKNOWN_PEER = Peer("openai")


class ChatDecoder:
    """Takes the events of one stream, in order. Each request has its own."""

    __slots__ = (
        "_draft",
        "_events",
        "_finish_reason",
        "_has_blank_reason",
        "_metadata",
        "_needs_done",
        "_others",
        "_peer",
        "_refused",
        "_usage",
        "is_done",
    )

    def __init__(
        self, names: WireNames, peer: Peer = _UNKNOWN_PEER, *, needs_done: bool = True, think_tags: bool = False
    ) -> None:
        self._peer = peer
        self._needs_done = needs_done
        self._draft = Draft(names, think_tags=think_tags)
        self._finish_reason: str | None = None
        self._has_blank_reason = False
        """A finish reason came that is an empty text: with `[DONE]` it is one."""
        self._refused: ModelFailure | None = None
        """Why the provider refused the model's tool call."""
        self._usage: dict[str, Any] | None = None
        self._metadata: dict[str, Any] = {}
        self._others: dict[str, Any] = {}
        self._events = 0
        self.is_done = False
        """`[DONE]`, or the refusal of a call, has come: what follows is not read."""

    @property
    def ended(self) -> bool:
        """Nothing more is needed to know that it is whole."""
        known = self._finish_reason is not None or self._has_blank_reason or self._refused is not None
        return self.is_done and known

    def feed(self, event: SseEvent) -> list[ModelGlimpse]:
        """What can be shown of one event. Raises ModelFailure when it is an error or no event of this format."""
        data = event.data
        if self.is_done or not data:
            return []
        if len(data) < _LONGEST_DONE and data.strip() == DONE:
            self.is_done = True
            return self._draft.end()
        self._events += 1
        chunk = self._error_line(data) if event.event == "error" else self._object(data)
        if event.event == "error" or chunk.get("error"):
            failure = self._error(chunk.get("error") or chunk)
            if failure.refused_call is None:
                raise failure
            self._refused, self.is_done = failure, True
            return self._draft.end()
        try:
            return self._take(chunk, "delta")
        except WrongShape as error:
            raise self._lost(invalid(self._peer, f"event {self._events} of the stream: {error}")) from None

    def finish(self, *, body_ended: bool = False) -> Reply:
        """The reply. Raises ModelFailure when the stream was not whole.

        `body_ended`: the body came to the end that its server had announced.
        """
        if self._refused is not None:
            return self.refused(self._refused)
        unnamed_end = self.is_done and (body_ended or self._has_blank_reason) and not self._draft.said_nothing
        if self._finish_reason is None and not unnamed_end:
            after = f"after {self._events} events" if self._events else "before its first event"
            raise self._lost(interrupted(self._peer, f"the stream ended {after}, without a finish reason"))
        if self._needs_done and not (self.is_done or body_ended):
            raise self._lost(
                interrupted(
                    self._peer,
                    "the stream broke off without [DONE] (a server that never sends it, nor says where its body ends, "
                    "needs the quirk needs_done=false)",
                )
            )
        return self._reply()

    def whole(self, body: bytes) -> Reply:
        """The reply in an answer that came at once."""
        answer = self._object(body)
        if answer.get("error"):
            raise self._error(answer["error"])
        if not answer.get("choices"):
            raise self._lost(invalid(self._peer, "the answer has no choices"))
        try:
            self._take(answer, "message")
        except WrongShape as error:
            raise self._lost(invalid(self._peer, f"the answer: {error}")) from None
        if self._finish_reason is None and self._draft.said_nothing:
            raise self._lost(
                invalid(self._peer, "the answer has no finish reason and says nothing: it may not be whole")
            )
        return self._reply()

    def refused(self, failure: ModelFailure) -> Reply:
        """The reply in which the model made the call that its provider refused: what came of it so far, and that call.

        The call has no arguments that could be run: it is answered with the provider's reason.
        """
        self._draft.calls.refuse(failure.refused_call or "", failure.message)
        return self._draft.reply(self._peer.provider, "tool_calls", failure.usage, self._metadata)

    def _take(self, chunk: dict[str, Any], where: str) -> list[ModelGlimpse]:
        glimpses: list[ModelGlimpse] = []
        choices = chunk.get("choices")
        if choices:
            if not isinstance(choices, list):
                raise WrongShape(f"choices is {type(choices).__name__}, not a list")
            for choice in choices:
                if not isinstance(choice, dict):
                    raise WrongShape(f"a choice is {type(choice).__name__}, not an object")
                if not choice.get("index"):  # one answer was asked for; a second one is nobody's
                    glimpses += self._choose(choice, where)
        usage = usage_of(chunk)
        if usage is not None:
            self._usage = usage
        if "id" not in self._metadata:  # a first chunk may have come before there was an answer to name
            found = {name: chunk[name] for name in _ENVELOPE if isinstance(chunk.get(name), str | int) and chunk[name]}
            self._metadata.update(found)
        if not chunk.keys() <= _KNOWN:
            self._others.update({name: chunk[name] for name in chunk.keys() - _KNOWN if chunk[name] is not None})
        return glimpses

    def _choose(self, choice: dict[str, Any], where: str) -> list[ModelGlimpse]:
        delta = choice.get(where)
        if delta is None and where == "delta" and self._draft.is_empty:
            delta = choice.get("message")  # a server that streams its answer in one piece
        if delta is not None and not isinstance(delta, dict):
            raise WrongShape(f"{where} is {type(delta).__name__}, not an object")
        glimpses = self._draft.add(delta, whole=where == "message") if delta else []
        reason = choice.get("finish_reason")
        if choice.get("error") or reason in _BROKEN_OFF:
            raise self._error(choice.get("error") or {"type": "server_error", "message": f"finish_reason is {reason}"})
        self._has_blank_reason |= reason == ""
        if reason:
            if not isinstance(reason, str):
                raise WrongShape(f"finish_reason is {type(reason).__name__}, not text")
            if self._finish_reason in _MILD:  # said twice, the reason that says more counts
                self._finish_reason = reason
        if isinstance(choice.get("usage"), dict):
            self._usage = choice["usage"]
        if not choice.keys() <= _KNOWN_OF_CHOICE:
            unknown = choice.keys() - _KNOWN_OF_CHOICE
            self._others.update({f"choice.{name}": choice[name] for name in unknown if choice[name] is not None})
        return glimpses

    def _reply(self) -> Reply:
        if self._finish_reason in ("tool_calls", "function_call") and not self._draft.calls:
            raise self._lost(invalid(self._peer, f"finish_reason is {self._finish_reason} and no call came"))
        metadata = self._metadata
        if self._others:
            metadata = {**metadata, "other": {name: small(value) for name, value in self._others.items()}}
        usage = tokens(self._usage) if self._usage is not None else None
        return self._draft.reply(self._peer.provider, self._finish_reason or "", usage, metadata)

    def _object(self, data: bytes) -> dict[str, Any]:
        try:
            value = parsed(data)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            start = data[:80].decode("utf-8", "replace")
            raise self._lost(invalid(self._peer, f"not a JSON object: {start!r}"))
        return value

    def _error_line(self, data: bytes) -> dict[str, Any]:
        """An error that a server reports beside its events: an object, or just words."""
        try:
            value = parsed(data)
        except ValueError:
            value = None
        return value if isinstance(value, dict) else {"message": data.decode("utf-8", "replace")}

    def _error(self, error: Any) -> ModelFailure:
        """An error in an answer whose status was 200."""
        said = error if isinstance(error, dict) else {"message": str(error)}
        code = said.get("code")
        status = int(code) if isinstance(code, str) and code.isdecimal() and 400 <= int(code) < 600 else None
        failure = from_error_object(self._peer.provider, self._peer.model_ref, said, status=status, peer=self._peer)
        if failure.kind == "unknown":
            failure.kind = "server_error"  # it had accepted the request, so the fault is not the request's
        return self._lost(failure)

    def _lost(self, failure: ModelFailure) -> ModelFailure:
        """Tokens of a lost attempt were used all the same. Before its end a count is of the part that came."""
        if self._usage is not None and self._finish_reason is not None:
            failure.usage = tokens(self._usage)
        return failure


def decode_response(body: bytes, names: WireNames, peer: Peer = _UNKNOWN_PEER, *, think_tags: bool = False) -> Reply:
    """The reply in an answer that did not stream: the same as the stream's. Raises ModelFailure."""
    return ChatDecoder(names, peer, think_tags=think_tags).whole(body)


def usage_of(chunk: dict[str, Any]) -> dict[str, Any] | None:
    """Where a chunk or a response reports usage, if it does: at its top, in its choice, or under its vendor's name."""
    usage = chunk.get("usage")
    if isinstance(usage, dict):
        return usage
    vendor = chunk.get("x_groq")
    if isinstance(vendor, dict) and isinstance(vendor.get("usage"), dict):
        return vendor["usage"]  # type: ignore[no-any-return]
    return None


def tokens(usage: dict[str, Any]) -> TokenUsage | None:
    """Usage as a value; None where it cannot be read.

    Cached tokens are among the input, reasoning tokens among the output, as reported.
    """
    asked, said = _details(usage, "prompt_tokens_details"), _details(usage, "completion_tokens_details")
    try:
        given, made = count(usage.get("prompt_tokens")), count(usage.get("completion_tokens"))
    except UnknownCount:
        return None
    return TokenUsage(
        input_tokens=given,
        output_tokens=made,
        total_tokens=portion(usage.get("total_tokens")) or given + made,
        cached_input_tokens=portion(asked.get("cached_tokens"))
        or portion(usage.get("prompt_cache_hit_tokens"))
        or portion(usage.get("cached_tokens")),
        cache_write_tokens=portion(asked.get("cache_write_tokens")),
        reasoning_tokens=portion(said.get("reasoning_tokens")) or portion(usage.get("reasoning_tokens")),
        audio_tokens=portion(asked.get("audio_tokens")) + portion(said.get("audio_tokens")),
    )


def _details(usage: dict[str, Any], name: str) -> dict[str, Any]:
    found = usage.get(name)
    return found if isinstance(found, dict) else {}
