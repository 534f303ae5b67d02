"""What it costs to accept a message: 200 callers who each wait for theirs, against apsw writing the same rows.

    python benchmarks/admission.py

`Runtime.send` returns when its message survives a power cut. The bare loop writes the same rows into tables of the same
shape with the same indexes (the log, the message, the operator's feed; the newest sequence of the agent, when its
thread was active and how much waits there), shares transactions and syncs among the callers in the same way (as many
in a transaction as the store takes, one `fdatasync` of the write-ahead log for all who wait), and checks nothing. Both
run in turns in one process; the agent is paused, so that no turn takes time from either.
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
HEADER, BODY = 72, 101
"""Bytes of a row of the log, but for its hash."""
LEAST = 0.3
"""Of the bare loop's rate."""


@dataclass(frozen=True)
class Cost:
    """Messages accepted a second, and microseconds of the processor for one; medians."""

    bare: float
    wakeful: float
    bare_us: float
    wakeful_us: float


def run() -> Cost:
    return Cost(**measure("admission.py", ["--cell"], 240))


_TABLES = """
CREATE TABLE agents (id INTEGER PRIMARY KEY, agent_id TEXT NOT NULL UNIQUE, name TEXT NOT NULL, seq INTEGER NOT NULL,
    hash BLOB NOT NULL) STRICT;
CREATE TABLE appends (id INTEGER PRIMARY KEY, turn INTEGER NOT NULL, header BLOB NOT NULL, body BLOB NOT NULL,
    hash BLOB NOT NULL) STRICT;
CREATE INDEX appends_of_turn ON appends (turn) WHERE turn > 0;
CREATE TABLE messages (message_id TEXT NOT NULL PRIMARY KEY, agent INTEGER NOT NULL, thread_id TEXT NOT NULL,
    state TEXT NOT NULL, band INTEGER NOT NULL, kind TEXT NOT NULL, authority TEXT NOT NULL, key TEXT,
    turn_id TEXT NOT NULL, admitted_seq INTEGER NOT NULL, admitted_at INTEGER NOT NULL, taken_at INTEGER,
    ended_at INTEGER) STRICT, WITHOUT ROWID;
CREATE INDEX messages_queued ON messages (agent, thread_id, band, admitted_seq) WHERE state = 'queued';
CREATE INDEX messages_of_turn ON messages (turn_id, admitted_seq) WHERE ended_at IS NULL;
CREATE INDEX messages_deferred ON messages (agent, thread_id, admitted_seq) WHERE state = 'deferred';
CREATE TABLE feed (position INTEGER NOT NULL PRIMARY KEY, agent INTEGER NOT NULL, seq INTEGER NOT NULL,
    visibility TEXT NOT NULL, category TEXT NOT NULL, is_result INTEGER NOT NULL, at INTEGER NOT NULL) STRICT;
CREATE UNIQUE INDEX feed_of_agent ON feed (agent, seq);
CREATE INDEX feed_results ON feed (position) WHERE is_result = 1;
CREATE INDEX feed_results_of_agent ON feed (agent, seq) WHERE is_result = 1;
CREATE TABLE threads (agent INTEGER NOT NULL, thread_id TEXT NOT NULL, agent_name TEXT NOT NULL,
    turns INTEGER NOT NULL, newest_turn TEXT NOT NULL, began_at INTEGER NOT NULL, active_at INTEGER NOT NULL,
    PRIMARY KEY (agent, thread_id)) STRICT, WITHOUT ROWID;
CREATE INDEX threads_by_activity ON threads (active_at, agent, thread_id);
CREATE INDEX threads_of_name ON threads (agent_name, active_at, agent, thread_id);
CREATE INDEX threads_by_name ON threads (agent_name, agent, thread_id);
CREATE TABLE busy_threads (agent INTEGER NOT NULL, thread_id TEXT NOT NULL, turns INTEGER NOT NULL,
    queued INTEGER NOT NULL, PRIMARY KEY (agent, thread_id)) STRICT, WITHOUT ROWID;
INSERT INTO agents VALUES (1, 'ops', 'ops', 0, x'00');
INSERT INTO threads VALUES (1, 'main', 'ops', 0, '', 0, 0);
INSERT INTO busy_threads VALUES (1, 'main', 0, 0);
"""


