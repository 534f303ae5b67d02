"""A runtime is killed while a timer fires or a wait expires, and started again: each of them is told of once."""

from collections import Counter
from pathlib import Path

import pytest

from crash import waking_process
from crash.forked import Ended, run_forked
from wakeful.store.sqlite import SqliteStore


def started(home: Path, hours: int, kind: str = "-", when: str = "-") -> Ended:
    return run_forked(waking_process.main, home, hours, kind, when)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("kind", ["timer.fired", "wait.expired"])
async def test_a_due_time_fires_once_and_a_wait_expires_once_over_a_kill(tmp_path: Path, kind: str, when: str) -> None:
    killed = started(tmp_path, 0, kind, when)
    assert killed.returncode == -9, killed.said
    for hours in (3, 6):
        done = started(tmp_path, hours)
        assert (done.returncode, done.said) == (0, "at rest\n"), done.said
    store = await SqliteStore.open(tmp_path / "runs.db")
    facts = [entry.fact for entry in await store.read("ops")]
    counted = Counter(fact.event.kind for fact in facts)
    assert (counted["timer.fired"], counted["wait.expired"]) == (1, 1)
    assert counted["message.admitted"] == counted["turn.completed"] == 3, "the operator's, the timer's and the wait's"
    assert await store.open_waits("ops") == []
    assert await store.next_wake() is None
    await store.close()
