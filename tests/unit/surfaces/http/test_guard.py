"""The door of the HTTP interface, asked directly: what it waits for before it refuses."""

import asyncio
from pathlib import Path
from typing import Any

from wakeful.service.access import TokenBook
from wakeful.settings.access_tokens import add_token, remove_token
from wakeful.surfaces.http.guard import BODY, MAX_DEPTH, Guard, _depth


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


def test_a_text_without_an_end_is_looked_through_once() -> None:
    """Each place that a text might begin at was once looked at to the end: a large body took most of an hour."""
    hostile = b"[" + b"[]," * MAX_DEPTH + b'[]]"'
    assert _depth(hostile + b'\\"' * 400_000) == 2
    assert _depth(hostile + b'\\"' * 400_000 + b"\\") == 2
    assert _depth(b"[]" * MAX_DEPTH + b'"' + b"[" * 2 * MAX_DEPTH) == 1, "brackets in a text are not counted"
    assert _depth(b'"\\\\"' + b"[" * 2 * MAX_DEPTH) == MAX_DEPTH + 1, "the inversion: behind its end they are"


async def test_tokens_that_cannot_be_read_are_an_error_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "tokens.json").write_text("{")
    guard, sent = Guard(never, TokenBook(path=tmp_path / "tokens.json"), frozenset({"localhost"})), []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/agents",
        "headers": [(b"host", b"localhost"), (b"authorization", b"Bearer x")],
        "client": ("127.0.0.1", 5),
        "state": {BODY: b""},
    }
    await guard(scope, never, send)
    assert sent[0]["status"] == 503 and guard.refused == {"tokens_unreadable": 1}
    assert b"wakeful token list" in sent[1]["body"] and str(tmp_path).encode() not in sent[1]["body"]


async def test_requests_that_wait_for_their_turn_share_a_look_at_the_tokens_and_later_ones_do_not(
    tmp_path: Path,
) -> None:
    path = tmp_path / "tokens.json"
    token = add_token(path, "clerk", ("observe",), at=1.0, by="owner")
    answered: list[int] = []

    async def behind(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def send(message: Any) -> None:
        if "status" in message:
            answered.append(message["status"])

    guard = Guard(behind, TokenBook(path=path), frozenset({"localhost"}))

    async def ask() -> None:
        headers = [(b"host", b"localhost"), (b"authorization", b"Bearer " + token.encode())]
        scope = {"type": "http", "method": "GET", "path": "/agents", "headers": headers, "state": {BODY: b""}}
        await guard({**scope, "client": ("127.0.0.1", 5)}, never, send)

    loop, before = asyncio.get_running_loop(), [asyncio.create_task(ask())]
    loop.call_soon(remove_token, path, "clerk")
    before.append(asyncio.create_task(ask()))  # it arrived before the token was revoked
    await asyncio.gather(*before)
    assert answered == [200, 200]
    await ask()
    assert answered == [200, 200, 401]
