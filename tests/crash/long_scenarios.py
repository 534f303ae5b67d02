"""Runs that plan first and whose conversation is folded, to be killed: each phase is paid for like anything else.

The model notes what it was asked, with the level and the round, in a file outside the store. At the end the log is held
against that file: what had been answered is never asked for again, in no phase.
"""

from collections import Counter
from typing import Any

from crash.scenarios import calls, check
from wakeful import Agent, Budget, RunContext, RunResult, run, tool
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.events import (
    CompactionCompleted,
    CompactionFailed,
    CompactionStarted,
    ModelCompleted,
    ModelRequested,
    PlanningCompleted,
    PlanningStarted,
    ThreadCheckpointed,
)
from wakeful.ports import ModelRequest, Store
from wakeful.providers.scripted import ScriptedModel
from wakeful.testing import Ledger

WINDOW = 700
PAGE = "lorem ipsum " * 40


@tool(effect="pure")
def read_page(ctx: RunContext[Ledger], number: int) -> str:
    ctx.deps.here()
    return f"page {number}: {PAGE}"


@tool(effect="pure")
async def turn_page(number: int) -> str:
    return f"page {number}"


@tool(effect="keyed")
def pay(ctx: RunContext[Ledger], what: str) -> str:
    ctx.deps.once(f"pay {what}", ctx.idempotency_key)
    return f"paid {what}"


class Paid:
    """What the model was asked: one line a request, with its turn, its level and its round."""

    def __init__(self, ledger: Ledger) -> None:
        self._path = ledger.path.with_name("paid")

    def note(self, request: ModelRequest) -> None:
        with self._path.open("ab", buffering=0) as file:
            file.write(f"{request.turn_id} {request.level} {request.answered + 1}\n".encode())

    def rounds(self, turn_id: str) -> Counter[tuple[str, int]]:
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        return Counter(
            (level, int(number)) for turn, level, number in (line.split() for line in lines) if turn == turn_id
        )


def agent(ledger: Ledger, rounds: int, **options: Any) -> Agent[Ledger, Any]:
    paid = Paid(ledger)

    async def answer(request: ModelRequest) -> Any:
        paid.note(request)
        ledger.here()
        if request.level and "~compaction:" in request.level:
            return "pages were read"
        if request.level == "~plan":
            return (
                "1. read\n2. pay"
                if request.answered
                else calls(("read_page", {"number": 0}), ("pay", {"what": "plan"}))
            )
        if request.answered < rounds:
            return calls(("read_page", {"number": request.answered + 1}))
        return calls(("pay", {"what": "end"})) if request.answered == rounds else "done"

    model = ScriptedModel(answer, context_window=WINDOW)
    return Agent("reader", model, tools=[read_page, pay], deps_type=Ledger, **options)


async def planned(store: Store, ledger: Ledger) -> None:
    """A planner that reads and pays, then the executor."""
    result = await run(agent(ledger, 1, planning_enabled=True), "go", deps=ledger, store=store, key="k")
    assert result.output == "done"
    assert sum(isinstance(entry.fact.event, PlanningStarted) for entry in result.facts()) == 1
    assert sum(isinstance(entry.fact.event, PlanningCompleted) for entry in result.facts()) == 1
    assert sorted(entry.tool for entry in ledger.entries()) == ["pay end", "pay plan"]
    await _check(store, ledger, result)


async def folded(store: Store, ledger: Ledger) -> None:
    """A conversation that is folded twice."""
    result = await run(agent(ledger, 5), "remember A17", deps=ledger, store=store, key="k")
    assert result.output == "done"
    summary, message = result.history()[:2]
    assert isinstance(summary, UserItem) and summary.text.startswith("[Summary")
    assert isinstance(message, UserItem) and message.text == "remember A17", "the newest message of a person stays"
    assert [entry.tool for entry in ledger.entries()] == ["pay end"]
    await _check(store, ledger, result)


async def thread_after_folding(store: Store, ledger: Ledger) -> None:
    """The turn after one whose conversation was folded begins at the summary."""
    first = await run(agent(ledger, 4), "remember A17", deps=ledger, store=store, thread="t", key="k1")
    second = await run(agent(ledger, 0), "and now?", deps=ledger, store=store, thread="t", key="k2")
    assert (first.output, second.output) == ("done", "done")
    assert isinstance(second.history()[0], UserItem) and second.history()[0].text.startswith("[Summary")
    await _check(store, ledger, first, second)


async def thread_in_pages(store: Store, ledger: Ledger) -> None:
    """A turn so long that it puts the conversation into pages at its end, and others that begin with those."""
    paid = Paid(ledger)
    model = ScriptedModel(lambda request: _many_pages(paid, ledger, request))
    reader = Agent("reader", model, tools=[turn_page, pay], deps_type=Ledger, budget=Budget(tool_calls=200))
    results = [
        await run(reader, word, deps=ledger, store=store, thread="t", key=word) for word in ("one", "two", "three")
    ]
    assert [result.output for result in results] == ["3", "5", "8"]
    sealed = [sum(isinstance(entry.fact.event, ThreadCheckpointed) for entry in result.facts()) for result in results]
    assert sealed == [1, 0, 0]
    assert [entry.tool for entry in ledger.entries()] == ["pay three"]
    await _check(store, ledger, *results)


def _many_pages(paid: "Paid", ledger: Ledger, request: ModelRequest) -> Any:
    paid.note(request)
    ledger.here()
    said = [item.text for item in request.history if isinstance(item, UserItem)]
    if request.answered == 0 and said[-1] == "one":
        return calls(*(("turn_page", {"number": number}) for number in range(100)))
    if request.answered == 0 and said[-1] == "three":
        return calls(("pay", {"what": "three"}))
    return str(len([item for item in request.history if item.role != "tool"]) + 1)


ALL = [planned, folded, thread_after_folding]


async def _check(store: Store, ledger: Ledger, *results: RunResult[Any]) -> None:
    await check(store, ledger, *results)
    for result in results:
        facts = list(result.facts())
        events = [entry.fact.event for entry in facts]
        begun = [event.compaction_id for event in events if isinstance(event, CompactionStarted)]
        ended = [event.compaction_id for event in events if isinstance(event, CompactionCompleted | CompactionFailed)]
        assert begun == ended, f"{begun} were begun and {ended} ended: the original or the summary holds"
        assert not any(isinstance(event, CompactionFailed) for event in events), "a kill is no failure of a summary"
        _check_paid(facts, Paid(ledger).rounds(result.turn_id))


def _check_paid(facts: list[Any], asked: Counter[tuple[str, int]]) -> None:
    """Every request had its intent first, and what was answered is never asked for again, in any phase."""
    intents: Counter[tuple[str, int]] = Counter()
    answered: Counter[str] = Counter()
    for entry in facts:
        level = str(entry.fact.level)
        if isinstance(entry.fact.event, ModelRequested):
            intents[level, answered[level] + 1] += 1
        elif isinstance(entry.fact.event, ModelCompleted):
            answered[level] += 1
    for (level, number), times in asked.items():
        there = intents[level, number]
        assert times <= there, f"{level}, round {number}: {times} requests and {there} intents"
