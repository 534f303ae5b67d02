"""The folder that an agent works in goes away and comes back: what waits begins within seconds of that."""

from datetime import UTC, datetime
from pathlib import Path

from wakeful import Agent, Runtime
from wakeful.runtime.missing_folders import LOOK_SECONDS
from wakeful.testing import FixedClock, scripted

NOON = datetime(2040, 1, 2, 12, tzinfo=UTC)
HOUR = 3600.0


async def passes(rt: Runtime, clock: FixedClock, seconds: float) -> None:
    await rt.settled()
    clock.advance(seconds)
    await rt.settled()


async def deferrals(rt: Runtime) -> list[str]:
    """Why messages of the agent were set aside, or made due again."""
    found = []
    async for event in rt.follow("ops"):
        if event.type == "message.deferred":
            found.append(str(event.payload["reason"]))
        if event.type == "turn.completed":
            break
    return found


async def test_a_folder_that_comes_back_is_noticed_within_seconds_however_long_it_was_away(tmp_path: Path) -> None:
    clock, folder = FixedClock(NOON), tmp_path / "shop"
    folder.mkdir()
    agent = Agent("ops", scripted(["done"]), workspace=folder)
    async with Runtime(tmp_path / "home", agents=[agent], clock=clock) as rt:
        folder.rename(tmp_path / "away")
        sent = await rt.send("ops", "Go on.")
        for _ in range(4):
            await passes(rt, clock, HOUR)
        assert "that folder is not there" in str(await rt.why("ops"))
        (tmp_path / "away").rename(folder)
        await passes(rt, clock, LOOK_SECONDS)
        assert (await rt.answer(sent)).output == "done"
        assert (await deferrals(rt))[-1] == "the folder is back"
        assert clock.now() - NOON.timestamp() * 1e6 < (4 * HOUR + 60) * 1e6


async def test_an_agent_that_works_elsewhere_by_now_does_not_wait_for_the_folder(tmp_path: Path) -> None:
    clock, folder, other = FixedClock(NOON), tmp_path / "shop", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    async with Runtime(
        tmp_path / "home", agents=[Agent("ops", scripted(["one"]), workspace=folder)], clock=clock
    ) as rt:
        folder.rename(tmp_path / "away")
        sent = await rt.send("ops", "Go on.")
        await passes(rt, clock, 1)
        await rt.use_workspace("ops", other)
        await passes(rt, clock, HOUR)
        assert (await rt.answer(sent)).output == "one"
