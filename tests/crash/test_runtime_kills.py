"""A runtime is killed in the middle of its work and started again: every message is answered, every bill paid once."""

from pathlib import Path

import pytest

from crash import runtime_process
from crash.forked import Ended, run_forked
from wakeful import open_store


def started(home: Path, point: int) -> Ended:
    home.mkdir(exist_ok=True)
    return run_forked(runtime_process.main, home, point)


@pytest.mark.parametrize("point", [1, 2, 4])
def test_a_killed_runtime_goes_on_where_it_was(tmp_path: Path, point: int) -> None:
    home = tmp_path / "home"
    killed = started(home, point)
    assert killed.returncode == -9, killed.said
    done = started(home, 0)
    assert (done.returncode, done.said) == (0, "all answered\n"), done.said
    paid = (home / "ledger.txt").read_text().splitlines()
    assert len(paid) == len(set(paid)) == 4, "each call has its key, and paid once"
    store = open_store(home / "wakeful.db")
    turns = store.turns()
    assert sorted((turn.agent, turn.thread) for turn in turns) == [
        ("ada", "main"),
        ("ada", "side"),
        ("bob", "main"),
        ("bob", "side"),
    ]
    assert {turn.state for turn in turns} == {"completed"}


def test_a_runtime_that_is_killed_again_and_again_comes_to_the_same_end(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert [started(home, 1).returncode for _ in range(2)] == [-9, -9]
    assert started(home, 0).said == "all answered\n"
    assert len((home / "ledger.txt").read_text().splitlines()) == 4
