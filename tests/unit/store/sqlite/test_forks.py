"""Forked children: they keep no lock of their parent's, and may not use its store."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kit.runs.store_facts import TURN
from wakeful.store.sqlite import SqliteStore

OWNER = """
import asyncio, os, sys, time
sys.path.insert(0, sys.argv[2])
from kit.runs.store_facts import TURN, admitted
from wakeful.store.sqlite import SqliteStore

async def main():
    store = await SqliteStore.open(sys.argv[1])
    await admitted(store)
    await store.claim(TURN)
    if sys.argv[3] == "kept":  # without the rule: the child gets a handle of the lock that it does not know of
        os.dup(store._owners._descriptor)
    child = os.fork()
    if child == 0:
        print("forked", os.getpid(), flush=True)
        time.sleep(3600)
        os._exit(0)
    await asyncio.sleep(3600)

asyncio.run(main())
"""
CHILD = """
import asyncio, multiprocessing, os, sys
sys.path.insert(0, sys.argv[2])
from kit.runs.store_facts import TURN, admitted
from wakeful import Agent, run_sync
from wakeful.contracts.errors import StoreProblem
from wakeful.providers.scripted import ScriptedModel
from wakeful.store.sqlite import SqliteReader, SqliteStore

async def uses(store, path):
    for use in (store.turns, lambda: store.turn(TURN), store.sync, lambda: store.claim(TURN),
                lambda: store.admit("agent_1", []), lambda: SqliteStore.open(path), lambda: SqliteReader.open(path)):
        try:
            await use()
            print("used", flush=True)
        except StoreProblem as problem:
            print("refused", str(os.getppid()) in problem.message, "spawn" in problem.hint, flush=True)

def by_path(path):
    try:
        run_sync(Agent("a", ScriptedModel(["hello"])), "go", store=path)
        print("ran", flush=True)
    except StoreProblem as problem:
        print("refused", str(os.getppid()) in problem.message, "spawn" in problem.hint, flush=True)

async def main(path):
    store = await SqliteStore.open(path)
    await admitted(store)
    if sys.argv[3] == "os.fork":
        child = os.fork()
        if child == 0:
            asyncio.events._set_running_loop(None)
            asyncio.run(uses(store, path))
            os._exit(0)
        os.waitpid(child, 0)
    else:
        child = multiprocessing.get_context(sys.argv[3]).Process(target=by_path, args=(path,))
        child.start()
        child.join()
    assert len(await store.turns()) >= 1 and await store.verify() == []
    await store.admit("agent_2", [])
    await store.close()
    print("whole", flush=True)

if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
"""
TESTS = str(Path(__file__).parents[3])


def forked_and_killed(path: Path, how: str) -> int:
    """An owner that forked a child and was killed: the child, which lives on."""
    command = [sys.executable, "-c", OWNER, str(path), TESTS, how]
    owner = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    word, child = owner.stdout.readline().split()
    assert word == "forked"
    owner.kill()
    owner.wait()
    owner.stdout.close()
    return int(child)


async def test_when_its_owner_dies_a_turn_is_taken_over_though_a_forked_child_lives(tmp_path: Path) -> None:
    child = forked_and_killed(tmp_path / "runs.db", "forked")
    try:
        store = await SqliteStore.open(tmp_path / "runs.db")
        claim = await store.claim(TURN)
        assert (claim.fresh, claim.taken_from) == (False, "dead")
        await store.close()
    finally:
        os.kill(child, signal.SIGKILL)


async def test_inversion_a_child_that_keeps_the_lock_makes_its_dead_parent_look_alive(tmp_path: Path) -> None:
    child = forked_and_killed(tmp_path / "runs.db", "kept")
    try:
        store = await SqliteStore.open(tmp_path / "runs.db")
        with pytest.raises(Exception, match="is being run by"):
            await store.claim(TURN)
        await store.close()
    finally:
        os.kill(child, signal.SIGKILL)


def said(path: Path, how: str) -> list[str]:
    program = path.with_name("program.py")
    program.write_text(CHILD)
    command = [sys.executable, str(program), str(path), TESTS, how]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_forked_child_is_refused_its_parents_store_by_object_and_by_path(tmp_path: Path) -> None:
    assert said(tmp_path / "runs.db", "os.fork") == ["refused True True"] * 7 + ["whole"]


@pytest.mark.parametrize(("how", "word"), [("fork", "refused True True"), ("spawn", "ran")])
def test_so_is_a_child_of_multiprocessing_that_runs_an_agent_and_one_that_is_spawned_is_not(
    tmp_path: Path, how: str, word: str
) -> None:
    assert said(tmp_path / "runs.db", how) == [word, "whole"]
