"""Programs that spend: one to be killed anywhere under a spend window, and two that want the rest of one at once.

python spending.py STORE NAME checked|unchecked

reads lines `look N` and `take N` of its input, one after the other, and answers each with a line: how much it sees
taken of window N, or whether it got what it wanted of it. Unchecked, the store is told a limit that is never reached:
all that is left of the check is what the process has seen itself.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

from kit.runs.store_facts import claimed, started
from wakeful import Agent, RunContext, SpendWindow, run, tool
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import AssistantItem, CallPart
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import WindowFull
from wakeful.contracts.events import BudgetNoticed, ModelRequested, TurnSuspended
from wakeful.contracts.models import ModelGlimpse, Reply, TokenUsage
from wakeful.contracts.spending import WindowRef, nanodollars
from wakeful.ports import ModelRequest, Store
from wakeful.providers.prices import IN_CODE, ListedPrice, Price
from wakeful.service.commands.spend_windows import grant
from wakeful.service.queries.replay import replay_turn
from wakeful.store.sqlite import SqliteStore
from wakeful.testing import Ledger

NOON = 1_800_000_000_000_000
PRICE = "0.7"
"""Of a dollar that a window allows: there is room for one."""


class Paid:
    """Costs ten cents a round, and at most twenty; notes outside the store that it was asked."""

    ref = "mine:m"
    price = ListedPrice(Price(Decimal(0), Decimal(1_000)), IN_CODE)

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._asked = ledger.path.with_name("asked")

    def most_output(self, settings: Any) -> int:
        return 200

    def asked(self) -> int:
        return len(self._asked.read_text().splitlines()) if self._asked.exists() else 0

    async def respond(self, request: ModelRequest) -> AsyncIterator[ModelGlimpse | Reply]:
        with self._asked.open("ab", buffering=0) as file:
            file.write(b"asked\n")
        self._ledger.here()
        part: Text | CallPart = Text("done")
        if request.answered < 2:
            part = CallPart(call_id=f"c{request.step}", name="book", arguments={})
        used = TokenUsage(input_tokens=10, output_tokens=100, total_tokens=110)
        yield Reply(item=AssistantItem(parts=(part,)), usage=used)


@tool(effect="keyed")
async def book(ctx: RunContext[Ledger]) -> str:
    """Book it."""
    ctx.deps.once("book", ctx.idempotency_key)
    return "booked"


def spends(store: Store, ledger: Ledger) -> None:
    """A run of three rounds in a month that most of which it uses up."""

    async def main() -> None:
        model = Paid(ledger)
        spender = Agent("spender", model, tools=[book], spend_windows=[SpendWindow("month", "0.72")])
        result = await run(spender, "go", deps=ledger, store=store, key="k")
        assert result.completed, result.message
        rows = await store.spending()
        spent = sum(row.spent for row in rows)
        assert all(row.held == 0 and row.spent <= row.limit for row in rows), rows
        assert spent >= model.asked() * nanodollars("0.1"), "whatever was asked is paid for"
        requests = [entry for entry in result.facts() if isinstance(entry.fact.event, ModelRequested)]
        assert spent <= len(requests) * nanodollars("0.2")
        noticed = sum(isinstance(entry.fact.event, BudgetNoticed) for entry in result.facts())
        assert noticed == sum(row.noticed for row in rows) <= 1
        assert noticed == any(row.spent * 100 >= row.limit * 80 for row in rows)
        await store.rebuild_views()
        assert await store.spending() == rows
        row = await store.turn(result.turn_id)
        assert row is not None and (await replay_turn(store, row)).divergence is None

    asyncio.run(main())


def pauses(store: Store, ledger: Ledger) -> None:
    """A run that uses its month up, rests, is granted more and goes on."""

    async def main() -> None:
        model = Paid(ledger)
        spender = Agent("spender", model, tools=[book], spend_windows=[SpendWindow("month", "0.25")])
        result = await run(spender, "go", deps=ledger, store=store, key="k")
        if not result.completed:
            assert (result.stop_reason, result.status) == ("cost", "waiting"), result.message
            await grant(new_engine(store), "agent:spender", "5")
            result = await run(spender, "go", deps=ledger, store=store, key="k")
        assert result.completed, result.message
        (row,) = await store.spending()
        assert row.granted >= nanodollars("5") and row.held == 0
        assert model.asked() * nanodollars("0.1") <= row.spent <= row.limit + row.granted
        rested = [entry for entry in result.facts() if isinstance(entry.fact.event, TurnSuspended)]
        assert len(rested) == 1, "it rested once, whoever looked at it meanwhile"
        turn = await store.turn(result.turn_id)
        assert turn is not None and (await replay_turn(store, turn)).divergence is None

    asyncio.run(main())


def window(number: int, usd: str = "1") -> WindowRef:
    return WindowRef(scope="runtime", period="day", began=NOON + number, turns=NOON * 2, usd=usd)


async def take(path: str, name: str, limit: str) -> None:
    store = await SqliteStore.open(path)
    claim = await claimed(store, f"turn_{name}", f"agent_{name}")
    await store.append(claim, [started(claim.turn_id)])
    _say("ready")
    loop = asyncio.get_running_loop()
    seen: dict[int, int] = {}
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        what, number = line.split()[0], int(line.split()[1])
        if what == "look":
            seen[number] = sum(row.taken for row in await store.spending() if row.began == NOON + number)
            _say(seen[number])
            continue
        wants = ModelRequested(model_ref="a:b", items=1, reserved_usd=PRICE, windows=(window(number, limit),))
        got = seen[number] + nanodollars(PRICE) <= nanodollars("1")
        try:
            if got:
                await store.append(claim, [Fact(wants, NOON, "main", claim.turn_id, number + 1, level=f"c{number}")])
        except WindowFull:
            got = False
        _say(got)
    await store.close()


def _say(what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(take(sys.argv[1], sys.argv[2], "1" if sys.argv[3] == "checked" else "1000"))
