"""A runtime in a process of its own that dies right after a command of its agent became a task, before the call's end.

python promoted_task.py FOLDER [dies]
"""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wakeful import Agent, Runtime
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import TaskCreated
from wakeful.ports import AdmissionAnswer, ModelRequest
from wakeful.store.sqlite import SqliteStore
from wakeful.testing import scripted
from wakeful.testing.wrapped_store import WrappedStore

WAITS = "while [ ! -e go ]; do sleep 0.05; done; echo out"


class DiesAtTask(WrappedStore):
    async def admit(self, agent_id: str, facts: Sequence[Fact], **options: Any) -> AdmissionAnswer | None:
        answer = await super().admit(agent_id, facts, **options)
        if any(isinstance(fact.event, TaskCreated) for fact in facts):
            os.kill(os.getpid(), signal.SIGKILL)
        return answer


def reply(request: ModelRequest) -> Any:
    last = request.history[-1]
    if last.role == "tool" or "Task task_" in last.text:
        return f"TOLD {last.text}"
    return {"calls": [{"name": "exec_command", "arguments": {"cmd": WAITS, "yield_time_ms": 1}}]}


async def main(folder: Path, dies: bool) -> None:
    store = await SqliteStore.open(folder / "wakeful.db")
    agent = Agent("ops", scripted(reply), workspace=folder / "work")
    async with Runtime(store=DiesAtTask(store) if dies else store, agents=[agent]) as runtime:
        result = await runtime.answer(await runtime.send("ops", "Go.", key="go"))
        (folder / "told").write_text(result.final_content)
        await runtime.settled()
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), len(sys.argv) > 2))
