"""Who is woken by a commit: who follows its thread or its whole agent, for the own feed, and nobody else."""

import asyncio

import pytest

from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.events import TurnInterruptRequested
from wakeful.ports import Feed, Watch
from wakeful.store.watches import Wake, Watches

OPENED: tuple[tuple[str, str, str | None, Feed], ...] = (
    ("agent", "a", None, "all"),
    ("thread", "a", "t1", "all"),
    ("outsiders of the thread", "a", "t1", "outsiders"),
    ("lease of the thread", "a", "t1", "lease"),
    ("another thread", "a", "t2", "outsiders"),
    ("another agent", "b", "t1", "all"),
)


async def _woken(watches: Watches, opened: dict[str, Watch], wake: Wake) -> set[str]:
    watches.wake(wake)
    woken = set()
    for name, watch in opened.items():
        waiting = asyncio.ensure_future(watch.wait())
        for _ in range(5):
            await asyncio.sleep(0)
        if waiting.done():
            woken.add(name)
        waiting.cancel()
    return woken


@pytest.mark.parametrize(
    ("wake", "woken"),
    [
        (Wake("a", "t1", "all"), {"agent", "thread"}),
        (Wake("a", "t1", "outsiders"), {"agent", "thread", "outsiders of the thread"}),
        (Wake("a", "t1", "lease"), {"lease of the thread"}),
        (Wake("a", None, "outsiders"), {"agent", "thread", "outsiders of the thread", "another thread"}),
        (Wake("a", "t3", "all"), {"agent"}),
        (Wake("c", "t1", "all"), set()),
    ],
)
async def test_a_commit_wakes_those_who_follow_its_thread_or_its_whole_agent(wake: Wake, woken: set[str]) -> None:
    watches = Watches()
    opened = {name: watches.open(agent, thread, feed) for name, agent, thread, feed in OPENED}

    assert await _woken(watches, opened, wake) == woken


async def test_a_watch_that_is_closed_leaves_nothing_behind() -> None:
    watches = Watches()
    opened = [watches.open(agent, thread, feed) for _, agent, thread, feed in OPENED]

    assert watches.threads() == {("a", "t1")}
    for watch in opened:
        watch.close()

    assert (bool(watches), watches.agents(), watches.threads()) == (False, [], set())


def _interrupted(thread: str) -> Fact:
    return Fact(TurnInterruptRequested(interrupt_id="i1", requested_by="ops"), 1, thread, "turn_1")


async def test_facts_that_are_told_are_kept_for_their_thread_until_another_process_writes() -> None:
    watches = Watches()
    watch = watches.open("a", "t1", keeps=True)
    mine, side = _interrupted("t1"), _interrupted("t2")
    watches.tell("a", 4, [side, mine])
    watches.tell("b", 9, [mine])
    assert watch.facts() == [StoredFact("a", 6, mine)]
    watches.tell("a", 6, [mine])
    watches.miss()
    watches.tell("a", 8, [mine])
    assert watch.facts() is None, "event 8 may have been the other's"
    watches.tell("a", 9, [mine])
    watches.wake(Wake("a", "t1", "outsiders"))
    assert watch.facts() is None, "a commit whose facts were not told"
    watch.close()
    assert not watches


async def test_inversion_facts_of_a_watch_that_does_not_hear_of_the_others_have_a_gap() -> None:
    watches = Watches()
    watch, mine = watches.open("a", "t1", keeps=True), _interrupted("t1")
    watches.tell("a", 6, [mine])
    watches.tell("a", 8, [mine])  # another process has written event 8
    assert [entry.seq for entry in watch.facts() or ()] == [7, 9]
