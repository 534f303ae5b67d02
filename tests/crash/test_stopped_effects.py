"""An owner that is stopped in an effect may finish it when it wakes up: nobody acts as if it were dead."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from wakeful.contracts.events import ToolFailed, TurnResumed
from wakeful.service.queries.replay import replay_turn
from wakeful.store.sqlite import SqliteStore

PROGRAM = Path(__file__).with_name("stopped_effects.py")
LEASE = 0.4
"""Of the one that is stopped, in seconds."""


@contextmanager
def process(folder: Path, scenario: str, lease: float, unchecked: bool) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, str(PROGRAM), str(folder), str(lease), scenario, *(["unchecked"] if unchecked else [])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        try:
            yield child
        finally:
            if child.poll() is None:
                child.kill()


def heard(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None and child.stderr is not None
    return child.stdout.readline().strip() or child.stderr.read()


def taken_over(folder: Path, scenario: str, *, unchecked: bool = False) -> tuple[str, str]:
    """Stop a run inside its effect, let another process finish it, wake the first: what both said."""
    with process(folder, scenario, LEASE, unchecked) as first:
        assert heard(first) == "stopped"
        os.waitid(os.P_PID, first.pid, os.WSTOPPED | os.WNOWAIT)
        time.sleep(LEASE * 1.5)  # a live owner is replaced when its lease ran out, not before
        with process(folder, "none", 600.0, unchecked) as successor:
            finished = heard(successor)
        os.kill(first.pid, signal.SIGCONT)
        assert heard(first) == "awake"
        return finished, heard(first)


def killed_instead(folder: Path, scenario: str) -> str:
    """The same, with an owner that is dead: nobody has to be careful."""
    with process(folder, scenario, 600.0, False) as first:
        assert heard(first) == "stopped"
        os.waitid(os.P_PID, first.pid, os.WSTOPPED | os.WNOWAIT)
        first.kill()
        first.wait()
        with process(folder, "none", 600.0, False) as successor:
            return heard(successor)


async def resumed_and_closed(folder: Path) -> tuple[list[str | None], list[object]]:
    """Whom the turn was taken from, and why calls were closed; decided again, it comes out the same."""
    store = await SqliteStore.open(folder / "runs.db")
    (agent_id,) = await store.agents()
    events = [entry.fact.event for entry in await store.read(agent_id)]
    (row,) = await store.turns()
    assert (await replay_turn(store, row)).identical
    await store.close()
    taken = [event.taken_from for event in events if isinstance(event, TurnResumed)]
    failed = [event.tool_error.details for event in events if isinstance(event, ToolFailed)]
    return taken, [details.get("reason") for details in failed if details]


async def test_a_probeable_effect_of_an_owner_that_was_only_late_is_not_done_a_second_time(tmp_path: Path) -> None:
    finished, said = taken_over(tmp_path, "effect")
    assert (finished, said) == ("completed unknown=1", "fenced")
    assert len((tmp_path / "world").read_text().split()) == 1, "what the first one had begun, when it woke up"
    assert await resumed_and_closed(tmp_path) == (["late"], ["late_owner"])


def test_inversion_taken_for_dead_the_probe_is_believed_and_the_effect_happens_twice(tmp_path: Path) -> None:
    finished, _ = taken_over(tmp_path, "effect", unchecked=True)
    assert finished == "completed unknown=0"
    assert len((tmp_path / "world").read_text().split()) == 2


async def test_of_an_owner_that_is_dead_the_probe_is_asked_and_the_effect_happens_once(tmp_path: Path) -> None:
    assert killed_instead(tmp_path, "effect") == "completed unknown=0"
    assert len((tmp_path / "world").read_text().split()) == 1
    assert await resumed_and_closed(tmp_path) == (["dead"], [])


@pytest.mark.parametrize("scenario", ["patch", "rollback"])
def test_a_stopped_patch_is_neither_finished_nor_undone_behind_its_successors_back(
    tmp_path: Path, scenario: str
) -> None:
    finished, said = taken_over(tmp_path, scenario)
    assert (finished, said) == ("completed unknown=1", "fenced")
    files = {name: (tmp_path / "workspace" / name).read_text() for name in ("first", "second")}
    assert files == {"first": "by hand\n", "second": "by hand\n"}


@pytest.mark.parametrize(
    ("scenario", "left"),
    [
        ("patch", {"first": "old\n", "second": "old\n"}),
        ("rollback", {"first": "old\n", "second": "by hand\n"}),
    ],
)
def test_inversion_without_asking_for_the_lease_the_woken_owner_changes_what_its_successor_wrote(
    tmp_path: Path, scenario: str, left: dict[str, str]
) -> None:
    """The successor asks nobody either and takes the patch for unfinished work of the dead."""
    taken_over(tmp_path, scenario, unchecked=True)
    assert {name: (tmp_path / "workspace" / name).read_text() for name in left} == left
