"""What docs/explain/resume-contract.md says of going on, where no other test shows exactly that."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from crash import resuming
from crash.approval_scenarios import Paid, shop
from wakeful import Approve, run
from wakeful.bootstrap.engines import new_engine
from wakeful.service.commands.approvals import decide
from wakeful.store.sqlite import SqliteStore
from wakeful.testing import Ledger
from wakeful.testing.crash_children import Nursery

TESTS = Path(__file__).parent.parent
PROCESSES = 4
ROUNDS = 6
MEASURED = ("_ms", "_at")
"""How the fields end that say how long something took or when it was: no decision rests on them."""


@contextmanager
def process() -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, str(TESTS / "crash" / "resuming.py")]
    around = {**os.environ, "PYTHONPATH": str(TESTS)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, bufsize=1, env=around, **pipes) as child:  # type: ignore[call-overload]
        try:
            yield child
        finally:
            child.stdin.close()


async def test_of_processes_that_go_on_at_once_with_an_approved_call_one_makes_it(tmp_path: Path) -> None:
    with ExitStack() as stack:
        children: Any = [stack.enter_context(process()) for _ in range(PROCESSES)]
        assert [child.stdout.readline() for child in children] == ["ready\n"] * PROCESSES
        for number in range(ROUNDS):
            place = tmp_path / str(number)
            place.mkdir()
            ledger = Ledger(place / "ledger")
            store = await SqliteStore.open(place / "runs.db")
            agent = shop(ledger, resuming.STEPS, resuming.GATED)
            (approval,) = (await run(agent, "go", deps=ledger, store=store, key="k")).approvals
            await decide(new_engine(store), approval.id, Approve())
            await store.close()
            for child in children:
                child.stdin.write(f"{place}\n")
                child.stdin.flush()
            said = [json.loads(child.stdout.readline()) for child in children]
            assert said == [["completed", "done"]] * PROCESSES, "each of them is told how it ended"
            assert sorted(entry.tool for entry in ledger.entries()) == ["look_up", "notify", resuming.GATED]
            assert len(Paid(ledger).lines()) == 1


def _decided(written: Any) -> Any:
    """What was written, without what was measured."""
    if isinstance(written, dict):
        return {name: _decided(value) for name, value in written.items() if not name.endswith(MEASURED)}
    return [_decided(each) for each in written] if isinstance(written, list | tuple) else written


@pytest.mark.parametrize(
    ("effect", "ended"),
    [
        ("pure", "tool.result"),
        ("keyed", "tool.result"),
        ("probeable", "tool.result"),
        ("irreversible", "tool.failed"),
    ],
)
def test_two_copies_of_a_killed_run_are_taken_up_by_the_same_decisions(
    effect: str, ended: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing but the copied files is common to the two: neither process nor folder, time zone or locale."""
    place, copy, elsewhere = (tmp_path / name for name in ("place", "copy", "elsewhere"))
    place.mkdir()
    elsewhere.mkdir()
    with Nursery(resuming.die_inside) as nursery:
        died = nursery.run(resuming.die_inside, place, effect, output=tmp_path / "died", seconds=60)
        assert died.how == "killed", died.words
        shutil.copytree(place, copy, ignore=shutil.ignore_patterns("*.owners"))
        one = nursery.run(resuming.recover, place, effect, output=tmp_path / "one", seconds=60)
        monkeypatch.chdir(elsewhere)
        monkeypatch.setenv("TZ", "Pacific/Kiritimati")
        monkeypatch.setenv("LC_ALL", "C")
        two = nursery.run(resuming.recover, copy, effect, output=tmp_path / "two", seconds=60)
    assert (one.how, two.how) == ("done", "done"), one.words + two.words
    assert _decided(one.value) == _decided(two.value)
    assert [kind for kind, call, _ in one.value if call is not None][-1] == ended
    for folder in (place, copy):
        assert len(Ledger(folder / "ledger").entries()) == 1, "the effect happened once, before the kill"