class BareQueue:
    """The same rows, and nothing else."""

    def __init__(self, folder: str) -> None:
        import apsw

        path = str(Path(folder, "bare.db"))
        self.connection = apsw.Connection(path)
        self.connection.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=0")
        self.connection.execute(_TABLES)
        self.seq = 0
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
        from wakeful.store.sqlite.writer import GROUP

        await asyncio.sleep(0)
        while self.waiting:
            group, self.waiting = self.waiting[:GROUP], self.waiting[GROUP:]
            with self.connection:
                for words, _ in group:
                    self._put(words.encode().ljust(BODY), time.time_ns() // 1_000)
                self._move_on(time.time_ns() // 1_000, len(group))
            await asyncio.to_thread(os.fdatasync, self.log)
            for _, done in group:
                done.set_result(None)
        self.syncing = None

    def _put(self, body: bytes, at: int) -> None:
        self.seq += 1
        do, seq = self.connection.execute, self.seq
        do("INSERT INTO appends VALUES (?, 0, ?, ?, ?)", (1 << 40 | seq, bytes(HEADER), body, os.urandom(32)))
        do(
            "INSERT INTO messages VALUES (?, 1, 'main', 'queued', 2, 'operator_prompt', 'operator_instruction', NULL,"
            " '', ?, ?, NULL, NULL)",
            (f"msg_{seq:026}", seq, at),
        )
        do("INSERT INTO feed VALUES (NULL, 1, ?, 'progress', 'message', 0, ?)", (seq, at))

    def _move_on(self, at: int, count: int) -> None:
        """Rows that all messages of a transaction change are written once in it, here as in the store."""
        do = self.connection.execute
        do("UPDATE agents SET seq = ?, hash = ? WHERE id = 1", (self.seq, os.urandom(32)))
        do("UPDATE threads SET active_at = ? WHERE agent = 1 AND thread_id = 'main'", (at,))
        do("UPDATE busy_threads SET queued = queued + ? WHERE agent = 1 AND thread_id = 'main'", (count,))


async def _rate(send: Callable[[str], Awaitable[object]]) -> tuple[float, float]:
    """Messages a second, and microseconds of the processor for one."""

    async def caller(number: int) -> None:
        for turn in range(EACH):
            await send(f"Check the backups of host {number}, {turn}.")

    began, worked = time.perf_counter(), time.process_time()
    await asyncio.gather(*(caller(number) for number in range(CALLERS)))
    took, work = time.perf_counter() - began, time.process_time() - worked
    return CALLERS * EACH / took, work / (CALLERS * EACH) * 1e6


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
    rates = [[statistics.median(column) for column in zip(*each[1:], strict=True)] for each in (bare, ours)]
    (bare_rate, bare_us), (rate, us) = rates
    return Cost(bare_rate, rate, bare_us, us)


def aims(cost: Cost) -> list[Aim]:
    text = "accepting a message, as a share of apsw writing the same rows: how many times slower"
    of_processor = "the same, by processor time"
    return [
        Aim(text, cost.bare / cost.wakeful, 1 / LEAST, "x"),
        Aim(of_processor, cost.wakeful_us / cost.bare_us, 1 / LEAST, "x"),
    ]


def markdown(cost: Cost) -> str:
    rows = [
        ["bare apsw", number(cost.bare), number(cost.bare_us)],
        ["`Runtime.send`", number(cost.wakeful), number(cost.wakeful_us)],
    ]
    return "\n\n".join(
        [
            "## Accepting messages",
            f"{CALLERS} callers, each of whom waits until its message survives a power cut.",
            table(["", "messages a second", "us of processor a message"], rows),
            aims_table(aims(cost)),
        ]
    )


if __name__ == "__main__":
    if "--cell" in sys.argv:
        import json

        print(json.dumps(asyncio.run(_cell()).__dict__))
    else:
        print(markdown(run()))
