"""A worker of a web server: it answers messages of many users, each in the user's own thread, with one agent.

python worker.py FOLDER NUMBER WORKERS USERS MESSAGES

Each message comes to two workers, as when a client retries: the second follows the first, or takes over. The messages
of a user go to different workers, so that they queue between processes. After a kill it is run again, and sends
the same.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from wakeful import Agent, RunContext, run, tool
from wakeful.ports import ModelRequest
from wakeful.providers.scripted import ScriptedModel
from wakeful.store.sqlite import SqliteStore

AT_ONCE = 12


def note(path: Path, line: str) -> None:
    """One write: lines of several processes do not mix, and are there whatever happens next."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(descriptor, f"{line}\n".encode())
    finally:
        os.close(descriptor)


async def main(folder: Path, number: int, workers: int, users: int, messages: int) -> None:
    @tool(effect="irreversible")
    async def charge(ctx: RunContext[Path], key: str) -> str:
        """Take the money."""
        note(ctx.deps / "world", key)
        await asyncio.sleep(0.001)
        return "charged"

    async def answer(request: ModelRequest) -> Any:
        key = [item.text for item in request.history if item.role == "user"][-1]
        if request.answered == 0:
            return {"calls": [{"name": "charge", "arguments": {"key": key}}]}
        return f"{key} is done"

    agent = Agent("shop", ScriptedModel(answer), tools=[charge], deps_type=Path)
    store = await SqliteStore.open(folder / "runs.db")
    slots = asyncio.Semaphore(AT_ONCE)

    async def send(user: int, message: int) -> None:
        key = f"user_{user}_message_{message}"
        async with slots:
            result = await run(agent, key, store=store, thread=f"user_{user}", key=key, deps=folder)
        note(folder / "answers", f"{key} {number} {result.status} {len(result.unknown)} {result.output}")

    try:
        await asyncio.gather(
            *(
                send(user, message)
                for message in range(messages)
                for user in range(users)
                if number in ((user + message) % workers, (user + message + 1) % workers)
            )
        )
    finally:
        await store.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), *map(int, sys.argv[2:])))
