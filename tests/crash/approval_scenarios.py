"""Runs with calls that a person has to let through, to be killed anywhere: before the question, after it, in the middle
of the decision, between the decision and the call, inside the call.

Each is a program that runs its agent until it is over and decides whatever is asked meanwhile. It is run again after
each kill, by a new process. What a gated call was run with stands in a file of its own, outside store and ledger.
"""

import asyncio
from collections import Counter
from functools import partial
from typing import Any

from crash.scenarios import calls, check, convert, look_up, model, notify
from wakeful import (
    Agent,
    Always,
    Answer,
    Approval,
    Approve,
    DidNotHappen,
    Edit,
    Happened,
    Reject,
    RunContext,
    RunResult,
    Tool,
    cancel,
    run,
    tool,
)
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.approvals import Decided
from wakeful.contracts.probes import ProbeAnswer
from wakeful.ports import Store
from wakeful.service.commands.approvals import approvals, decide
from wakeful.testing import Ledger
from wakeful.tools.person import NAME as ASK_PERSON
from wakeful.tools.person import ask_person

ASKED = {"order": "A17", "cents": 4200}
EDITED = {"order": "B2", "cents": 1}
EXPIRY = 0.15


class Paid:
    """The arguments a gated call was really run with, one line a run."""

    def __init__(self, ledger: Ledger) -> None:
        self._path = ledger.path.with_name("paid")

    def note(self, key: str, order: str, cents: int) -> None:
        with self._path.open("ab", buffering=0) as file:
            file.write(f"{key} {order} {cents}\n".encode())

    def lines(self) -> list[str]:
        return self._path.read_text().splitlines() if self._path.exists() else []

    def arguments(self) -> set[tuple[str, int]]:
        return {(line.split()[1], int(line.split()[2])) for line in self.lines()}


@tool(effect="keyed", approval=True)
def pay_keyed(ctx: RunContext[Ledger], order: str, cents: int) -> str:
    ctx.deps.here()
    Paid(ctx.deps).note(ctx.idempotency_key, order, cents)
    ctx.deps.once("pay_keyed", ctx.idempotency_key)
    return "paid"


@tool(effect="irreversible", approval=True)
async def pay_irreversible(ctx: RunContext[Ledger], order: str, cents: int) -> str:
    Paid(ctx.deps).note(ctx.idempotency_key, order, cents)
    ctx.deps.record("pay_irreversible", ctx.idempotency_key)
    await asyncio.sleep(0)
    return "paid"


@tool(effect="probeable", approval=True)
async def pay_probeable(ctx: RunContext[Ledger], order: str, cents: int) -> str:
    Paid(ctx.deps).note(ctx.idempotency_key, order, cents)
    ctx.deps.once("pay_probeable", ctx.idempotency_key)
    return "paid"


@pay_probeable.probe
def is_paid(ctx: RunContext[Ledger]) -> ProbeAnswer:
    done = any(entry.key == ctx.idempotency_key for entry in ctx.deps.entries())
    return Happened("paid") if done else DidNotHappen()


@tool(effect="keyed")
def pay_unasked(ctx: RunContext[Ledger], order: str, cents: int) -> str:
    Paid(ctx.deps).note(ctx.idempotency_key, order, cents)
    ctx.deps.once("pay_unasked", ctx.idempotency_key)
    return "paid"


GATED: dict[str, Tool[Any]] = {
    each.name: each
    for each in (pay_keyed, pay_irreversible, pay_probeable, pay_unasked)  # type: ignore[attr-defined]
}
DECISIONS: dict[str, Decided] = {
    "approve": Approve("fine"),
    "reject": Reject("too much"),
    "edit": Edit(EDITED),
    "answer": Answer("paid by hand"),
    "always": Always("call"),
}
RUNS_WITH = {"approve": ASKED, "always": ASKED, "edit": EDITED}


def shop(ledger: Ledger, steps: list[Any], gated: str, **options: Any) -> Agent[Ledger, str]:
    tools = [GATED[gated], look_up, convert, notify, ask_person]
    return Agent("shop", model(ledger, steps), tools=tools, deps_type=Ledger, **options)


async def until_over(support: Agent[Ledger, str], store: Store, ledger: Ledger, say: Any) -> RunResult[str]:
    """Run it, decide what it waits for, run it again, as a person and a program would."""
    for _ in range(200):
        result = await run(support, "go", deps=ledger, store=store, key="k")
        if result.status not in ("approval_required", "incomplete"):
            return result
        for record in await approvals(new_engine(store)):
            await say(store, record)
    raise AssertionError(f"it never ends: {result.status} {result.message}")


