"""Live runs against aimock: what it says arrives whole, and what it breaks is never believed."""

from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from kit.runs.engine_runs import of_kind
from kit.wires.wire_formats import ALL, CHAT, GEMINI, MESSAGES, RESPONSES, WireFormat
from peers.aimock import Aimock
from peers.asking import SOON, agent_on, asked, get_time, get_weather, lost
from wakeful import Retry
from wakeful.contracts.content import Thinking
from wakeful.contracts.conversation import AssistantItem, ToolItem
from wakeful.contracts.events import ModelCompleted, ModelFailed, ModelRequested, RoutingFallbackApplied
from wakeful.testing import scripted

EVERY_FORMAT = pytest.mark.parametrize("wire", ALL, ids=str)
WATCHED = pytest.mark.parametrize("watched", [True, False], ids=["streamed", "at once"])
LONG = "It takes more than one chunk to say all of this, and the last word of it is: end"
BOTH_PLACES = {
    "toolCalls": [
        {"name": "get_weather", "arguments": {"city": "Paris"}, "id": "call_a"},
        {"name": "get_time", "arguments": {"city": "Rome"}, "id": "call_b"},
    ]
}
IN_PIECES = {"chunkSize": 8, "latency": 20}
"""Slow enough for what came before a cut to arrive before it."""
THINKERS = {
    CHAT.name: "deepseek-reasoner",
    RESPONSES.name: "gpt-5.5",
    MESSAGES.name: "claude-opus-4-7",
    GEMINI.name: "gemini-3.8-flash",
}


@EVERY_FORMAT
@WATCHED
async def test_what_it_says_arrives_whole(aimock: Aimock, wire: WireFormat, watched: bool) -> None:
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    aimock.says({"match": {"userMessage": "Hello"}, "response": {"content": LONG, "usage": usage}})
    result = await asked(agent_on(wire.model(aimock.url)), "Hello", watched=watched)
    assert (result.status, result.output, lost(result)) == ("completed", LONG, [])
    (completed,) = of_kind(result, ModelCompleted)
    assert completed.stop_reason == "end"
    assert completed.token_usage is not None
    assert completed.token_usage.output_tokens > 0
    (request,) = aimock.journal()
    assert request["body"]["model"] == "m-1"
    assert bool(request["body"].get("stream")) is watched


@EVERY_FORMAT
@WATCHED
async def test_parallel_calls_are_made_and_their_results_go_back(
    aimock: Aimock, wire: WireFormat, watched: bool
) -> None:
    aimock.says(
        {"match": {"userMessage": "trip", "hasToolResult": False}, "response": BOTH_PLACES},
        {"match": {"userMessage": "trip", "hasToolResult": True}, "response": {"content": LONG}},
    )
    agent = agent_on(wire.model(aimock.url), tools=[get_weather, get_time])
    result = await asked(agent, "Plan a trip", watched=watched)
    assert (result.status, result.output, lost(result)) == ("completed", LONG, [])
    results = {item.call_id: item.text for item in result.history() if isinstance(item, ToolItem)}
    assert [text for text in results.values() if "21 degrees in Paris" in text]
    assert [text for text in results.values() if "noon in Rome" in text]
    assert len(results) == 2
    first, second = aimock.journal()
    assert {each["function"]["name"] for each in first["body"]["tools"]} == {"get_weather", "get_time"}
    # aimock keeps requests in one shape, whatever format they came in.
    told = {each["tool_call_id"]: each["content"] for each in second["body"]["messages"] if each["role"] == "tool"}
    assert told.keys() == results.keys()


@EVERY_FORMAT
async def test_a_conversation_of_several_turns_goes_on_where_it_was(
    aimock: Aimock, wire: WireFormat, tmp_path: Path
) -> None:
    aimock.says(
        {"match": {"userMessage": "trip", "hasToolResult": False}, "response": BOTH_PLACES},
        {"match": {"userMessage": "trip", "hasToolResult": True}, "response": {"content": "Planned."}},
        {"match": {"userMessage": "And then?"}, "response": {"content": "Home."}},
    )
    agent = agent_on(wire.model(aimock.url), tools=[get_weather, get_time])
    place: dict[str, Any] = {"store": tmp_path / "store.db", "thread": "t"}
    await asked(agent, "Plan a trip", **place)
    result = await asked(agent, "And then?", **place)
    assert result.output == "Home."
    said = [(each["role"], each.get("tool_call_id")) for each in aimock.journal()[-1]["body"]["messages"]]
    roles = [role for role, _ in groupby(role for role, _ in said if role != "system")]
    assert roles == ["user", "assistant", "tool", "assistant", "user"]
    assert len({call_id for role, call_id in said if role == "tool"}) == 2


@EVERY_FORMAT
@WATCHED
async def test_reasoning_is_kept_apart_from_what_was_said(aimock: Aimock, wire: WireFormat, watched: bool) -> None:
    aimock.says({"match": {"userMessage": "Think"}, "response": {"content": LONG, "reasoning": "First I look around."}})
    model = wire.model(aimock.url, THINKERS[wire.name])
    result = await asked(agent_on(model), "Think", watched=watched)
    assert result.output == LONG
    (said,) = [item for item in result.history() if isinstance(item, AssistantItem)]
    thoughts = [part.text for part in said.parts if isinstance(part, Thinking)]
    assert "".join(thoughts) == "First I look around."


