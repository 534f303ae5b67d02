"""A provider that is away, through the doors that a program has: a run waits, rests and goes on, and pays nothing."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.wires.loopback import nobody_listens
from wakeful import (
    Agent,
    Budget,
    NotCompleted,
    Retry,
    RunContext,
    RunResult,
    open_store,
    resume,
    resume_all,
    run,
    stream,
    tool,
)
from wakeful import cancel as cancel_turn
from wakeful import pause as pause_turn
from wakeful.contracts.events import (
    ModelFailed,
    ModelRequested,
    ModelWaitEnded,
    ModelWaiting,
    TurnResumed,
    TurnSuspended,
)
from wakeful.events import WaitingEvent
from wakeful.providers import OpenAIChat
from wakeful.providers.wire.http import Timeouts
from wakeful.testing import ProviderServer

MODEL = "openai:gpt-5.5"
AT_ONCE = Retry(patience=0)


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer(["There you are."]) as served:
        yield served


@pytest.fixture
def db(tmp_path: Path) -> str:
    return str(tmp_path / "runs.db")


def events(result: RunResult[Any], kind: type[Any]) -> list[Any]:
    return [entry.fact.event for entry in result.facts() if isinstance(entry.fact.event, kind)]


async def identical(db: str, turn_id: str) -> bool:
    async with open_store(db) as store:
        return (await store.replay(turn_id)).identical


@pytest.mark.parametrize("weather", ["503", "429", "529", "reset", "cut", "429 after=2", "429 reset=2"])
async def test_a_run_waits_for_a_provider_that_is_away_and_then_answers(
    server: ProviderServer, db: str, weather: str
) -> None:
    server.weather.next(*[weather] * 5)
    clerk = Agent("clerk", server.model(MODEL))
    result = await run(clerk, "Hello.", store=db, key="k")
    assert (result.status, result.output, result.waiting_for) == ("completed", "There you are.", None)
    waits = events(result, ModelWaiting)
    assert waits and [wait.wait for wait in waits] == list(range(1, len(waits) + 1))
    assert [event.reason for event in events(result, TurnSuspended)] == ["provider"] * len(waits)
    assert [event.cause for event in events(result, TurnResumed)] == ["provider"] * len(waits)
    free = sum(event.status is not None for event in events(result, ModelFailed))
    assert result.model_calls == len(events(result, ModelRequested)) - free
    if "=2" in weather:
        assert len(waits) == 5, "a provider that names a time is not asked before"
    assert await identical(db, result.turn_id)


async def test_a_payment_before_an_outage_is_made_once_and_no_budget_pays_for_the_wait(db: str) -> None:
    payments: list[str] = []

    @tool(effect="keyed")
    def refund(ctx: RunContext[None], order: str) -> str:
        """Refund an order."""
        payments.append(ctx.idempotency_key)
        server.weather.next(*["503"] * 5)
        return f"{order} is refunded"

    script = [{"calls": [{"name": "refund", "arguments": {"order": "A17"}}]}, "You have your money back."]
    with ProviderServer(script) as server:
        clerk = Agent("clerk", server.model(MODEL), tools=[refund])
        result = await run(clerk, "Refund A17.", store=db, key="ticket-981", budget=Budget(model_calls=2, usd=10))
        again = await run(clerk, "Refund A17.", store=db, key="ticket-981", budget=Budget(model_calls=2, usd=10))
    assert (result.output, result.model_calls) == ("You have your money back.", 2)
    assert again.output == result.output and len(payments) == 1
    assert len(events(result, ModelFailed)) == 5
    assert result.cost_usd == pytest.approx(float(server.spent))
    assert await identical(db, result.turn_id)


async def test_after_its_patience_a_run_returns_waiting_and_the_same_line_goes_on(
    server: ProviderServer, db: str
) -> None:
    clerk = Agent("clerk", server.model(MODEL), retry=AT_ONCE)
    server.weather.always("503")
    first = await run(clerk, "Hello.", store=db, key="k")
    assert (first.status, first.stop_reason, first.waiting_for) == ("waiting", "provider", "provider")
    assert first.next_try is not None and first.message.startswith("openai does not answer: ")
    assert not first.retryable and first.model_calls == 0
    with pytest.raises(NotCompleted) as told:
        first.output  # noqa: B018
    assert f"wakeful resume {first.turn_id} --store {db}" in told.value.hint
    document = first.to_dict()
    assert (document["status"], document["waiting_for"]) == ("waiting", "provider")
    assert RunResult.from_dict(document).next_try == first.next_try
    early = await run(clerk, "Hello.", store=db, key="k")
    assert early.status == "waiting", "it is not asked before its time"
    server.weather.clear()
    result = await run(clerk, "Hello.", store=db, key="k", retry=Retry(patience=60))
    assert (result.turn_id, result.output) == (first.turn_id, "There you are.")
    assert len(server.requests) == 4
    assert await identical(db, result.turn_id)


@pytest.mark.parametrize("how", ["resume", "resume_all"])
async def test_resume_goes_on_with_a_turn_that_waits(server: ProviderServer, db: str, how: str) -> None:
    clerk = Agent("clerk", server.model(MODEL), retry=AT_ONCE)
    server.weather.next(*["429 after=3600"])
    first = await run(clerk, "Hello.", store=db)
    assert first.status == "waiting"
    if how == "resume":
        result = await resume(db, first.turn_id, [clerk])
        assert result.output == "There you are.", "a person need not wait for an hour"
    else:
        (result,) = await resume_all(db, [clerk])
        assert (result.status, result.next_try) == ("waiting", first.next_try)
    assert await identical(db, result.turn_id)


async def test_without_a_store_a_run_fails_and_may_be_tried_again(server: ProviderServer) -> None:
    server.weather.always("503")
    result = await run(Agent("clerk", server.model(MODEL)), "Hello.", retry=AT_ONCE)
    assert (result.status, result.stop_reason, result.retryable) == ("failed", "provider_error", True)
    assert 'add store="runs.db"' in result.message
    with pytest.raises(NotCompleted, match="did not answer"):
        result.output  # noqa: B018


@pytest.mark.parametrize("weather", ["401", "quota", "404"])
async def test_what_somebody_has_to_mend_is_not_waited_for_and_goes_on_once_it_is(
    server: ProviderServer, db: str, weather: str
) -> None:
    server.weather.next(weather)
    clerk = Agent("clerk", server.model(MODEL))
    first = await run(clerk, "Hello.", store=db, key="k")
    assert (first.status, first.waiting_for, first.model_calls) == ("waiting", "provider", 0)
    assert "lets nobody in" in first.message and len(server.requests) == 1, "asked once"
    result = await run(clerk, "Hello.", store=db, key="k")
    assert result.output == "There you are." and result.turn_id == first.turn_id
    assert await identical(db, result.turn_id)


async def test_a_connection_that_is_refused_on_this_machine_is_not_waited_for(db: str) -> None:
    with nobody_listens() as port:
        down = OpenAIChat("m", base_url=f"http://127.0.0.1:{port}/v1", api_key="k")
        first = await run(Agent("clerk", down), "Hello.", store=db, key="k")
    assert (first.status, first.waiting_for) == ("waiting", "provider")
    with ProviderServer(["There you are."]) as server:
        up = server.model(MODEL)
        result = await run(Agent("clerk", up), "Hello.", store=db, key="k")
    assert result.output == "There you are."


async def test_a_provider_that_hangs_is_left_after_its_time_and_asked_again(db: str) -> None:
    with ProviderServer(["There you are."]) as server:
        server.weather.next("hang", "hang", "hang")
        model = server.model(MODEL, timeouts=Timeouts(first_byte=0.5))
        result = await run(Agent("clerk", model), "Hello.", store=db, budget=Budget(usd=20))
    assert result.output == "There you are."
    assert {event.failure_kind for event in events(result, ModelFailed)} == {"timeout"}
    assert await identical(db, result.turn_id)


async def test_a_fallback_answers_while_the_first_model_asks_for_an_hour(server: ProviderServer, db: str) -> None:
    server.weather.next("429 after=3600")
    clerk = Agent("clerk", server.model(MODEL), fallbacks=[server.model("anthropic:claude-haiku-4-5")])
    result = await run(clerk, "Hello.", store=db)
    assert result.output == "There you are." and events(result, ModelWaiting) == []


async def test_a_wait_is_shown_on_the_stream_once_it_takes_two_seconds(server: ProviderServer, db: str) -> None:
    server.weather.next("429 after=2")
    async with stream(Agent("clerk", server.model(MODEL)), "Hello.", store=db) as s:
        shown = [event async for event in s if isinstance(event, WaitingEvent)]
        result = await s.result()
    assert result.completed
    assert [(event.provider, event.failure_kind) for event in shown] == [("openai", "rate_limited")]
    assert 0 < shown[0].seconds <= 2 and shown[0].next_try


async def _until_it_waits(db: str) -> str:
    while True:
        if Path(db).exists():
            async with open_store(db) as store:
                for turn in await store.turns():
                    if turn.state == "suspended":
                        return turn.turn_id
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("how", ["cancel", "pause"])
async def test_a_cancel_and_a_pause_are_heard_during_a_wait(server: ProviderServer, db: str, how: str) -> None:
    server.weather.next("429 after=600")
    clerk = Agent("clerk", server.model(MODEL), retry=Retry(patience=3600))
    running = asyncio.create_task(run(clerk, "Hello.", store=db, key="k"))
    turn_id = await _until_it_waits(db)
    await (cancel_turn(db, turn_id) if how == "cancel" else pause_turn(db, turn_id))
    result = await running
    if how == "cancel":
        assert (result.status, result.stop_reason) == ("cancelled", "cancelled")
    else:
        assert (result.status, result.waiting_for) == ("waiting", "pause")
        result = await resume(db, turn_id, [clerk])
        assert result.output == "There you are."
    assert await identical(db, turn_id)


JOB = """
import sys
from wakeful import Agent, run_sync
from wakeful.providers import OpenAIChat
model = OpenAIChat("gpt-5.5", base_url=sys.argv[1], api_key="k")
print("begun", flush=True)
print(run_sync(Agent("clerk", model), "Hello.", store=sys.argv[2], key="job-1").output, flush=True)
"""


async def test_a_kill_during_the_wait_changes_nothing(server: ProviderServer, db: str, tmp_path: Path) -> None:
    server.weather.next("429 after=2")
    line = [sys.executable, "-c", JOB, server.base_url("openai"), db]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
    turn_id = await _until_it_waits(db)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    again = await asyncio.to_thread(subprocess.run, line, capture_output=True, text=True)
    assert again.stdout.splitlines() == ["begun", "There you are."], again.stderr
    assert len(server.requests) == 2
    assert await identical(db, turn_id)


async def test_children_go_on_beside_one_that_waits(db: str) -> None:
    @tool(effect="pure")
    async def slow() -> str:
        """Take a while."""
        await asyncio.sleep(2.5)
        return "done"

    with (
        ProviderServer(["one is done"]) as away,
        ProviderServer([{"calls": [{"name": "slow"}]}, "two is done"]) as fine,
    ):
        away.weather.next("503", "503", "503")
        one = Agent("one", away.model(MODEL)).as_tool(description="Does one.")
        two = Agent("two", fine.model(MODEL), tools=[slow]).as_tool(description="Does two.")
        calls = {
            "calls": [{"name": "one", "arguments": {"input": "go"}}, {"name": "two", "arguments": {"input": "go"}}]
        }
        with ProviderServer([calls, "all done"]) as boss:
            result = await run(Agent("boss", boss.model(MODEL), tools=[one, two]), "Go.", store=db)
    assert result.output == "all done" and not any(call.error for call in result.calls())
    assert len(events(result, ModelWaiting)) == len(events(result, ModelWaitEnded)) == 1
    assert events(result, TurnSuspended) == [], "there was something to do all the time"
    assert await identical(db, result.turn_id)


async def test_a_later_message_takes_up_the_older_turn_first_and_shares_its_patience(
    server: ProviderServer, db: str
) -> None:
    clerk = Agent("clerk", server.model(MODEL), retry=AT_ONCE)
    server.weather.next("429 after=1.5")
    first = await run(clerk, "First.", store=db, thread="t", key="1")
    second = await run(clerk, "Second.", store=db, thread="t", key="2")
    assert (second.status, second.waiting_for, second.next_try) == ("waiting", "provider", first.next_try)
    assert first.turn_id in second.message and len(server.requests) == 1
    began = time.monotonic()
    second = await run(clerk, "Second.", store=db, thread="t", key="2", retry=Retry(patience=60))
    assert second.output == "There you are." and time.monotonic() - began < 60
    first = await run(clerk, "First.", store=db, thread="t", key="1")
    assert first.completed
    prompts = [str(request.body)[:4000].count("Second.") for request in server.requests]
    assert prompts == [0, 0, 1], "the older turn was answered first"
