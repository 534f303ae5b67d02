"""Live runs against llmock, which breaks a stream in four ways and then judges what its client made of it.

Its verdict is the last line of each test. `strict` takes its warnings for failures, too.
"""

from typing import TYPE_CHECKING, Any

import pytest

from kit.runs.engine_runs import of_kind
from kit.wires.wire_formats import ALL, CHAT, GEMINI, KEY, MESSAGES, WireFormat
from peers.aimock import Aimock
from peers.asking import SOON, agent_on, asked, get_time, get_weather, lost
from wakeful import RunResult
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.conversation import ToolItem
from wakeful.contracts.events import ModelCompleted, ModelFailed, ModelRequested, RoutingFallbackApplied
from wakeful.engine.run_request import RunRequest
from wakeful.ports import Model
from wakeful.service.commands.turns import run_turn
from wakeful.store.memory import MemoryStore

if TYPE_CHECKING:
    from llmock.pytest_plugin import LLMock

EVERY_FORMAT = pytest.mark.parametrize("wire", [wire for wire in ALL if wire is not GEMINI], ids=str)
"""llmock does not speak Gemini; aimock does."""
WATCHED = pytest.mark.parametrize("watched", [True, False], ids=["streamed", "at once"])
SIGNS_OF_THE_END = {CHAT.name: ("the reason", "the usage", "[DONE]")}
"""Elsewhere it is the last event alone."""
LONG = "It takes more than one chunk to say all of this, and the last word of it is: end"


def model_at(llmock: "LLMock", wire: WireFormat, **options: Any) -> Model:
    where = "anthropic" if wire is MESSAGES else "openai"
    return wire.make(options.pop("name", "m-1"), base_url=llmock.base_url(where), api_key=KEY, **options)


async def patiently(model: Model) -> RunResult[Any]:
    """A run that waits the whole backoff each time, so that how it waits can be judged."""
    request = RunRequest(agent_on(model), "Hello")
    return await run_turn(new_engine(MemoryStore(), jitter=lambda: 1.0), request)


@EVERY_FORMAT
@WATCHED
async def test_what_it_says_arrives_whole(llmock: "LLMock", wire: WireFormat, watched: bool) -> None:
    llmock.reply(LONG)
    result = await asked(agent_on(model_at(llmock, wire)), "Hello", watched=watched)
    assert (result.status, result.output, lost(result)) == ("completed", LONG, [])
    (completed,) = of_kind(result, ModelCompleted)
    assert completed.token_usage is not None
    assert completed.token_usage.input_tokens > 0
    assert [record.stream for record in llmock.requests] == [watched]
    llmock.assert_resilient(strict=True)


@EVERY_FORMAT
@WATCHED
async def test_parallel_calls_and_the_answer_after_them(llmock: "LLMock", wire: WireFormat, watched: bool) -> None:
    from llmock.scenarios import Reply, ToolCall

    both = (ToolCall("get_weather", {"city": "Paris"}), ToolCall("get_time", {"city": "Rome"}))
    llmock.add(Reply(tool_calls=both)).reply(LONG)
    agent = agent_on(model_at(llmock, wire), tools=[get_weather, get_time])
    result = await asked(agent, "Plan a trip", watched=watched)
    assert (result.output, lost(result)) == (LONG, [])
    answers = [item.text for item in result.history() if isinstance(item, ToolItem)]
    assert ["Paris" in answers[0], "Rome" in answers[1]] == [True, True]
    llmock.assert_resilient(strict=True)


@EVERY_FORMAT
async def test_a_call_with_broken_arguments_is_told_so(llmock: "LLMock", wire: WireFormat) -> None:
    """What one call got wrong is for the model to mend; the attempt was whole."""
    llmock.call_tool("get_weather", {"city": "Paris"}).break_tool_call("malformed_arguments").reply(LONG)
    result = await asked(agent_on(model_at(llmock, wire), tools=[get_weather]), "Weather?")
    assert (result.output, lost(result)) == (LONG, [])
    (call,) = result.calls()
    assert call.status != "success"
    llmock.assert_resilient(strict=True)


