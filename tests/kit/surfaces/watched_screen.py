"""The terminal UI on a served home, without a terminal: keys go in, and the screen is read as text."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

from textual.pilot import Pilot

from wakeful.service.serving.socket_client import SocketClient
from wakeful.surfaces.tui.console import Console
from wakeful.surfaces.tui.home_client import HomeClient
from wakeful.surfaces.tui.shown_times import ShownTimes

SMALL, LARGE = (80, 24), (160, 50)
NOON = datetime(2026, 11, 16, 12, 0)


class NoonTimes(ShownTimes):
    """It is noon, and everything happened a minute ago: for pictures."""

    def now(self) -> datetime:
        return NOON

    def of(self, ts: str) -> str:
        return "11:59"

    def at(self, seconds: float) -> str:
        return "11:59"

    def from_now(self, seconds: float) -> str:
        return "1 min"


class Screen:
    """What a person sees and types."""

    def __init__(self, console: Console, pilot: Pilot[None]) -> None:
        self.console = console
        self.pilot = pilot

    @property
    def text(self) -> str:
        strips = self.console.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def type(self, line: str) -> None:
        """A line, as if it were pasted, and Enter."""
        self.console.composer.insert(line)
        await self.pilot.press("enter")

    async def press_letters(self, line: str) -> None:
        await self.pilot.press(*("space" if letter == " " else letter for letter in line))

    async def until(self, seen: "str | Callable[[], object]", seconds: float = 30.0) -> str:
        """Wait for words on the screen, or for anything else that has to come."""
        until = time.monotonic() + seconds
        while not (seen in self.text if isinstance(seen, str) else seen()):
            assert time.monotonic() < until, f"{seen} did not come:\n{self.text}"
            await asyncio.sleep(0.02)
            await self.pilot.pause()
        return self.text

    async def gone(self, words: str) -> str:
        return await self.until(lambda: words not in self.text)


@asynccontextmanager
async def watching(
    socket: Path, *, size: tuple[int, int] = SMALL, agent: str | None = None, times: ShownTimes | None = None
) -> AsyncIterator[Screen]:
    """The terminal UI, once it shows the agents."""
    console = Console(HomeClient(SocketClient(socket)), agent=agent, times=times)
    async with console.run_test(size=size) as pilot:
        screen = Screen(console, pilot)
        await screen.until(lambda: console.is_connected and console.overview.rows)
        yield screen