async def decided(decision: str, store: Store, record: Approval) -> None:
    if decision == "expire":
        await asyncio.sleep(EXPIRY)
    else:
        await decide(new_engine(store), record.id, DECISIONS[decision], by="ada")


async def gated_call(store: Store, ledger: Ledger, *, decision: str, gated: str) -> None:
    """One gated call among siblings."""
    steps = [calls("look_up", (gated, ASKED), "notify", "convert"), "done"]
    expiry = {"approval_expiry": EXPIRY} if decision == "expire" else {}
    result = await until_over(shop(ledger, steps, gated, **expiry), store, ledger, partial(decided, decision))
    assert result.output == "done"
    runs = RUNS_WITH.get(decision)
    effects = Counter(entry.tool for entry in ledger.entries())
    unknown = [call.tool for call in result.unknown]
    if runs is None:
        assert Paid(ledger).arguments() == set() and effects[gated] == 0, "it ran although nobody let it"
        assert unknown == []
    else:
        assert Paid(ledger).arguments() <= {(runs["order"], runs["cents"])}, "it ran with something else"
        assert effects[gated] == 1 or unknown == [gated], f"{gated} ran {effects[gated]} times"
    assert effects["notify"] == 1
    (row,) = await store.actions()
    assert row.status == {"reject": "rejected", "expire": "timed_out"}.get(decision, "approved")
    await check(store, ledger, result)


async def two_gated_calls(store: Store, ledger: Ledger) -> None:
    """Two questions of one round and one of the next, each with its own answer."""

    async def say(store: Store, record: Approval) -> None:
        order = record.arguments["order"]
        await decide(new_engine(store), record.id, Approve() if order != "no" else Reject(), by="ada")

    pay = partial(lambda order: ("pay_keyed", {"order": order, "cents": 1}))
    steps = [calls(pay("one"), "notify", pay("no")), calls(pay("two")), "done"]
    result = await until_over(shop(ledger, steps, "pay_keyed"), store, ledger, say)
    assert result.output == "done"
    assert Paid(ledger).arguments() == {("one", 1), ("two", 1)}
    assert Counter(entry.tool for entry in ledger.entries()) == {"pay_keyed": 2, "notify": 1}
    await check(store, ledger, result)


async def question(store: Store, ledger: Ledger) -> None:
    async def say(store: Store, record: Approval) -> None:
        assert (record.kind, record.choices) == ("question", ("red", "blue"))
        await decide(new_engine(store), record.id, Answer("blue"), by="ada")

    asked = (ASK_PERSON, {"question": "Which?", "choices": ["red", "blue"]})
    steps = [calls(asked, "notify"), "done"]
    result = await until_over(shop(ledger, steps, "pay_keyed"), store, ledger, say)
    assert result.output == "done"
    told = [item for item in result.history() if item.role == "tool" and item.name == ASK_PERSON]
    assert [item.text for item in told] == ["blue"]
    await check(store, ledger, result)


async def approver_at_hand(store: Store, ledger: Ledger) -> None:
    """The program brings its own approver: asked while the turn runs, and again by whoever takes it up."""

    async def approver(record: Approval) -> Any:
        ledger.here()
        await asyncio.sleep(0.001)
        return Edit(EDITED)

    steps = [calls(("pay_keyed", ASKED), "look_up"), "done"]
    result = await run(shop(ledger, steps, "pay_keyed"), "go", deps=ledger, store=store, key="k", approver=approver)
    assert result.output == "done"
    assert Paid(ledger).arguments() == {("B2", 1)}
    await check(store, ledger, result)


async def cancelled_while_it_waits(store: Store, ledger: Ledger) -> None:
    async def say(store: Store, record: Approval) -> None:
        await cancel(store, record.turn_id)

    steps = [calls("notify", ("pay_irreversible", ASKED), ("pay_irreversible", EDITED)), "never said"]
    result = await until_over(shop(ledger, steps, "pay_irreversible"), store, ledger, say)
    assert result.status == "cancelled"
    assert Paid(ledger).arguments() == set()
    assert [(row.status, row.decided_by) for row in await store.actions()] == [("rejected", "runtime")] * 2
    await check(store, ledger, result)


CALLS = [(decision, gated) for decision in (*DECISIONS, "expire") for gated in ("pay_keyed", "pay_irreversible")] + [
    ("approve", "pay_probeable"),
    ("edit", "pay_probeable"),
]
OTHERS = [two_gated_calls, question, approver_at_hand, cancelled_while_it_waits]
