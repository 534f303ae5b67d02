"""Waking those who follow an agent's stream or wait for a thread: each for its own feed, and for nothing else.

Commits of this process wake at once, and a watch that keeps facts is given them. Those of other processes arrive by
`sqlite.doorbell`, or are found by looking: of them nothing is known here but that the log has to be read.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.ports import Feed, Watch


class Wake(NamedTuple):
    """Something that was committed: facts of the owner (`all`), facts of outsiders, or a lease that was let go."""

    agent_id: str
    thread_id: str | None
    """None: of the agent as a whole, or of several threads."""
    feed: Feed

    @staticmethod
    def outsiders(agent_id: str, facts: Sequence[Fact]) -> "Wake":
        if len(facts) == 1:  # as most are
            return Wake(agent_id, facts[0].thread_id, "outsiders")
        threads = {fact.thread_id for fact in facts}
        return Wake(agent_id, threads.pop() if len(threads) == 1 else None, "outsiders")


MOST_KEPT = 64
"""Facts that are kept for a reader. One that is further behind reads the log."""
OF_FEED = Wake("", None, "operator")
"""Rows were added to the feed over all agents."""


class Watches:
    """The open watches of one store."""

    def __init__(self) -> None:
        self._open: dict[str, dict[str | None, set[_Watch]]] = {}
        """By agent and thread; None: of all its threads. A commit looks at those of its own thread: at thousands of
        turns at once nothing else would do."""
        self._of_wakes: set[_Watch] = set()
        """Those that follow what may become due, whichever agent's it is."""

        self._of_feed: set[_Watch] = set()
        """Those that follow the feed over all agents."""
        self._keeping: set[_Watch] = set()
        """Those that keep facts."""

    def __bool__(self) -> bool:
        return bool(self._open or self._of_wakes or self._of_feed)

    @property
    def has_feed(self) -> bool:
        """Does anybody follow the feed over all agents?"""
        return bool(self._of_feed)

    def open(self, agent_id: str, thread_id: str | None = None, feed: Feed = "all", *, keeps: bool = False) -> Watch:
        watch = _Watch(self, agent_id, thread_id, feed, keeps=keeps)
        if keeps:
            self._keeping.add(watch)
        self._open.setdefault(agent_id, {}).setdefault(thread_id, set()).add(watch)
        return watch

    def open_wakes(self) -> Watch:
        watch = _Watch(self, "", None, "all")
        self._of_wakes.add(watch)
        return watch

    def open_feed(self) -> Watch:
        watch = _Watch(self, "", None, "operator")
        self._of_feed.add(watch)
        return watch

    def forget(self, watch: "_Watch") -> None:
        self._of_wakes.discard(watch)
        self._of_feed.discard(watch)
        self._keeping.discard(watch)
        of_agent = self._open.get(watch.agent_id, {})
        watches = of_agent.get(watch.thread_id, set())
        watches.discard(watch)
        if not watches:
            of_agent.pop(watch.thread_id, None)
        if not of_agent:
            self._open.pop(watch.agent_id, None)

    def agents(self) -> list[str]:
        """Agents that are followed."""
        return list(self._open)

    def threads(self) -> set[tuple[str, str]]:
        """Threads that somebody waits for."""
        return {
            (agent_id, thread_id)
            for agent_id, of_agent in self._open.items()
            for thread_id, watches in of_agent.items()
            if thread_id is not None and any(watch.feed == "lease" for watch in watches)
        }

    def tell(self, agent_id: str, seq: int, facts: Sequence[Fact]) -> None:
        """These were committed here, behind an event of an agent's stream. Whoever follows it is to be woken next."""
        of_agent = self._open.get(agent_id) if self._keeping else None
        if of_agent is None:
            return
        stored: list[StoredFact] | None = None
        for thread_id in (None, *{fact.thread_id for fact in facts if fact.thread_id is not None}):
            for watch in of_agent.get(thread_id, ()):
                if watch.keeps:
                    stored = stored or [StoredFact(agent_id, seq + place, fact) for place, fact in enumerate(facts, 1)]
                    watch.keep(stored)

    def miss(self) -> None:
        """Another process has written: nobody who follows a stream has all of it."""
        for watch in self._keeping:
            watch.miss()

    def wake(self, wake: Wake, *, is_told: bool = False, makes_due: bool = True) -> None:
        """This was committed, here or elsewhere. `is_told`: its facts were told. `makes_due`: unless nothing can be due
        by it that was not before."""
        if wake.feed == "operator":
            self.wake_feed()
            return
        of_agent = self._open.get(wake.agent_id)
        if of_agent is not None:
            for thread_id in of_agent if wake.thread_id is None else (None, wake.thread_id):
                for watch in of_agent.get(thread_id, ()):
                    if watch.follows(wake.feed):
                        if not is_told:
                            watch.miss()
                        watch.wake()
        if makes_due and wake.feed != "all":
            self.wake_scheduler()

    def wake_scheduler(self) -> None:
        """Something may be due that was not: an outsider wrote, or a thread was let go."""
        for watch in self._of_wakes:
            watch.wake()

    def wake_feed(self) -> None:
        """The feed over all agents has new rows."""
        for watch in self._of_feed:
            watch.wake()

    def wake_all(self) -> None:
        """Nothing will be committed any more."""
        self.wake_scheduler()
        self.wake_feed()
        for of_agent in self._open.values():
            for watches in of_agent.values():
                for watch in watches:
                    watch.wake()


class _Watch:
    def __init__(
        self, watches: Watches, agent_id: str, thread_id: str | None, feed: Feed, *, keeps: bool = False
    ) -> None:
        self.agent_id = agent_id
        self.thread_id = thread_id
        self.feed = feed
        self.keeps = keeps
        self._kept: list[StoredFact] | None = [] if keeps else None
        """None: the log has to be read."""
        self._watches = watches
        self._woken = asyncio.Event()
        self._news: Callable[[], None] | None = None

    def follows(self, feed: Feed) -> bool:
        return self.feed == feed or (self.feed == "all" and feed == "outsiders")

    def wake(self) -> None:
        self._woken.set()
        if self._news is not None:
            self._news()

    def call_on_commit(self, news: Callable[[], None]) -> None:
        self._news = news

    def keep(self, facts: Sequence[StoredFact]) -> None:
        if self._kept is None:
            return
        thread = self.thread_id
        self._kept += facts if thread is None else [entry for entry in facts if entry.fact.thread_id == thread]
        if len(self._kept) > MOST_KEPT:
            self._kept = None

    def miss(self) -> None:
        self._kept = None

    def facts(self) -> list[StoredFact] | None:
        self._woken.clear()  # for nothing that is not among them, or that the log is to be read for
        kept, self._kept = self._kept, [] if self.keeps else None
        return kept

    async def wait(self, timeout: float | None = None) -> None:
        """Until something was committed since the last `wait` began to return, or the time is over."""
        if timeout is None:
            await self._woken.wait()
        elif not self._woken.is_set():
            try:
                async with asyncio.timeout(timeout):
                    await self._woken.wait()
            except TimeoutError:
                return
        self._woken.clear()

    def close(self) -> None:
        self._watches.forget(self)
        self._news = None
        self._woken.set()
