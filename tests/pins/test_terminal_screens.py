"""Pictures of the terminal UI, small and large, with colours and without: a person has looked at each of them."""

import asyncio
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kit.surfaces.served_home import HomeClient, served
from kit.surfaces.watched_screen import LARGE, SMALL, NoonTimes, Screen, watching
from pins.goldens import check_goldens
from wakeful.service.serving.options import ServeOptions

OPTIONS = ServeOptions(port=0, tools=("kit.surfaces.watched_agents:agents",))


@asynccontextmanager
async def pictured(client: HomeClient, size: tuple[int, int]) -> AsyncIterator[Screen]:
    assert isinstance(client.place, Path)
    async with watching(client.place, size=size, agent="clerk", times=NoonTimes()) as screen:
        await screen.until("refund(cents=42)")
        await screen.until("workspace …")
        await screen.until("turn $0.00, 1 of 200 calls")
        yield screen


async def picture(screen: Screen) -> str:
    """The screen as SVG once it stays as it is, without what is never the same twice."""
    shown, before = "", None
    while shown != before:
        before = shown
        await asyncio.sleep(0.15)
        await screen.pilot.pause()
        shown = re.sub(r"terminal-\d+-", "terminal-", screen.console.export_screenshot(title="wakeful tui")) + "\n"
    return shown


async def test_the_screens_are_those_that_were_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {}
    folder = tmp_path / ("home" * 30)  # only the end of its path is shown
    with served(folder, OPTIONS) as home:
        client = home.client
        first = _asked(client, "refund 30")
        client.post(f"/approvals/{first['approval_id']}/decision", {"decision": "approved"})
        client.until_over(first["turn_id"])
        _until_told(client, _asked(client, "refund 42")["approval_id"])
        for colours in ("colour", "plain"):
            if colours == "plain":
                monkeypatch.setenv("NO_COLOR", "1")
            else:
                monkeypatch.delenv("NO_COLOR", raising=False)
            for size in (SMALL, LARGE):
                async with pictured(client, size) as screen:
                    found[f"tui/conversation-{size[0]}x{size[1]}-{colours}.svg"] = await picture(screen)
                    await screen.press("f6")
                    await screen.until("asks because")
                    found[f"tui/approval-{size[0]}x{size[1]}-{colours}.svg"] = await picture(screen)
                    await screen.press("f8")
                    await screen.until("total $0.00, 3 calls")
                    found[f"tui/cost-{size[0]}x{size[1]}-{colours}.svg"] = await picture(screen)
    found |= await _with_much_round_it(tmp_path / ("told" * 30), monkeypatch)
    check_goldens(found, alone_in="tui")


async def _with_much_round_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An approval that somebody was told of, of a turn that had read something, with a message behind it."""
    found = {}
    with served(folder, ServeOptions(port=0, tools=("kit.surfaces.asking_agents:agents",))) as home:
        name = _asked(home.client, "refund", "asker")["approval_id"]
        home.client.post("/agents/asker/messages", {"text": "and then this"})
        _until_told(home.client, name)
        monkeypatch.setenv("NO_COLOR", "1")
        for size in (SMALL, LARGE):
            async with watching(home.socket, size=size, agent="asker", times=NoonTimes()) as screen:
                await screen.until("and then this")
                await screen.until("workspace …")
                await screen.press("f6")
                await screen.until("behind it: your message")
                found[f"tui/round-an-approval-{size[0]}x{size[1]}-plain.svg"] = await picture(screen)
    return found


def _until_told(client: HomeClient, approval: str) -> None:
    until = time.monotonic() + 60
    while (client.get(f"/approvals/{approval}").body["told"] or {}).get("state") in (None, "pending"):
        assert time.monotonic() < until, "nobody was told"
        time.sleep(0.05)


def _asked(client: HomeClient, text: str, agent: str = "clerk") -> dict[str, Any]:
    """The approval that a message leads to, once its turn rests: from then on nothing changes by itself."""
    with client.stream(f"/agents/{agent}/chat", {"text": text}) as frames:
        frames.until("turn_suspended")
    (found,) = client.get("/approvals").body
    return dict(found)
