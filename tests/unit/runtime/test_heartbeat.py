"""The heartbeat through `Runtime`: an address outside hears that the runtime is well, and when it is not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from wakeful import Agent, Runtime
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.errors import StoreFull
from wakeful.runtime.heartbeat import Heartbeat
from wakeful.settings.heartbeat import HeartbeatTerms
from wakeful.store.memory import MemoryStore
from wakeful.testing import FixedClock, scripted

NOON = datetime(2040, 1, 2, 12, tzinfo=UTC)


class Monitor:
    """A server on this machine that is pinged."""

    def __init__(self) -> None:
        self.status = 200
        self.paths: list[str] = []
        self.url = ""
        self.pinged = asyncio.Event()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.paths.append(head.split()[1])
        writer.write(f"HTTP/1.1 {self.status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode())
        await writer.drain()
        writer.close()
        self.pinged.set()

    async def next(self) -> str:
        await asyncio.wait_for(self.pinged.wait(), 60)
        self.pinged.clear()
        return self.paths[-1]

    async def beats_again(self, clock: FixedClock) -> str:
        """Time passes until it is pinged. The answer to the ping before may still be on its way: then nobody sleeps."""
        while not self.pinged.is_set():
            clock.advance(30)
            await asyncio.sleep(0.01)
        return await self.next()


@asynccontextmanager
async def monitored(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Monitor]:
    monitor = Monitor()
    server = await asyncio.start_server(monitor, "127.0.0.1", 0)
    monitor.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/ping/0a1b"
    (folder / "wakeful.toml").write_text('[heartbeat]\nurl_env = "HEARTBEAT"\nseconds = 30\n')
    monkeypatch.setenv("WAKEFUL_CONFIG", str(folder / "wakeful.toml"))
    monkeypatch.setenv("HEARTBEAT", monitor.url)
    async with server:
        yield monitor


async def test_it_is_pinged_while_the_runtime_is_well_and_a_ping_that_fails_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FixedClock(NOON)
    async with (
        monitored(tmp_path, monkeypatch) as monitor,
        Runtime(tmp_path / "home", agents=[Agent("ops", scripted(["x"]))], clock=clock) as rt,
    ):
        assert await monitor.next() == "/ping/0a1b"
        monitor.status = 503
        for _ in range(3):
            await monitor.beats_again(clock)
        await rt.settled()
        monitor.status = 200
        assert await monitor.beats_again(clock) == "/ping/0a1b"
        told = [each for each in await rt.notices() if each.cause == "heartbeat.changed"]
        assert [each.text for each in told] == ["the heartbeat does not arrive: 127.0.0.1 answered HTTP 503"]
        assert "0a1b" not in "".join(each.text for each in told)


class WrongClock(FixedClock):
    """Tells the scheduler, and nobody else, no time once it is wrong: nothing expects that."""

    is_wrong = False

    def __init__(self) -> None:
        super().__init__(NOON)
        self.was_wrong = asyncio.Event()

    def now(self) -> int:
        task = asyncio.current_task()
        if self.is_wrong and task is not None and task.get_name() == "the scheduler":
            self.was_wrong.set()
            raise OverflowError("there is no such time")
        return super().now()


async def test_it_says_fail_while_the_scheduler_fails_with_something_that_nobody_expected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = WrongClock()
    async with (
        monitored(tmp_path, monkeypatch) as monitor,
        Runtime(tmp_path / "home", agents=[Agent("ops", scripted(["x"]))], clock=clock) as rt,
    ):
        assert await monitor.next() == "/ping/0a1b"
        clock.is_wrong = True
        await rt.send("ops", "Check.")
        await asyncio.wait_for(clock.was_wrong.wait(), 60)
        assert await monitor.beats_again(clock) == "/ping/0a1b/fail"
        assert await monitor.beats_again(clock) == "/ping/0a1b/fail", "it stays so"
        assert rt._here.problems == ["the scheduler of the runtime failed, and is tried again"]
        clock.is_wrong = False
        while await monitor.beats_again(clock) != "/ping/0a1b":
            pass
        assert rt._here.problems == []
    told = caplog.records[0]
    assert told.message == "the scheduler of the runtime failed, and is tried again"
    assert told.exc_info is not None and isinstance(told.exc_info[1], OverflowError)


@pytest.mark.parametrize("fails", [False, True])
async def test_it_says_fail_when_the_invariant_does_not_hold_or_the_store_does_not_answer(fails: bool) -> None:
    asked: list[str] = []

    async def is_well() -> bool:
        if fails:
            raise StoreFull("no room")
        return False

    async def ping(url: str, _: bool) -> str:
        asked.append(url)
        return ""

    store = MemoryStore()
    beat = Heartbeat(new_engine(store), lambda: HeartbeatTerms("https://hc.example.org/0a1b", 5.0), is_well, ping)
    assert (await beat.beat(), asked) == (5.0, ["https://hc.example.org/0a1b/fail"])
    await store.close()
