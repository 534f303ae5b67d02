"""The next request on a long conversation: one more message, then `Encoder.body`, timed.

What is timed hands over the request's chunks; nobody joins, copies or sends them. That they are the request is checked
outside the time: joined, they are JSON that ends in the newest message, and all but a few are the very objects of the
request before.
"""

import cProfile
import json
import statistics
import time
from typing import Any

import profiling

from wires.formats import FORMATS

TOKENS = 1_000_000
BYTES_A_TOKEN = 3
SAMPLES, WARM_UP = 200, 5
ITEMS = {"long": 4_500, "short": 600}
"""Bytes that a round (a reply with a call, its result) has: most of it is in the result."""
_LINE = "2026-03-14 09:26:53 INFO  order 18234 paid, 3 items, 41.90 €; next: ship\n"


def _history(round_bytes: int) -> tuple[Any, int]:
    """A conversation of so many tokens, and how many bytes of text it has."""
    from wakeful.contracts.content import Text
    from wakeful.contracts.conversation import AssistantItem, CallPart, History, ToolItem, UserItem

    items: list[Any] = []
    size = rounds = 0
    while size < TOKENS * BYTES_A_TOKEN:
        said, wanted = f"Round {rounds}: I look at the next part of the log.", {"path": "orders.log", "page": rounds}
        told = _text(round_bytes - len(said) - len(json.dumps(wanted)))
        call = CallPart(call_id=f"call_{rounds}", name="logs/read", arguments=wanted)
        items.append(AssistantItem(parts=(Text(said), call), provider="openai"))
        items.append(ToolItem(call_id=call.call_id, name=call.name, parts=(Text(told),)))
        size += len(said) + len(json.dumps(wanted)) + len(told.encode())
        if rounds % 10 == 9:
            items.append(UserItem(parts=(Text("Go on."),)))
        rounds += 1
    return History([UserItem(parts=(Text("Find the first order that was paid twice."),)), *items]), size


def _text(size: int) -> str:
    return (_LINE * (size // len(_LINE.encode()) + 1)).encode()[:size].decode("utf-8", "ignore")


def measured(name: str, items: str, under_profiler: bool) -> dict[str, Any]:
    from wakeful.contracts.content import Text
    from wakeful.contracts.conversation import UserItem
    from wakeful.contracts.tools import ToolDeclaration
    from wakeful.ports import ModelRequest

    schema = {"type": "object", "properties": {"path": {"type": "string"}, "page": {"type": "integer"}}}
    tools = [ToolDeclaration(name="logs/read", description="Read a page.", input_schema=schema, effect="pure")]
    history, size = _history(ITEMS[items])
    encoder = FORMATS[name].encoder(tools)

    def request(step: int) -> ModelRequest:
        return ModelRequest("You are a clerk.", history, tools, "t_1", step, attempt=1, answered=step)

    began = time.perf_counter()
    before = encoder.body(request(0))
    first = time.perf_counter() - began
    profiler = cProfile.Profile() if under_profiler else None
    took: list[float] = []
    chunks: list[bytes] = []
    for step in range(1, SAMPLES + WARM_UP + 1):
        history.extend([UserItem(parts=(Text(f"One more message, number {step}."),))])
        asked = request(step)
        before = chunks or before
        if profiler and step > WARM_UP:
            profiler.enable()
        began = time.perf_counter()
        chunks = encoder.body(asked)
        took.append(time.perf_counter() - began)
        if profiler:
            profiler.disable()
    newest = json.dumps(json.loads(b"".join(chunks)))
    if f"One more message, number {SAMPLES + WARM_UP}." not in newest:
        raise AssertionError(f"the {name} request does not have the newest message")
    old = set(map(id, before))
    fresh = sum(id(chunk) not in old for chunk in chunks)
    if fresh > 8:
        raise AssertionError(f"{fresh} of {len(chunks)} chunks of the {name} request were made anew")
    return {
        "items": len(history),
        "tokens": size // BYTES_A_TOKEN,
        "first": first * 1000,
        "median": statistics.median(took[WARM_UP:]) * 1000,
        "slowest": max(took[WARM_UP:]) * 1000,
        "chunks": len(chunks),
        "fresh": fresh,
        "profile": profiling.text(profiler, SAMPLES, 8) if profiler else "",
    }