@EVERY_FORMAT
async def test_a_rate_limit_is_waited_for_as_long_as_it_says(llmock: "LLMock", wire: WireFormat) -> None:
    llmock.rate_limit(times=2, retry_after=0.3).reply(LONG)
    result = await asked(agent_on(model_at(llmock, wire)), "Hello")
    assert result.output == LONG
    assert lost(result) == [("rate_limited", "headers", 1, "retry"), ("rate_limited", "headers", 2, "retry")]
    told = [each.retry_after_ms for each in of_kind(result, ModelFailed)]
    assert [each.backoff_ms for each in of_kind(result, ModelRequested)] == [0, *told]
    llmock.assert_resilient(strict=True)


@EVERY_FORMAT
@pytest.mark.parametrize(("status", "kinds"), [(529, {"overloaded"}), (503, {"overloaded", "server_error"})])
async def test_an_overloaded_server_is_asked_again_with_growing_patience(
    llmock: "LLMock", wire: WireFormat, status: int, kinds: set[str]
) -> None:
    llmock.fail(status, times=2).reply(LONG)
    result = await patiently(model_at(llmock, wire))
    assert result.output == LONG
    assert {kind for kind, *_ in lost(result)} <= kinds
    assert [each.status for each in of_kind(result, ModelFailed)] == [status] * 2
    llmock.assert_resilient(strict=True)


@EVERY_FORMAT
@pytest.mark.parametrize("status", [400, 401, 404, 422])
async def test_a_refusal_for_good_is_not_repeated(llmock: "LLMock", wire: WireFormat, status: int) -> None:
    llmock.fail(status)
    result = await asked(agent_on(model_at(llmock, wire)), "Hello")
    assert (result.status, result.stop_reason) == ("failed", "provider_error")
    (failure,) = of_kind(result, ModelFailed)
    assert (failure.disposition, failure.status) == ("abort", status)
    assert len(llmock.requests) == 1
    llmock.assert_resilient(strict=True)


@EVERY_FORMAT
@pytest.mark.parametrize("fault", ["truncate", "disconnect"])
@pytest.mark.parametrize("chunks", [0, 1, 4, 7])
async def test_a_stream_that_ends_too_early_is_never_a_short_answer(
    llmock: "LLMock", wire: WireFormat, fault: str, chunks: int
) -> None:
    """Cut off, or ended in good order without its last event: nothing of it is used."""
    getattr(llmock, fault)(after_chunks=chunks)
    llmock.reply(LONG, times=2)
    result = await asked(agent_on(model_at(llmock, wire)), "Hello")
    assert result.output == LONG
    assert lost(result) == [("stream_interrupted", "body", 1, "retry")]
    llmock.assert_resilient(strict=True)


@EVERY_FORMAT
async def test_a_stream_that_ends_right_before_the_sign_of_its_end_is_no_answer(
    llmock: "LLMock", wire: WireFormat
) -> None:
    llmock.reply(LONG, times=3)
    await asked(agent_on(model_at(llmock, wire)), "Hello")
    (whole,) = llmock.requests
    llmock.truncate(after_chunks=whole.chunks_sent - len(SIGNS_OF_THE_END.get(wire.name, ("the last event",))))
    result = await asked(agent_on(model_at(llmock, wire)), "Hello again")
    assert result.output == LONG
    assert lost(result) == [("stream_interrupted", "body", 1, "retry")]
    llmock.assert_resilient(strict=True)


async def test_a_chat_whose_body_ends_properly_needs_no_done(llmock: "LLMock") -> None:
    llmock.reply(LONG, times=3)
    await asked(agent_on(model_at(llmock, CHAT)), "Hello")
    (whole,) = llmock.requests
    llmock.truncate(after_chunks=whole.chunks_sent - 1)
    result = await asked(agent_on(model_at(llmock, CHAT)), "Hello again")
    assert (result.output, lost(result)) == (LONG, [])


