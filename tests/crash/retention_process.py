"""A store with turns of several agents, and a pass of retention over it: `main(path, mode, at)`.

`mode` is `make` or `pass`. A pass is killed at its `at`-th moment before or after one of its steps, and prints how many
of those there were.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any, cast

from wakeful import Agent, Retention, open_store, run, tool
from wakeful.bootstrap.stores import opened_store
from wakeful.ports.retention import RetentionStore
from wakeful.runtime.retention import RetentionPass
from wakeful.testing import FixedClock, scripted

STEPS = (
    *("expire_facts", "expire_events", "bundle_rows", "cut_log", "finish_cuts", "doubt_outputs", "remove_blob"),
    *("sweep_blobs", "release_space", "set_retention_mark"),
)


@tool(effect="pure")
def look(order: str) -> str:
    """Look."""
    return "a line of a log\n" * 8_000 if order == "log" else "on its way"


@tool(effect="irreversible", approval=True)
def refund(order: str) -> str:
    """Refund."""
    return "refunded"


def shop(name: str, *calls: tuple[str, str]) -> Agent[None, str]:
    said = [{"calls": [{"name": call, "arguments": {"order": order}}]} for call, order in calls]
    return Agent(name, scripted([*said, "done"]), tools=[look, refund])


class Killed:
    """The steps of a store, counted; the process ends at the one that is meant, before it or after it."""

    def __init__(self, inner: RetentionStore, at: int) -> None:
        self._inner, self._at, self.count = inner, at, 0

    def __getattr__(self, name: str) -> Any:
        step = getattr(self._inner, name)
        if name not in STEPS:
            return step

        async def counted(*given: Any, **named: Any) -> Any:
            self._point()
            done = await step(*given, **named)
            self._point()
            return done

        return counted

    def _point(self) -> None:
        self.count += 1
        if self.count == self._at:
            os.kill(os.getpid(), signal.SIGKILL)


async def main(path: Path, mode: str, at: int) -> None:
    if mode == "make":
        await _make(path)
        return
    clock = FixedClock(4_000_000_000_000_000)
    async with opened_store(path) as store:
        await store.retention.sweep_blobs(now=clock.now() - 10**12, grace=10**12)
        killed = Killed(store.retention, at)
        cast(Any, store).retention = killed
        await RetentionPass(store, clock, Retention()).run()
        sys.stdout.write(f"{killed.count}\n")


async def _make(path: Path) -> None:
    await run(shop("a", ("look", "log")), "look", store=path, thread="chat")
    await run(shop("a", ("look", "log"), ("look", "x")), "look", store=path, thread="chat")
    for _ in range(12):
        await run(shop("a", ("look", "x")), "look", store=path, thread="chat")
    for _ in range(3):
        await run(shop("b", ("look", "x")), "look", store=path)
    await run(shop("c", ("look", "x")), "look", store=path, key="k")
    await run(shop("d", ("refund", "A17")), "refund", store=path)
    for _ in range(2):
        await run(shop("e", ("look", "log")), "look", store=path, thread="gone")
    async with open_store(path) as opened:
        await opened.delete_thread("gone")
    async with opened_store(path) as store:
        await store.put_blob(b"nobody names this", "text/plain")
        await store.put_blob(b"nor this" * 200_000, "text/plain")
