"""Other processes are told what was committed, and each watch wakes for its own feed."""

import asyncio
import socket
import tempfile
from pathlib import Path

import pytest

from kit.runs.store_facts import AGENT, message
from wakeful.store.sqlite import SqliteStore
from wakeful.store.sqlite.doorbell import LARGEST, Doorbell
from wakeful.store.sqlite.owners import Owners
from wakeful.store.watches import Wake


class Side:
    """A process's bell, and what it heard."""

    def __init__(self, path: Path) -> None:
        self.heard: asyncio.Queue[Wake | None] = asyncio.Queue()
        self.owners = Owners(path)
        self.bell = Doorbell(self.owners, self.heard.put_nowait, lambda: self.heard.put_nowait(None))

    def close(self) -> None:
        self.bell.close()
        self.owners.close()


@pytest.mark.parametrize("below", [".", "x" * 90 + "/" + "y" * 90], ids=["short", "longer than the name of a socket"])
async def test_who_is_there_hears_what_was_committed_and_who_came(tmp_path: Path, below: str) -> None:
    (tmp_path / below).mkdir(parents=True, exist_ok=True)
    one = Side(tmp_path / below / "runs.db")
    two = Side(tmp_path / below / "runs.db")
    assert await one.heard.get() is None, "somebody came: look around"
    wakes = [Wake("a", "t", "all"), Wake("a", None, "outsiders")]
    one.bell.ring(wakes)
    one.bell.ring(wakes[:1])
    assert [await two.heard.get() for _ in wakes] == wakes
    two.bell.ring([Wake("a" * LARGEST, "t", "lease")])
    assert await one.heard.get() is None, "too long to be said: look"
    two.close()
    one.bell.ring(wakes)  # to nobody
    await asyncio.sleep(0)
    one.close()
    assert not (tmp_path / below / "runs.db.owners").exists()
    assert two.heard.empty()


async def test_what_is_no_message_of_ours_is_passed_over() -> None:
    with tempfile.TemporaryDirectory() as folder:  # the name of a socket is short, and the folder of a test is not
        await passed_over(Path(folder) / "runs.db")


async def passed_over(path: Path) -> None:
    one, two = Side(path), Side(path)
    await one.heard.get()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as stranger:
        for said in (b"\xff", b"{}", b"[1]", b'[["a"]]', b"null"):
            stranger.sendto(said, str(one.owners.bell(one.owners.me)))
    two.bell.ring([Wake("a", "t", "all")])
    assert await one.heard.get() == Wake("a", "t", "all")
    two.close()
    one.close()


async def test_without_a_bell_what_others_commit_is_found_by_looking_and_wakes_its_own_feed_alone(
    tmp_path: Path,
) -> None:
    store, other = [await SqliteStore.open(tmp_path / "runs.db") for _ in range(2)]
    for bell in (tmp_path / "runs.db.owners").glob("*.bell"):
        bell.unlink()
    mine, theirs = store.watch(AGENT), store.watch("agent_2")
    await other.admit("agent_2", [message("turn_2")])
    await theirs.wait()
    waiting = asyncio.ensure_future(mine.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    waiting.cancel()
    await store.close()
    await other.close()


async def test_without_a_bell_a_thread_whose_owner_is_gone_wakes_who_waits_for_it(tmp_path: Path) -> None:
    store, other = [await SqliteStore.open(tmp_path / "runs.db") for _ in range(2)]
    await other.admit(AGENT, [message()])
    await other.claim("turn_1")
    for bell in (tmp_path / "runs.db.owners").glob("*.bell"):
        bell.unlink()
    watch = store.watch(AGENT, thread_id="main", feed="lease")
    await other.close()  # without letting go: as a process that ended
    await watch.wait()
    await store.claim("turn_1")
    await store.close()
