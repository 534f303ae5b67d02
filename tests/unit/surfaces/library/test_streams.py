"""Watching a run: the order of what is shown, and what leaving early means."""

import asyncio
from typing import Any

import pytest

from kit.runs.engine_runs import calls, check_ends, facts_of
from wakeful import Agent, RunContext, RunResult, run, run_sync, stream, tool
from wakeful.ports import ModelRequest
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted
from wakeful.views.run_stream_events import StatusEvent


@tool(effect="pure")
async def slow(ctx: RunContext[None]) -> str:
    ctx.progress("begun", done=1, total=2)
    await asyncio.sleep(0.005)
    ctx.progress("nearly", done=2, total=2)
    return "slow"


@tool(effect="pure")
async def quick() -> str:
    return "quick"


async def shown(script: list[Any], **options: Any) -> tuple[list[Any], RunResult[Any]]:
    agent = Agent("any", scripted(script, leftover="ignore"), tools=[slow, quick])
    async with stream(agent, "go", **options) as events:
        seen = [event async for event in events]
        return seen, await events.result()


def names(events: list[Any]) -> list[str]:
    return [
        f"{event.type}({getattr(event, 'status', None) or getattr(event, 'phase', None) or ''})" for event in events
    ]


@pytest.mark.spec("CTL-TRACE-01", "CTL-TRACE-02", "CTL-TRACE-03", "CTL-TRACE-05")
async def test_a_step_shows_words_usage_calls_progress_and_results_in_this_order() -> None:
    used = {"input_tokens": 3, "output_tokens": 2}
    seen, result = await shown([{"text": "I will look.", "usage": used, **calls("slow", "quick")}, "Done now."])
    order = names(seen)
    assert order[0] == "status(starting)" and order[1] == "step(started)"
    for step in (1, 2):
        of_step = [event for event in seen if getattr(event, "step", None) == step]
        assert names(of_step)[0] == "step(started)" and names(of_step)[-1] == "step(completed)"
        assert sum(event.type == "step" for event in of_step) == 2
    first = [event.type for event in seen if getattr(event, "step", None) == 1]
    rank = {"step": 0, "text": 1, "usage": 2, "tool_call": 3, "mcp_progress": 4, "tool_result": 5}
    inner = [rank[kind] for kind in first[1:-1]]
    assert first.index("usage") < first.index("tool_call") and inner[: first.count("text")] == [1] * first.count("text")
    for call_id in ("call_1_1", "call_1_2"):
        of_call = [rank[event.type] for event in seen if getattr(event, "tool_call_id", None) == call_id]
        assert of_call == sorted(of_call) and of_call[0] == 3 and of_call[-1] == 5
    assert order[-1] == "status(completed)"
    assert sum(isinstance(event, StatusEvent) and event.is_terminal for event in seen) == 1
    words = "".join(event.text for event in seen if event.type == "text" and event.step == 2)
    assert words == result.output == "Done now."


@pytest.mark.spec("CTL-TRACE-04")
async def test_results_are_shown_in_the_models_order_though_progress_comes_early() -> None:
    seen, _ = await shown([calls("slow", "quick", "slow"), "done"])
    results = [event.tool_call_id for event in seen if event.type == "tool_result"]
    assert results == ["call_1_1", "call_1_2", "call_1_3"]
    kinds = [event.type for event in seen]
    assert kinds.index("mcp_progress") < kinds.index("tool_result")


@pytest.mark.spec("LOOP-STEP-18")
async def test_every_call_is_shown_to_begin_and_to_end_once_also_when_it_was_refused() -> None:
    seen, _ = await shown([calls("nowhere", ("quick", "no json"), "quick"), "done"])
    for kind in ("tool_call", "tool_result"):
        assert [event.tool_call_id for event in seen if event.type == kind] == ["call_1_1", "call_1_2", "call_1_3"]
    assert [event.success for event in seen if event.type == "tool_result"] == [False, False, True]


async def test_words_of_an_attempt_that_was_lost_are_taken_back() -> None:
    lost = {"kind": "stream_interrupted", "after_chunks": 2, "retry_after": 0.001}
    seen, result = await shown([{"text": "one two three", "fail": lost}])
    errors = [event for event in seen if event.type == "error"]
    assert [(event.step, event.attempt, event.retryable) for event in errors] == [(1, 1, True)]
    first = "".join(event.text for event in seen if event.type == "text" and event.attempt == 1)
    second = "".join(event.text for event in seen if event.type == "text" and event.attempt == 2)
    assert first == "one two " and second == "one two three" == result.output


async def test_a_finished_run_is_shown_from_the_log() -> None:
    store = MemoryStore()
    first, _ = await shown([calls("quick"), "done"], store=store, key="k")
    again, result = await shown([calls("quick"), "done"], store=store, key="k")
    assert result.output == "done"
    words = [event for event in names(first) if not event.startswith("text")]
    assert [event for event in names(again) if not event.startswith("text")] == words


async def test_text_gives_only_the_words() -> None:
    async with stream(Agent("any", scripted(["one two three"])), "go") as events:
        assert "".join([piece async for piece in events.text()]) == "one two three"


# --- leaving ---------------------------------------------------------------------------------------------------------


class Waiting:
    """An agent that is in the middle of something until it is told to go on."""

    def __init__(self) -> None:
        self.asked, self.go_on = asyncio.Event(), asyncio.Event()
        self.agent: Agent[None, str] = Agent("any", scripted(self._answer))

    async def _answer(self, request: ModelRequest) -> str:
        self.asked.set()
        await self.go_on.wait()
        return "done"


async def test_leaving_early_cancels_the_run() -> None:
    store, waiting = MemoryStore(), Waiting()
    async with stream(waiting.agent, "go", store=store, key="k") as events:
        await waiting.asked.wait()
    assert (await events.result()).status == "cancelled"
    row = await store.turn_of_key("k")
    assert row is not None and row.state == "cancelled"
    check_ends(await facts_of(store, row.turn_id))


async def test_an_exception_on_the_way_out_leaves_the_run_to_be_resumed() -> None:
    store, waiting = MemoryStore(), Waiting()
    with pytest.raises(ZeroDivisionError):
        async with stream(waiting.agent, "go", store=store, key="k"):
            await waiting.asked.wait()
            raise ZeroDivisionError
    row = await store.turn_of_key("k")
    assert row is not None and row.state == "running"
    waiting.go_on.set()
    assert (await run(waiting.agent, "go", store=store, key="k")).output == "done"


async def test_a_detached_run_goes_on() -> None:
    store, waiting = MemoryStore(), Waiting()
    async with stream(waiting.agent, "go", store=store, key="k") as events:
        await waiting.asked.wait()
        events.detach()
    waiting.go_on.set()
    assert (await events.result()).output == "done"


async def test_a_run_can_be_cancelled_while_it_is_watched() -> None:
    waiting = Waiting()
    async with stream(waiting.agent, "go") as events:
        await waiting.asked.wait()
        await events.cancel()
        seen = [event async for event in events]
        assert (await events.result()).status == "cancelled"
    assert names(seen)[-1] == "status(cancelled)"


async def test_run_sync_works_inside_a_running_loop() -> None:
    result = run_sync(Agent("any", scripted([calls("quick"), "done"]), tools=[quick]), "go")
    assert result.output == "done"


def test_run_sync_works_without_one_and_again() -> None:
    for _ in range(2):
        assert run_sync(Agent("any", scripted(["done"])), "go").output == "done"
