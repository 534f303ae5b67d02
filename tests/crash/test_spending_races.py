"""Spend windows between real processes: the last dollar goes to one of them, and a kill loses no cent of it."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from crash import spending
from crash.sweeps import sweep
from wakeful.contracts.spending import nanodollars
from wakeful.store.sqlite import SqliteStore

ROUNDS = 25
TESTS = Path(__file__).parent.parent


@pytest.mark.parametrize("scenario", [spending.spends, spending.pauses], ids=lambda scenario: scenario.__name__)
def test_a_run_that_is_killed_anywhere_has_paid_for_all_it_asked_and_never_more_than_the_window(
    scenario: Callable[..., None],
) -> None:
    sweep(scenario)


@contextmanager
def spender(store: Path, name: str, mode: str) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, str(TESTS / "crash" / "spending.py"), str(store), name, mode]
    around = {**os.environ, "PYTHONPATH": str(TESTS)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, bufsize=1, env=around, **pipes) as child:  # type: ignore[call-overload]
        try:
            yield child
        finally:
            child.stdin.close()


def ask(children: list[Any], line: str) -> list[Any]:
    """To both at once; what each answers."""
    for child in children:
        child.stdin.write(f"{line}\n")
        child.stdin.flush()
    return [json.loads(child.stdout.readline()) for child in children]


@pytest.mark.parametrize("mode", ["checked", "unchecked"])
async def test_of_two_processes_that_see_the_same_last_dollar_one_gets_it(mode: str, tmp_path: Path) -> None:
    """Unchecked, without the check in the transaction, both take it: what each has seen itself is not enough."""
    path = tmp_path / "runs.db"
    store = await SqliteStore.open(path)
    with ExitStack() as stack:
        both = [stack.enter_context(spender(path, name, mode)) for name in ("one", "two")]
        for child in both:
            assert await asyncio.to_thread(child.stdout.readline) == '"ready"\n'  # type: ignore[union-attr]
        for number in range(ROUNDS):
            order = both if number % 2 else both[::-1]
            assert await asyncio.to_thread(ask, order, f"look {number}") == [0, 0]
            got = await asyncio.to_thread(ask, order, f"take {number}")
            (row,) = [row for row in await store.spending() if row.began == spending.NOON + number]
            if mode == "checked":
                assert sorted(got) == [False, True]
                assert row.taken == nanodollars(spending.PRICE) <= nanodollars("1")
            else:
                assert got == [True, True] and row.taken > nanodollars("1")
    assert await store.verify() == []
    await store.close()
