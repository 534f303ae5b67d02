"""A program whose agent fails and whose notice is written to a file, killed at a commit of a kind of fact."""

import sys
from datetime import timedelta
from pathlib import Path

from crash.waking_process import NOON, KilledStore
from wakeful import Agent, Runtime
from wakeful.store.sqlite import SqliteStore
from wakeful.testing import FixedClock, scripted


async def main(home: Path, minutes: int, kind: str, when: str) -> None:
    clock = FixedClock(NOON + timedelta(minutes=minutes))
    store = KilledStore(await SqliteStore.open(home / "runs.db"), kind, when)
    broken = [{"fail": [{"kind": "contract_error", "message": "no such parameter"}]}]
    code = f"import sys; open({str(home / 'told')!r}, 'a').write(sys.stdin.read() + chr(10))"
    agent = Agent("ops", scripted(broken), notify={"to": [sys.executable, "-c", code]})
    async with Runtime(agents=[agent], store=store, clock=clock) as rt:
        if minutes == 0:
            await rt.answer(await rt.send("ops", "Check.", key="once"))
        await rt.settled()
    await store.close()
    sys.stdout.write("at rest\n")
