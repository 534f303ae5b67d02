"""Opening: settings, migrations and their backups, and files that are something else."""

import asyncio
import fcntl
import signal
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from kit.runs.store_facts import AGENT, admitted
from wakeful.contracts.errors import StoreDamaged, StoreProblem, StoreTooNew
from wakeful.ports import DispatchRow
from wakeful.ports.threads import THREADS
from wakeful.ports.turns import TURNS, TURNS_OF_THREAD
from wakeful.store.sqlite import SqliteStore
from wakeful.store.sqlite.anchor import forget_anchor
from wakeful.store.sqlite.connection import Statements, connect
from wakeful.store.sqlite.migrations import Migration, backup_path, migrate, shipped
from wakeful.store.sqlite.new_file import PAGE_BYTES
from wakeful.store.sqlite.tables import SqliteTables


async def made(path: Path) -> Path:
    store = await SqliteStore.open(path)
    await admitted(store)
    await store.close()
    return path


async def test_a_store_is_made_where_it_is_named_and_keeps_its_name_and_identity(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "runs.db"
    with pytest.raises(StoreProblem, match="there is no folder") as refused:
        await SqliteStore.open(str(path))
    assert "mkdir -p " in refused.value.hint and not path.parent.exists(), "a misspelt path makes nothing"
    path.parent.mkdir()
    store = await SqliteStore.open(str(path))
    identity = store.runtime_id
    assert store.location == str(path)
    await store.close()
    again = await SqliteStore.open(path)
    assert again.runtime_id == identity
    assert identity.startswith("rt_")
    await again.close()
    assert [file.name for file in path.parent.iterdir()] == ["runs.db"]


async def test_every_connection_has_the_settings_durability_rests_on(tmp_path: Path) -> None:
    path = await made(tmp_path / "runs.db")
    connection = connect(path)
    read = {name: connection.pragma(name) for name in ("journal_mode", "synchronous", "auto_vacuum")}
    connection.close()
    assert read == {"journal_mode": "wal", "synchronous": 1, "auto_vacuum": 2}


async def test_statements_are_compiled_once_whatever_values_they_get(tmp_path: Path) -> None:
    connection = connect(await made(tmp_path / "runs.db"))
    tables = SqliteTables(Statements(connection))
    asked: list[str] = []

    def may(operation: int, what: str | None, *_: str | None) -> int:
        asked.append(f"{operation} {what}")  # SQLite asks whenever it compiles, and never when it runs
        return apsw.SQLITE_OK

    def read(name: str) -> int:
        asked.clear()
        tables.get(TURNS, (name,))
        tables.get(THREADS, (AGENT, name))
        tables.page(TURNS, TURNS_OF_THREAD, (AGENT, name))
        return len(asked)

    connection.authorizer = may
    times = [read(name) for name in ("one", "another", "a third")]
    connection.close()

    assert times[0] > 0
    assert times[1:] == [0, 0]


async def test_the_log_has_no_index_besides_its_own_order(tmp_path: Path) -> None:
    connection = connect(await made(tmp_path / "runs.db"))
    assert (
        connection.execute("SELECT name FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'events'").fetchall()
        == []
    )
    connection.close()


async def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    path.write_text("these are notes, " * 100)
    with pytest.raises(StoreDamaged, match="is not a database") as refused:
        await SqliteStore.open(path)
    assert refused.value.hint
    assert path.read_text() == "these are notes, " * 100


async def test_a_database_of_somebody_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE recipes (name)")
    connection.close()
    with pytest.raises(StoreDamaged, match="not one of wakeful's"):
        await SqliteStore.open(path)
    connection = apsw.Connection(str(path))
    assert [row[0] for row in connection.execute("SELECT name FROM sqlite_schema")] == ["recipes"]
    connection.close()


async def test_a_folder_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreProblem, match=r"runs\.db"):
        await SqliteStore.open(tmp_path / "file" / "runs.db")
    with pytest.raises(StoreProblem, match=tmp_path.name):
        await SqliteStore.open(tmp_path)


