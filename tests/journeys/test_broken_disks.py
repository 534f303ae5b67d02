"""Disks that fail under a `Runtime`: each a clear error, the other agents unharmed, and no restart when it is over."""

import asyncio
import shutil
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from unit.store.sqlite.disks import FullDisk
from wakeful import Agent, Runtime
from wakeful.errors import StoreDamaged, StoreFull, StoreReadOnly
from wakeful.store.sqlite.store import SqliteStore
from wakeful.testing import FixedClock, scripted

COMMIT = ("commit", "-q", "--allow-empty", "-m", "first")


async def said(rt: Runtime, agent: str) -> str:
    return str((await rt.answer(await rt.send(agent, "Hello?"))).output)


def agents(asked: list[str] | None = None) -> list[Agent[Any, Any]]:
    def reply(request: Any) -> str:
        if asked is not None:
            asked.append(request.history[-1].text)
        return "done"

    return [Agent(name, scripted(reply)) for name in ("ops", "desk")]


@pytest.mark.parametrize(("says", "problem"), [("full", StoreFull), ("read-only", StoreReadOnly)])
async def test_a_disk_that_takes_nothing_refuses_what_it_cannot_keep_and_goes_on_when_it_does(
    tmp_path: Path, says: str, problem: type[Exception]
) -> None:
    disk, asked = FullDisk(f"runtime-{says}"), list[str]()
    disk.says = says
    store = await SqliteStore.open(tmp_path / "wakeful.db", vfs=disk.name)
    try:
        async with Runtime(store=store, agents=agents(asked)) as rt:
            assert await said(rt, "ops") == "done"
            disk.full = True
            with pytest.raises(problem) as told:
                await rt.send("ops", "Nobody keeps this.")
            assert str(tmp_path / "wakeful.db") in str(told.value) and told.value.hint
            assert [each.control for each in await rt.agents()] == ["running", "running"], "it can be read"
            assert "ops" in (await rt.why("ops")).sentence
            disk.full = False
            assert await said(rt, "ops") == "done"
            assert await said(rt, "desk") == "done"
            assert "Nobody keeps this." not in asked, "what was refused was not kept"
    finally:
        await store.close()


