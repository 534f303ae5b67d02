"""Processes that go on with what another one left, to be looked at side by side.

python resuming.py    goes on, under its key, with the turn of each folder that is named on a line of its input
"""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from crash.approval_scenarios import ASKED, calls, shop
from crash.scenarios import is_booked, model
from wakeful import Agent, RunContext, Tool, resume_all, run, tool
from wakeful.contracts.probes import ProbeAnswer
from wakeful.store.sqlite import SqliteStore
from wakeful.testing import Ledger

GATED = "pay_irreversible"
STEPS = [calls("notify", (GATED, ASKED), "look_up"), "done"]


async def go_on(place: Path) -> tuple[str, str | None]:
    """Run the turn of a folder to where it comes."""
    ledger = Ledger(place / "ledger")
    store = await SqliteStore.open(place / "runs.db")
    result = await run(shop(ledger, STEPS, GATED), "go", deps=ledger, store=store, key="k")
    await store.close()
    return result.status, result.final_content


# --- a process that dies inside its call ----------------------------------------------------------------------------


def _die_the_first_time(ledger: Ledger) -> None:
    died = ledger.path.with_name("died")
    if not died.exists():
        died.touch()
        os.kill(os.getpid(), signal.SIGKILL)


def _once_in_the_world(ctx: RunContext[Ledger]) -> str:
    ctx.deps.once("book", ctx.idempotency_key)
    _die_the_first_time(ctx.deps)
    return "booked"


def booking(effect: Any) -> Tool[Ledger]:
    """A tool whose process dies when its effect has happened, and before anybody has noted that."""
    made: Tool[Ledger] = tool(_once_in_the_world, name="book", effect=effect)
    if effect == "probeable":

        def is_there(ctx: RunContext[Ledger]) -> ProbeAnswer:
            return is_booked(ctx)

        made.probe(is_there)
    return made


def clerk(ledger: Ledger, effect: str) -> Agent[Ledger, str]:
    return Agent("clerk", model(ledger, [calls("book"), "done"]), tools=[booking(effect)], deps_type=Ledger)


def die_inside(place: Path, effect: str) -> None:
    async def main() -> None:
        ledger = Ledger(place / "ledger")
        store = await SqliteStore.open(place / "runs.db")
        await run(clerk(ledger, effect), "Book a table.", deps=ledger, store=store, key="k")

    asyncio.run(main())


def recover(place: Path, effect: str) -> list[tuple[str, str | None, dict[str, Any]]]:
    """Go on with it. What was written then: each event's kind, its call and its payload."""

    async def main() -> list[tuple[str, str | None, dict[str, Any]]]:
        ledger = Ledger(place / "ledger")
        store = await SqliteStore.open(place / "runs.db")
        (row,) = await store.turns()
        there = len(await store.read(row.agent_id))
        await resume_all(store, [clerk(ledger, effect)], deps=ledger)
        written = (await store.read(row.agent_id))[there:]
        await store.close()
        return [(each.fact.event.kind, each.fact.call_id, each.fact.event.model_dump(mode="json")) for each in written]

    return asyncio.run(main())


async def go_on_where_it_is_told() -> None:
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        sys.stdout.write(json.dumps(await go_on(Path(line.strip()))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(go_on_where_it_is_told())
