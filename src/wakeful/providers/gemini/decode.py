"""What Gemini answered, as a Reply: from a stream or from one body, the same Reply both ways.

Rule: nothing is believed before the end was said, and the end is a candidate's `finishReason`. A prompt that was
blocked, and an answer that was stopped before it said anything, are failures; what is not known here is kept.
"""

import json
from typing import Any

from wakeful.contracts.content import Thinking
from wakeful.contracts.conversation import AssistantItem
from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.findings import SEARCHES, citation, with_findings
from wakeful.contracts.models import FailureKind, ModelGlimpse, Reply, Stage, StopReason, TokenUsage
from wakeful.providers.gemini.part_reader import GrowingParts
from wakeful.providers.wire.failures import Peer, from_error_object, interrupted, invalid
from wakeful.providers.wire.names import WireNames
from wakeful.providers.wire.sse import SseEvent
from wakeful.providers.wire.text import parsed, storable
from wakeful.providers.wire.usage_counts import UnknownCount, count, portion

GEMINI = Peer("gemini")
MAX_KEPT_BYTES = 2_000
"""A field that nobody knows here is kept with a reply when it is no larger."""
CUT_OFF = "MAX_TOKENS"
_STOPS: dict[str, StopReason] = {"STOP": "end", CUT_OFF: "length"}
FILTERED = frozenset(
    {
        *("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE"),
        *("MODEL_ARMOR", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"),
    }
)
"""Reasons with which Gemini stops its own model for what it says."""
MALFORMED = frozenset({"MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"})
"""The model wrote a call that its provider could not read: another attempt may go well."""
_CANDIDATE_FIELDS = frozenset({"content", "finishReason", "finishMessage", "index", "groundingMetadata", "avgLogprobs"})
_ANSWER_FIELDS = frozenset({"candidates", "usageMetadata", "modelVersion", "responseId"})


class GeminiDecoder:
    """Takes events in as they come and shows what can be seen of them; `finish` gives the reply, or says it is lost."""

    __slots__ = ("_answer", "_candidate", "_parts", "_peer")

    def __init__(self, names: WireNames, peer: Peer = GEMINI) -> None:
        self._peer = peer
        self._parts = GrowingParts(names)
        self._answer: dict[str, Any] = {}
        self._candidate: dict[str, Any] = {}

    @property
    def ended(self) -> bool:
        """The end was said: whatever follows is not part of the reply."""
        return bool(self._candidate.get("finishReason"))

    def feed(self, event: SseEvent) -> list[ModelGlimpse]:
        """What this event shows. Raises ModelFailure for an error and for what is no event of this protocol."""
        data = event[1]
        if self.ended or not data or data == b"[DONE]":
            return []
        try:
            said = parsed(data)
        except ValueError as error:
            raise self.broken(f"an event is not JSON ({error}): {_shown(data)}") from None
        if not isinstance(said, dict):
            raise self.broken(f"an event is not an object: {_shown(data)}")
        try:
            return self.take(said, stage="body")
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            why = f"an event has another shape ({type(error).__name__}: {error}): {_shown(data)}"
            raise self.broken(why) from None

    def take(self, said: dict[str, Any], *, stage: Stage) -> list[ModelGlimpse]:
        """One answer, whole or a piece of one."""
        if said.get("error"):
            raise self._with_usage(_error(said["error"], self._peer, stage))
        # Counts and the rest are what is true so far: the newest word replaces the one before.
        self._answer.update({key: value for key, value in said.items() if key != "candidates" and value is not None})
        candidates = said.get("candidates") or [{}]
        first = candidates[0]
        content = first.get("content") or {}
        for key, value in first.items():
            if key != "content" and value is not None and value != {}:
                self._candidate[key] = value
        glimpses = [each for part in content.get("parts") or () for each in self._parts.add(part)]
        blocked = (said.get("promptFeedback") or {}).get("blockReason")
        if blocked and not self.ended:
            refusal = _blocked(said["promptFeedback"], self._peer)
            refusal.usage = self.usage  # nothing follows
            raise refusal
        return glimpses

    def finish(self) -> Reply:
        """The reply. Raises ModelFailure unless its end was said."""
        if not self.ended:
            raise self._with_usage(interrupted(self._peer, "the stream ended before its end: no finishReason came"))
        return self.reply()

    def reply(self) -> Reply:
        """The reply in what was taken in, which is whole."""
        provider = self._peer.provider
        reason = str(self._candidate["finishReason"])
        if self._parts.unfinished is not None and reason != CUT_OFF:
            words = f"the answer ended ({reason}) before the call of {self._parts.unfinished!r} was whole"
            raise self._with_usage(invalid(self._peer, words))
        item = self._with_findings(AssistantItem(parts=tuple(self._parts.parts(provider)), provider=provider))
        said_nothing = not item.calls and not item.text and all(isinstance(part, Thinking) for part in item.parts)
        if reason in FILTERED and (said_nothing or item.calls):
            raise self._with_usage(_filtered(reason, self._candidate, self._peer))
        if reason in MALFORMED and said_nothing:
            raise self._with_usage(_malformed(reason, self._candidate, self._peer))
        stop: StopReason = "content_filter" if reason in FILTERED else _STOPS.get(reason, "other")
        return Reply(
            item=item,
            stop_reason="tool_calls" if stop == "end" and item.calls else stop,
            finish_reason=reason,
            usage=self.usage,
            request_metadata=self._metadata(),
        )

    def _with_findings(self, item: AssistantItem) -> AssistantItem:
        """A reply with what its grounding says: which words of it stand on which pages."""
        grounding = self._candidate.get("groundingMetadata")
        if not isinstance(grounding, dict) or not grounding:
            return item
        pages = [(each or {}).get("web") or {} for each in grounding.get("groundingChunks") or ()]
        found = []
        for support in grounding.get("groundingSupports") or ():
            words = (support.get("segment") or {}).get("text")
            places = [pages[at] for at in support.get("groundingChunkIndices") or () if 0 <= at < len(pages)]
            found += [citation(page.get("uri"), page.get("title"), supports=words) for page in places]
        if not found:
            found += [citation(page.get("uri"), page.get("title")) for page in pages]
        return with_findings(item, found, searched=True)

    def _searches(self) -> int | None:
        """How often it searched: once at least, where it says on what the reply rests."""
        grounding = self._candidate.get("groundingMetadata")
        queries = grounding.get("webSearchQueries") if isinstance(grounding, dict) else None
        return (len(queries) if isinstance(queries, list) and queries else 1) if grounding else None

    @property
    def usage(self) -> TokenUsage | None:
        """As far as it was reported."""
        return usage_of(self._answer.get("usageMetadata"))

    def _metadata(self) -> dict[str, Any]:
        """What is kept for replay: ids, the model that answered, the reason in the provider's own word, what is new."""
        usage = self._answer.get("usageMetadata")
        told = {
            "response_id": self._answer.get("responseId"),
            "model": self._answer.get("modelVersion"),
            "provider_stop_reason": self._candidate.get("finishReason"),
            "finish_message": self._candidate.get("finishMessage"),
            "service_tier": usage.get("serviceTier") if isinstance(usage, dict) else None,
            **{key: value for key, value in self._answer.items() if key not in _ANSWER_FIELDS},
            **{key: value for key, value in self._candidate.items() if key not in _CANDIDATE_FIELDS},
            SEARCHES: self._searches(),
        }
        told = {key: storable(value) for key, value in told.items() if value is not None}
        kept = {key: value for key, value in told.items() if _is_small(value)}
        lost = sorted(told.keys() - kept.keys())
        return {**kept, "not_kept": lost[:16]} if lost else kept

    def broken(self, what: str) -> ModelFailure:
        """The failure that an answer of no known shape is."""
        return self._with_usage(invalid(self._peer, what))

    def _with_usage(self, failure: ModelFailure) -> ModelFailure:
        """What an answer used that had ended: until then a count is of the part that came."""
        failure.usage = self.usage if self.ended else None
        return failure


def decode_response(body: bytes, names: WireNames, peer: Peer = GEMINI) -> Reply:
    """The reply of a request that did not stream. Raises ModelFailure for anything that is not a whole answer."""
    try:
        said = parsed(body)
    except ValueError as error:
        raise invalid(peer, f"the answer is not JSON ({error}): {_shown(body)}") from None
    if not isinstance(said, dict):
        raise invalid(peer, f"the answer is not an object: {_shown(body)}")
    decoder = GeminiDecoder(names, peer)
    try:
        decoder.take(said, stage="decode")
        if not decoder.ended:
            raise decoder.broken(f"the answer has no finishReason, so it may not be whole: {_shown(body)}")
        return decoder.reply()
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        why = f"the answer has another shape ({type(error).__name__}: {error}): {_shown(body)}"
        raise decoder.broken(why) from None


def usage_of(usage: Any) -> TokenUsage | None:
    """Tokens in our words: thoughts are output, and what a tool of the provider read is input.

    A count of Google's that is 0 is left out, but never the prompt's.
    """
    if not isinstance(usage, dict):
        return None
    try:
        taken = count(usage.get("promptTokenCount")) + count(usage.get("toolUsePromptTokenCount"), missing=0)
        thought = count(usage.get("thoughtsTokenCount"), missing=0)
        given = count(usage.get("candidatesTokenCount"), missing=0) + thought
    except UnknownCount:
        return None
    details = usage.get("promptTokensDetails")
    heard = [portion(each.get("tokenCount")) for each in details or () if each.get("modality") == "AUDIO"]
    return TokenUsage(
        input_tokens=taken,
        output_tokens=given,
        total_tokens=taken + given,
        cached_input_tokens=portion(usage.get("cachedContentTokenCount")),
        reasoning_tokens=thought,
        audio_tokens=sum(heard),
    )


def _error(error: Any, peer: Peer, stage: Stage) -> ModelFailure:
    """An error that came inside a 200: the server began to answer and could not go on."""
    given = error if isinstance(error, dict) else {"message": str(error)}
    failure = from_error_object(peer.provider, peer.model_ref, given, stage=stage, peer=peer)
    if failure.kind == "unknown":
        failure.kind = "server_error"  # it had accepted the request, so what went wrong is on its side
    return failure


def _blocked(feedback: dict[str, Any], peer: Peer) -> ModelFailure:
    words = feedback.get("blockReasonMessage")
    why = f"{feedback['blockReason']}{f': {words}' if words else ''}"
    said = f"the prompt was blocked ({why}); ask differently, or another model"
    blocked = _stopped(peer, said, "content_filtered")
    blocked.retryable = False  # what was blocked is what would be sent again
    return blocked


def _filtered(reason: str, candidate: dict[str, Any], peer: Peer) -> ModelFailure:
    ratings = [each for each in candidate.get("safetyRatings") or () if isinstance(each, dict)]
    blocked = [str(each["category"]).removeprefix("HARM_CATEGORY_").lower() for each in ratings if each.get("blocked")]
    why = ", ".join([reason, *blocked])
    said = f"{peer.model_ref or 'the model'} was stopped before it answered ({why}); ask differently, or another model"
    return _stopped(peer, said, "content_filtered")


def _malformed(reason: str, candidate: dict[str, Any], peer: Peer) -> ModelFailure:
    words = str(candidate.get("finishMessage") or "")[:200]
    why = f"{reason}: {words}" if words else reason
    said = f"{peer.model_ref or 'the model'} wrote a tool call that cannot be read ({why})"
    return _stopped(peer, said, "empty_response")


def _stopped(peer: Peer, words: str, kind: FailureKind) -> ModelFailure:
    return ModelFailure(f"{peer.who}: {words}", kind=kind, stage="decode")


def _is_small(value: Any) -> bool:
    return isinstance(value, int) or len(json.dumps(value, ensure_ascii=False)) <= MAX_KEPT_BYTES


def _shown(data: bytes) -> str:
    return repr(data[:200].decode("utf-8", "replace"))
