"""Trees of work to be killed anywhere: children side by side and below each other, structured ones, one that waits for
a person, several jobs of one call, and a planner before it all.

What a model was asked stands in a file outside the store, with its level and its round: every branch goes on where it
was, and what was answered is not paid for again.
"""

import json
from collections import Counter
from decimal import Decimal
from typing import Any

from crash.scenarios import _check_fold, look_up, refund, send_letter
from wakeful import Agent, Approval, Approve, RunContext, RunResult, run, tool
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.events import (
    ModelCompleted,
    ModelFailed,
    ModelRequested,
    SubagentCompleted,
    SubagentFailed,
    SubagentStarted,
    Terminal,
    ToolFailed,
    ToolResult,
)
from wakeful.engine.state_loader import fold
from wakeful.ports import ModelRequest, Store
from wakeful.providers.prices import IN_CODE, ListedPrice, Price
from wakeful.providers.scripted import ScriptedModel
from wakeful.service.commands.approvals import approvals, decide
from wakeful.service.queries.replay import replay_turn
from wakeful.testing import Ledger

SCHEMA = {"type": "object", "properties": {"cents": {"type": "integer"}}, "required": ["cents"]}


class Asked:
    """What the models of all levels were asked, one line a request: which level, and its how-manieth round."""

    def __init__(self, ledger: Ledger) -> None:
        self._path = ledger.path.with_name("asked")

    def note(self, request: ModelRequest) -> None:
        with self._path.open("ab", buffering=0) as file:
            file.write(json.dumps([request.level, request.answered]).encode() + b"\n")

    def rounds(self) -> Counter[tuple[str | None, int]]:
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        return Counter((level, answered) for level, answered in map(json.loads, lines))


class Model(ScriptedModel):
    """Answers by the task of the level that asks; each answer is noted in the world, has a price and is a place to
    die in."""

    price = ListedPrice(Price(Decimal(1), Decimal(10)), IN_CODE)

    def __init__(self, ledger: Ledger, script: dict[str, Any]) -> None:
        asked = Asked(ledger)

        def answer(request: ModelRequest) -> Any:
            asked.note(request)
            ledger.here()
            task = request.level if request.level == "~plan" else next(iter(request.history)).text
            steps = script[task]
            step = steps[min(request.answered, len(steps) - 1)]
            heard = [item.text for item in request.history if item.role == "tool"]
            given = step(heard) if callable(step) else step
            said = {"text": given} if isinstance(given, str) else given
            return {**said, "usage": {"input_tokens": 100, "output_tokens": 10}}

        super().__init__(answer)

    def most_output(self, settings: Any) -> int:
        return 50


def calls(*named: Any) -> dict[str, Any]:
    asked = [(each, {}) if isinstance(each, str) else each for each in named]
    return {"calls": [{"name": name, "arguments": arguments} for name, arguments in asked]}


