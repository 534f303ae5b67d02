"""Which step is given when, what fails on cue, and what a function may do."""

import asyncio
from typing import Any

import pytest

from kit.wires.model_requests import a_request, pieces_of, reply_of
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import History, UserItem
from wakeful.contracts.errors import MalformedScript, ModelFailure
from wakeful.contracts.models import Reply, TextDelta
from wakeful.ports import Model, ModelRequest
from wakeful.providers.scripted import ScriptedModel
from wakeful.testing import FixedClock

CALL = {"calls": [{"name": "look_up", "arguments": {}}]}


def test_it_is_a_model() -> None:
    model: Model = ScriptedModel(["hello"])
    assert model.ref == "scripted:inline"
    assert ScriptedModel(["hello"], name="mine").ref == "scripted:mine"


async def test_the_reply_belongs_to_the_round_and_not_to_how_often_was_asked() -> None:
    model = ScriptedModel([CALL, "second", "third"])
    asked = [2, 0, 1, 1]
    texts = [(await reply_of(model, a_request(answered))).item.text for answered in asked]
    assert texts == ["third", "", "second", "second"]


async def test_past_its_end_a_text_repeats() -> None:
    model = ScriptedModel([CALL, "done"])
    assert (await reply_of(model, a_request(9))).item.text == "done"


async def test_past_its_end_a_call_fails_and_is_not_tried_again() -> None:
    model = ScriptedModel([CALL, CALL])
    with pytest.raises(ModelFailure, match="has 2 steps and step 3 was asked for") as failed:
        await reply_of(model, a_request(2))
    assert (failed.value.kind, failed.value.retryable) == ("invalid_response", False)


async def test_failures_come_one_an_attempt_and_then_the_reply() -> None:
    fail = [{"kind": "overloaded", "status": 529, "retry_after": 2.5}, {"kind": "connection"}]
    model = ScriptedModel([{"text": "at last", "fail": fail}])
    with pytest.raises(ModelFailure) as first:
        await reply_of(model, a_request(attempt=1))
    with pytest.raises(ModelFailure) as second:
        await reply_of(model, a_request(attempt=2))
    assert (first.value.kind, first.value.status, first.value.retry_after) == ("overloaded", 529, 2.5)
    assert (second.value.kind, second.value.stage) == ("connection", "connect")
    assert (await reply_of(model, a_request(attempt=3))).item.text == "at last"


async def test_a_step_that_only_fails_fails_each_time() -> None:
    model = ScriptedModel([{"fail": {"kind": "auth_error", "message": "no such key"}}])
    for attempt in (1, 2, 5):
        with pytest.raises(ModelFailure, match="no such key"):
            await reply_of(model, a_request(attempt=attempt))


async def test_a_failure_after_some_chunks_shows_those_and_no_reply() -> None:
    model = ScriptedModel([{"text": "one two three", "fail": {"kind": "stream_interrupted", "after_chunks": 2}}])
    seen: list[Any] = []
    with pytest.raises(ModelFailure) as failed:
        async for piece in model.respond(a_request(stream=True)):
            seen += [piece]
    assert seen == [TextDelta(text="one "), TextDelta(text="two ")]
    assert failed.value.stage == "body"
    with pytest.raises(ModelFailure):
        await reply_of(model, a_request(stream=False))


async def test_delays_are_slept_on_the_clock_that_was_given() -> None:
    clock = FixedClock()
    model = ScriptedModel([{"text": "one two", "delay": 30, "delta_delay": 5}], clock=clock)
    asked = asyncio.ensure_future(pieces_of(model, a_request(stream=True)))
    slept = []
    for seconds in (30, 5, 5):
        await clock.somebody_sleeps()
        slept.append(seconds)
        assert not asked.done()
        clock.advance(seconds)
    assert len(await asked) == 3
    assert clock.monotonic() == sum(slept) == 40


async def test_without_a_clock_the_loop_sleeps() -> None:
    assert (await reply_of(ScriptedModel([{"text": "hi", "delay": 0.001}]), a_request())).item.text == "hi"


async def test_a_function_is_given_the_request_and_gives_the_step() -> None:
    def answer(request: ModelRequest) -> object:
        return f"{request.answered}: {request.history[-1].parts[0].text}"  # type: ignore[union-attr]

    history = History([UserItem(parts=(Text("why"),))])
    assert (await reply_of(ScriptedModel(answer), a_request(3, history=history))).item.text == "3: why"


async def test_a_function_may_be_async_or_take_nothing() -> None:
    async def call() -> object:
        await asyncio.sleep(0)
        return CALL

    (made,) = (await reply_of(ScriptedModel(call), a_request(4))).item.calls
    assert made.call_id == "call_5_1"
    assert (await reply_of(ScriptedModel(lambda word="kept": word), a_request())).item.text == "kept"


@pytest.mark.parametrize("wrong", [{"txt": "hi"}, 7, None])
async def test_a_function_that_gives_no_step_is_a_failure_that_says_so(wrong: object) -> None:
    with pytest.raises(ModelFailure, match="scripted:inline: the function gave no step 1") as failed:
        await reply_of(ScriptedModel(lambda: wrong), a_request())
    assert failed.value.retryable is False


async def test_whatever_a_function_raises_becomes_a_failure_of_the_model() -> None:
    def broken() -> object:
        raise KeyError("price")

    with pytest.raises(ModelFailure, match="KeyError: 'price'"):
        await reply_of(ScriptedModel(broken), a_request())

    def fails_by_itself() -> object:
        raise ModelFailure("busy", kind="overloaded", stage="headers")

    with pytest.raises(ModelFailure, match="busy") as failed:
        await reply_of(ScriptedModel(fails_by_itself), a_request())
    assert failed.value.kind == "overloaded"


def test_a_function_of_two_arguments_is_refused_when_the_model_is_made() -> None:
    def answer(request: ModelRequest, history: History) -> str:
        return ""

    with pytest.raises(MalformedScript, match="'answer' takes request, history"):
        ScriptedModel(answer)  # type: ignore[arg-type]


async def test_asking_does_not_build_the_reply_again() -> None:
    model = ScriptedModel(["hello"])
    first: Reply = await reply_of(model, a_request())
    assert await reply_of(model, a_request()) is first
