"""The target `runtime`: a task is a message of an agent that lives here, and the scheduler runs its turn.

Whoever hands the task over waits for nothing but that the message is safe. Its key follows from the run's id, so that
a task which a kill left without its message gets it once, and never twice.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from wakeful.engine.run_request import Engine
from wakeful.hosts.agent_registry import AgentRegistry
from wakeful.hosts.dispatch.dispatch_request import DispatchRequest, ExecutorTarget, RunOwner
from wakeful.hosts.dispatch.local_target import LocalTarget, prompt_of
from wakeful.ports import MessageRow, TurnRow
from wakeful.service.commands.agents import send_message
from wakeful.service.commands.interruption import cancel_message
from wakeful.service.queries.dispatch_states import RUNTIME, key_of, message_of, runtime_state


class RuntimeTarget(LocalTarget):
    """Has tasks run by the runtime of the store."""

    id = RUNTIME

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine, AgentRegistry(engine))

    async def target(self) -> ExecutorTarget | None:
        return ExecutorTarget(
            id=RUNTIME,
            label="this runtime",
            kind="runtime",
            description="Runs the task as a turn of one of its agents.",
            capabilities=("tasks.run",),
        )

    async def run(
        self, given: DispatchRequest, owner: RunOwner | None, is_cancelled: Callable[[], Awaitable[bool]]
    ) -> dict[str, Any]:
        """Make the message safe, once."""
        if await is_cancelled() and await self.message(given) is None:
            return {"status": "cancelled"}
        row = await send_message(
            self._engine,
            agent_of(given),
            prompt_of(given),
            thread=given.session_id,
            key=key_of(given.run_id),
            sender=owner.key if owner is not None else None,
            context={"task_id": given.task_id, "run_id": given.run_id},
            surface="http_control_prompt",
            admission="control_authenticated",
        )
        return {"status": "queued", "provenance": {"agent": row.agent_id, "message_id": row.message_id}}

    async def message(self, given: DispatchRequest) -> MessageRow | None:
        """The message of a task."""
        return await message_of(self._engine, agent_of(given), given.run_id)

    async def turn(self, run_id: str) -> TurnRow | None:
        row = await self._message_of(run_id)
        return await self._engine.store.turn(row.turn_id) if row is not None and row.turn_id else None

    async def status(self, run_id: str) -> dict[str, Any] | None:
        given = await self._given(run_id)
        return await runtime_state(self._engine, agent_of(given), run_id) if given is not None else None

    async def cancel(self, run_id: str) -> None:
        row = await self._message_of(run_id)
        if row is not None:
            await cancel_message(self._engine, row, requested_by="dispatch")

    async def _message_of(self, run_id: str) -> MessageRow | None:
        given = await self._given(run_id)
        return await self.message(given) if given is not None else None

    async def _given(self, run_id: str) -> DispatchRequest | None:
        row = await self._engine.store.dispatches.get(run_id)
        return DispatchRequest.model_validate(json.loads(row.record)["input"]) if row is not None else None


def agent_of(given: DispatchRequest) -> str:
    """The agent that a task of the runtime names."""
    return str(given.metadata["agent"])
