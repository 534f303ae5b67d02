"""Runs of pure calls: quick ones, slow ones, between calls with effects, and one that kills its process.

What is paid for again is counted: a reply is lost only with the process that had it and had not written it yet.
"""

import asyncio
from typing import Any

from crash.scenarios import TOOLS, Asked, calls, check, model
from wakeful import Agent, RunContext, RunResult, run, tool
from wakeful.contracts.events import ModelRequested, ToolStarted
from wakeful.ports import Store
from wakeful.testing import Ledger
from wakeful.testing.crash_switch import kill_this_process


@tool(effect="pure")
async def glance(ctx: RunContext[Ledger]) -> str:
    """Over without ever waiting."""
    ctx.deps.here()
    ctx.deps.record("glance", ctx.idempotency_key)
    ctx.deps.here()
    return "seen"


@tool(effect="pure")
async def stare(ctx: RunContext[Ledger]) -> str:
    """Never over soon."""
    ctx.deps.record("stare", ctx.idempotency_key)
    await asyncio.sleep(0.03)
    ctx.deps.here()
    return "seen"


def watching(ledger: Ledger, steps: list[Any]) -> Agent[Ledger, Any]:
    return Agent("watching", model(ledger, steps), tools=[*TOOLS, glance, stare], deps_type=Ledger)


async def checked(store: Store, ledger: Ledger, result: RunResult[Any]) -> None:
    """As every run, and no round was asked for more than twice: the process dies once."""
    assert result.output == "done"
    await check(store, ledger, result)
    asked = Asked(ledger).rounds(result.turn_id)
    again = {number: times for number, times in asked.items() if times > 1}
    assert sum(times - 1 for times in again.values()) <= 1, f"rounds asked for again: {again}"


async def quick(store: Store, ledger: Ledger) -> None:
    steps = [calls("glance"), calls("glance"), calls("glance"), "done"]
    result = await run(watching(ledger, steps), "look", deps=ledger, store=store, key="k")
    await checked(store, ledger, result)


async def slow(store: Store, ledger: Ledger) -> None:
    steps = [calls("stare"), calls("stare"), "done"]
    result = await run(watching(ledger, steps), "look", deps=ledger, store=store, key="k")
    await checked(store, ledger, result)


async def between_effects(store: Store, ledger: Ledger) -> None:
    """Pure calls between calls with effects."""
    steps = [calls("glance"), calls("shred"), calls("glance"), calls("refund"), calls("look_up"), "done"]
    result = await run(watching(ledger, steps), "look", deps=ledger, store=store, key="k")
    await checked(store, ledger, result)


async def stormy(store: Store, ledger: Ledger) -> None:
    """Killed as often as it may be: each process may lose a reply."""
    steps = [calls("glance"), calls("shred"), calls("stare"), calls("glance"), "done"]
    result = await run(watching(ledger, steps), "look", deps=ledger, store=store, key="k")
    assert result.output == "done"
    await check(store, ledger, result)


ALL = [quick, slow, between_effects]


async def deadly(store: Store, ledger: Ledger) -> None:
    """A pure call that kills its process each time it runs, until it is not run any more."""

    @tool(effect="pure")
    async def fatal(ctx: RunContext[Ledger]) -> str:
        ctx.deps.record("fatal", ctx.idempotency_key)
        kill_this_process()
        return "never said"

    agent = Agent("deadly", model(ledger, [calls("fatal"), "done"]), tools=[fatal], deps_type=Ledger)
    result = await run(agent, "go", deps=ledger, store=store, key="k")
    assert result.output == "done"
    await check(store, ledger, result)
    facts = [entry.fact.event for entry in result.facts()]
    assert sum(isinstance(event, ModelRequested) for event in facts) == 2, "asked, and for the answer"
    assert sum(isinstance(event, ToolStarted) for event in facts) == 1
