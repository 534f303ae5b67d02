"""A runtime in a process of its own whose agent begins a task, with a kill at one commit or with none.

`main(folder, command, point)`: the point is a place, a number and a moment; or `fact`, its kind and a moment.

Without a kill it goes on to the end: every task is over and the agent was told of each. Then the places that were
passed are in `points.json` of the folder.
"""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crash.task_runtime import ops
from crash.waking_process import KilledStore
from wakeful import Runtime
from wakeful.contracts.events import MessageAdmitted
from wakeful.store.sqlite import SqliteStore
from wakeful.testing.crash_store import CrashingStore
from wakeful.testing.crash_switch import CrashSwitch, KillPoint


async def main(folder: Path, command: str, said: Sequence[str]) -> None:
    is_fact = bool(said) and said[0] == "fact"
    point = KillPoint(said[0], int(said[1]), said[2]) if said and not is_fact else None  # type: ignore[arg-type]
    path, switch = folder / "home" / "wakeful.db", CrashSwitch(point)
    path.parent.mkdir(exist_ok=True)
    store: Any = CrashingStore(str(path), lambda: SqliteStore.open(path), switch)
    if is_fact:
        store = KilledStore(await SqliteStore.open(path), said[1], said[2])
    async with Runtime(store=store, agents=[ops(folder, command)]) as runtime:
        answered = await runtime.answer(await runtime.send("ops", "Build it.", key="build"))
        assert answered.output == "It runs."
        while not await _are_over(runtime):
            pass
        results = [entry.fact.event for entry in await store.read("ops")]
        for each in results:
            if isinstance(each, MessageAdmitted) and each.task_id is not None:
                assert (await runtime.answer(each.message_id)).output == "told"
    (folder / "points.json").write_text(json.dumps(switch.points()))


async def _are_over(runtime: Runtime) -> bool:
    await asyncio.sleep(0.02)
    return all(task.ended_at for task in await runtime.tasks("ops", over=True))
