"""A program that takes in deliveries and is killed at a commit: `main(home, kind, when)`.

`kind` is the kind of fact at whose commit the process ends, `before` or `after` it; `-` for none. What was accepted is
written to the file `accepted` before the next one is delivered.
"""

import os
import sys
from pathlib import Path

from crash.waking_process import NOON, KilledStore
from wakeful import Agent, Runtime
from wakeful.store.sqlite import SqliteStore
from wakeful.testing import FixedClock, scripted

DELIVERIES = 4


async def main(home: Path, kind: str, when: str) -> None:
    store = KilledStore(await SqliteStore.open(home / "runs.db"), kind, when)
    agent = Agent("ops", scripted(lambda request: "noted"), wake=[{"trigger": "ci", "say": "A build reported in."}])
    async with Runtime(agents=[agent], store=store, clock=FixedClock(NOON)) as rt:
        for name in ("ops", "ops/ci"):
            url = await rt.trigger_url(name)
            for number in range(DELIVERIES):
                receipt = await rt.deliver(url, b"build %d" % number, {"Idempotency-Key": f"build-{number}"})
                assert receipt.outcome != "refused", receipt
                with (home / "accepted").open("a") as file:
                    file.write(f"{receipt.hint_id or receipt.message_id}\n")
                    file.flush()
                    os.fsync(file.fileno())
        await rt.settled()
    await store.close()
    sys.stdout.write("at rest\n")
