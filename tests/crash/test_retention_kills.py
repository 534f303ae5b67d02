"""A pass of retention, killed before and after every one of its steps: the chain verifies, nothing open is touched, and
the next pass comes to what an undisturbed one comes to.
"""

import os
import subprocess
from pathlib import Path
from typing import Any

import apsw
import pytest

from crash import retention_process
from crash.forked import Ended, run_forked
from wakeful.bootstrap.stores import opened_store
from wakeful.testing.crash_rows import find_misfits

POINTS = int(os.environ.get("WAKEFUL_KILL_POINTS", "8"))
"""How many of its steps a pass is killed at; 0: all."""


def child(path: Path, mode: str, at: int = 0) -> Ended:
    return run_forked(retention_process.main, path, mode, at)


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
    assert done.returncode == 0, done.said
    return path


async def test_killed_at_every_step_the_log_is_whole_and_the_next_pass_goes_on(made: Path, tmp_path: Path) -> None:
    before = await state(made)
    undisturbed = copy(made, tmp_path / "undisturbed")
    done = child(undisturbed, "pass")
    assert done.returncode == 0, done.said
    steps, wanted = int(done.said), await state(undisturbed)
    assert wanted["damage"] == wanted["misfits"] == []
    assert wanted["turns"] == [
        *[("a", "completed")] * 14,
        ("c", "completed"),
        ("d", "suspended"),
        *[("e", "completed")] * 2,
    ]
    assert (wanted["waiting"], wanted["costs"]) == (["refund"], before["costs"])
    assert wanted["kinds"]["d"] == before["kinds"]["d"]  # what waits for an approval keeps all of its events
    assert "event.expired" in wanted["kinds"]["a"]
    said = {"message.admitted", "assistant.recorded", "tool.result"}
    assert said.isdisjoint(wanted["kinds"]["e"])  # a thread that was deleted
    assert (before["bundles"], wanted["bundles"]) == (0, 1)
    chosen = {1, 2, *range(3, steps + 1, max(1, steps // (POINTS or steps))), steps}
    for at in sorted(chosen):
        path = copy(made, tmp_path / f"at-{at}")
        assert child(path, "pass", at).returncode == -9
        killed = await state(path)
        assert (killed["damage"], killed["misfits"], killed["waiting"]) == ([], [], ["refund"]), f"killed at {at}"
        again = child(path, "pass")
        assert again.returncode == 0, f"killed at {at}: {again.said}"
        assert await state(path) == wanted, f"killed at {at}"
