"""The vendor's own client as a second reader of the Responses API: what it makes of a stream, and of a request."""

import json
from functools import cache
from typing import Any

import httpx2
import openai
from openai.types.responses import Response
from openai.types.responses.response_create_params import (
    ResponseCreateParamsNonStreaming,
    ResponseCreateParamsStreaming,
)
from pydantic import TypeAdapter

from wakeful.contracts.models import Reply


def vendor_reading(stream: bytes) -> tuple[list[str], Response | None]:
    """The deltas of text, and the response at the end if there is one, as the vendor's client reads them."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=stream)

    words: list[str] = []
    ended: Response | None = None
    with httpx2.Client(transport=httpx2.MockTransport(answer)) as http:
        client = openai.OpenAI(api_key="none", base_url="http://127.0.0.1/v1", http_client=http)
        for event in client.responses.create(model="any", input="any", stream=True):
            if event.type == "response.output_text.delta":
                words.append(event.delta)
            elif event.type in ("response.completed", "response.incomplete"):
                ended = event.response
    return words, ended


def vendor_calls(response: Response) -> list[tuple[str, str, Any]]:
    return [
        (item.call_id, item.name, json.loads(item.arguments))
        for item in response.output
        if item.type == "function_call"
    ]


def vendor_usage(response: Response) -> tuple[int, int, int, int, int] | None:
    usage = response.usage
    if usage is None:
        return None
    return (
        usage.input_tokens,
        usage.output_tokens,
        usage.total_tokens,
        usage.input_tokens_details.cached_tokens,
        usage.output_tokens_details.reasoning_tokens,
    )


def our_usage(reply: Reply) -> tuple[int, int, int, int, int] | None:
    usage = reply.usage
    if usage is None:
        return None
    return (
        usage.input_tokens,
        usage.output_tokens,
        usage.total_tokens,
        usage.cached_input_tokens,
        usage.reasoning_tokens,
    )


@cache
def _adapter(streams: bool) -> TypeAdapter[Any]:
    return TypeAdapter(ResponseCreateParamsStreaming if streams else ResponseCreateParamsNonStreaming)


def vendor_accepts(body: dict[str, Any]) -> dict[str, Any]:
    """The request through the vendor's types, and as its client would send it.

    Lazy iterables in the types are drained: only what was looked at was checked.
    """
    # The adapter outlives what it returns: a lazy iterable of the types needs it still.
    adapter = _adapter(bool(body.get("stream")))
    _drained(adapter.validate_python(body))
    sent: list[dict[str, Any]] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        sent.append(json.loads(request.read()))
        return httpx2.Response(200, json={"id": "resp_1", "object": "response", "output": []})

    with httpx2.Client(transport=httpx2.MockTransport(answer)) as http:
        client = openai.OpenAI(api_key="none", base_url="http://127.0.0.1/v1", http_client=http)
        client.responses.create(**{**body, "stream": False})
    return {**sent[0], "stream": body.get("stream")}


def _drained(value: Any) -> None:
    if isinstance(value, str | bytes | int | float | bool | None):
        return
    if isinstance(value, dict):
        value = value.values()
    for inner in value:
        _drained(inner)
