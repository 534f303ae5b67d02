"""A runtime with an agent that spawns another, killed at a commit: `main(home, scenario, point)`.

`point` is the number of the commit in whose place the process ends, 0 for none; `+` behind it: right after it. In
scenario `work` the child pays a bill and is done; in `stop` it has a child of its own and is stopped; in `retry` its
model fails after the payment, and its turn is tried again once the model is mended. What it prints is the number of
commits, and how the tasks of the agent stand.
"""

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wakeful import Agent, Budget, RunContext, Runtime, tool
from wakeful.contracts.conversation import ToolItem, UserItem
from wakeful.contracts.envelope import Fact
from wakeful.errors import ModelFailure
from wakeful.ports import ModelRequest
from wakeful.store.sqlite import SqliteStore
from wakeful.testing import scripted
from wakeful.testing.wrapped_store import WrappedStore

DIG = "Dig a hole."
GRANT = 6


class CountingStore(WrappedStore):
    """A store whose process ends at one of its commits."""

    def __init__(self, store: Any, point: str) -> None:
        super().__init__(store)
        self._at, self._after = int(point.removesuffix("+")), point.endswith("+")
        self.commits = 0

    def _count(self, *, after: bool) -> None:
        if not after:
            self.commits += 1
        if self.commits == self._at and after == self._after:
            os.kill(os.getpid(), signal.SIGKILL)

    async def admit(self, agent_id: str, facts: Sequence[Fact], **terms: Any) -> Any:
        self._count(after=False)
        answer = await super().admit(agent_id, facts, **terms)
        self._count(after=True)
        return answer

    async def append(self, claim: Any, facts: Sequence[Fact], **terms: Any) -> Any:
        self._count(after=False)
        answer = await super().append(claim, facts, **terms)
        self._count(after=True)
        return answer


def agent(home: Path, scenario: str) -> Agent[None, str]:
    ledger = home / "ledger.txt"

    @tool(effect="keyed")
    def pay(ctx: RunContext[None]) -> str:
        """Pay for the shovel."""
        paid = ledger.read_text().splitlines() if ledger.exists() else []
        if ctx.idempotency_key not in paid:
            with ledger.open("a") as file:
                file.write(f"{ctx.idempotency_key}\n")
        return "paid"

    def reply(request: ModelRequest) -> Any:
        heard = [item.text for item in request.history if isinstance(item, UserItem)]
        if "Dig deeper." in heard[0]:
            return call("wait_for", reason="rain", wake="external")
        if DIG in heard[0]:
            if scenario == "stop":
                deeper = call("spawn_agent", initial_message="Dig deeper.", budget={"model_calls": 2})
                return deeper if not request.answered else call("wait_for", reason="deeper", wake="task_result")
            if request.answered and scenario == "retry" and not (home / "mended").exists():
                raise ModelFailure("half an answer", kind="invalid_response", stage="body", retryable=False)
            return call("pay") if not request.answered else "A hole."
        if "Task task_" in heard[-1]:
            return "told"
        if heard[-1] == "Stop it.":
            told = next(item.text for item in request.history if isinstance(item, ToolItem))
            handle = told[told.index("task_c") :].partition('"')[0]
            return call("task_stop", task_id=handle) if not request.answered else "stopped"
        spawn = call("spawn_agent", initial_message=DIG, budget={"model_calls": GRANT})
        return spawn if not request.answered else "It digs."

    return Agent("ops", scripted(reply), tools=[pay], spawn=True, budget=Budget(model_calls=20))


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"calls": [{"name": name, "arguments": arguments}]}


async def main(home: Path, scenario: str, point: str) -> None:
    store = CountingStore(await SqliteStore.open(home / "runs.db"), point)
    async with Runtime(agents=[agent(home, scenario)], store=store) as rt:
        await rt.answer(await rt.send("ops", "Have a hole dug.", key="dig"))
        await rt.settled()
        if scenario == "stop":
            await rt.answer(await rt.send("ops", "Stop it.", key="stop"))
        await rt.settled()
        rows = await store.tasks_of("ops")
        if scenario == "retry" and rows[0].status == "failed":
            (home / "mended").touch()
            (turn,) = await store.turns_of_thread(rows[0].child.agent_id, "main")
            await rt.retry(turn.turn_id)
            await rt.settled()
            rows = await store.tasks_of("ops")
    sys.stdout.write(f"{store.commits} {[row.status for row in rows]}\n")
    await store.close()
