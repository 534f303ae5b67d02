"""What it costs to accept a message: 200 callers who each wait for theirs, against apsw writing the same rows.

    python benchmarks/admission.py

`Runtime.send` returns when its message survives a power cut. The bare loop writes as many bytes into tables of the same
shape, shares transactions and syncs among the callers in the same way (at most 64 in a transaction, one `fdatasync` of
the write-ahead log for all who wait), and checks nothing. Both run in turns in one process; the agent is paused, so
that no turn takes time from either.
"""

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from reporting import Aim, aims_table, measure, number, table

CALLERS, EACH, PAIRS = 200, 10, 5
GROUP = 64
LEAST = 0.3
"""Of the bare loop's rate."""


@dataclass(frozen=True)
class Cost:
    """Messages accepted a second; medians."""

    bare: float
    wakeful: float


def run() -> Cost:
    return Cost(**measure("admission.py", ["--cell"], 240))


class BareQueue:
    """The same rows, and nothing else."""

    def __init__(self, folder: str) -> None:
        import apsw

        path = str(Path(folder, "bare.db"))
        self.connection = apsw.Connection(path)
        self.connection.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=0")
        self.connection.execute(
            "CREATE TABLE appends (id INTEGER PRIMARY KEY, turn INTEGER, header BLOB, body BLOB, hash BLOB) STRICT;"
            "CREATE TABLE messages (message_id TEXT NOT NULL PRIMARY KEY, agent INTEGER, thread_id TEXT, state TEXT,"
            " band INTEGER, kind TEXT, authority TEXT, key TEXT, turn_id TEXT, admitted_seq INTEGER,"
            " admitted_at INTEGER, taken_at INTEGER, ended_at INTEGER) STRICT, WITHOUT ROWID;"
            "CREATE INDEX waiting ON messages (agent, thread_id, band, admitted_seq) WHERE state = 'queued';"
            "CREATE TABLE counts (agent INTEGER PRIMARY KEY, queued INTEGER) STRICT; INSERT INTO counts VALUES (1, 0)"
        )
        self.log = os.open(path + "-wal", os.O_RDONLY)
        self.waiting: list[tuple[str, asyncio.Future[None]]] = []
        self.syncing: asyncio.Task[None] | None = None

    async def send(self, words: str) -> None:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting.append((words, done))
        if self.syncing is None:
            self.syncing = asyncio.create_task(self._write())
        await done

    async def _write(self) -> None:
        await asyncio.sleep(0)
        while self.waiting:
            group, self.waiting = self.waiting[:GROUP], self.waiting[GROUP:]
            with self.connection:
                for words, _ in group:
                    number = self.connection.execute(
                        "INSERT INTO appends VALUES (NULL, 0, ?, ?, ?) RETURNING id",
                        (os.urandom(40), os.urandom(8) + words.encode().ljust(300), os.urandom(32)),
                    ).get
                    self.connection.execute(
                        "INSERT INTO messages VALUES (?, 1, 'main', 'queued', 2, 'operator_prompt',"
                        " 'operator_instruction', NULL, '', ?, ?, NULL, NULL)",
                        (f"msg_{number:026}", number, number),
                    )
                    self.connection.execute("UPDATE counts SET queued = queued + 1 WHERE agent = 1")
            await asyncio.to_thread(os.fdatasync, self.log)
            for _, done in group:
                done.set_result(None)
        self.syncing = None


async def _rate(send: Callable[[str], Awaitable[object]]) -> float:
    async def caller(number: int) -> None:
        for turn in range(EACH):
            await send(f"Check the backups of host {number}, {turn}.")

    began = time.perf_counter()
    await asyncio.gather(*(caller(number) for number in range(CALLERS)))
    return CALLERS * EACH / (time.perf_counter() - began)


async def _cell() -> Cost:
    from wakeful import Agent, Runtime
    from wakeful.testing import scripted

    ours, bare = [], []
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        queue = BareQueue(folder)
        async with Runtime(Path(folder, "home"), agents=[Agent("ops", scripted(["ok"]))]) as rt:
            await rt.pause("ops")
            for _ in range(PAIRS + 1):
                bare.append(await _rate(queue.send))
                ours.append(await _rate(lambda words: rt.send("ops", words)))
        queue.connection.close()
        os.close(queue.log)
    return Cost(statistics.median(bare[1:]), statistics.median(ours[1:]))


def aims(cost: Cost) -> list[Aim]:
    text = "accepting a message, as a share of apsw writing the same rows: how many times slower"
    return [Aim(text, cost.bare / cost.wakeful, 1 / LEAST, "x")]


def markdown(cost: Cost) -> str:
    rows = [["bare apsw", number(cost.bare)], ["`Runtime.send`", number(cost.wakeful)]]
    return "\n\n".join(
        [
            "## Accepting messages",
            f"{CALLERS} callers, each of whom waits until its message survives a power cut.",
            table(["", "messages a second"], rows),
            aims_table(aims(cost)),
        ]
    )


if __name__ == "__main__":
    if "--cell" in sys.argv:
        import json

        print(json.dumps(asyncio.run(_cell()).__dict__))
    else:
        print(markdown(run()))
