"""The anchor: a log that lost its end is refused, and a healthy one never is."""

import os
import shutil
import signal
import stat
import struct
import subprocess
import sys
import zlib
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import apsw
import pytest

from kit.runs.store_facts import AGENT, TURN, admitted, message, started
from unit.store.sqlite.disks import FullDisk
from wakeful.contracts.errors import StoreDamaged, StoreFull, StoreProblem, StoreRewound
from wakeful.ports import Damage
from wakeful.store import chain
from wakeful.store.chain import SALT
from wakeful.store.encoding import link_row, read_row
from wakeful.store.row_compression import pack
from wakeful.store.sqlite import SqliteStore
from wakeful.store.sqlite.anchor import HEADER_BYTES, RECORD_BYTES, anchor_path, forget_anchor, read_anchor
from wakeful.store.sqlite.reader import SqliteReader
from wakeful.store.sqlite.streams import SHIFT

KEY = b"the secret of a home, 32 bytes.."
WRITER = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from kit.runs.store_facts import TURN, admitted, requested, started
from wakeful.store.sqlite import SqliteStore

async def main():
    store = await SqliteStore.open(sys.argv[1])
    await admitted(store)
    claim = await store.claim(TURN)
    for number in range(int(sys.argv[3])):
        await store.append(claim, [started() if number == 0 else requested()], barrier=True)
    print("written", flush=True)
    await asyncio.sleep(3600)