async def test_a_store_of_a_newer_version_is_refused_with_both_versions_and_the_command(tmp_path: Path) -> None:
    path = await made(tmp_path / "runs.db")
    newest = shipped()[-1].version
    connection = apsw.Connection(str(path))
    connection.execute(f"PRAGMA user_version = {newest + 7}")
    connection.close()
    with pytest.raises(StoreTooNew, match=rf"version {newest + 7}; .* up to {newest}") as refused:
        await SqliteStore.open(path)
    assert "pip install --upgrade wakeful" in refused.value.hint


async def test_an_older_store_is_copied_before_it_is_changed(tmp_path: Path) -> None:
    path = await made(tmp_path / "runs.db")
    now = shipped()
    step = Migration(now[-1].version + 1, "CREATE TABLE added (x) STRICT".replace("(x)", "(x TEXT)"))
    connection = connect(path)
    migrate(connection, path, [*now, step])
    migrate(connection, path, [*now, step])  # a second time changes nothing
    assert connection.pragma("user_version") == step.version
    assert connection.execute("SELECT count(*) FROM appends").get == 2
    connection.close()
    backup = apsw.Connection(str(backup_path(path, now[-1].version)))
    assert backup.pragma("user_version") == now[-1].version
    assert backup.execute("SELECT count(*) FROM appends").get == 2
    assert backup.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'added'").get == 0
    backup.close()
    copy = tmp_path / "copy.db"
    backup_path(path, now[-1].version).rename(copy)
    store = await SqliteStore.open(copy)  # whole by itself
    assert len(await store.read(AGENT)) == 2
    await store.close()


async def test_a_migration_that_fails_leaves_the_store_as_it_was(tmp_path: Path) -> None:
    path = await made(tmp_path / "runs.db")
    now = shipped()
    broken = Migration(now[-1].version + 1, "CREATE TABLE added (x TEXT); INSERT INTO nowhere VALUES (1)")
    connection = connect(path)
    with pytest.raises(apsw.SQLError):
        migrate(connection, path, [*now, broken])
    assert connection.pragma("user_version") == now[-1].version
    connection.close()
    store = await SqliteStore.open(path)
    assert len(await store.read(AGENT)) == 2
    await store.close()


async def test_a_damaged_page_is_found_and_named(tmp_path: Path) -> None:
    path = await made(tmp_path / "runs.db")
    connection = connect(path)
    page = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'appends'").get
    size = connection.pragma("page_size")
    connection.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    store = await SqliteStore.open(path)
    with pytest.raises(StoreDamaged) as damaged:
        await store.read(AGENT)
    assert damaged.value.agent_id == AGENT
    assert {found.agent_id for found in await store.verify()} == {"", AGENT}
    await store.close()


@pytest.mark.parametrize("there", [False, True])
async def test_a_new_database_is_the_same_however_it_is_made(tmp_path: Path, there: bool) -> None:
    path = tmp_path / "runs.db"
    if there:
        path.touch()  # empty, and somebody's: SQLite makes the database in it
    await made(path)
    connection = connect(path)
    assert {name: connection.pragma(name) for name in ("page_size", "auto_vacuum", "journal_mode", "user_version")} == {
        "page_size": PAGE_BYTES,
        "auto_vacuum": 2,
        "journal_mode": "wal",
        "user_version": shipped()[-1].version,
    }
    assert connection.pragma("integrity_check") == "ok"
    connection.close()