@EVERY_FORMAT
async def test_a_rate_limit_is_waited_for_as_long_as_it_says(aimock: Aimock, wire: WireFormat) -> None:
    refused = {"error": {"message": "slow down a little", "type": "rate_limit_error"}, "status": 429, "retryAfter": 1}
    aimock.in_turn(refused, {"content": LONG}, userMessage="Hello")
    result = await asked(agent_on(wire.model(aimock.url)), "Hello")
    assert result.output == LONG
    assert lost(result) == [("rate_limited", "headers", 1, "retry")]
    assert [each.retry_after_ms for each in of_kind(result, ModelFailed)] == [1000]
    assert [each.backoff_ms for each in of_kind(result, ModelRequested)] == [0, 1000]
    assert aimock.statuses() == [429, 200]


@EVERY_FORMAT
@pytest.mark.parametrize(
    ("status", "type_", "kind"),
    [
        (529, "overloaded_error", "overloaded"),
        (503, "overloaded_error", "overloaded"),
        (500, "server_error", "server_error"),
    ],
)
async def test_a_server_that_cannot_is_asked_again(
    aimock: Aimock, wire: WireFormat, status: int, type_: str, kind: str
) -> None:
    refused = {"error": {"message": "not now", "type": type_}, "status": status}
    aimock.in_turn(refused, refused, {"content": LONG}, userMessage="Hello")
    result = await asked(agent_on(wire.model(aimock.url)), "Hello")
    assert result.output == LONG
    assert lost(result) == [(kind, "headers", 1, "retry"), (kind, "headers", 2, "retry")]


@EVERY_FORMAT
async def test_a_refusal_for_good_is_not_repeated(aimock: Aimock, wire: WireFormat) -> None:
    refused = {"error": {"message": "no such parameter", "type": "invalid_request_error"}, "status": 400}
    aimock.says({"match": {"userMessage": "Hello"}, "response": refused})
    other = scripted(["from the other"])
    result = await asked(agent_on(wire.model(aimock.url), other), "Hello")
    assert result.output == "from the other"
    assert lost(result) == [("contract_error", "headers", 1, "fallback")]
    assert aimock.statuses() == [400]


@EVERY_FORMAT
@WATCHED
async def test_an_answer_that_is_no_json_is_asked_for_once_more(
    aimock: Aimock, wire: WireFormat, watched: bool
) -> None:
    broken = {"match": {"userMessage": "Hello"}, "response": {"content": LONG}, "chaos": {"malformedRate": 1.0}}
    aimock.says(broken)
    result = await asked(agent_on(wire.model(aimock.url), scripted(["from the other"])), "Hello", watched=watched)
    assert result.output == "from the other"
    assert lost(result) == [("invalid_response", "decode", 1, "retry"), ("invalid_response", "decode", 2, "fallback")]
    (moved,) = of_kind(result, RoutingFallbackApplied)
    assert (moved.reason, moved.attempt) == ("invalid_response", 2)


@EVERY_FORMAT
@pytest.mark.parametrize("chunks", [2, 3, 5])
async def test_a_stream_that_is_cut_is_asked_for_again(aimock: Aimock, wire: WireFormat, chunks: int) -> None:
    cut = {"response": {"content": LONG}, "truncateAfterChunks": chunks, **IN_PIECES}
    aimock.in_turn(cut, {"content": LONG}, userMessage="Hello")
    result = await asked(agent_on(wire.model(aimock.url)), "Hello")
    assert result.output == LONG
    assert lost(result) == [("stream_interrupted", "body", 1, "retry")]


@EVERY_FORMAT
async def test_a_stream_that_is_always_cut_is_no_answer(aimock: Aimock, wire: WireFormat) -> None:
    aimock.says(
        {"match": {"userMessage": "Hello"}, "response": {"content": LONG}, "truncateAfterChunks": 4, **IN_PIECES}
    )
    result = await asked(agent_on(wire.model(aimock.url)), "Hello", retry=Retry(patience=0))
    assert (result.status, result.stop_reason) == ("failed", "provider_error")
    assert [kind for kind, *_ in lost(result)] == ["stream_interrupted"] * 3
    assert not any(isinstance(item, AssistantItem) for item in result.history())


@EVERY_FORMAT
async def test_a_connection_that_is_dropped_is_tried_again(aimock: Aimock, wire: WireFormat) -> None:
    dropped = {"response": {"content": LONG}, "chaos": {"disconnectRate": 1.0}}
    aimock.in_turn(dropped, {"content": LONG}, userMessage="Hello")
    result = await asked(agent_on(wire.model(aimock.url)), "Hello")
    assert result.output == LONG
    ((kind, _, attempt, disposition),) = lost(result)
    assert (kind, attempt, disposition) == ("connection", 1, "retry")


@EVERY_FORMAT
async def test_a_stream_that_stalls_is_given_up(aimock: Aimock, wire: WireFormat) -> None:
    stalls = {"response": {"content": LONG}, "latency": 20_000, "chunkSize": 8}
    aimock.in_turn(stalls, {"content": LONG}, userMessage="Hello")
    result = await asked(agent_on(wire.model(aimock.url, timeouts=SOON)), "Hello")
    assert result.output == LONG
    ((kind, _, attempt, disposition),) = lost(result)
    assert (kind, attempt, disposition) == ("timeout", 1, "retry")
