"""Rows made again in SQLite: in steps, whatever was wrong with them, killed anywhere, and while others write."""

import os
import re
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import pytest

from contract.store.test_tables import all_rows
from kit.runs.store_facts import AGENT, message, queued, session
from kit.runs.table_facts import OTHER, tell
from wakeful.contracts.errors import StoreDamaged
from wakeful.store.encoding import OUTSIDER, encode
from wakeful.store.sqlite import SqliteReader, SqliteStore
from wakeful.store.sqlite.connection import connect, is_rebuild_due
from wakeful.store.sqlite.rebuild import STEP, rebuild
from wakeful.store.sqlite.streams import SHIFT

SPOILT = """
UPDATE turns SET state = 'running', prompt_preview = 'no', created_at = 1;
DELETE FROM messages WHERE rowid_of(message_id) % 2;
INSERT INTO busy_threads SELECT id, 'nowhere', 3, 3 FROM agents;
UPDATE threads SET turns = 99, began_at = 1;
DELETE FROM artifacts;
UPDATE spending SET spent = '77';
DELETE FROM wakes;
UPDATE feed SET visibility = 'trace', is_result = 0;
UPDATE agents SET name = 'nobody';
"""
"""Rows that are wrong, also in fields that never change, that are missing, and that nothing stands for."""
REBUILDING = """
import os, signal, sys
from pathlib import Path
from wakeful.store.sqlite.connection import connect
from wakeful.store.sqlite.rebuild import rebuild
path, upto, done = Path(sys.argv[1]), int(sys.argv[2]), 0
def count():
    global done
    done += 1
    return done == upto and os.kill(os.getpid(), signal.SIGKILL)
def again():
    connection = connect(path)
    connection.set_progress_handler(count, 20)
    return connection
rebuild(again, path, 5.0)
print(done)
"""
"""Says how many times it was asked while it worked; or is killed when it was asked so many times."""


def rebuilt(path: Path, upto: int = 0) -> subprocess.CompletedProcess[bytes]:
    program = [sys.executable, "-c", REBUILDING, str(path), str(upto)]
    return subprocess.run(program, check=False, env=os.environ, stdout=subprocess.PIPE)


async def spoilt(path: Path) -> dict[str, Any]:
    """A store with the story of all tables, whose rows somebody has spoilt; and what they were."""
    store = await SqliteStore.open(path)
    await tell(store)
    right = await all_rows(store)
    await store.close()
    connection = connect(path)
    connection.create_scalar_function("rowid_of", lambda name: len(name))
    connection.execute(SPOILT)
    connection.close()
    return right


async def test_wrong_missing_and_needless_rows_are_mended(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    right = await spoilt(path)
    store = await SqliteStore.open(path)
    assert await all_rows(store) != right
    await store.rebuild_views()
    assert await all_rows(store) == right
    assert store._connection.execute("SELECT DISTINCT name FROM agents WHERE name = 'nobody'").get is None
    await store.close()


async def test_a_rebuild_that_is_killed_anywhere_is_begun_again_by_whoever_opens_the_store(tmp_path: Path) -> None:
    place = tmp_path / "spoilt.db"
    right = await spoilt(place)
    whole = int(rebuilt(Path(shutil.copy(place, tmp_path / "whole.db"))).stdout)
    cut_off = 0
    for share in (1, 60, 90, 99):
        path = Path(shutil.copy(place, tmp_path / f"killed_{share}.db"))
        assert rebuilt(path, max(1, whole * share // 100)).returncode == -signal.SIGKILL
        connection = connect(path)
        is_due = is_rebuild_due(connection)
        connection.close()
        cut_off += is_due
        store = await SqliteStore.open(path)
        assert not is_due or await all_rows(store) == right, "opened, it is mended"
        await store.rebuild_views()
        assert await all_rows(store) == right
        assert not is_rebuild_due(store._connection) and await store.verify() == []
        await store.close()
    assert 0 < cut_off < 4, "some kills fell before its first step, some into its middle"


async def test_a_store_whose_rebuild_was_cut_off_is_read_from_a_copy_where_it_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    right = await spoilt(path)
    connection = connect(path)
    connection.execute("INSERT INTO meta VALUES ('rebuild', 'under way')")
    connection.close()
    before = path.read_bytes()
    reader = await SqliteReader.open(path)
    assert await all_rows(reader) == right
    await reader.close()
    assert path.read_bytes() == before


async def test_others_write_between_the_steps_of_a_rebuild(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    store = await SqliteStore.open(path, sync=lambda descriptor: None)
    for number in range(3 * STEP):
        await store.admit(AGENT, [*([session()] if number == 0 else []), queued(f"q{number}")])
    await store.close()
    connection = connect(path)
    connection.execute("DELETE FROM messages")
    said: list[str] = []

    def again() -> apsw.Connection:
        other = connect(path)
        other.exec_trace = lambda cursor, sql, values: said.append(sql.split()[0]) is None  # type: ignore[func-returns-value]
        return other

    rebuild(again, path, 5.0)
    steps = re.findall(r"BEGIN (.*?) (?:COMMIT)", " ".join(said))
    written = [step.split().count("INSERT") for step in steps]
    assert sum(written) > 3 * STEP and max(written) <= STEP + 1, "a short transaction a page"
    assert connection.execute("SELECT count(*) FROM messages").get == 3 * STEP
    connection.close()


async def test_what_is_appended_between_two_steps_is_in_the_rows(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    await spoilt(path)
    store = await SqliteStore.open(path)
    names = iter(range(1_000))

    def again() -> apsw.Connection:
        other = connect(path)

        def appended(cursor: apsw.Cursor, sql: str, values: Any) -> bool:
            if sql == "BEGIN IMMEDIATE":  # in the order of things: right before the step takes its lock
                facts = [message(f"late {next(names)}", thread="side")]
                store._connection.execute("BEGIN IMMEDIATE")
                store._log.admit(OTHER, facts, encode(facts, OUTSIDER))
                store._connection.execute("COMMIT")
            return True

        other.exec_trace = appended
        return other

    rebuild(again, path, 5.0)
    assert next(names) > 3
    live = await all_rows(store)
    await store.rebuild_views()
    assert await all_rows(store) == live
    await store.close()


async def test_a_log_that_cannot_be_read_leaves_all_rows_alone_unless_the_store_is_being_opened(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    right = await spoilt(path)
    connection = connect(path)
    number = connection.execute("SELECT id FROM agents WHERE agent_id = ?", (OTHER,)).get
    connection.execute("UPDATE appends SET body = x'00' WHERE id >> ? = ?", (SHIFT, number))
    store = await SqliteStore.open(path)
    before = await all_rows(store)
    with pytest.raises(StoreDamaged):
        await store.rebuild_views()
    assert await all_rows(store) == before
    await store.close()
    rebuild(partial(connect, path), path, 5.0, leave_damaged=True)
    again = await SqliteStore.open(path)
    rows = await all_rows(again)
    assert [row for row in rows["turns"] if row.agent_id == OTHER] == [
        row for row in before["turns"] if row.agent_id == OTHER
    ]
    assert [row for row in rows["turns"] if row.agent_id != OTHER] == [
        row for row in right["turns"] if row.agent_id != OTHER
    ]
    assert rows["spending"] == before["spending"], "what the damaged log added to it is not known"
    assert not is_rebuild_due(connection)
    connection.close()
    await again.close()
