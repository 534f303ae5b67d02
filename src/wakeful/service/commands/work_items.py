"""Work items from outside: an objective goes into an agent's queue without a message."""

from wakeful.contracts.errors import InvalidRequest
from wakeful.contracts.work_items import WorkItem
from wakeful.engine.run_request import Engine
from wakeful.runtime.work_queue import enqueue_work_item
from wakeful.service.commands.agents import addressed
from wakeful.service.commands.runtime_holds import refuse_if_stopped
from wakeful.service.queries.agent_details import definition_of


async def enqueue(engine: Engine, agent: str, objective: str, *, by: str) -> WorkItem:
    """Raises AgentNotFound, AgentStopped, or InvalidRequest for an agent without work items."""
    row = await addressed(engine.store, agent)
    await refuse_if_stopped(engine.store)
    if not (await definition_of(engine, row)).get("work_items"):
        raise InvalidRequest(
            f"agent {agent!r} keeps no work items",
            "Give it work_items (in its file: work_items: true), or send it a message instead.",
        )
    return await enqueue_work_item(engine, agent, objective, by=by)
