"""A program with a timer and a wait that is killed at a commit: `main(home, hours, kind, when)`.

It runs `hours` after noon. `kind` is the kind of fact at whose commit the process ends, `before` or `after` it; `-` for
none. What is due at the beginning is dealt with before anything else.
"""

import os
import signal
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from wakeful import Agent, Runtime
from wakeful.contracts.envelope import Fact
from wakeful.store.sqlite import SqliteStore
from wakeful.testing import FixedClock, scripted
from wakeful.testing.wrapped_store import WrappedStore

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class KilledStore(WrappedStore):
    """A store whose process ends at the commit of one kind of fact."""

    def __init__(self, store: Any, kind: str, when: str) -> None:
        super().__init__(store)
        self._kind, self._when = kind, when

    async def admit(self, agent_id: str, facts: Sequence[Fact], **terms: Any) -> Any:
        is_it = any(fact.event.kind == self._kind for fact in facts)
        if is_it and self._when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        answer = await super().admit(agent_id, facts, **terms)
        if is_it:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer


def reply(request: Any) -> Any:
    if "Wait for the vote." not in request.history[-1].text:
        return "done"
    arguments = {"reason": "the vote", "wake": "external", "deadline_ms": 3_600_000}
    return {"calls": [{"name": "wait_for", "arguments": arguments}]}


async def main(home: Path, hours: int, kind: str, when: str) -> None:
    clock = FixedClock(NOON + timedelta(hours=hours))
    store = KilledStore(await SqliteStore.open(home / "runs.db"), kind, when)
    async with Runtime(agents=[Agent("ops", scripted(reply))], store=store, clock=clock) as rt:
        if hours == 0:
            await rt.arm_timer("ops", "Check the backups.", at=NOON + timedelta(hours=1))
            await rt.answer(await rt.send("ops", "Wait for the vote.", key="once"))
        await rt.settled()
        clock.advance(2 * 3600)
        await rt.settled()
    await store.close()
    sys.stdout.write("at rest\n")
