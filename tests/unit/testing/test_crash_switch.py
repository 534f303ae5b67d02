"""Places to crash, and the ledger that tells what really happened."""

import os
import signal
from pathlib import Path

import pytest

from wakeful.testing import CrashSwitch, KillPoint, Ledger, LedgerEntry


class Tripped(Exception):
    """Stands for the end of the process."""


def trip() -> None:
    raise Tripped


def test_the_switch_trips_at_its_point_and_nowhere_else() -> None:
    switch = CrashSwitch(KillPoint("append", 2, "after"), trip)
    done = []
    with switch.around("append"):
        done.append("first")
    with switch.around("ledger"):
        done.append("ledger")
    with pytest.raises(Tripped), switch.around("append"):
        done.append("second")
    assert done == ["first", "ledger", "second"]


def test_before_means_that_it_does_not_happen() -> None:
    switch = CrashSwitch(KillPoint("ledger", 1, "before"), trip)
    done = []
    with pytest.raises(Tripped), switch.around("ledger"):
        done.append("it")
    assert done == []


def test_visits_that_overlap_keep_their_numbers() -> None:
    switch = CrashSwitch(KillPoint("append", 1, "after"), trip)
    with pytest.raises(Tripped), switch.around("append"), switch.around("append"):
        pass
    assert switch.visits["append"] == 2


def test_every_point_that_was_passed_can_be_killed_at() -> None:
    switch = CrashSwitch()
    with switch.around("admit"):
        switch.here()
    assert switch.points() == [
        KillPoint("admit", 1, "before"),
        KillPoint("admit", 1, "after"),
        KillPoint("here", 1, "before"),
    ]
    assert str(switch.points()[0]) == "before admit 1"


def test_unless_told_otherwise_the_process_dies_by_sigkill() -> None:
    child = os.fork()
    if child == 0:
        CrashSwitch(KillPoint("here", 1, "before")).here()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL


def test_the_ledger_keeps_effects_in_order_and_over_reopening(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    assert ledger.entries() == []
    ledger.record("refund", "k1")
    assert [ledger.once("refund", "k1"), ledger.once("refund", "k2")] == [False, True]
    assert Ledger(tmp_path / "ledger").entries() == [LedgerEntry("refund", "k1"), LedgerEntry("refund", "k2")]


def test_a_line_that_a_kill_cut_off_did_not_happen(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    ledger.record("refund", "k1")
    with ledger.path.open("a") as file:
        file.write('{"tool": "ref')
    assert ledger.entries() == [LedgerEntry("refund", "k1")]


def test_the_ledger_is_a_place_to_crash(tmp_path: Path) -> None:
    before = Ledger(tmp_path / "before", CrashSwitch(KillPoint("ledger", 1, "before"), trip))
    after = Ledger(tmp_path / "after", CrashSwitch(KillPoint("ledger", 1, "after"), trip))
    with pytest.raises(Tripped):
        before.record("refund", "k")
    with pytest.raises(Tripped):
        after.record("refund", "k")
    assert (before.entries(), after.entries()) == ([], [LedgerEntry("refund", "k")])