asyncio.run(main())
"""


def killed_while_open(path: Path, appends: int = 6) -> Path:
    """A store whose process was killed: everything that it wrote is in the write-ahead log."""
    tests = str(Path(__file__).parents[3])
    command = [sys.executable, "-c", WRITER, str(path), tests, str(appends)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "written\n"
        os.kill(process.pid, signal.SIGKILL)
    return path


def copied(path: Path, folder: Path) -> Path:
    """The store as it stands, somewhere else."""
    folder.mkdir()
    for ending in ("", "-wal", "-anchor"):
        if Path(f"{path}{ending}").exists():
            shutil.copy(f"{path}{ending}", folder)
    return folder / path.name


async def events_in(path: Path) -> int:
    store = await SqliteStore.open(path)
    try:
        return len(await store.read(AGENT))
    finally:
        await store.close()


async def refused(path: Path) -> StoreRewound:
    with pytest.raises(StoreRewound) as found:
        await SqliteStore.open(path)
    assert f"wakeful store forget {path}" in found.value.hint
    return found.value


# --- what is lost is noticed ------------------------------------------------------------------------------------------


async def test_a_flipped_bit_anywhere_in_the_write_ahead_log_is_refused_and_not_rewound(tmp_path: Path) -> None:
    path = killed_while_open(tmp_path / "runs.db")
    whole = await events_in(copied(path, tmp_path / "whole"))
    wal = Path(f"{path}-wal").read_bytes()
    frames = range(32, len(wal), 24 + 2048)
    assert len(frames) > 20
    for number, frame in enumerate(frames):
        here = copied(path, tmp_path / f"bit-{number}")
        damaged = bytearray(wal)
        damaged[frame + 24 + (number * 37) % 2048] ^= 1 << number % 8
        Path(f"{here}-wal").write_bytes(damaged)
        error = await refused(here)
        assert "-wal is damaged or missing" in error.hint
    assert await events_in(path) == whole, "the one that was left alone"


async def test_inversion_without_the_anchor_the_same_flipped_bit_rewinds_the_log_without_a_word(tmp_path: Path) -> None:
    path = killed_while_open(tmp_path / "runs.db")
    whole = await events_in(copied(path, tmp_path / "whole"))
    wal = bytearray(Path(f"{path}-wal").read_bytes())
    wal[len(wal) - 100] ^= 1
    Path(f"{path}-wal").write_bytes(wal)
    anchor_path(path).unlink()
    assert await events_in(path) < whole


@pytest.mark.parametrize("cut", [0, 1000, 20_000])
async def test_a_write_ahead_log_that_is_gone_or_cut_off_is_refused(tmp_path: Path, cut: int) -> None:
    path = killed_while_open(tmp_path / "runs.db")
    if cut:
        os.truncate(f"{path}-wal", cut)
    else:
        Path(f"{path}-wal").unlink()
    error = await refused(path)
    assert "lost the end of its log" in error.message


async def closed(path: Path, turns: Sequence[str] = (TURN,)) -> None:
    """Some turns, and a clean end."""
    store = await SqliteStore.open(path)
    for turn in turns:
        await store.admit(AGENT, [message(turn)]) if turn != TURN else await admitted(store)
    await store.close()


async def test_a_deleted_an_emptied_and_an_older_database_are_refused_also_after_a_clean_end(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    await closed(path)
    older = path.read_bytes()
    await closed(path, ["turn_2"])
    path.write_bytes(older)
    error = await refused(path)
    assert (error.agent_id, error.sequence) == (AGENT, 2)
    assert "replaced by an older copy" in error.hint
    os.truncate(path, 0)
    assert "is empty" in (await refused(path)).message
    path.unlink()
    assert "is gone" in (await refused(path)).message
    assert not path.exists(), "looking makes nothing"


async def test_a_database_without_tables_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    await closed(path)
    path.unlink()
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE t (x); DROP TABLE t")
    connection.close()
    assert "is empty" in (await refused(path)).message


async def test_of_several_processes_the_newest_commit_of_each_is_held_to(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    one, two = await SqliteStore.open(path), await SqliteStore.open(path)
    await admitted(one)
    before = path.read_bytes(), Path(f"{path}-wal").read_bytes()
    await two.admit("agent_2", [message("turn_2")])
    await one.admit(AGENT, [message("turn_3")])
    lost = tmp_path / "lost" / "runs.db"
    lost.parent.mkdir()
    lost.write_bytes(before[0])
    Path(f"{lost}-wal").write_bytes(before[1])
    shutil.copy(anchor_path(path), lost.parent)
    await refused(lost)
    await two.close()
    await one.close()
    anchored = read_anchor(path)
    assert anchored is not None
    assert [(mark.agent, mark.seq) for mark in sorted(anchored.marks)] == [(1, 3), (2, 1)]
    assert anchored.closed


# --- a healthy store is never refused ---------------------------------------------------------------------------------


async def test_the_anchor_is_its_owners_alone_and_says_whether_the_end_was_clean(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    store = await SqliteStore.open(path)
    assert not anchor_path(path).exists(), "there is nothing to say yet"
    await admitted(store)
    assert stat.S_IMODE(anchor_path(path).stat().st_mode) == 0o600
    running = read_anchor(path)
    other = await SqliteStore.open(path)
    await store.close()
    left = read_anchor(path)
    await other.close()
    assert running is not None and not running.closed
    assert left is not None and not left.closed, "somebody else uses the store"


async def test_a_store_without_an_anchor_opens_and_gets_one(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    await closed(path)
    anchor_path(path).unlink()
    await closed(path, ["turn_2"])
    anchored = read_anchor(path)
    assert anchored is not None and [mark.seq for mark in anchored.marks] == [3]
    assert anchored.since == 1, "an agent that was there before owes no record"


async def test_a_record_that_is_torn_anywhere_counts_as_none(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    await closed(path)
    old = anchor_path(path).read_bytes()
    await closed(path, ["turn_2"])
    new = anchor_path(path).read_bytes()
    assert len(old) == len(new) == HEADER_BYTES + RECORD_BYTES
    for at in range(HEADER_BYTES, len(new) + 1):
        anchor_path(path).write_bytes(new[:at] + old[at:])
        assert await events_in(path) == 3


@pytest.mark.parametrize("content", [b"", b"\0" * 5000, b"these are notes", b"wakeful\x01" * 1000])
async def test_a_file_that_is_no_anchor_is_none_and_is_written_over(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "runs.db"
    await closed(path)
    anchor_path(path).write_bytes(content)
    await closed(path, ["turn_2"])
    anchored = read_anchor(path)
    assert anchored is not None and [mark.seq for mark in anchored.marks] == [3]


async def test_an_anchor_that_cannot_be_written_does_not_stop_the_store(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "runs.db"
    anchor_path(path).mkdir()
    with pytest.raises(StoreProblem, match="could not be used"):  # nobody can say how far the log had come
        await SqliteStore.open(path)
    anchor_path(path).rmdir()
    store = await SqliteStore.open(path)
    anchor_path(path).mkdir()
    await admitted(store)
    await store.admit(AGENT, [message("turn_2")])
    assert [record.message for record in caplog.records if "runs.db-anchor cannot be written" in record.message]
    assert len(caplog.records) == 1, "said once"
    await store.close()


async def test_what_was_rolled_back_is_never_in_the_anchor(tmp_path: Path) -> None:
    """A commit that fails takes its records with it: an anchor that is ahead would refuse a healthy store."""
    path, disk = tmp_path / "runs.db", FullDisk("full-anchored")
    store = await SqliteStore.open(path, vfs=disk.name)
    await admitted(store)
    claim = await store.claim(TURN)
    disk.full = True
    with pytest.raises(StoreFull):
        await store.append(claim, [started()])
    disk.full = False
    await store.release(claim)
    await store.sync()
    await store.close()
    assert await events_in(path) == 2


# --- on purpose -------------------------------------------------------------------------------------------------------


async def test_after_forgetting_a_restored_copy_is_used_and_anchored_anew(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    await closed(path)
    older = path.read_bytes()
    await closed(path, ["turn_2"])
    path.write_bytes(older)
    await refused(path)
    assert forget_anchor(path) == 1
    assert await events_in(path) == 2
    await closed(path, ["turn_3"])
    assert await events_in(path) == 3
    assert forget_anchor(tmp_path / "another.db") == 0


# --- a chain that was computed anew -----------------------------------------------------------------------------------


def forge(path: Path, agent: int, agent_id: str) -> None:
    """Change what was said in the log of an agent, and compute its chain anew, as somebody would who knows how."""
    connection = apsw.Connection(str(path))
    previous = chain.origin(agent_id)
    sql = "SELECT id, header, body FROM appends WHERE id > ? AND id < ? ORDER BY id"
    for number, header, body in connection.execute(sql, (agent << SHIFT, agent + 1 << SHIFT)).fetchall():
        said = b"".join(entry.payload for entry in read_row(1, header, body))
        changed = body[:SALT] + pack(said.replace(b"what is 1 + 1?", b"what is 2 + 2?"))
        previous = link_row(previous, header, changed, read_row(1, header, changed))
        connection.execute("UPDATE appends SET body = ?, hash = ? WHERE id = ?", (changed, previous, number))
    connection.execute("UPDATE agents SET hash = ? WHERE id = ?", (previous, agent))
    connection.close()


def forge_record(path: Path, agent: int) -> None:
    """Let the anchor say what the forged log says, with everything but the secret."""
    connection = apsw.Connection(str(path))
    seq, digest = connection.execute("SELECT seq, hash FROM agents WHERE id = ?", (agent,)).fetchall()[0]
    connection.close()
    record = struct.pack("<Q32s16s4x", seq, digest, bytes(16))
    with anchor_path(path).open("r+b") as file:
        file.seek(HEADER_BYTES + (agent - 1) * RECORD_BYTES)
        file.write(record + struct.pack("<I", zlib.crc32(record)))


async def two_agents(path: Path, key: bytes | None) -> None:
    store = await SqliteStore.open(path, key=key)
    await admitted(store)
    await store.admit("agent_2", [message("turn_2")])
    await store.close()


async def damage(path: Path, key: bytes | None) -> list[Damage]:
    store = await SqliteStore.open(path, key=key)
    try:
        return await store.verify()
    finally:
        await store.close()


async def test_a_log_that_was_written_anew_with_its_chain_is_found_in_every_agent(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    await two_agents(path, None)
    assert await damage(path, None) == []
    forge(path, 1, AGENT)
    with pytest.raises(StoreRewound, match="is not the one that was written"):
        await damage(path, None)


async def test_where_the_anchor_is_keyed_a_forger_who_writes_its_record_too_is_found(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    await two_agents(path, KEY)
    assert await damage(path, KEY) == []
    forge(path, 1, AGENT)
    forge_record(path, 1)
    (found,) = await damage(path, KEY)
    assert (found.agent_id, found.seq) == (AGENT, 2)
    assert "no valid seal of this home" in found.what


async def test_inversion_without_a_key_that_forger_is_not_found(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    await two_agents(path, None)
    forge(path, 1, AGENT)
    forge_record(path, 1)
    assert await damage(path, None) == []


async def test_a_record_that_was_wiped_and_a_seal_of_another_home_are_found(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    await two_agents(path, KEY)
    (found,) = await damage(path, b"another home, another secret....")
    assert "not sealed with the secret of this home" in found.what
    with anchor_path(path).open("r+b") as file:
        file.seek(HEADER_BYTES)
        file.write(bytes(RECORD_BYTES))
    (found,) = await damage(path, KEY)
    assert (found.agent_id, "has no record in" in found.what, found.is_unproven) == (AGENT, True, True)


async def test_a_store_that_was_without_a_home_is_sealed_from_its_first_use_with_one(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    await two_agents(path, None)
    store = await SqliteStore.open(path, key=KEY)
    await store.admit("agent_3", [message("turn_3")])
    await store.close()
    assert [found.agent_id for found in await damage(path, KEY)] == [AGENT, "agent_2"], "not vouched for yet"


async def test_a_damaged_anchor_of_a_damaged_database_hides_nothing(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    await two_agents(path, KEY)
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE appends SET body = CAST(body || 'x' AS BLOB) WHERE id = ?", (1 << SHIFT | 1,))
    connection.close()
    store = await SqliteStore.open(path, key=KEY)
    with pytest.raises(StoreDamaged):
        await store.read(AGENT)
    await store.close()


# --- what is left is not made worse -----------------------------------------------------------------------------------


@pytest.mark.parametrize("read", [SqliteStore.open, SqliteReader.open])
async def test_a_refused_store_stays_as_it_was_found(
    tmp_path: Path, read: Callable[[Path], Awaitable[SqliteReader]]
) -> None:
    """Closing the last connection would copy the healthy part of the write-ahead log and delete the rest."""
    path = killed_while_open(tmp_path / "runs.db")
    log = Path(f"{path}-wal")
    damaged = bytearray(log.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    log.write_bytes(damaged)
    before = path.read_bytes()
    with pytest.raises(StoreRewound):
        await read(path)
    assert (path.read_bytes(), log.read_bytes()) == (before, bytes(damaged))
    damaged[len(damaged) // 2] ^= 1
    log.write_bytes(damaged)
    assert await events_in(path) > 0, "mended by hand, it is whole again"


@pytest.mark.parametrize("length", [0, 1, HEADER_BYTES - 1])
async def test_an_anchor_that_is_cut_off_while_it_is_in_use_is_written_anew(tmp_path: Path, length: int) -> None:
    path = tmp_path / "runs.db"
    store = await SqliteStore.open(path)
    await admitted(store)
    claim = await store.claim(TURN)
    os.truncate(anchor_path(path), length)
    await store.append(claim, [started()], barrier=True)
    seen = len(await store.read(AGENT))
    anchored = read_anchor(path)
    assert anchored is not None and [mark.seq for mark in anchored.marks] == [seen]
    await store.close()