async def test_two_who_make_a_database_at_once_get_the_same_one(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    stores = await asyncio.gather(*(SqliteStore.open(path) for _ in range(4)))
    assert len({store.runtime_id for store in stores}) == 1
    for store in stores:
        await store.close()
    assert [file.name for file in tmp_path.iterdir()] == ["runs.db"]


async def test_what_is_left_of_a_database_that_was_deleted_is_not_taken_for_the_new_ones(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    store = await SqliteStore.open(path)
    await admitted(store)
    left = (tmp_path / "runs.db-wal").read_bytes()
    await store.close()
    path.unlink()
    forget_anchor(path)  # on purpose
    (tmp_path / "runs.db-wal").write_bytes(left)
    store = await SqliteStore.open(path)
    assert (await store.agents(), await store.verify()) == ([], [])
    await store.close()


async def test_a_lease_by_agent_becomes_one_for_each_thread_in_which_something_is_open(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    old = apsw.Connection(str(path))
    migrate(old, path, shipped()[:6])
    put_agent = "INSERT INTO agents (id, agent_id, hash, owner, epoch, expires) VALUES (?, ?, x'00', ?, ?, ?)"
    old.execute(put_agent, (1, "clerk", "own_1", 4, 99.5))
    old.execute(put_agent, (2, "other", None, 7, 1.0))
    put_turn = "INSERT INTO turns VALUES (?, ?, ?, 'a', ?, ?, 1, 1, 1, 1, NULL, '', '', '[]', 0, ?, 0, 1)"
    for number, (agent, thread, ended) in enumerate([(1, "t", 5), (1, "u", None), (1, "u", None), (1, "v", None)]):
        state = "running" if ended is None else "completed"
        old.execute(put_turn, (number + 1, f"turn_{number}", agent, thread, state, ended))
    old.execute("INSERT INTO late_owners VALUES (1, 'own_0', 3)")
    migrate(old, path, shipped())
    held = [(1, "u", "own_1", 4, 99.5), (1, "v", "own_1", 4, 99.5)]
    assert old.execute("SELECT * FROM leases ORDER BY agent, thread_id").fetchall() == held
    assert old.execute("SELECT * FROM late_owners").fetchall() == [(1, "u", "own_0", 3), (1, "v", "own_0", 3)]
    with pytest.raises(apsw.SQLError, match="no such column"):  # a process of an older version writes nothing more
        old.execute("UPDATE agents SET owner = 'own_1', epoch = 5 WHERE id = 1")
    old.close()


async def test_what_an_older_store_called_task_runs_are_dispatches_with_their_events(
    tmp_path: Path,
) -> None:
    path = tmp_path / "runs.db"
    old = apsw.Connection(str(path))
    migrate(old, path, shipped()[:12])
    put = "INSERT INTO task_runs VALUES (?, ?, ?, 's', 'running', '{}', 2, 5, 7)"
    for number, (run_id, kind) in enumerate([("a", "task"), ("b", "package"), ("c", "task")], 1):
        old.execute(put, (number, run_id, kind))
    old.execute("INSERT INTO task_run_events VALUES ('a', 1, 5, 'task_run_started', '{}'), ('a', 2, 7, 'told', '1')")
    old.close()
    store = await SqliteStore.open(path)
    runs = store.dispatches
    assert [row.run_id for row in await runs.all("target")] == ["c", "a"]
    assert [row.run_id for row in await runs.all("package")] == ["b"]
    assert await runs.get("a") == DispatchRow("a", "target", "s", "running", "{}", 2, 5, 7)
    assert [(event.seq, event.name) for event in await runs.events("a")] == [(1, "task_run_started"), (2, "told")]
    assert await runs.change("a", 2, "done", "{}", at=9, event="ended", payload="{}")
    assert await store.verify() == [] and backup_path(path, 12).exists()
    await store.close()


KILLED_WHILE_IT_MAKES = """
import os, signal, sys
from pathlib import Path
from wakeful.store.sqlite.new_file import put_new

given = os.link
def link(*names):
    if sys.argv[1] == "named":
        given(*names)
    os.kill(os.getpid(), signal.SIGKILL)

os.link = link
put_new(Path("runs.db"))
"""


@pytest.mark.parametrize("moment", ["unnamed", "named"])
async def test_what_a_process_left_that_was_killed_while_it_made_a_store_is_removed_by_the_next(
    tmp_path: Path, moment: str
) -> None:
    line = [sys.executable, "-c", KILLED_WHILE_IT_MAKES, moment]
    assert (await asyncio.to_thread(subprocess.run, line, cwd=tmp_path)).returncode == -signal.SIGKILL
    (left,) = tmp_path.glob("runs.db.*.new")
    others = [tmp_path / "runs.db.new", tmp_path / "other.db.0123456789abcdef.new", tmp_path / "runs.db.0123.new"]
    for other in others:
        other.touch()
    making = tmp_path / "runs.db.fedcba9876543210.new"
    with making.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        store = await SqliteStore.open(str(tmp_path / "runs.db"))
        await store.close()
        assert not left.exists()
        assert making.exists(), "somebody is at work on it"
    assert all(other.exists() for other in others), "they are nothing of ours"
