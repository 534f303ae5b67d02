"""A program whose agent remembers and forgets: `main(home, where, point)`.

The process ends at the `point`-th statement of SQL on an index (`where` is `index`) or on the store (`store`);
0: never. It prints what can be found at the end.
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import apsw

from wakeful import Agent, Runtime
from wakeful.ports import ModelRequest
from wakeful.testing import scripted

FACTS = 5
STATEMENTS = 0


def watch(where: str, point: int) -> None:
    """Count statements of every connection that is opened from now on, and end the process at one of them."""

    def of(connection: apsw.Connection) -> None:
        if (".memory/" in connection.filename) == (where == "index"):
            connection.set_exec_trace(count)

    def count(cursor: Any, sql: str, bindings: Any) -> bool:
        global STATEMENTS
        STATEMENTS += 1
        if point == STATEMENTS:
            os.kill(os.getpid(), signal.SIGKILL)
        return True

    apsw.connection_hooks.append(of)


async def main(home: Path, where: str, point: int) -> None:
    os.environ["WAKEFUL_HOME"] = str(home)
    watch(where, point)
    notes = home / "agents" / "ada" / "memory" / "self.md"
    if not notes.exists():
        notes.parent.mkdir(parents=True)
        notes.write_text("# Keep\nThe walrus is kept.\n\n# Drop\nThe walrus is dropped.\n")

    def say(request: ModelRequest) -> str:
        heard = [item.text for item in request.history if item.role == "user" and item.origin == "person"]
        return f"Noted: {heard[-1]}"

    async with Runtime(home, agents=[Agent("ada", scripted(say), memory=True)]) as rt:
        memory = rt.memory("ada")
        for number in range(FACTS):
            await rt.answer(await rt.send("ada", f"walrus {number}", key=f"walrus-{number}"))
            await memory.list("walrus")
        for unwanted in ("Noted: walrus 1", "# Drop\nThe walrus is dropped."):
            for entry in await memory.list("walrus"):
                if entry.text == unwanted:
                    await memory.forget(entry.source_ref)
        found = sorted(entry.text for entry in await memory.list("walrus"))
        working = await memory.working()
        lines = [line.text for line in working.current_working_memory.recent_decisions]
        told = {"found": found, "working": lines, "revision": working.working_memory_revision}
        sys.stdout.write(f"{json.dumps({**told, 'file': notes.read_text(), 'statements': STATEMENTS})}\n")
