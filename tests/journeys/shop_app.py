"""A web app with one agent: every user has a thread. For `uvicorn shop_app:app --workers N`.

POST /?user=U&key=K answers the message K of the user U, POST / says which worker is there. The folder with the store
comes from `SHOP_FOLDER`.
"""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import parse_qsl

from wakeful import Agent, RunContext, run, tool
from wakeful.ports import ModelRequest, Store
from wakeful.providers.scripted import ScriptedModel
from wakeful.store.sqlite import SqliteStore

Message: TypeAlias = MutableMapping[str, Any]
FOLDER = Path(os.environ["SHOP_FOLDER"])


@tool(effect="irreversible")
async def charge(ctx: RunContext[Path], key: str) -> str:
    """Take the money."""
    descriptor = os.open(ctx.deps / "world", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(descriptor, f"{key}\n".encode())
    finally:
        os.close(descriptor)
    await asyncio.sleep(0.001)
    return "charged"


def answer(request: ModelRequest) -> Any:
    key = [item.text for item in request.history if item.role == "user"][-1]
    if request.answered == 0:
        return {"calls": [{"name": "charge", "arguments": {"key": key}}]}
    return f"{key} is done"


SHOP = Agent("shop", ScriptedModel(answer), tools=[charge], deps_type=Path)


class App:
    """One store for each worker, open as long as the worker lives."""

    def __init__(self) -> None:
        self._store: Store | None = None

    async def __call__(
        self,
        scope: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        asked = dict(parse_qsl(scope["query_string"].decode()))
        assert self._store is not None
        told: dict[str, int | str] = {"worker": os.getpid(), "server": os.getppid()}
        if asked:
            user, key = asked["user"], asked["key"]
            result = await run(SHOP, key, store=self._store, thread=user, key=key, deps=FOLDER)
            told["answer"] = f"{result.status} {len(result.unknown)} {result.output}"
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(told).encode()})

    async def _live(
        self, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
    ) -> None:
        await receive()
        self._store = await SqliteStore.open(FOLDER / "runs.db")
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._store.close()
        await send({"type": "lifespan.shutdown.complete"})


app = App()
