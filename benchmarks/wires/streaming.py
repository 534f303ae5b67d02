"""Many streams at once from a local server, read in one process by wakeful or by the SDK.

The server is a process of its own. A few streams warm up what is measured; then all are begun together, the server
waits until every request is there, and they run side by side. Memory is the most that was held while they ran, over
what was held before, divided by the streams.
"""

import asyncio
import cProfile
import gc
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import profiling
from memory import resident

from wires import samples
from wires.formats import FORMATS

STREAMS, DELTAS, WARM_UP = 200, 500, 20
TICK = 0.01
READERS = ("wakeful", "sdk")


def measured(name: str, reader: str, streams: int, under_profiler: bool) -> dict[str, Any]:
    entry = str(Path(__file__).parent.parent / "wire.py")
    arguments = ["--server", name, "--deltas", str(DELTAS), "--crowds", str(WARM_UP), str(streams)]
    server = subprocess.Popen([sys.executable, entry, *arguments], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        address = f"http://127.0.0.1:{int(server.stdout.readline())}"
        return asyncio.run(_client(name, reader, address, streams, under_profiler))
    finally:
        server.kill()
        server.wait()


async def _client(name: str, reader: str, address: str, streams: int, under_profiler: bool) -> dict[str, Any]:
    ask = (_wakeful(name) if reader == "wakeful" else FORMATS[name].sdk_live)(address)
    await _all(ask, WARM_UP)
    if under_profiler:
        return {"profile": await _profiled(ask, streams, _events(name))}
    return await _timed(ask, streams, _events(name))


def _events(name: str) -> int:
    return len(samples.pieces(FORMATS[name].stream(DELTAS)))


def _wakeful(name: str) -> Callable[[str], Callable[[], Awaitable[str]]]:
    from wakeful.contracts.content import Text
    from wakeful.contracts.conversation import History, UserItem
    from wakeful.contracts.models import Reply
    from wakeful.ports import ModelRequest

    def make(address: str) -> Callable[[], Awaitable[str]]:
        model = FORMATS[name].live(address)

        async def ask() -> str:
            history = History([UserItem(parts=(Text("go"),))])
            said = ""
            async for piece in model.respond(ModelRequest("", history, (), "t_1", 1, attempt=1, answered=0)):
                if isinstance(piece, Reply):
                    said = piece.item.text
            return said

        return ask

    return make


async def _all(ask: Callable[[], Awaitable[str]], streams: int) -> None:
    expected = samples.text(DELTAS)
    for said in await asyncio.gather(*(ask() for _ in range(streams))):
        if said != expected:
            raise AssertionError(f"a stream said {said[:80]!r} ... and {len(said)} characters in all")


async def _timed(ask: Callable[[], Awaitable[str]], streams: int, events: int) -> dict[str, Any]:
    gc.collect()
    before = resident()
    held: list[int] = []
    watcher = asyncio.create_task(_watch(held))
    began, began_processor = time.perf_counter(), time.process_time()
    await _all(ask, streams)
    seconds, processor = time.perf_counter() - began, time.process_time() - began_processor
    watcher.cancel()
    return {
        "streams": streams,
        "events": events * streams,
        "seconds": seconds,
        "processor": processor,
        "memory": max([*held, resident()]) - before,
    }


async def _profiled(ask: Callable[[], Awaitable[str]], streams: int, events: int) -> str:
    profiler = cProfile.Profile()
    profiler.enable()
    await _all(ask, streams)
    profiler.disable()
    return profiling.text(profiler, streams * events, 20)


async def _watch(held: list[int]) -> None:
    while True:
        held.append(resident())
        await asyncio.sleep(TICK)
