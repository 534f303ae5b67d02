"""Writing: groups, locks held elsewhere, a full disk, the length of the log."""

import asyncio
from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from kit.runs.store_facts import (
    AGENT,
    NOON,
    THREAD,
    claimed,
    completed,
    created,
    ended,
    interrupt,
    message,
    queued,
    requested,
    started,
    takes,
)
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import OwnerFenced, StoreFull, StoreLocked, StoreProblem
from wakeful.ports import Match
from wakeful.ports.mailbox import BUSY_THREADS, MESSAGES, BusyThread
from wakeful.store.sqlite import SqliteStore
from wakeful.store.sqlite.connection import Statements, connect
from wakeful.store.sqlite.tables import SqliteTables
from wakeful.store.tables import TABLES

from .disks import FullDisk


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


def size(path: Path, of: str = "") -> int:
    file = path.with_name(path.name + of)
    return file.stat().st_size if file.exists() else 0


async def test_what_a_tick_appends_shares_transactions_of_64(path: Path) -> None:
    store = await SqliteStore.open(path)
    await claimed(store, "turn_2", "agent_2")  # a turn that is alone does not wait for others
    claim = await claimed(store)
    versions = apsw.Connection(str(path))
    before, pages = versions.pragma("data_version"), size(path, "-wal")
    await asyncio.gather(*(store.append(claim, [requested(step=n)]) for n in range(1, 129)))
    together = size(path, "-wal") - pages
    for n in range(129, 257):
        await store.append(claim, [requested(step=n)])
    apart = size(path, "-wal") - pages - together
    assert versions.pragma("data_version") != before
    assert together * 5 < apart  # a commit writes each page it changed
    assert [one.fact.step for one in await store.read(AGENT, after=2)] == list(range(1, 257))
    versions.close()
    await store.close()


async def test_a_turn_that_is_alone_does_not_keep_the_loop_for_itself(path: Path) -> None:
    store = await SqliteStore.open(path)
    claim = await claimed(store)
    ticks = 0

    async def somebody_else() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0)
            ticks += 1

    other = asyncio.ensure_future(somebody_else())
    for step in range(1, 201):
        await store.append(claim, [requested(step=step)])
    other.cancel()
    assert ticks >= 10
    assert len(await store.read(AGENT)) == 202
    await store.close()


async def test_a_lock_held_elsewhere_is_waited_for_without_blocking_the_loop(path: Path) -> None:
    store = await SqliteStore.open(path, patience=60)
    claim = await claimed(store)
    elsewhere = apsw.Connection(str(path))
    elsewhere.execute("BEGIN IMMEDIATE")
    waiting = asyncio.ensure_future(store.append(claim, [started()]))
    for _ in range(20):
        await asyncio.sleep(0.001)
    assert not waiting.done()
    assert len(await store.read(AGENT)) == 2  # reading goes on
    elsewhere.execute("COMMIT")
    await waiting
    assert len(await store.read(AGENT)) == 3
    elsewhere.close()
    await store.close()


async def test_a_lock_that_is_never_let_go_is_named_and_nothing_is_written(path: Path) -> None:
    store = await SqliteStore.open(path, patience=0.02)
    claim = await claimed(store)
    elsewhere = apsw.Connection(str(path))
    elsewhere.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreLocked, match=r"runs\.db") as locked:
        await store.append(claim, [started()])
    assert "Close whatever holds it" in locked.value.hint
    elsewhere.execute("ROLLBACK")
    elsewhere.close()
    await store.append(claim, [started()])
    assert [one.seq for one in await store.read(AGENT)] == [1, 2, 3]
    await store.close()


