"""What a supervisor costs: a command of 200 ms as a task of a runtime, against the same command confined and bare.

    python benchmarks/supervised.py

All three run in turns in one process, with the same sandbox. `confined` is the command as a run of the library has it,
`bare` its shell started with `subprocess.run` and nothing around it. A task is promoted at once: its folder, its row in
the log, its end in a file and in the log are part of it.
"""

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from reporting import Aim, aims_table, measure, number, table

RUNS = 25
WARM_UP = 3
LIMIT = 1.3
COMMAND = ["sh", "-c", "sleep 0.2"]


@dataclass(frozen=True)
class Cost:
    """Medians in milliseconds; None where the machine cannot hold a command that way."""

    bare: float | None = None
    confined: float | None = None
    supervised: float | None = None
    task: float | None = None
    problem: str = ""


def run() -> Cost:
    return Cost(**measure("supervised.py", ["--cell"], 240))


async def _cell() -> Cost:
    from wakeful.bootstrap.engines import new_engine
    from wakeful.processes.supervised_command import SupervisedCommand
    from wakeful.runtime.tasks import RuntimeTasks
    from wakeful.sandbox import level_probe
    from wakeful.sandbox.confinement import Sandbox
    from wakeful.store.sqlite import SqliteStore

    level = level_probe.bubblewrap()
    if level.mode != "bubblewrap":
        return Cost(problem=level.reason)
    bare, confined, supervised, tasks = [], [], [], []
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        (work := Path(folder, "work")).mkdir()
        sandbox = Sandbox(work, level=level)
        store = await SqliteStore.open(str(Path(folder, "store.db")))
        board = RuntimeTasks(new_engine(store), str(Path(folder, "tasks")), frozenset)
        await board.start()
        turn_id = await _a_turn(store)
        for _ in range(WARM_UP + RUNS):
            began = time.perf_counter()
            subprocess.run(COMMAND, check=True, stdin=subprocess.DEVNULL)  # noqa: ASYNC221 - blocking is measured
            bare.append((time.perf_counter() - began) * 1000)
            began = time.perf_counter()
            await sandbox.run(COMMAND, sandbox.root, timeout=60)
            confined.append((time.perf_counter() - began) * 1000)
            began = time.perf_counter()
            command = await SupervisedCommand.start(sandbox, COMMAND, sandbox.root)
            await command.ended()
            supervised.append((time.perf_counter() - began) * 1000)
            await command.end()
            began = time.perf_counter()
            await _as_task(board, sandbox, turn_id)
            tasks.append((time.perf_counter() - began) * 1000)
        await board.close()
        await store.close()
    return Cost(*(statistics.median(each[WARM_UP:]) for each in (bare, confined, supervised, tasks)))


async def _a_turn(store: object) -> str:
    """A turn for the tasks to belong to."""
    from wakeful.contracts.content import Text
    from wakeful.contracts.conversation import UserItem
    from wakeful.contracts.envelope import Fact
    from wakeful.contracts.events import MessageAdmitted, SessionStarted
    from wakeful.store.sqlite import SqliteStore

    assert isinstance(store, SqliteStore)
    said = MessageAdmitted(message_id="msg_1", item=UserItem(parts=(Text("Build it."),)))
    await store.admit("ops", [Fact(SessionStarted(agent_name="ops"), 1), Fact(said, 1, "main", "turn_1")])
    return "turn_1"


async def _as_task(board: object, sandbox: object, turn_id: str) -> None:
    from wakeful.contracts.tasks import CommandSpec
    from wakeful.ports.tasks import TaskOrder
    from wakeful.processes.supervised_command import SupervisedCommand
    from wakeful.runtime.tasks import RuntimeTasks
    from wakeful.sandbox.confinement import Sandbox

    assert isinstance(board, RuntimeTasks)
    assert isinstance(sandbox, Sandbox)
    spec = CommandSpec(cmd=COMMAND[-1], workdir=sandbox.root, yield_time_ms=1)
    command = await SupervisedCommand.start(sandbox, COMMAND, sandbox.root)

    async def settle() -> list[str]:
        return []

    order = TaskOrder(turn_id, "call_1", "operator_instruction", spec, sandbox.write_roots, "")
    row = await board.promote(command, order, settle)
    row = await board.wait(row.task_id, 60)
    assert row.status == "completed", row


def aims(cost: Cost) -> list[Aim]:
    def over(base: float | None) -> float | None:
        return cost.task / base if cost.task is not None and base is not None else None

    return [
        Aim(
            "a command of 200 ms as a task over the same command confined",
            over(cost.confined),
            LIMIT,
            "x",
            cost.problem,
        ),
        Aim("the same over its shell without anything around it", over(cost.bare), LIMIT, "x", cost.problem),
    ]


def markdown(cost: Cost) -> str:
    def shown(value: float | None) -> str:
        return "-" if value is None else number(value)

    rows = [
        ["the shell alone", shown(cost.bare)],
        ["confined, as in a run of the library", shown(cost.confined)],
        ["under a supervisor, in the foreground", shown(cost.supervised)],
        ["as a task, to the end in the log", shown(cost.task)],
    ]
    return f"""## A command as a task

`sleep 0.2`, {RUNS} times each in turns, medians. A task has a supervisor of its own, a folder, a row in
the log, and its end in a file and in the log, each safe against a power cut.

{table(["", "ms"], rows)}

{aims_table(aims(cost))}
"""


def main() -> None:
    if "--cell" in sys.argv:
        from dataclasses import asdict
        from json import dumps

        print(dumps(asdict(asyncio.run(_cell()))))
    else:
        print(markdown(run()))


if __name__ == "__main__":
    main()
