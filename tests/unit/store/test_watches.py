"""Who is woken by a commit: who follows its thread or its whole agent, for the own feed, and nobody else."""

import asyncio

import pytest

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
