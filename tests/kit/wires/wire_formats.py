"""The wire formats side by side: how to make a model of each, and small whole answers in its words."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kit.wires import anthropic_samples, chat_streams, gemini_samples, responses_wire
from wakeful.ports import Model
from wakeful.providers.anthropic import AnthropicMessages
from wakeful.providers.gemini import Gemini
from wakeful.providers.openai_chat import OpenAIChat
from wakeful.providers.openai_responses import OpenAIResponses
from wakeful.providers.wire.http import Timeouts

KEY = "sk-not-to-be-seen-0123456789"


@dataclass(frozen=True)
class WireFormat:
    """One wire format. `events` and `body` are the same answer, as a stream and at once."""

    name: str
    make: Callable[..., Model]
    prefix: str
    """What stands between a server's address and the endpoint, as a base URL."""
    events: Callable[[str], list[bytes]]
    body: Callable[[str], bytes]
    refused: Callable[[str, str], bytes]
    """The body of an error: its type or code, and its words."""

    def model(self, url: str, name: str = "m-1", timeouts: Timeouts | None = None, **options: Any) -> Model:
        return self.make(name, base_url=f"{url}{self.prefix}", api_key=KEY, timeouts=timeouts, **options)

    def __str__(self) -> str:
        return self.name


def _chat_events(text: str) -> list[bytes]:
    half = len(text) // 2
    chunks = [
        chat_streams.chunk({"role": "assistant", "content": text[:half]}),
        chat_streams.chunk({"content": text[half:]}),
        chat_streams.chunk(finish="stop"),
        chat_streams.USAGE_CHUNK,
    ]
    return [*(chat_streams.stream(each, done=False) for each in chunks), b"data: [DONE]\n\n"]


def _responses_events(text: str) -> list[bytes]:
    ended = responses_wire.response(responses_wire.message(responses_wire.words(text)))
    return [responses_wire.sse([event]) for event in responses_wire.events_of(ended)]


def _messages_events(text: str) -> list[bytes]:
    half = len(text) // 2
    said = anthropic_samples.text_block(0, text[:half], text[half:])
    events = [anthropic_samples.started(), *said, *anthropic_samples.ended()]
    return [anthropic_samples.sse([event]) for event in events]


def _messages_body(text: str) -> bytes:
    whole = anthropic_samples.started(
        content=[{"type": "text", "text": text}], stop_reason="end_turn", usage={"input_tokens": 10, "output_tokens": 7}
    )
    return json.dumps(whole["message"]).encode()


CHAT = WireFormat(
    "chat",
    OpenAIChat,
    "/v1",
    _chat_events,
    lambda text: chat_streams.response({"content": text}, usage=chat_streams.USAGE),
    lambda kind, words: json.dumps({"error": {"type": kind, "code": kind, "message": words}}).encode(),
)
RESPONSES = WireFormat(
    "responses",
    OpenAIResponses,
    "/v1",
    _responses_events,
    lambda text: json.dumps(responses_wire.response(responses_wire.message(responses_wire.words(text)))).encode(),
    lambda kind, words: json.dumps({"error": {"type": kind, "code": kind, "message": words}}).encode(),
)
MESSAGES = WireFormat(
    "messages",
    AnthropicMessages,
    "",
    _messages_events,
    _messages_body,
    lambda kind, words: json.dumps({"type": "error", "error": {"type": kind, "message": words}}).encode(),
)
GEMINI = WireFormat(
    "gemini",
    Gemini,
    "/v1beta",
    gemini_samples.text_events,
    lambda text: json.dumps(gemini_samples.answer({"text": text})).encode(),
    lambda kind, words: gemini_samples.refused(kind, words),
)
ALL = (CHAT, RESPONSES, MESSAGES, GEMINI)
