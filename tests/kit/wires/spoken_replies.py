"""A model that speaks all wire formats on loopback: told once what it says, it says it to whoever asks.

For suites that look at what the runtime sends, so that one conversation can be had over every format.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kit.wires import anthropic_samples, chat_streams, gemini_samples, responses_wire
from kit.wires.provider_server import JSON, Answer, Answers, Asked, ProviderServer, refusal


@dataclass(frozen=True)
class Calls:
    """A reply that calls tools, by the last part of their names; more than one: side by side."""

    calls: tuple[tuple[str, dict[str, Any]], ...]
    thought: str = ""


@dataclass(frozen=True)
class Says:
    text: str
    thought: str = ""


def calls(*made: tuple[str, dict[str, Any]], thought: str = "") -> Calls:
    return Calls(made, thought)


def tell(server: ProviderServer, *replies: Calls | Says | int) -> None:
    """The replies, in order; a number is an HTTP status that refuses the request."""
    for number, reply in enumerate(replies):
        server.answers.append(spoken(reply, number))


def spoken(reply: Calls | Says | int, number: int = 0) -> Answers:
    if isinstance(reply, int):
        return refusal(reply, "server_error", "not now")
    return lambda asked: _SPEAKERS[wire_of(asked.path)](asked, reply, number)


def wire_of(path: str) -> str:
    """The format of a request, by the end of its path."""
    end = path.partition("?")[0].rpartition("/")[2]
    return end.partition(":")[2] or end


def tool_names(body: dict[str, Any]) -> list[str]:
    """The tools that a request offers, under their names on the wire."""
    tools = body.get("tools", ())
    flat = [each for tool in tools for each in tool.get("functionDeclarations", [tool])]
    return [(tool.get("function") or tool)["name"] for tool in flat]


def _named(asked: Asked, name: str) -> str:
    return next(each for each in tool_names(asked.body) if each.rpartition("__")[2] == name)


def _chat(asked: Asked, reply: Calls | Says, number: int) -> Answer:
    chunks = [chat_streams.chunk({"role": "assistant", "reasoning_content": reply.thought})] if reply.thought else []
    if isinstance(reply, Says):
        chunks += [chat_streams.chunk({"content": reply.text}), chat_streams.chunk(finish="stop")]
    else:
        for place, (name, arguments) in enumerate(reply.calls):
            called = _named(asked, name), json.dumps(arguments)
            chunks.append(chat_streams.piece(place, *called, f"call_{number}_{place}"))
        chunks.append(chat_streams.chunk(finish="tool_calls"))
    return Answer(chat_streams.stream(*chunks, chat_streams.USAGE_CHUNK))


def _responses(asked: Asked, reply: Calls | Says, number: int) -> Answer:
    output: list[dict[str, Any]] = []
    if reply.thought:
        output.append({**responses_wire.REASONING, "id": f"rs_{number}"})
    if isinstance(reply, Says):
        output.append(responses_wire.message(responses_wire.words(reply.text)))
    else:
        output += [
            responses_wire.call(f"call_{number}_{place}", json.dumps(arguments), name=_named(asked, name))
            for place, (name, arguments) in enumerate(reply.calls)
        ]
    ended = responses_wire.response(*output, id=f"resp_{number}")
    return Answer(responses_wire.sse(responses_wire.events_of(ended)))


def _messages(asked: Asked, reply: Calls | Says, number: int) -> Answer:
    blocks: list[dict[str, Any]] = []
    place = 0
    if reply.thought:
        said = ({"type": "thinking_delta", "thinking": reply.thought}, {"type": "signature_delta", "signature": "c2ln"})
        blocks += anthropic_samples.block(0, {"type": "thinking", "thinking": "", "signature": ""}, *said)
        place = 1
    if isinstance(reply, Says):
        events = [*blocks, *anthropic_samples.text_block(place, reply.text), *anthropic_samples.ended()]
    else:
        for more, (name, arguments) in enumerate(reply.calls):
            called = f"toolu_{number}_{more}", _named(asked, name), json.dumps(arguments)
            blocks += anthropic_samples.call_block(place + more, *called)
        events = [*blocks, *anthropic_samples.ended("tool_use")]
    return Answer(anthropic_samples.sse([anthropic_samples.started(), *events]))


def _gemini(asked: Asked, reply: Calls | Says, number: int) -> Answer:
    parts: list[dict[str, Any]] = [{"text": reply.thought, "thought": True}] if reply.thought else []
    signed = {"thoughtSignature": gemini_samples.SIGNATURE} if reply.thought else {}
    if isinstance(reply, Says):
        parts.append({"text": reply.text, **signed})
    else:
        for place, (name, arguments) in enumerate(reply.calls):
            made = gemini_samples.call(_named(asked, name), arguments, f"call_{number}_{place}")
            parts.append({**made, **(signed if place == 0 else {})})
    whole = gemini_samples.answer(*parts, responseId=f"resp_{number}")
    if asked.path.partition("?")[0].endswith(":generateContent"):
        return Answer(json.dumps(whole).encode(), headers=JSON)
    return Answer(gemini_samples.sse([whole]))


_SPEAKERS: dict[str, Callable[[Asked, Any, int], Answer]] = {
    "completions": _chat,
    "responses": _responses,
    "messages": _messages,
    "generateContent": _gemini,
    "streamGenerateContent": _gemini,
}
