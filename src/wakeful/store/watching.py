"""Waking whoever follows an agent's stream: at once for commits of this process, in any case for others."""

import asyncio

from wakeful.ports import Watch


class Watches:
    """The open watches of one store."""

    def __init__(self) -> None:
        self._open: dict[str, set[_Watch]] = {}

    def __bool__(self) -> bool:
        return bool(self._open)

    def open(self, agent_id: str, *, outsiders_only: bool = False) -> Watch:
        watch = _Watch(self, agent_id, outsiders_only)
        self._open.setdefault(agent_id, set()).add(watch)
        return watch

    def forget(self, watch: "_Watch") -> None:
        watches = self._open.get(watch.agent_id, set())
        watches.discard(watch)
        if not watches:
            self._open.pop(watch.agent_id, None)

    def wake(self, agent_id: str, *, outsider: bool = False) -> None:
        """Something was committed to this agent's stream, by an outsider or by its owner."""
        for watch in self._open.get(agent_id, ()):
            if outsider or not watch.outsiders_only:
                watch.wake()

    def wake_all(self) -> None:
        """Something was committed somewhere, or nothing will be any more."""
        for watches in self._open.values():
            for watch in watches:
                watch.wake()


class _Watch:
    def __init__(self, watches: Watches, agent_id: str, outsiders_only: bool) -> None:
        self.agent_id = agent_id
        self.outsiders_only = outsiders_only
        self._watches = watches
        self._woken = asyncio.Event()

    def wake(self) -> None:
        self._woken.set()

    async def wait(self, timeout: float | None = None) -> None:
        """Until something was committed since the last `wait` began to return, or the time is over."""
        try:
            async with asyncio.timeout(timeout):
                await self._woken.wait()
        except TimeoutError:
            return
        self._woken.clear()

    def close(self) -> None:
        self._watches.forget(self)
        self._woken.set()
