"""Owners that are processes: killed, stopped, gone in peace."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kit.runs.store_facts import TURN, admitted, requested
from wakeful.contracts.errors import AgentBusy
from wakeful.store.leases import elapsed
from wakeful.store.sqlite import SqliteStore
from wakeful.store.sqlite.owners import Owners

HOLDER = """
import asyncio, sys
from wakeful.store.sqlite import SqliteStore

async def hold():
    store = await SqliteStore.open(sys.argv[1])
    await store.claim(sys.argv[2])
    print("claimed", flush=True)
    await asyncio.sleep(3600)

asyncio.run(hold())
"""


@contextmanager
def another_process(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has claimed the turn and holds on to it."""
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(path), TURN], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "claimed\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


async def opened(path: Path, clock: Callable[[], float] = elapsed) -> SqliteStore:
    store = await SqliteStore.open(path, clock=clock)
    if await store.turn(TURN) is None:
        await admitted(store)
    return store


async def test_a_process_that_was_killed_is_replaced_at_once(tmp_path: Path) -> None:
    store = await opened(tmp_path / "runs.db")
    with another_process(tmp_path / "runs.db") as process:
        with pytest.raises(AgentBusy, match=f"process {process.pid} on"):
            await store.claim(TURN)
        process.kill()
        process.wait()
        claim = await store.claim(TURN)
    assert (claim.fresh, claim.lease_epoch) == (False, 2)
    await store.append(claim, [requested()])
    await store.close()


async def test_a_process_that_is_stopped_keeps_its_agent_until_the_lease_runs_out(tmp_path: Path) -> None:
    ahead = 0.0
    store = await opened(tmp_path / "runs.db", lambda: elapsed() + ahead)
    with another_process(tmp_path / "runs.db") as process:
        os.kill(process.pid, signal.SIGSTOP)
        with pytest.raises(AgentBusy):
            await store.claim(TURN)
        ahead = 31.0
        assert (await store.claim(TURN)).lease_epoch == 2
    await store.close()


async def test_who_leaves_in_peace_takes_its_file_along_and_what_the_dead_left_is_swept(tmp_path: Path) -> None:
    folder = tmp_path / "runs.db.owners"
    store = await opened(tmp_path / "runs.db")
    with another_process(tmp_path / "runs.db"):
        assert len(list(folder.iterdir())) == 4  # a lock and a bell each
    await store.close()
    assert len(list(folder.iterdir())) == 2  # the killed one's
    store = await opened(tmp_path / "runs.db")
    assert len(list(folder.iterdir())) == 2  # ours
    await store.close()
    assert not folder.exists()


def test_the_living_are_not_swept_and_two_who_look_at_once_see_the_same(tmp_path: Path) -> None:
    one = Owners(tmp_path / "runs.db")
    two = Owners(tmp_path / "runs.db")
    assert one.alive(two.me)
    assert two.alive(one.me)
    holder = one.holder(two.me)
    assert holder is not None
    assert holder.pid == os.getpid()
    two.close()
    assert not one.alive(two.me)
    assert one.holder(two.me) is None
    one.close()
