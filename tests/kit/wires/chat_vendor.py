"""The vendor's own client as a second reader of Chat Completions: what it makes of a stream, and of a request."""

import json
from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

import httpx2
import openai
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat.completion_create_params import (
    CompletionCreateParamsNonStreaming,
    CompletionCreateParamsStreaming,
)
from pydantic import TypeAdapter

from wakeful.contracts.models import Reply


class Heard(NamedTuple):
    """What was said, in words that both readers can be asked for."""

    text: str
    calls: list[tuple[str, str, Any]]
    finish_reason: str
    usage: tuple[int, ...] | None


def vendor_stream(data: bytes) -> list[ChatCompletionChunk]:
    """The chunks of a stream as the vendor's client reads them."""
    return list(_answering(data, "text/event-stream").chat.completions.create(model="any", messages=[], stream=True))


def vendor_heard(data: bytes) -> Heard:
    """A stream, put together by the vendor's own accumulator."""
    state = ChatCompletionStreamState()
    for chunk in vendor_stream(data):
        state.handle_chunk(chunk)
    return _heard(state.current_completion_snapshot)


def vendor_heard_at_once(body: bytes) -> Heard:
    return _heard(_answering(body, "application/json").chat.completions.create(model="any", messages=[]))


def heard(reply: Reply) -> Heard:
    """Our own reading."""
    usage = reply.usage
    counted = None
    if usage is not None:
        counted = (
            usage.input_tokens,
            usage.output_tokens,
            usage.total_tokens,
            usage.cached_input_tokens,
            usage.reasoning_tokens,
        )
    calls = [(call.call_id, call.name, call.arguments) for call in reply.item.calls]
    return Heard(reply.item.text, calls, reply.request_metadata["finish_reason"], counted)


def vendor_accepts(body: dict[str, Any]) -> None:
    """Raises when the vendor's types refuse a request, or do not know a field of it.

    Their iterables are lazy and check nothing until they are drained; fields they do not know they drop.
    """
    adapter = _adapter(bool(body.get("stream")))
    read = _drained(adapter.validate_python(body))
    assert read == body, "the vendor's types drop what they do not know"


@cache
def _adapter(streams: bool) -> TypeAdapter[Any]:
    return TypeAdapter(CompletionCreateParamsStreaming if streams else CompletionCreateParamsNonStreaming)


def _drained(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _drained(inner) for key, inner in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [_drained(inner) for inner in value]
    return value


def _answering(data: bytes, content_type: str) -> openai.OpenAI:
    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": content_type}, content=data)

    http = httpx2.Client(transport=httpx2.MockTransport(answer))
    return openai.OpenAI(api_key="none", base_url="http://127.0.0.1/v1", http_client=http, max_retries=0)


def _heard(completion: ChatCompletion) -> Heard:
    choice, usage = completion.choices[0], completion.usage
    counted = None
    if usage is not None:
        given, made = usage.prompt_tokens_details, usage.completion_tokens_details
        counted = (
            usage.prompt_tokens,
            usage.completion_tokens,
            usage.total_tokens,
            (given.cached_tokens or 0) if given else 0,
            (made.reasoning_tokens or 0) if made else 0,
        )
    calls = [
        (call.id, call.function.name, json.loads(call.function.arguments))
        for call in choice.message.tool_calls or ()
        if call.type == "function"
    ]
    return Heard(choice.message.content or "", calls, str(choice.finish_reason), counted)
