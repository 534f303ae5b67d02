"""Only its owner may read a store, whatever the umask says and whatever rights it had."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from wakeful import Agent, run, tool
from wakeful.store.sqlite import SqliteStore
from wakeful.store.sqlite.anchor import anchor_path
from wakeful.store.sqlite.migrations import backup_path, migrate, shipped
from wakeful.testing import scripted

LARGE = b"secret " * 200_000


@pytest.fixture(params=[0o000, 0o022, 0o077, 0o777], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def rights(folder: Path) -> dict[str, str]:
    """Everything below a folder with its rights; numbers that differ from run to run as `*`."""
    found = {}
    for path in sorted(folder.rglob("*")):
        inner = path.relative_to(folder).parts
        name = inner[0] if len(inner) == 1 else f"{inner[0]}/*"
        mode = stat.S_IMODE(path.stat().st_mode)
        kind = "folder" if path.is_dir() else "file"
        assert found.setdefault(f"{name} {kind}", oct(mode)) == oct(mode), path
    return found


PRIVATE = {
    "runs.db file": "0o600",
    "runs.db-shm file": "0o600",
    "runs.db-wal file": "0o600",
    "runs.db.blobs folder": "0o700",
    "runs.db.blobs/* file": "0o600",
    "runs.db.blobs/* folder": "0o700",
    "runs.db.owners folder": "0o700",
    "runs.db.owners/* file": "0o600",
}


async def test_a_new_store_is_its_owners_alone(tmp_path: Path, umask: int) -> None:
    (tmp_path / "made").mkdir()
    (tmp_path / "made").chmod(0o755)
    store = await SqliteStore.open(tmp_path / "made" / "runs.db")
    await store.put_blob(LARGE, "text/plain")
    assert rights(tmp_path / "made") == PRIVATE
    await store.close()


async def test_a_store_that_others_could_read_is_narrowed_when_it_is_opened(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    folder.mkdir()
    store = await SqliteStore.open(folder / "runs.db")
    await store.put_blob(LARGE, "text/plain")
    anchor_path(folder / "runs.db").touch()
    for path in folder.rglob("*"):
        path.chmod(0o777 if path.is_dir() else 0o666)
    backup_path(folder / "runs.db", 1).write_bytes(b"an older copy")
    assert any(mode[-1] != "0" for mode in rights(folder).values()), "without it others read on"
    again = await SqliteStore.open(folder / "runs.db")
    assert rights(folder) == PRIVATE | {"runs.db.v1.backup file": "0o600", "runs.db-anchor file": "0o600"}
    await again.close()
    await store.close()


async def test_a_copy_of_an_older_store_is_its_owners_alone(tmp_path: Path, umask: int) -> None:
    path = tmp_path / "runs.db"
    old = apsw.Connection(str(path))
    migrate(old, path, shipped()[:1])
    old.close()
    path.chmod(0o644)
    store = await SqliteStore.open(path)
    await store.close()
    assert stat.S_IMODE(backup_path(path, 1).stat().st_mode) == 0o600
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_a_store_made_by_sqlite_itself_is_its_owners_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        (tmp_path / "runs.db-wal").touch()  # so that no whole database can be put in its place
        store = await SqliteStore.open(tmp_path / "runs.db")
        assert {mode for name, mode in rights(tmp_path).items() if name.endswith("file")} == {"0o600"}
        await store.close()
    finally:
        os.umask(before)


async def test_a_run_leaves_nothing_that_others_can_read(tmp_path: Path) -> None:
    @tool
    def long() -> str:
        """A result too large for a row."""
        return "x" * 2_000_000

    before = os.umask(0)
    try:
        model = scripted([{"calls": [{"name": "long", "arguments": {}}]}, "done"])
        (tmp_path / "kept").mkdir()
        await run(Agent("clerk", model, tools=[long]), "go", store=tmp_path / "kept" / "runs.db")
    finally:
        os.umask(before)
    found = rights(tmp_path / "kept")
    assert set(found.values()) == {"0o600", "0o700"} and "runs.db.blobs/* file" in found