@EVERY_FORMAT
async def test_a_call_whose_stream_broke_is_made_once(llmock: "LLMock", wire: WireFormat) -> None:
    llmock.call_tool("get_weather", {"city": "Paris"}, times=2).truncate(after_chunks=3)
    llmock.reply(LONG)
    result = await asked(agent_on(model_at(llmock, wire), tools=[get_weather]), "Weather?")
    assert result.output == LONG
    assert [kind for kind, *_ in lost(result)] == ["stream_interrupted"]
    assert len(result.calls("get_weather")) == 1
    llmock.assert_resilient(strict=True)


@EVERY_FORMAT
async def test_an_answer_with_an_event_that_is_no_json_is_asked_for_again(llmock: "LLMock", wire: WireFormat) -> None:
    llmock.corrupt(after_chunks=2).reply(LONG, times=2)
    result = await asked(agent_on(model_at(llmock, wire)), "Hello")
    assert result.output == LONG
    assert lost(result) == [("invalid_response", "decode", 1, "retry")]
    llmock.assert_resilient(strict=True)


@EVERY_FORMAT
async def test_a_stream_that_stalls_is_given_up(llmock: "LLMock", wire: WireFormat) -> None:
    llmock.stall(after_chunks=3, seconds=20).reply(LONG, times=2)
    result = await asked(agent_on(model_at(llmock, wire, timeouts=SOON)), "Hello")
    assert result.output == LONG
    assert lost(result) == [("timeout", "body", 1, "retry")]
    llmock.assert_resilient(strict=True)


@EVERY_FORMAT
async def test_a_first_token_that_does_not_come_is_given_up(llmock: "LLMock", wire: WireFormat) -> None:
    llmock.slow_first_token(20).reply(LONG, times=2)
    result = await asked(agent_on(model_at(llmock, wire, timeouts=SOON)), "Hello")
    assert result.output == LONG
    ((kind, _, attempt, disposition),) = lost(result)
    assert (kind, attempt, disposition) == ("timeout", 1, "retry")


@EVERY_FORMAT
async def test_a_conversation_that_is_too_long_is_not_sent_again(llmock: "LLMock", wire: WireFormat) -> None:
    llmock.limits(context_window=5)
    result = await asked(agent_on(model_at(llmock, wire)), "word " * 200)
    assert (result.status, result.stop_reason) == ("failed", "provider_error")
    assert [kind for kind, *_ in lost(result)] == ["context_length_exceeded"]
    llmock.assert_resilient(strict=True)


async def test_a_provider_that_is_down_is_left_for_one_that_is_not(llmock: "LLMock", aimock: Aimock) -> None:
    """From one peer to the other, and from one format to another."""
    llmock.outage()
    aimock.says({"match": {"userMessage": "Hello"}, "response": {"content": LONG}})
    result = await asked(agent_on(model_at(llmock, CHAT), MESSAGES.model(aimock.url)), "Hello")
    assert result.output == LONG
    assert [(attempt, disposition) for _, _, attempt, disposition in lost(result)] == [
        *((1, "retry"), (2, "retry"), (3, "fallback")),
    ]
    (moved,) = of_kind(result, RoutingFallbackApplied)
    assert (moved.from_model_ref, moved.to_model_ref) == ("openai-compatible:m-1", "anthropic:m-1")
    llmock.assert_resilient()


async def test_its_verdict_on_a_client_that_believes_a_short_stream_is_a_failure(llmock: "LLMock") -> None:
    """The inversion: a client without the rule does not pass."""
    import httpx2

    llmock.truncate(after_chunks=3).reply(LONG)
    body = {"model": "m-1", "stream": True, "messages": [{"role": "user", "content": "Hello"}]}
    async with httpx2.AsyncClient() as client:
        await client.post(f"{llmock.base_url('openai')}/chat/completions", json=body)
    with pytest.raises(AssertionError, match="truncated_stream_accepted"):
        llmock.assert_resilient()