def subtask(task: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return "run_subtask", {"title": task, "instructions": task, **more}


def worker(ledger: Ledger, script: dict[str, Any], **options: Any) -> Agent[Ledger, str]:
    tools: list[Any] = [look_up, refund, send_letter, pay_approved]
    return Agent("boss", Model(ledger, script), tools=tools, deps_type=Ledger, subtasks=True, **options)


@tool(effect="keyed", approval=True)
def pay_approved(ctx: RunContext[Ledger]) -> str:
    ctx.deps.once("pay_approved", ctx.idempotency_key)
    ctx.deps.here()
    return "paid"


# --- what must be so at the end --------------------------------------------------------------------------------------


async def check(store: Store, ledger: Ledger, result: RunResult[Any]) -> None:
    """The log, the world and the models' own list, as somebody finds them who comes when the run is over."""
    assert await store.verify() == [], "the chain is broken"
    (row,) = await store.turns()
    facts = await store.read(row.agent_id, turn_id=row.turn_id)
    events = [entry.fact.event for entry in facts]
    assert sum(isinstance(event, Terminal) for event in events) == 1 and isinstance(events[-1], Terminal)
    started = Counter(event.level_id for event in events if isinstance(event, SubagentStarted))
    ended = Counter(event.level_id for event in events if isinstance(event, SubagentCompleted | SubagentFailed))
    assert started == ended and set(started.values()) <= {1}, "a child begins once and ends once"
    over = Counter(entry.fact.call_id for entry in facts if isinstance(entry.fact.event, ToolResult | ToolFailed))
    assert set(over.values()) == {1}, "a call ends once"
    _check_models(facts, Asked(ledger).rounds())
    await _check_fold(store, row)
    recorded = await store.read(row.agent_id, after=row.window_from - 1, thread_id=row.thread_id)
    ledger_of = (await fold(store, row, recorded)).state.ledger
    refused = sum(isinstance(event, ModelFailed) and event.status is not None for event in events)
    assert ledger_of.model_calls == sum(isinstance(event, ModelRequested) for event in events) - refused
    assert ledger_of.subtasks == sum(started.values())
    assert not ledger_of.held_usd and not ledger_of.held_input, "something is held for ever"
    replayed = await replay_turn(store, row)
    assert replayed.identical, f"a decision comes out differently: {replayed.divergence}"


def _check_models(facts: list[Any], asked: Counter[tuple[str | None, int]]) -> None:
    """Every request had its intent first, and a round that was answered is never asked for again."""
    intents: Counter[tuple[str | None, int]] = Counter()
    answered: Counter[str | None] = Counter()
    for entry in facts:
        level = entry.fact.level
        if isinstance(entry.fact.event, ModelRequested):
            intents[level, answered[level]] += 1
        elif isinstance(entry.fact.event, ModelCompleted):
            answered[level] += 1
    for place, times in asked.items():
        assert times <= intents[place], f"{place}: {times} requests and {intents[place]} intents"


# --- the runs --------------------------------------------------------------------------------------------------------


def _sum_up(heard: list[str]) -> str:
    return " | ".join(heard)


async def fan_out(store: Store, ledger: Ledger) -> None:
    """Children side by side, one below another, one that has to fit a schema, and calls of the root beside them."""
    script = {
        "go": [
            calls(subtask("refund it"), subtask("count", output_schema=SCHEMA), "look_up", subtask("deeper")),
            _sum_up,
        ],
        "refund it": [calls("refund", ("scratch_write", {"key": "done", "value": True})), "refunded it"],
        "count": [
            calls("look_up"),
            "4200",
            calls(("finish_subtask", {"cents": "x"})),
            calls(("finish_subtask", {"cents": 4200}), "refund"),
        ],
        "deeper": [calls(subtask("deepest"), "send_letter"), "came back"],
        "deepest": [calls("refund"), "at the bottom"],
    }
    result = await run(worker(ledger, script), "go", deps=ledger, store=store, key="k", budget=None)
    assert result.output == 'refunded it | {"cents":4200} | 4200 | came back'
    assert Counter(entry.tool for entry in set(ledger.entries()))["refund"] == 3
    await check(store, ledger, result)


async def jobs(store: Store, ledger: Ledger) -> None:
    """Several jobs of one call, one of which fails."""
    listed = [{"task": "one"}, {"task": "two", "output_schema": SCHEMA}, {"task": "three"}]
    script = {
        "go": [calls(("spawn_parallel", {"jobs": listed}), "refund"), lambda heard: _entries(heard[0])],
        "one": [calls("refund"), "first"],
        "two": [calls("look_up", "refund"), calls(("finish_subtask", {"cents": 7}))],
        "three": [calls("send_letter"), {"fail": [{"kind": "content_filtered", "message": "no", "status": 400}]}],
    }
    options: dict[str, Any] = {"allow_parallel_subagents": True}
    result = await run(worker(ledger, script, **options), "go", deps=ledger, store=store, key="k")
    assert result.output == "0 success first; 1 success {'cents': 7}; 2 error None", result.output
    await check(store, ledger, result)


def _entries(text: str) -> str:
    return "; ".join(f"{each['index']} {each['status']} {each['output']}" for each in json.loads(text))


async def child_that_waits(store: Store, ledger: Ledger) -> None:
    """One branch waits for a person, its sibling goes on; the turn rests when nothing else is left."""
    script = {
        "go": [calls(subtask("pay"), subtask("write")), _sum_up],
        "pay": [calls("pay_approved", "refund"), "it is paid"],
        "write": [calls("send_letter"), calls("refund"), "it is written"],
    }
    for _ in range(200):
        result = await run(worker(ledger, script), "go", deps=ledger, store=store, key="k")
        if result.status == "completed":
            break
        for record in await approvals(new_engine(store)):
            assert isinstance(record, Approval)
            await decide(new_engine(store), record.id, Approve(), by="ada")
    assert result.output == "it is paid | it is written"
    assert Counter(entry.tool for entry in set(ledger.entries()))["pay_approved"] == 1
    await check(store, ledger, result)


async def planned(store: Store, ledger: Ledger) -> None:
    """A planner that looks things up first; then the work, with a child."""
    script = {
        "~plan": [calls("look_up"), "1. Refund it.\n2. Write."],
        "go": [calls("refund", subtask("write")), _sum_up],
        "write": [calls("send_letter"), "it is written"],
    }
    result = await run(worker(ledger, script, planning_enabled=True), "go", deps=ledger, store=store, key="k")
    assert result.output == "refunded | it is written"
    await check(store, ledger, result)


@tool(effect="keyed")
def forgetful(ctx: RunContext[Ledger]) -> str:
    """Says that a repeat does nothing, and does it again."""
    ctx.deps.record("forgetful", ctx.idempotency_key)
    ctx.deps.here()
    return "done"


async def child_that_lies(store: Store, ledger: Ledger) -> None:
    """The inversion: an effect of a child that a repeat does a second time."""
    script = {"go": [calls(subtask("lie")), _sum_up], "lie": [calls("forgetful"), "lied"]}
    agent = Agent("boss", Model(ledger, script), tools=[forgetful], deps_type=Ledger, subtasks=True)
    result = await run(agent, "go", deps=ledger, store=store, key="k")
    await check(store, ledger, result)


ALL = [fan_out, jobs, child_that_waits, planned]
