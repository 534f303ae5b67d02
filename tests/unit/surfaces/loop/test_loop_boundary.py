"""The boundary: everything concrete comes from the host, and nothing else is touched."""

import sys
from pathlib import Path
from typing import Any

import pytest

from loop_host import Host, calling, search

WATCHED = (
    "open",
    "os.",
    "socket.connect",
    "socket.bind",
    "socket.send",
    "socket.getaddrinfo",
    "sqlite3.",
    "subprocess.",
)
_seen: list[str] | None = None


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if _seen is not None and event.startswith(WATCHED):
        _seen.append(f"{event} {arguments[:1]}")


def _touch_disk() -> None:
    Path(__file__).read_bytes()


async def _whole_run() -> None:
    host = Host(calling(search("a"), search("b")), calling(search("c")), {"content": "done"})
    result = await host.mediated()
    assert (result.completed, len(host.calls), host.names[-1]) == (True, 3, "completed")


@pytest.mark.spec("API-BND-02")
async def test_a_whole_loop_runs_on_fakes_alone_without_network_or_disk() -> None:
    global _seen
    await _whole_run()  # what is imported when it is first needed is read from disk
    sys.addaudithook(_note)
    _seen = []
    try:
        await _whole_run()
        touched = list(_seen)
        _touch_disk()
        assert len(_seen) > len(touched), "the watch sees nothing, so it shows nothing"
    finally:
        _seen = None
    assert touched == []
