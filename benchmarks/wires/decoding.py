"""The same streams, decoded by wakeful and by the vendor's SDK, turn and turn about in one process.

Both read from an HTTP response object whose body is in memory, one event a piece. wakeful parses the events, makes
glimpses and puts the reply together. The SDK is measured twice: only handing out its typed events, which is less work
than ours, and putting the message together too, which is the same work.
"""

import cProfile
import gc
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import profiling

from wires import samples
from wires.formats import FORMATS, PATH

DELTAS = 2_000
SAMPLES = 15
ENOUGH = 0.02
"""Seconds that one sample of ours should take at least."""
SOURCES = ("recorded", "long")


def streams(name: str, source: str) -> list[list[bytes]]:
    found = samples.recorded(*FORMATS[name].folders) if source == "recorded" else [FORMATS[name].stream(DELTAS)]
    return [samples.pieces(stream) for stream in found]


def measured(name: str, source: str, under_profiler: bool) -> dict[str, Any]:
    found = streams(name, source)
    if not found:
        return {"streams": 0}
    made = FORMATS[name]
    ours, events, message = made.decoder(), made.events(), made.message()
    _agree(name, found, ours, message)
    if under_profiler:
        return {"profile": _profiled(found, ours)}
    times = max(1, round(ENOUGH / _once(found, ours, 1)))
    took: dict[str, list[float]] = {"ours": [], "events_sdk": [], "message_sdk": []}
    for _ in range(SAMPLES):
        took["ours"].append(_once(found, ours, times))
        took["events_sdk"].append(_once(found, events, times))
        took["message_sdk"].append(_once(found, message, max(1, times // 4)))
    return {
        "streams": len(found),
        "events_read": sum(map(len, found)),
        "bytes_read": sum(len(piece) for stream in found for piece in stream),
        **{who: statistics.median(seconds) for who, seconds in took.items()},
    }


def _once(found: list[list[bytes]], decode: Callable[[Any], Any], times: int) -> float:
    """Seconds to decode all of them once. The responses are made before the clock runs."""
    waiting = [_response(pieces) for _ in range(times) for pieces in found]
    gc.collect()
    began = time.perf_counter()
    for response in waiting:
        decode(response)
    return (time.perf_counter() - began) / times


def _response(pieces: list[bytes]) -> Any:
    import httpx2

    class Body(httpx2.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            return iter(pieces)

    request = httpx2.Request("POST", PATH)
    return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=Body(), request=request)


def _agree(name: str, found: list[list[bytes]], ours: Callable[[Any], Any], theirs: Callable[[Any], Any]) -> None:
    """Both have read the same words: otherwise one of them did less."""
    for pieces in found:
        mine, message = ours(_response(pieces)).item.text, theirs(_response(pieces))
        if name == "chat":
            words = message.choices[0].message.content or ""
        elif name == "responses":
            words = message.output_text
        else:
            words = "".join(block.text for block in message.content if block.type == "text")
        if mine != words:
            raise AssertionError(f"{name}: we read {mine[:80]!r}, the SDK {words[:80]!r}")


def _profiled(found: list[list[bytes]], decode: Callable[[Any], Any]) -> str:
    waiting = [_response(pieces) for _ in range(20) for pieces in found]
    profiler = cProfile.Profile()
    profiler.enable()
    for response in waiting:
        decode(response)
    profiler.disable()
    return profiling.text(profiler, 20 * sum(map(len, found)), 15)
