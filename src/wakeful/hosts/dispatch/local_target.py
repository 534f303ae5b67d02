"""The built-in target `local`: a task is a turn of an agent of this host, in this process, as durable as any turn.

The session is the turn's thread and the run's id is its key. What a dead process leaves is taken up under the same key,
and a run whose turn has come to its end has come to its own, whoever ended it.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from wakeful.contracts.errors import StoreProblem
from wakeful.contracts.tools import Principal
from wakeful.engine.run_request import Engine, RunRequest
from wakeful.hosts.agent_registry import AgentRegistry, RegisteredAgent
from wakeful.hosts.chat.turns import check_owner
from wakeful.hosts.dispatch.dispatch_request import DispatchRequest, ExecutorTarget, RunOwner
from wakeful.hosts.run_access import RunRefused, principal_id
from wakeful.ports import TurnRow
from wakeful.service.commands.interruption import cancel_turn
from wakeful.service.commands.turns import run_turn
from wakeful.service.queries.dispatch_states import LOCAL, key_of, local_state, told

NO_AGENT = "task_no_agent"


class LocalTarget:
    """Runs tasks as turns."""

    id = LOCAL

    def __init__(self, engine: Engine, agents: AgentRegistry) -> None:
        self._engine = engine
        self._agents = agents

    async def target(self) -> ExecutorTarget | None:
        """None where there is no agent to run."""
        slugs = await self._agents.slugs()
        if not slugs:
            return None
        return ExecutorTarget(
            id=LOCAL,
            label="this runtime",
            kind="runtime",
            description="Runs the task as a turn of one of this host's agents.",
            capabilities=("tasks.run",),
            metadata={"agents": slugs},
        )

    async def run(
        self, given: DispatchRequest, owner: RunOwner | None, is_cancelled: Callable[[], Awaitable[bool]]
    ) -> dict[str, Any]:
        """Run the task, or go on with it: the run's id is the turn's key."""
        if await is_cancelled() and await self.turn(given.run_id) is None:
            return {"status": "cancelled"}  # somebody was faster than the first step
        registered = await self._agent(given)
        speaker = principal_id(owner)
        await check_owner(self._engine, registered.agent.name, given.session_id, speaker)
        known = await self.turn(given.run_id)
        if known is not None and known.is_open and await self._engine.store.is_held(known.agent_id, known.thread_id):
            return _elsewhere(known, f"thread {known.thread_id!r} is being run by another process or task")
        stopping: list[asyncio.Task[None]] = []

        async def stop_if_cancelled(turn_id: str) -> None:
            if await is_cancelled():  # it was cancelled before there was a turn to cancel
                await cancel_turn(self._engine, turn_id)

        def begun(turn_id: str, agent_id: str) -> None:
            stopping.append(asyncio.get_running_loop().create_task(stop_if_cancelled(turn_id)))

        request = RunRequest(
            registered.agent,
            prompt_of(given),
            context={"task_id": given.task_id, "run_id": given.run_id},
            principal=Principal(id=speaker) if speaker is not None else None,
            thread=given.session_id,
            key=key_of(given.run_id),
            on_turn=begun,
        )
        try:
            return told(await run_turn(self._engine, request))
        except StoreProblem as problem:
            row = await self.turn(given.run_id)
            if row is None or not row.is_open:
                raise
            # The message is safe and owed an answer: the task is not over because somebody else has the agent.
            return _elsewhere(row, problem.message)
        finally:
            await asyncio.gather(*stopping)

    async def turn(self, run_id: str) -> TurnRow | None:
        """The turn of a run."""
        return await self._engine.store.turn_of_key(key_of(run_id))

    async def status(self, run_id: str) -> dict[str, Any] | None:
        """What became of a run whose turn is over; None while it is not."""
        return await local_state(self._engine, run_id)

    async def cancel(self, run_id: str) -> None:
        row = await self.turn(run_id)
        if row is not None:
            await cancel_turn(self._engine, row.turn_id)

    async def _agent(self, given: DispatchRequest) -> RegisteredAgent:
        """The agent that is named in the metadata of the task, or of its input; or the only one there is."""
        named = given.task.metadata.get("agent") or given.metadata.get("agent")
        slugs = await self._agents.slugs()
        if named is None and len(slugs) == 1:
            named = slugs[0]
        found = await self._agents.get(named) if isinstance(named, str) else None
        if found is None:
            what = f"there is no agent {named!r}" if named is not None else "the task names no agent"
            raise RunRefused(NO_AGENT, what, f'give metadata={{"agent": ...}}; there are: {", ".join(slugs) or "none"}')
        return found


def _elsewhere(row: TurnRow, message: str) -> dict[str, Any]:
    """A run whose turn somebody else has, who lives: it is not taken from them, and not over."""
    return {
        "status": "queued" if row.state == "admitted" else "running",
        "diagnostics": {"turn_id": row.turn_id, "waiting_for": "resume", "message": message},
    }


def prompt_of(given: DispatchRequest) -> str:
    """The task as a message."""
    parts = [given.task.instructions or f"Do the task {given.task_id}."]
    if given.task.input:
        parts.append("Input:\n" + json.dumps(given.task.input, indent=2, ensure_ascii=False))
    if given.task.attachments:
        parts.append("Attachments:\n" + json.dumps(given.task.attachments, indent=2, ensure_ascii=False))
    return "\n\n".join(parts)
