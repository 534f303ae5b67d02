"""Small answers of Gemini's API, made by hand, for the suites that test that provider."""

import json
from collections.abc import Iterable
from typing import Any

from wakeful.contracts.models import ModelGlimpse, Reply
from wakeful.providers.gemini.decode import GeminiDecoder
from wakeful.providers.wire.names import WireNames
from wakeful.providers.wire.sse import SseParser

USAGE = {"promptTokenCount": 10, "candidatesTokenCount": 7, "totalTokenCount": 17}
SIGNATURE = "Y29uZmlkZW50aWFsK3RoaXMvaXM="
NO_NAMES = WireNames()


def answer(*parts: dict[str, Any], finish: str | None = "STOP", **changed: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    whole = {
        "candidates": [candidate],
        "usageMetadata": USAGE,
        "modelVersion": "gemini-test",
        "responseId": "resp-1",
    }
    return {**whole, **changed}


def call(name: str, arguments: dict[str, Any], call_id: str | None = None, **beside: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"name": name, "args": arguments}
    return {"functionCall": {**made, **({"id": call_id} if call_id else {})}, **beside}


def sse(answers: Iterable[dict[str, Any]]) -> bytes:
    return b"".join(f"data: {json.dumps(each)}\r\n\r\n".encode() for each in answers)


def text_events(text: str) -> list[bytes]:
    half = len(text) // 2
    pieces = [answer({"text": text[:half]}, finish=None), answer({"text": text[half:]})]
    return [sse([piece]) for piece in pieces]


def refused(kind: str, words: str, status: int = 400) -> bytes:
    return json.dumps({"error": {"code": status, "message": words, "status": kind}}).encode()


def decoded(stream: bytes, names: WireNames = NO_NAMES) -> tuple[list[ModelGlimpse], Reply]:
    """Everything a stream shows, and the reply it ends in."""
    decoder = GeminiDecoder(names)
    glimpses: list[ModelGlimpse] = []
    for event in SseParser().feed(stream):
        glimpses += decoder.feed(event)
    return glimpses, decoder.finish()
