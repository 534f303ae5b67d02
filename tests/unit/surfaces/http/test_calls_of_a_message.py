"""A message over HTTP is so many calls of functions, whatever else the machine does."""

import asyncio
import json
import socket
from pathlib import Path

from benchmarks.work_counts import WorkCounts

from unit.surfaces.http.test_peer_protocol import serving
from wakeful import Agent, Runtime
from wakeful.service.access import TokenBook
from wakeful.service.operations.operation import OpenStore
from wakeful.settings.access_tokens import add_token
from wakeful.surfaces.http.application import application, front
from wakeful.surfaces.http.guard import Guard
from wakeful.testing import scripted

TOGETHER = 64
MOST = 390
"""Calls, of Python's functions and of built-in ones. They were 410 before decision 0180, and 373 with it."""


def say(wires: "list[socket.socket]", asked: bytes) -> None:
    """A message on each connection; all are there before any is looked at."""
    for wire in wires:
        wire.sendall(asked)
    for wire in wires:
        said = b""
        while not said.endswith(b"}"):
            said += wire.recv(65_536)
        assert said.startswith(b"HTTP/1.1 200"), said


async def test_a_message_over_http_is_a_bounded_number_of_calls(tmp_path: Path) -> None:
    token = add_token(tmp_path / "tokens.json", "bench", ("operate",), at=1.0, by="owner")
    counts, found = WorkCounts(), []
    async with Runtime(tmp_path / "home", agents=[Agent("ops", scripted(["ok"]))]) as rt:
        await rt.pause("ops")
        engine = rt._here.engine
        opened = OpenStore(engine.store, lambda _: engine, frozenset, rt._here)
        app = front(application(opened, asyncio.Event()))
        guard = Guard(app, TokenBook(path=tmp_path / "tokens.json"), frozenset({"127.0.0.1"}))
        async with serving(guard) as port:
            body = json.dumps({"text": "Check the backups of host 17."}).encode()
            asked = (
                f"POST /agents/ops/messages HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
                f"Authorization: Bearer {token}\r\nContent-Length: {len(body)}\r\n\r\n"
            ).encode() + body
            wires = [socket.create_connection(("127.0.0.1", port)) for _ in range(TOGETHER)]
            try:
                await asyncio.to_thread(say, wires, asked)
                for _ in range(8):
                    with counts.counting():
                        await asyncio.to_thread(say, wires, asked)
                    found.append(counts.calls / TOGETHER)
            finally:
                for wire in wires:
                    wire.close()
    assert min(found) <= MOST, found
