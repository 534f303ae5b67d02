"""Rows of an older store: they stay, they are read together with the new ones, and none are added.

`logs/0.1.0` of the replay tests is such a store: one row a fact.
"""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from kit.runs.store_facts import message, requested
from wakeful.contracts.errors import StoreDamaged, StoreRewound
from wakeful.ports import Store
from wakeful.store.sqlite import SqliteStore
from wakeful.store.sqlite.connection import connect
from wakeful.store.sqlite.migrations import backup_path, shipped

OLD = Path(__file__).parents[3] / "replay" / "logs" / "0.1.0" / "log.sqlite"
MIGRATING = """
import os, signal, sys
from pathlib import Path
from wakeful.store.sqlite.connection import connect
from wakeful.store.sqlite.migrations import migrate, shipped
path, steps = Path(sys.argv[1]), int(sys.argv[2])
connection = connect(path)
left = iter(range(steps))
connection.set_progress_handler(lambda: next(left, None) is None and os.kill(os.getpid(), signal.SIGKILL), 5)
migrate(connection, path, shipped())
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return Path(shutil.copy(OLD, tmp_path / "log.sqlite"))


async def everything(store: Store) -> list[object]:
    return [entry for agent_id in await store.agents() for entry in await store.read(agent_id)]


def rows(path: Path, table: str) -> int:
    connection = connect(path)
    try:
        return int(connection.execute(f"SELECT count(*) FROM {table}").get)
    finally:
        connection.close()


async def goes_on(store: Store, agent_id: str) -> None:
    """A new turn in the thread of an old one."""
    await store.admit(agent_id, [message("turn_new", thread="main")])
    claim = await store.claim("turn_new")
    await store.append(claim, [requested("turn_new", step=1), requested("turn_new", step=2)])
    await store.release(claim)


async def test_an_older_stream_goes_on_in_the_new_form_and_is_read_as_one(path: Path) -> None:
    store = await SqliteStore.open(path)
    await store.rebuild_views()  # versions since have made them in another way
    before = await everything(store)
    agent_id = (await store.turns())[0].agent_id
    old = await store.read(agent_id)
    single = rows(path, "events")
    await goes_on(store, agent_id)
    assert rows(path, "events") == single, "what was written stays as it is"
    read = await store.read(agent_id)
    assert read[: len(old)] == old
    assert [entry.fact.turn_id for entry in read[len(old) :]] == ["turn_new"] * 3
    assert await store.read(agent_id, after=len(old) - 1) == read[-4:]
    assert await store.read(agent_id, turn_id="turn_new") == read[-3:]
    for row in await store.turns():
        whole = [entry for entry in await store.read(row.agent_id) if entry.fact.turn_id == row.turn_id]
        assert await store.read(row.agent_id, turn_id=row.turn_id) == whole
        assert await store.turn_reader(row.agent_id, row.turn_id)() == whole
    rebuilt = await store.turns(), await store.unknown()
    await store.rebuild_views()
    assert (await store.turns(), await store.unknown()) == rebuilt
    assert await store.verify() == []
    assert [entry for entry in await everything(store) if entry in before] == before
    await store.close()


async def test_changed_bytes_of_an_older_row_are_found(path: Path) -> None:
    store = await SqliteStore.open(path)
    agent_id = (await store.turns())[0].agent_id
    await goes_on(store, agent_id)
    await store.close()
    connection = connect(path)
    connection.execute("UPDATE events SET body = CAST(body || 'x' AS BLOB) WHERE id & 0xffffffff = 3")
    connection.close()
    store = await SqliteStore.open(path)
    with pytest.raises(StoreDamaged, match="event 3 "):
        await store.read(agent_id)
    assert agent_id in {found.agent_id for found in await store.verify()}
    await store.close()


async def test_no_program_of_an_older_version_adds_rows_of_the_old_form(path: Path) -> None:
    await (await SqliteStore.open(path)).close()
    connection = connect(path)
    with pytest.raises(apsw.ConstraintError, match="newer wakeful"):
        connection.execute("INSERT INTO events (id, header, body, hash) VALUES (1, x'', x'', x'')")
    connection.close()


async def test_inversion_without_the_lock_rows_of_the_old_form_get_into_a_stream_that_went_on(path: Path) -> None:
    store = await SqliteStore.open(path)
    agent_id = (await store.turns())[0].agent_id
    await goes_on(store, agent_id)
    await store.close()
    connection = connect(path)
    connection.execute("DROP TRIGGER events_are_closed")
    late = "SELECT max(id) + 100, header, body, hash FROM events GROUP BY id >> 40"
    connection.execute(f"INSERT INTO events (id, header, body, hash) {late}")
    connection.close()
    with pytest.raises(StoreRewound, match=agent_id):
        await SqliteStore.open(path)


async def test_an_older_store_that_lost_its_end_is_refused_before_it_is_changed(path: Path) -> None:
    """The anchor of the store before its update holds for the updated one, too."""
    before = path.with_name("before.sqlite")
    shutil.copy(path, before)
    store = await SqliteStore.open(path)
    await goes_on(store, (await store.turns())[0].agent_id)
    await store.close()
    shutil.copy(before, path)
    with pytest.raises(StoreRewound):
        await SqliteStore.open(path)
    assert path.read_bytes() == before.read_bytes()


async def test_an_update_that_is_killed_anywhere_loses_nothing(path: Path, tmp_path: Path) -> None:
    store = await SqliteStore.open(Path(shutil.copy(path, tmp_path / "undisturbed.sqlite")))
    expected = await everything(store)
    await store.close()
    killed = finished = 0
    steps = 1
    while not finished:
        place = Path(shutil.copy(path, tmp_path / f"killed_{steps}.sqlite"))
        ran = subprocess.run([sys.executable, "-c", MIGRATING, str(place), str(steps)], check=False, env=os.environ)
        assert ran.returncode in (0, -signal.SIGKILL)
        killed += ran.returncode != 0
        finished += ran.returncode == 0
        version = int(apsw.Connection(str(place)).pragma("user_version"))
        store = await SqliteStore.open(place)
        assert await everything(store) == expected
        assert await store.verify() == []
        await goes_on(store, (await store.turns())[0].agent_id)
        await store.close()
        if version < shipped()[-1].version:
            backup = await SqliteStore.open(Path(shutil.copy(backup_path(place, version), tmp_path / "copy.sqlite")))
            assert await everything(backup) == expected
            await backup.close()
            for left in tmp_path.glob("copy.sqlite*"):
                left.unlink()
        steps = steps * 2
    assert killed > 3
