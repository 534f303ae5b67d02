"""Processes round one approval: one that asks and dies, those that decide at the same time, one that goes on.

python deciding.py STORE NAME    decides, as NAME, whatever approval is named on a line of its input
"""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from crash.approval_scenarios import ASKED, Paid, calls, check, shop
from wakeful import Approve, Edit, Reject, resume_all, run
from wakeful.bootstrap.engines import new_engine
from wakeful.service.commands.approvals import approvals, decide
from wakeful.store.sqlite import SqliteStore
from wakeful.testing import Ledger

STEPS = [calls("notify", ("pay_irreversible", ASKED), "look_up"), "done"]


def ask_and_die(place: Path) -> None:
    """The first process: it is killed when its turn waits, with everything still open."""

    async def main() -> None:
        ledger = Ledger(place / "ledger")
        store = await SqliteStore.open(place / "runs.db")
        result = await run(shop(ledger, STEPS, "pay_irreversible"), "go", deps=ledger, store=store, key="k")
        assert result.status == "approval_required"
        os.kill(os.getpid(), signal.SIGKILL)

    asyncio.run(main())


def decide_it(place: Path, edit: bool) -> str:
    """The second: it has nothing of the agent's code."""

    async def main() -> str:
        store = await SqliteStore.open(place / "runs.db")
        (record,) = await approvals(new_engine(store))
        outcome = await decide(new_engine(store), record.id, Edit({"order": "B2", "cents": 1}) if edit else Approve())
        await store.close()
        return outcome.approval.status

    return asyncio.run(main())


def go_on(place: Path) -> dict[str, Any]:
    """The third: it has the code, and nothing else from the first."""

    async def main() -> dict[str, Any]:
        ledger = Ledger(place / "ledger")
        store = await SqliteStore.open(place / "runs.db")
        results = await resume_all(store, [shop(ledger, STEPS, "pay_irreversible")], deps=ledger)
        await check(store, ledger)
        ran = sorted(Paid(ledger).arguments())
        effects = sorted(entry.tool for entry in ledger.entries())
        await store.close()
        return {"states": [result.status for result in results], "ran": ran, "effects": effects}

    return asyncio.run(main())


async def decide_named(path: str, name: str) -> None:
    store = await SqliteStore.open(path)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        decided = Approve(name) if name == "yes" else Reject(name)
        outcome = await decide(new_engine(store), line.strip(), decided, by=name)
        said = {
            "status": outcome.approval.status,
            "by": outcome.approval.decided_by,
            "note": outcome.approval.note,
            "duplicate": outcome.duplicate,
        }
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()
    await store.close()


if __name__ == "__main__":
    asyncio.run(decide_named(sys.argv[1], sys.argv[2]))
