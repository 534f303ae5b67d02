"""A runtime is killed while an agent spawns another, while the child works, ends, is stopped, or is tried again, and
started again: the child is made once, its work is done once, its parent is told once of each end, and nobody has spent
more than was granted."""

import os
import random
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from crash import child_process
from crash.forked import Ended, run_forked
from wakeful.contracts.events import GrantReserved, GrantSettled, MessageAdmitted, ModelRequested, TurnStarted
from wakeful.store.sqlite import SqliteStore

COMMITS = {"work": 16, "stop": 34, "retry": 23}
"""About how many a whole run makes."""
SAMPLE = int(os.environ.get("WAKEFUL_KILL_POINTS", "6"))
"""Points of a scenario that are tried; 0: all."""
SEED = os.environ.get("WAKEFUL_SEED") or datetime.now(UTC).strftime("%Y-%m-%d")
"""Another sample each day, and the same in all processes of a test run."""


def started(home: Path, scenario: str, point: str = "0") -> Ended:
    home.mkdir(exist_ok=True)
    return run_forked(child_process.main, home, scenario, point)


def points() -> list[tuple[str, str]]:
    luck, found = random.Random(SEED), []
    for scenario, commits in COMMITS.items():
        every = [f"{number}{after}" for number in range(3, commits + 1) for after in ("", "+")]
        found += [(scenario, point) for point in luck.sample(every, min(SAMPLE or len(every), len(every)))]
    return found


async def check(home: Path, scenario: str) -> None:
    store = await SqliteStore.open(home / "runs.db")
    (task,) = await store.tasks_of("ops")
    assert task.child is not None
    facts = [entry.fact for entry in await store.read("ops")]
    child = [entry.fact for entry in await store.read(task.child.agent_id)]
    ends = 2 if scenario == "retry" else 1
    counted, of_child = Counter(fact.event.kind for fact in facts), Counter(fact.event.kind for fact in child)
    assert (counted["task.created"], counted["grant.reserved"], counted["task.ended"]) == (1, 1, ends)
    assert (of_child["agent.created"], len(await store.runtime_agents())) == (1, 3 if scenario == "stop" else 2)
    told = [each.event for each in facts if isinstance(each.event, MessageAdmitted) and each.event.task_id is not None]
    assert [each.message_kind for each in told] == ["task_result"] * ends, "each end is told, and once"
    taken = [row.state for each in told if (row := await store.message(each.message_id)) is not None]
    assert taken == ["processed"] * ends, "and the parent has heard it"
    assert task.status == ("cancelled" if scenario == "stop" else "completed")
    assert counted["task.retried"] == counted["grant.renewed"] == of_child["turn.retried"] == ends - 1
    if scenario != "stop":
        assert len((home / "ledger.txt").read_text().splitlines()) == 1
    else:
        inner = [row for agent in [task.child.agent_id] for row in await store.tasks_of(agent)]
        assert [row.is_over for row in inner] in ([True], []), "its own child is over, too"
    given = next(fact.event.grant for fact in facts if isinstance(fact.event, GrantReserved))
    asked = sum(isinstance(fact.event, ModelRequested) for fact in child)
    assert asked <= (given.model_calls or 0)
    limits = [fact.event.limits.model_calls for fact in child if isinstance(fact.event, TurnStarted)]
    assert limits == sorted(limits, reverse=True), "no turn of the child has more than the one before"
    assert counted["grant.settled"] == sum(isinstance(fact.event, GrantSettled) for fact in facts) <= ends
    assert {row.control for row in await store.runtime_agents() if row.agent_id != "ops"} == {"stopped"}
    await store.close()


@pytest.mark.parametrize(("scenario", "point"), points())
async def test_a_kill_around_a_child_loses_nothing_and_repeats_nothing(
    scenario: str, point: str, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    killed = started(home, scenario, point)
    again = f"WAKEFUL_SEED={SEED} WAKEFUL_KILL_POINTS={SAMPLE}"
    assert killed.returncode in (-9, 0), f"{again}\n{killed.said}"
    for _ in range(2):
        done = started(home, scenario)
        assert done.returncode == 0, f"{again}\n{done.said}"
    await check(home, scenario)
