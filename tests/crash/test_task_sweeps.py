"""A runtime is killed at a commit of the life of a task, and started again.

The ends differ: a command that was no task yet dies with its runtime, and its outcome is unknown. A call whose task was
made is answered with that task, whether its result was stored or not. This holds everywhere: the command ran at most
once, each task ended once and was told once, and no process is left.
"""

import json
import os
import random
from collections import Counter
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from crash import swept_task
from crash.forked import run_forked
from kit.gates.confined_commands import alive, marker, place_outside, until
from wakeful.contracts.events import AnyEvent, MessageAdmitted, TaskCreated, TaskEnded, ToolFailed, ToolResult
from wakeful.store.sqlite import SqliteStore

SEED = int(os.environ.get("WAKEFUL_KILL_SEED", datetime.now(UTC).toordinal()))
POINTS = int(os.environ.get("WAKEFUL_KILL_POINTS", "6"))
"""Kills; 0: all there are."""


def lived(folder: Path, name: str, *point: str) -> int:
    """One process of the runtime, to its end; the status that it ended with."""
    command = f": {name}; echo ran >> ran; sleep 0.3; echo done"
    (folder / "work").mkdir(exist_ok=True)
    return run_forked(swept_task.main, folder, command, point).returncode


async def log_of(folder: Path) -> list[AnyEvent]:
    store = await SqliteStore.open(str(folder / "home" / "wakeful.db"))
    try:
        return [entry.fact.event for entry in await store.read("ops")]
    finally:
        await store.close()


def is_gone(name: str) -> bool:
    return alive(name) == []


def ran(folder: Path) -> int:
    file = folder / "work" / "ran"
    return len(file.read_text().splitlines()) if file.exists() else 0


async def test_a_call_whose_task_was_made_before_the_kill_is_answered_with_the_task() -> None:
    with place_outside() as folder:
        name = marker()
        assert lived(folder, name, "fact", "task.created", "after") == -9
        assert [each.kind for each in await log_of(folder) if each.kind in ("task.created", "tool.result")] == [
            "task.created"
        ]
        assert lived(folder, name) == 0
        events = await log_of(folder)
        (made,) = [each for each in events if isinstance(each, TaskCreated)]
        (result,) = [each for each in events if isinstance(each, ToolResult)]
        assert not [each for each in events if isinstance(each, ToolFailed)], "nothing is unknown"
        told = json.loads(result.item.text)
        assert (told["disposition"], told["task_handle"]["task_id"]) == ("promoted_to_task", made.task_id)
        assert result.details == {"task_id": made.task_id, "disposition": "promoted_to_task"}
        assert ran(folder) == 1


async def test_a_task_that_is_killed_anywhere_runs_once_and_is_told_once() -> None:
    ends: Counter[str] = Counter()
    with place_outside() as folder:
        assert lived(folder, marker()) == 0
        points = [tuple(map(str, each)) for each in json.loads((folder / "points.json").read_text())]
        assert ran(folder) == 1
    assert len(points) > 20
    chosen = random.Random(SEED).sample(points, min(POINTS, len(points))) if POINTS else points
    print(f"again: WAKEFUL_KILL_SEED={SEED} pytest tests/crash/test_task_sweeps.py")  # noqa: T201
    for point in chosen:
        with place_outside() as folder:
            name = marker()
            status = lived(folder, name, *point)
            assert status in (-9, 0), point  # a commit that another one was joined to is not reached
            if status:
                assert lived(folder, name) == 0, point
            events = await log_of(folder)
            over = [each.task_id for each in events if isinstance(each, TaskEnded)]
            told = [each.task_id for each in events if isinstance(each, MessageAdmitted) and each.task_id is not None]
            unknown = [each for each in events if isinstance(each, ToolFailed) and each.effects == "unknown"]
            assert told == over == list(dict.fromkeys(over)), point
            assert len(over) <= 1, point
            assert bool(over) != bool(unknown), point  # what became a task is told as one, and is no riddle
            assert ran(folder) == 1 if over else ran(folder) <= 1, point
            assert await until(partial(is_gone, name)), point
            ends["told" if over else "unknown"] += 1
    assert ends["told"] > 0
    print(f"{len(chosen)} of {len(points)} points: {dict(ends)}")  # noqa: T201
