"""The door of the HTTP interface, asked directly: what it waits for before it refuses."""

from pathlib import Path
from typing import Any

from wakeful.service.access import TokenBook
from wakeful.surfaces.http.guard import BODY, Guard


async def never(*_: Any) -> Any:
    raise AssertionError("nothing is behind a request that is refused, and nothing follows one that came whole")


async def test_a_request_that_came_whole_is_refused_at_once(tmp_path: Path) -> None:
    guard, sent = Guard(never, TokenBook(path=tmp_path / "tokens.json"), frozenset({"localhost"})), []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/agents/clerk/messages",
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
        "client": ("127.0.0.1", 5),
        "state": {BODY: b'{"text": "hello"}'},
    }
    await guard(scope, never, send)
    assert sent[0]["status"] == 401 and guard.refused == {"token_missing": 1}