async def test_a_turn_that_meets_a_full_disk_is_finished_once_there_is_room(tmp_path: Path) -> None:
    disk = FullDisk("runtime-in-a-turn")
    store = await SqliteStore.open(tmp_path / "wakeful.db", vfs=disk.name)
    begun, calls = asyncio.Event(), list[str]()

    def reply(request: Any) -> str:
        calls.append(request.history[-1].text)
        if len(calls) == 1:
            disk.full = True
            begun.set()
        return "done"

    try:
        both = [Agent("ops", scripted(reply)), Agent("desk", scripted(["fine"]))]
        async with Runtime(store=store, agents=both) as rt:
            sent = await rt.send("ops", "Check the backups.")
            await begun.wait()
            assert "no room left" in await sentence(rt, "ops", "is held up")
            disk.full = False
            assert await said(rt, "desk") == "fine"
            assert (await rt.answer(sent)).output == "done"
            assert "owes nothing" in await sentence(rt, "ops", "owes nothing")
            assert [each.control for each in await rt.agents()] == ["running", "running"]
    finally:
        await store.close()


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap for a small disk of its own")
def test_a_real_disk_without_room_and_with_room_again(tmp_path: Path) -> None:
    program = """
        import asyncio, os, pathlib
        from wakeful import Agent, Runtime
        from wakeful.errors import StoreFull
        from wakeful.testing import FixedClock, scripted

        ballast = pathlib.Path("/small/ballast")

        async def main():
            agents = [Agent(name, scripted(lambda request: "done")) for name in ("ops", "desk")]
            async with Runtime("/small/home", agents=agents) as rt:
                print((await rt.answer(await rt.send("ops", "one"))).output)
                try:
                    with ballast.open("wb", buffering=0) as file:
                        while True:
                            file.write(bytes(4096))
                except OSError as error:
                    print(error.strerror)
                refused = 0
                while not refused:
                    try:
                        await rt.send("ops", "x" * 20_000)
                    except StoreFull as problem:
                        refused += 1
                        print(problem.hint)
                print([each.control for each in await rt.agents()])
                ballast.unlink()
                for name in ("ops", "desk"):
                    print((await rt.answer(await rt.send(name, "two"))).output)

        asyncio.run(main())
    """
    small = ("bwrap", "--dev-bind", "/", "/", "--size", str(16 * 1024 * 1024), "--tmpfs", "/small")
    done = subprocess.run(
        [*small, sys.executable, "-c", textwrap.dedent(program)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if "bwrap:" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "done",
        "No space left on device",
        "Free some space and try again; the store stays usable.",
        "['running', 'running']",
        "done",
        "done",
    ]


async def test_a_slow_sync_holds_up_acknowledgements_and_nothing_else(tmp_path: Path) -> None:
    import threading

    gate, slow = threading.Event(), threading.Event()
    gate.set()

    def sync(_: int) -> None:
        slow.set()
        gate.wait()

    store = await SqliteStore.open(tmp_path / "wakeful.db", sync=sync)
    try:
        async with Runtime(store=store, agents=agents()) as rt:
            assert await said(rt, "ops") == "done"
            gate.clear()
            slow.clear()
            sending = asyncio.create_task(rt.send("ops", "Hello?"))
            await asyncio.to_thread(slow.wait)
            assert not sending.done(), "nothing is acknowledged before it is safe"
            assert {each.agent for each in await rt.agents()} == {"ops", "desk"}, "readers are not held up"
            gate.set()
            assert (await rt.answer(await sending)).output == "done"
    finally:
        gate.set()
        await store.close()


async def sentence(rt: Runtime, agent: str, words: str) -> str:
    """What `why` says, once it has these words."""
    async for _ in looks():
        if words in (found := (await rt.why(agent)).sentence):
            return found
    raise AssertionError("looks never end")


async def looks() -> AsyncIterator[None]:
    while True:
        yield
        await asyncio.sleep(0.02)


async def test_a_workspace_that_is_gone_holds_up_its_agent_alone_until_it_is_back(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    both = [Agent("ops", scripted(lambda _: "done"), workspace=folder), Agent("desk", scripted(lambda _: "fine"))]
    clock = FixedClock()
    async with Runtime(tmp_path / "home", agents=both, clock=clock) as rt:
        assert await said(rt, "ops") == "done"
        folder.rmdir()
        waiting = await rt.send("ops", "Check the shop.")
        assert str(folder) in await sentence(rt, "ops", "is held up")
        assert await said(rt, "desk") == "fine"
        assert (await rt.agent("ops")).control == "running"
        folder.mkdir()
        await rt.settled()
        clock.advance(60)
        await rt.settled()
        assert (await rt.answer(waiting)).output == "done"


async def test_a_worktree_that_somebody_deleted_is_left_and_its_agent_goes_on_elsewhere(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    for words in (("init", "-q", "-b", "main"), ("-c", "user.name=a", "-c", "user.email=a@b", *COMMIT)):
        subprocess.run(("git", *words), cwd=repo, check=True, capture_output=True)
    both = [Agent("ops", scripted(lambda _: "done"), workspace=repo), Agent("desk", scripted(lambda _: "fine"))]
    clock = FixedClock()
    async with Runtime(tmp_path / "home", agents=both, clock=clock) as rt:
        used = await rt.use_workspace("ops", repo, mode="isolated")
        assert used.worktree_session is not None
        place = used.worktree_session.worktree_path
        assert await said(rt, "ops") == "done"
        shutil.rmtree(place)
        waiting = await rt.send("ops", "Go on.")
        assert place in await sentence(rt, "ops", "is held up")
        assert await said(rt, "desk") == "fine"
        await rt.use_workspace("ops", repo)
        await rt.settled()
        clock.advance(60)
        await rt.settled()
        assert (await rt.answer(waiting)).output == "done"


async def test_a_row_that_somebody_edited_is_named_and_harms_no_other_agent(tmp_path: Path) -> None:
    async with Runtime(tmp_path, agents=agents()) as rt:
        sent = await rt.send("ops", "Hello?")
        assert (await rt.answer(sent)).output == "done"
        other = apsw.Connection(str(tmp_path / "wakeful.db"))
        kept = other.execute("SELECT body, id FROM appends WHERE id >> 40 = 1").fetchall()
        other.execute("UPDATE appends SET body = zeroblob(length(body)) WHERE id >> 40 = 1")
        with pytest.raises(StoreDamaged, match="is not what was written") as told:
            await rt.answer(sent)
        assert "agent ops" in told.value.message
        assert await said(rt, "desk") == "done"
        told_of = [(each.envelope.agent_id, each.presentation.title) for each in await rt.tail(display="verbose")]
        assert ("ops", "Unreadable") in told_of and ("ops", "Message") not in told_of
        assert ("desk", "Message") in told_of, "and the feed over all agents goes on"
        other.executemany("UPDATE appends SET body = ? WHERE id = ?", kept)
        other.close()
        assert (await rt.answer(sent)).output == "done"
        assert await said(rt, "ops") == "done"


@pytest.mark.parametrize("becomes", ["a file with something else", "a folder"])
async def test_a_memory_index_that_cannot_be_read_is_told_and_made_again(tmp_path: Path, becomes: str) -> None:
    heard = list[str]()

    def reply(request: Any) -> Any:
        heard.append(str(request.history[-1]))
        if len(heard) % 2:
            return {"calls": [{"name": "memory_search", "arguments": {"query": "backups"}}]}
        return "done"

    both = [Agent("ops", scripted(reply), memory=True), Agent("desk", scripted(lambda _: "fine"))]
    async with Runtime(tmp_path, agents=both) as rt:
        assert await said(rt, "ops") == "done"
        (index,) = (tmp_path / "wakeful.db.memory").glob("*.sqlite3")
        for path in index.parent.iterdir():
            path.unlink()
        if becomes == "a folder":
            index.mkdir()
        else:
            index.write_bytes(b"this is no database " * 500)
        assert await said(rt, "ops") == "done", "the search still finds what is on record"
        assert await said(rt, "desk") == "fine"
        if becomes == "a folder":
            assert "cannot be written and is in memory" in heard[-1]
            index.rmdir()
        else:
            assert "was unusable and is made again" in heard[-1]
        assert await said(rt, "ops") == "done"
        assert "index" not in heard[-1] and index.is_file()
