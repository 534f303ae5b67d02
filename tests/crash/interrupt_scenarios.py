"""Turns that are paused, spoken to and stopped from outside, to be killed at every moment of it.

Whoever steers them is code of the same program: a model that pauses its own turn is killed like the turn. What was
acknowledged to it is written to a file outside the store, so that the end can be held against that.
"""

import asyncio
from typing import Any

from crash.scenarios import HANGS, TOOLS, agent, calls, check
from wakeful import Agent, RunContext, cancel, interject, pause, resume, run, tool
from wakeful.contracts.events import SubagentFailed, SubagentStarted, TurnInterjected
from wakeful.ports import ModelRequest, Store
from wakeful.providers.scripted import ScriptedModel
from wakeful.testing import Ledger


async def paused(store: Store, ledger: Ledger) -> None:
    """It rests after what was under way, and goes on where it was when it is resumed."""

    async def rest(request: ModelRequest) -> None:
        if request.answered == 1:
            await pause(store, request.turn_id)

    support = agent(ledger, [calls("refund"), calls("send_letter", "look_up"), "done"], on_ask=rest)
    result = await run(support, "go", deps=ledger, store=store, key="k")
    while result.stop_reason == "paused":
        result = await resume(store, result.turn_id, [support], deps=ledger)
    assert result.output == "done"
    await check(store, ledger, result)


async def spoken_to(store: Store, ledger: Ledger) -> None:
    """Everything that was acknowledged is in the conversation when the turn is over."""

    async def speak(request: ModelRequest) -> None:
        acknowledged = ledger.path.with_name(request.turn_id)
        if request.answered == 1 and not acknowledged.exists():
            acknowledged.write_text(await interject(store, request.turn_id, "Also B."))

    support = agent(ledger, [calls("refund"), calls("send_letter"), "done"], on_ask=speak)
    result = await run(support, "go", deps=ledger, store=store, key="k")
    assert result.output == "done"
    facts = [entry.fact.event for entry in result.facts()]
    spoken = [event for event in facts if isinstance(event, TurnInterjected)]
    acknowledged = ledger.path.with_name(result.turn_id)
    told = acknowledged.read_text().split() if acknowledged.exists() else []
    assert set(told) <= {event.message_id for event in spoken}, "acknowledged and lost"
    heard = [item.text for item in result.history() if item.role == "user"]
    assert heard == ["go", *("Also B." for _ in spoken)], "said and not heard"
    await check(store, ledger, result)


async def stopped_tree(store: Store, ledger: Ledger) -> None:
    """Children of a turn that is stopped end before it, each with its own end; nothing of them runs twice."""

    @tool(effect="pure", interrupt_behavior="block")
    async def write_out(ctx: RunContext[Ledger]) -> str:
        ctx.deps.record("write_out", ctx.idempotency_key)
        await asyncio.sleep(0.005)
        ctx.deps.here()
        return "written"

    async def answer(request: ModelRequest) -> Any:
        ledger.here()
        if request.depth == 0:
            titles = ("one", "two")
            return calls(*(("run_subtask", {"title": title, "instructions": title}) for title in titles))
        task = next(iter(request.history)).text
        if request.answered == 0:
            return calls("refund", "write_out") if "one" in task else calls("send_letter")
        if "one" in task:
            await cancel(store, request.turn_id)
        await asyncio.sleep(HANGS)
        return "never said"

    support = Agent("support", ScriptedModel(answer), tools=[*TOOLS, write_out], deps_type=Ledger, subtasks=True)
    result = await run(support, "go", deps=ledger, store=store, key="k")
    assert result.status == "cancelled"
    facts = list(result.facts())
    begun = {entry.fact.event.level_id for entry in facts if isinstance(entry.fact.event, SubagentStarted)}
    ended = [entry.fact.event.level_id for entry in facts if isinstance(entry.fact.event, SubagentFailed)]
    assert sorted(ended) == sorted(begun), "every child has one end, and before the turn's"
    await check(store, ledger, result)


ALL = [paused, spoken_to, stopped_tree]
