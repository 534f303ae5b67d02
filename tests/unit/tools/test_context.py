"""The context of a call: read-only, and with a cancel signal for threads and coroutines alike."""

import asyncio
import threading
from typing import Any

import pytest

from wakeful.contracts.budgets import BudgetLeft
from wakeful.contracts.models import TokenUsage
from wakeful.tools.context import CancelSignal, RunContext
from wakeful.tools.threads import run_in_thread


def test_a_context_is_read_only() -> None:
    ctx = RunContext("deps", agent="support", context={"customer": "C1"})
    for name in ("deps", "context", "agent", "turn_id", "budget", "cancelled", "approval", "anything"):
        with pytest.raises(AttributeError):
            setattr(ctx, name, 1)
    assert (ctx.deps, ctx.agent, ctx.context, ctx.approval) == ("deps", "support", {"customer": "C1"}, None)


def test_budget_and_usage_are_what_they_are_when_a_tool_looks() -> None:
    left = iter([3, 2])
    ctx = RunContext(
        None,
        budget=lambda: BudgetLeft(model_calls=next(left), tool_calls=None, seconds=None),
        usage=TokenUsage(input_tokens=5),
    )
    assert [ctx.budget.model_calls, ctx.budget.model_calls] == [3, 2]
    assert ctx.usage.input_tokens == 5


def test_progress_goes_to_whoever_watches_and_to_nobody_otherwise() -> None:
    seen: list[Any] = []
    RunContext(None, progress=lambda *note: seen.append(note)).progress("half", done=1, total=2)
    RunContext(None).progress("unseen")
    assert seen == [("half", 1, 2, "")]


async def test_a_thread_that_waits_is_woken_by_a_cancel_from_the_loop() -> None:
    cancelled = CancelSignal()
    waiting = run_in_thread(cancelled.wait)
    assert not cancelled.is_set()
    cancelled.set()
    cancelled.set()
    assert await waiting is True
    assert cancelled.is_set()


async def test_a_coroutine_that_awaits_is_woken_by_a_cancel_from_a_thread() -> None:
    cancelled = CancelSignal()

    async def tool() -> str:
        await cancelled
        return "stopped"

    waiting = asyncio.ensure_future(tool())
    await asyncio.sleep(0)
    threading.Thread(target=cancelled.set).start()
    assert await waiting == "stopped"
    await cancelled  # set already: no wait at all


def test_waiting_with_a_timeout_says_whether_it_was_cancelled() -> None:
    cancelled = CancelSignal()
    assert cancelled.wait(0) is False
    assert cancelled.wait(0.001) is False
    cancelled.set()
    assert cancelled.wait() is True


async def test_waiting_on_the_loop_is_refused_instead_of_blocking_every_turn() -> None:
    cancelled = CancelSignal()
    with pytest.raises(RuntimeError, match=r"await ctx\.cancelled"):
        cancelled.wait(1)
    assert cancelled.wait(0) is False