async def test_a_full_disk_loses_nothing_that_was_acknowledged_and_the_store_goes_on_when_there_is_room(
    path: Path,
) -> None:
    disk = FullDisk("full")
    store = await SqliteStore.open(path, vfs=disk.name)
    claim = await claimed(store)
    await store.append(claim, [started()])
    disk.full = True
    refused = await asyncio.gather(
        store.append(claim, [requested()]),
        store.append(claim, [requested(step=2)]),
        store.admit(AGENT, [message("turn_2")]),
        store.put_blob(b"x" * 1000, "text/plain"),
        return_exceptions=True,
    )
    assert [type(error) for error in refused] == [StoreFull] * 4
    assert len(await store.read(AGENT)) == 3
    disk.full = False
    await store.append(claim, [requested()], barrier=True)
    assert [one.seq for one in await store.read(AGENT)] == [1, 2, 3, 4]
    assert await store.verify() == []
    await store.close()


async def test_the_log_stays_short_under_load(path: Path) -> None:
    store = await SqliteStore.open(path)
    claim = await claimed(store)
    longest = 0
    for step in range(1, 1501):
        await store.append(claim, [requested(step=step), requested(step=step)])
        if step % 50 == 0:
            longest = max(longest, size(path, "-wal"))
    await store.close()
    assert longest < 16_000_000, "without a checkpoint it would be half as long again"
    assert size(path, "-wal") == 0
    assert size(path) < 1_000_000


async def test_a_disk_that_cannot_sync_is_not_believed_again(path: Path) -> None:
    failures = [OSError(5, "Input/output error")]

    def sync(_: int) -> None:
        if failures:
            raise failures.pop()

    store = await SqliteStore.open(path, sync=sync)
    for _ in range(2):
        with pytest.raises(StoreProblem, match="could not be made safe against a power cut"):
            await store.admit(AGENT, [message()])
    await store.close()


async def test_many_who_wait_for_a_barrier_share_one(path: Path) -> None:
    syncs = []
    store = await SqliteStore.open(path, sync=syncs.append)
    await asyncio.gather(*(store.admit(AGENT, [message(f"turn_{n}")]) for n in range(60)))
    assert 1 <= len(syncs) < 30
    await store.close()


async def test_an_owner_that_is_alone_goes_on_from_what_another_process_wrote_meanwhile(path: Path) -> None:
    store, other = await SqliteStore.open(path), await SqliteStore.open(path)
    claim = await claimed(store)
    await store.append(claim, [started()])
    await store.append(claim, [requested()])
    await other.admit(AGENT, [interrupt()])  # past the owner, who remembers where its stream ended
    heard = await store.append(claim, [requested(step=2)])
    assert [(one.seq, one.fact.event.kind) for one in heard] == [(5, "turn.interrupt.requested")]
    assert [one.seq for one in await store.read(AGENT)] == [1, 2, 3, 4, 5, 6]
    assert await store.verify() == []
    await other.close()
    await store.close()


async def test_an_owner_that_is_alone_and_was_replaced_writes_nothing_more(path: Path) -> None:
    store = await SqliteStore.open(path)
    claim = await claimed(store)
    await store.append(claim, [started()])
    elsewhere = apsw.Connection(str(path))
    elsewhere.execute("UPDATE leases SET owner = 'somebody else', epoch = epoch + 1")
    with pytest.raises(OwnerFenced):
        await store.append(claim, [requested()])
    assert len(await store.read(AGENT)) == 3
    elsewhere.close()
    await store.close()


async def test_what_another_process_wrote_is_heard_also_after_a_commit_that_appended_nothing(path: Path) -> None:
    store, other = await SqliteStore.open(path), await SqliteStore.open(path)
    claim = await claimed(store)
    await store.append(claim, [started()])
    await other.admit(AGENT, [interrupt()])
    await store.save_workflow("w", "{}", new_id="wf_1", created_at=1)  # a commit of our own, which saw the other's
    heard = await store.append(claim, [requested()])
    assert [(one.seq, one.fact.event.kind) for one in heard] == [(4, "turn.interrupt.requested")]
    assert await store.verify() == []
    await other.close()
    await store.close()


