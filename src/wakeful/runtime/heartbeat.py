"""The heartbeat: an address outside is pinged while the runtime is well, and told `/fail` when it is not.

Well means that the store answers, that the loops of the runtime run and begin what is due, and that no agent is left
without anything that would move it. Whoever watches the
address notices a machine that is gone, which the machine itself cannot tell. A ping that fails is told once, and stops
nothing.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import ForTheCaller, InvalidConfig
from wakeful.contracts.events import HeartbeatChanged
from wakeful.engine.run_request import Engine
from wakeful.runtime.parked_providers import append_to_runtime
from wakeful.settings.heartbeat import HeartbeatTerms

IDLE_SECONDS = 60.0
"""How often the settings are looked at while there is no address."""

Ping: TypeAlias = Callable[[str, bool], Awaitable[str]]
"""Asks for an address, which may be of this network. Blank: it answered; else what went wrong."""


@dataclass(slots=True)
class Heartbeat:
    """Pings while a runtime is at work."""

    engine: Engine
    terms: Callable[[], HeartbeatTerms | None]
    """What the owner says; None: no address. Raises InvalidConfig."""
    is_well: Callable[[], Awaitable[bool]]
    ping: Ping
    _told: str = ""

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await self.engine.clock.sleep(await self.beat())

    async def beat(self) -> float:
        """One ping; in how many seconds there is another."""
        try:
            terms = self.terms()
        except InvalidConfig as problem:
            await self._tell(problem.message)
            return IDLE_SECONDS
        if terms is None:
            return IDLE_SECONDS
        try:
            well = await self.is_well()
        except Exception:  # the store does not answer, or nobody can look
            well = False
        await self._tell(await self.ping(terms.url if well else f"{terms.url.rstrip('/')}/fail", terms.allow_private))
        return terms.seconds

    async def _tell(self, error: str) -> None:
        """Once when it begins to fail, and once when it works again."""
        hidden = self.engine.keys().hide(error)[:500]
        if bool(hidden) != bool(self._told):
            with suppress(ForTheCaller):
                event = HeartbeatChanged(ok=not hidden, error=hidden)
                await append_to_runtime(self.engine, Fact(event, self.engine.clock.now()))
                self._told = hidden
