"""A model that speaks all three wire formats on loopback: told once what it says, it says it to whoever asks.

For suites that look at what the runtime sends, so that one conversation can be had over every format.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kit.wires import anthropic_samples, chat_streams, responses_wire
from kit.wires.provider_server import Answer, Answers, Asked, ProviderServer, refusal


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
    return lambda asked: _SPEAKERS[asked.path.rpartition("/")[2]](asked, reply, number)


def tool_names(body: dict[str, Any]) -> list[str]:
    """The tools that a request offers, under their names on the wire."""
    return [(tool.get("function") or tool)["name"] for tool in body.get("tools", ())]


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


_SPEAKERS: dict[str, Callable[[Asked, Any, int], Answer]] = {
    "completions": _chat,
    "responses": _responses,
    "messages": _messages,
}