async def test_rows_that_are_kept_from_append_to_append_are_those_that_others_made_of_them(path: Path) -> None:
    store, other = await SqliteStore.open(path), await SqliteStore.open(path)
    claim = await claimed(store)
    await store.append(claim, [started()])
    await other.admit(AGENT, [message("turn_2")])  # another process: the thread has a message more
    await store.append(claim, [requested(), completed()])
    await store.admit(AGENT, [message("turn_3")])  # this process, as an outsider
    await store.admit(AGENT, [interrupt()])
    await store.append(claim, [ended()])
    tables = {table: await store.find_rows(table, [Match({})], order=table.key) for table in TABLES}
    assert tables[BUSY_THREADS] == [BusyThread(AGENT, THREAD, turns=0, queued=2)]
    await store.rebuild_views()
    assert tables == {table: await store.find_rows(table, [Match({})], order=table.key) for table in TABLES}
    await other.close()
    await store.close()


async def test_two_turns_of_one_agent_append_to_one_stream_by_turns(path: Path) -> None:
    store = await SqliteStore.open(path)
    claim = await claimed(store)
    await store.admit(AGENT, [message("turn_2", thread="other")])
    beside = await store.claim("turn_2")
    for step in range(1, 6):
        await asyncio.gather(
            store.append(claim, [requested(step=step)]),
            store.append(beside, [Fact(requested().event, 1, "other", "turn_2", step)]),
        )
    assert [one.seq for one in await store.read(AGENT)] == list(range(1, 14))
    assert await store.verify() == []
    await store.close()


async def test_messages_sent_at_once_are_rows_of_one_append_each_and_rebuilt_rows_are_the_same(path: Path) -> None:
    store = await SqliteStore.open(path)
    await store.admit(AGENT, [created()])
    names = [f"m{number:02}" for number in range(20)]
    await asyncio.gather(*(store.admit(AGENT, [queued(name, at=NOON + 1)]) for name in names))
    before = [await store.message(name) for name in names], await store.busy_threads()
    await store.rebuild_views()
    assert before == ([await store.message(name) for name in names], await store.busy_threads())
    await store.close()
    database = apsw.Connection(str(path))
    assert database.execute("SELECT count(*) FROM appends").get == 1 + len(names)
    assert database.execute("SELECT seq FROM agents").get == 1 + len(names)
    database.close()


async def test_what_may_become_due_is_looked_at_for_a_queue_that_begins_and_not_for_each_message_behind_it(
    path: Path,
) -> None:
    store = await SqliteStore.open(path)
    await store.admit(AGENT, [created()])
    watch, heard = store.watch_wakes(), list[str]()
    admitted = ""
    watch.call_on_commit(lambda: heard.append(admitted))
    for admitted in ("m1", "m2", "m3"):
        await store.admit(AGENT, [queued(admitted)])
    await asyncio.gather(*(store.admit(AGENT, [queued(f"n{number}")]) for number in range(5)))
    assert heard == ["m1"]
    claim = await store.claim_thread(AGENT, THREAD, "t1")
    await store.append(claim, [takes("t1", "m1")])
    await store.append(claim, [replace(ended("t1"), at=NOON + 9)], last=True)
    assert heard == ["m1", "m3"], "the thread was let go"
    watch.close()
    await store.close()


async def test_inversion_a_row_that_is_put_takes_the_place_of_the_one_that_is_there(path: Path) -> None:
    """Messages sent at once are not looked up: the database refuses a second row of an id, where it is added."""
    store = await SqliteStore.open(path)
    await store.admit(AGENT, [created(), queued("m1")])
    row = await store.message("m1")
    assert row is not None
    connection = connect(path)
    tables = SqliteTables(Statements(connection))
    other = {MESSAGES: {("m1",): row._replace(thread_id="elsewhere")}}
    with pytest.raises(apsw.ConstraintError):
        tables.write(1, other, new=(MESSAGES,))
    assert await store.message("m1") == row
    tables.write(1, other)
    assert await store.message("m1") == row._replace(thread_id="elsewhere")
    connection.close()
    await store.close()
