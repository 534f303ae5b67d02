"""A pass of retention, killed before and after every one of its steps: the chain verifies, nothing open is touched, and
the next pass comes to what an undisturbed one comes to.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import apsw
import pytest

from wakeful.bootstrap.stores import opened_store
from wakeful.testing.crash_rows import find_misfits

POINTS = int(os.environ.get("WAKEFUL_KILL_POINTS", "8"))
"""How many of its steps a pass is killed at."""
PROGRAM = '''
import asyncio, os, signal, sys
from pathlib import Path

from wakeful import Agent, Retention, run, tool
from wakeful.bootstrap.stores import opened_store
from wakeful.runtime.retention import RetentionPass
from wakeful.testing import FixedClock, scripted

PATH, MODE, AT = sys.argv[1], sys.argv[2], int(sys.argv[3])
STEPS = ("expire_events", "bundle_rows", "cut_log", "finish_cuts", "doubt_outputs", "remove_blob", "sweep_blobs",
         "release_space", "set_retention_mark")


@tool(effect="pure")
def look(order: str) -> str:
    """Look."""
    return "a line of a log\\n" * 8_000 if order == "log" else "on its way"


@tool(effect="irreversible", approval=True)
def refund(order: str) -> str:
    """Refund."""
    return "refunded"


def shop(name, *calls):
    said = [{"calls": [{"name": call, "arguments": {"order": order}}]} for call, order in calls]
    return Agent(name, scripted([*said, "done"]), tools=[look, refund])


class Killed:
    """The steps of a store, counted; the process ends at the one that is meant, before it or after it."""

    def __init__(self, inner):
        self.inner, self.count = inner, 0

    def __getattr__(self, name):
        step = getattr(self.inner, name)
        if name not in STEPS:
            return step

        async def counted(*given, **named):
            self.point()
            done = await step(*given, **named)
            self.point()
            return done

        return counted

    def point(self):
        self.count += 1
        if self.count == AT:
            os.kill(os.getpid(), signal.SIGKILL)


async def main():
    if MODE == "make":
        await run(shop("a", ("look", "log")), "look", store=PATH, thread="chat")
        await run(shop("a", ("look", "log"), ("look", "x")), "look", store=PATH, thread="chat")
        for _ in range(12):
            await run(shop("a", ("look", "x")), "look", store=PATH, thread="chat")
        for _ in range(3):
            await run(shop("b", ("look", "x")), "look", store=PATH)
        await run(shop("c", ("look", "x")), "look", store=PATH, key="k")
        await run(shop("d", ("refund", "A17")), "refund", store=PATH)
        async with opened_store(PATH) as store:
            await store.put_blob(b"nobody names this", "text/plain")
            await store.put_blob(b"nor this" * 200_000, "text/plain")
        return
    clock = FixedClock(4_000_000_000_000_000)
    async with opened_store(PATH) as store:
        await store.retention.sweep_blobs(now=clock.now() - 10**12, grace=10**12)
        store.retention = killed = Killed(store.retention)
        await RetentionPass(store, clock, Retention()).run()
        print(killed.count)


asyncio.run(main())
'''


def child(path: Path, mode: str, at: int = 0) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path), mode, str(at)], capture_output=True, text=True, timeout=120
    )


async def state(path: Path) -> dict[str, Any]:
    async with opened_store(path) as store:
        rows = await store.turns()
        kinds: dict[str, list[str]] = {}
        for row in rows:
            facts = await store.read(row.agent_id, turn_id=row.turn_id)
            kinds.setdefault(row.agent_name, []).extend(each.fact.event.kind for each in facts)
        return {
            "damage": await store.verify(),
            "misfits": await find_misfits(store),
            "turns": sorted((row.agent_name, row.state) for row in rows),
            "kinds": kinds,
            "waiting": [row.tool_name for row in await store.actions(pending_only=True)],
            "costs": len(await store.turn_costs()),
            "bundles": apsw.Connection(str(path)).execute("SELECT count(*) FROM bundles").get,
        }


def copy(source: Path, target: Path) -> Path:
    target.mkdir()
    for each in source.parent.glob("runs.db*"):
        subprocess.run(["cp", "-r", str(each), str(target / each.name)], check=True)
    return target / "runs.db"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("made") / "runs.db"
    done = child(path, "make")
    assert done.returncode == 0, done.stderr
    return path


async def test_killed_at_every_step_the_log_is_whole_and_the_next_pass_goes_on(made: Path, tmp_path: Path) -> None:
    before = await state(made)
    undisturbed = copy(made, tmp_path / "undisturbed")
    done = child(undisturbed, "pass")
    assert done.returncode == 0, done.stderr
    steps, wanted = int(done.stdout), await state(undisturbed)
    assert wanted["damage"] == wanted["misfits"] == []
    assert wanted["turns"] == [*[("a", "completed")] * 14, ("c", "completed"), ("d", "suspended")]
    assert (wanted["waiting"], wanted["costs"]) == (["refund"], before["costs"])
    assert wanted["kinds"]["d"] == before["kinds"]["d"]  # what waits for an approval keeps all of its events
    assert "event.expired" in wanted["kinds"]["a"]
    assert (before["bundles"], wanted["bundles"]) == (0, 1)
    chosen = {1, 2, *range(3, steps + 1, max(1, steps // POINTS)), steps}
    for at in sorted(chosen):
        path = copy(made, tmp_path / f"at-{at}")
        assert child(path, "pass", at).returncode == -9
        killed = await state(path)
        assert (killed["damage"], killed["misfits"], killed["waiting"]) == ([], [], ["refund"]), f"killed at {at}"
        again = child(path, "pass")
        assert again.returncode == 0, f"killed at {at}: {again.stderr}"
        assert await state(path) == wanted, f"killed at {at}"
