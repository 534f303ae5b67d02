"""The tools of an agent, as people and clients are shown them: offered, asked, denied, confined, missing, and why.

The answer is the newest catalogue that the scope put on record: a turn, an agent's thread, an agent. Where there was no
turn it is worked out from the agent's code in the same way a turn does it, and says so (`resolved_for="query"`).
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

from wakeful.contracts.errors import AgentMissing
from wakeful.contracts.events import ToolCatalogResolved
from wakeful.contracts.tool_catalog import ToolCatalog
from wakeful.contracts.values import Value
from wakeful.engine.agent import Agent
from wakeful.engine.prepare.tools import toolbelt
from wakeful.engine.run_request import Engine
from wakeful.ports import Store, TurnRow, Turns

PAGE = 20
"""So many turns are looked up at a time: the newest one answers, unless it had no tools."""


class ToolInventory(Value):
    """A catalogue, and where it is from."""

    agent: str
    turn_id: str | None = None
    """The turn that put it on record; None: it was worked out for this question."""
    catalog: ToolCatalog


async def tool_inventory(
    engine: Engine,
    *,
    turn: TurnRow | None = None,
    agent_id: str | None = None,
    thread_id: str | None = None,
    agent: Agent[Any, Any] | None = None,
) -> ToolInventory:
    """The tools of a turn, or of an agent by its id, optionally in one thread.

    `agent` is the code, for where nothing is on record. Raises AgentMissing when neither is there.
    """
    async for row in _scope(engine.store, turn, agent_id, thread_id):
        recorded = await catalog_on_record(engine.store, row)
        if recorded is not None:
            return ToolInventory(agent=row.agent_name, turn_id=row.turn_id, catalog=recorded)
    if agent is not None:
        return ToolInventory(agent=agent.name, catalog=await _resolved(engine, agent))
    if turn is not None:  # a turn without tools puts none on record
        return ToolInventory(agent=turn.agent_name, turn_id=turn.turn_id, catalog=ToolCatalog(entries=()))
    raise AgentMissing(
        f"nothing is on record about the tools of {agent_id!r} in {engine.store.location}",
        "supply the agent itself: --agent FILE or --tools module:AGENT",
    )


async def _scope(
    store: Turns, turn: TurnRow | None, agent_id: str | None, thread_id: str | None
) -> AsyncIterator[TurnRow]:
    """The turns that may answer, newest first, page by page."""
    if turn is not None:
        yield turn
        return
    before: int | None = None
    while agent_id is not None:
        if thread_id is None:
            page = await store.turns_of_agent(agent_id, limit=PAGE, before=before)
        else:
            page = (await store.turns_of_thread(agent_id, thread_id, last=PAGE, before=before))[::-1]
        for row in page:
            yield row
        if len(page) < PAGE:
            return
        before = page[-1].first_seq


async def catalog_on_record(store: Store, row: TurnRow) -> ToolCatalog | None:
    """The newest catalogue that a turn put on record."""
    facts = await store.read(row.agent_id, turn_id=row.turn_id)
    resolved = [entry.fact.event for entry in facts if isinstance(entry.fact.event, ToolCatalogResolved)]
    if not resolved:
        return None
    newest = resolved[-1]
    catalog = ToolCatalog.model_validate_json(await store.get_blob(newest.catalog_ref.digest))
    return catalog.model_copy(update={"revision": newest.revision, "reason": newest.reason})


async def _resolved(engine: Engine, agent: Agent[Any, Any]) -> ToolCatalog:
    async with AsyncExitStack() as stack:
        now = engine.clock.now() / 1_000_000
        belt = await toolbelt(agent, await engine.store.rules(agent.name), now, engine.surroundings, stack)
    return belt.catalog.model_copy(update={"resolved_for": "query", "reason": "query"})
