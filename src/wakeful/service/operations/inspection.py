"""What clients ask to show an agent: the list, a summary, a snapshot, its tools, its waits and briefs."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wakeful.service.operations.operation import OpenStore, Operation
from wakeful.service.operations.runtime_agents import AgentTarget
from wakeful.service.operations.turns import PAGE

if TYPE_CHECKING:
    from wakeful.service.queries.tool_inventory import ToolInventory
    from wakeful.views.agent_inspection import AgentListEntry, AgentStateSnapshot, AgentSummary, WaitRecord
    from wakeful.views.runtime_records import BriefRecord

_VIEWS = "wakeful.views.agent_inspection"


@dataclass(frozen=True, slots=True)
class AgentListing:
    """The public agents, the oldest first."""

    after: str | None = None
    """The last agent of the page before."""
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class AgentTools:
    """The tools of an agent, in one of its threads or anywhere."""

    agent: str
    thread: str | None = None


@dataclass(frozen=True, slots=True)
class AgentBriefs:
    """The newest briefs of an agent."""

    agent: str
    limit: int = PAGE
    after: str | None = None
    """The last brief of the page before."""


@dataclass(frozen=True, slots=True)
class WaitsOfAgent:
    """The open waits of an agent."""

    agent: str


async def _entries(opened: OpenStore, asked: AgentListing) -> "list[AgentListEntry]":
    from wakeful.service.queries.agent_inspection import agent_entries

    return await agent_entries(opened.engine, after=asked.after, limit=asked.limit)


async def _summary(opened: OpenStore, asked: AgentTarget) -> "AgentSummary":
    from wakeful.service.queries.agent_inspection import agent_summary

    return await agent_summary(opened.engine, _named(asked))


async def _snapshot(opened: OpenStore, asked: AgentTarget) -> "AgentStateSnapshot":
    from wakeful.service.queries.agent_inspection import agent_snapshot

    refused = opened.living.refusals.refused if opened.living is not None else None
    return await agent_snapshot(opened.engine, _named(asked), refused)


async def _tools(opened: OpenStore, asked: AgentTools) -> "ToolInventory":
    from wakeful.service.commands.agents import agent_named
    from wakeful.service.queries.tool_inventory import tool_inventory

    await agent_named(opened.store, asked.agent)
    code = await opened.living.supply.agent(asked.agent) if opened.living is not None else None
    return await tool_inventory(opened.engine, agent_id=asked.agent, thread_id=asked.thread, agent=code)


async def _briefs(opened: OpenStore, asked: AgentBriefs) -> "list[BriefRecord]":
    from wakeful.service.commands.agents import agent_named
    from wakeful.service.queries.work_items import briefs_of

    await agent_named(opened.store, asked.agent)
    return await briefs_of(opened.store, asked.agent, limit=asked.limit, after=asked.after)


async def _waits(opened: OpenStore, asked: WaitsOfAgent) -> "list[WaitRecord]":
    from wakeful.service.commands.agents import agent_named
    from wakeful.service.queries.agent_inspection import wait_record

    await agent_named(opened.store, asked.agent)
    return [wait_record(row) for row in await opened.store.open_waits(asked.agent)]


def _named(asked: AgentTarget) -> str:
    from wakeful.settings.agent_homes import default_agent_id

    return asked.agent if asked.agent is not None else default_agent_id()


LIST_ENTRIES = Operation("runtime.entries", "observe", AgentListing, f"{_VIEWS}.AgentListEntry", _entries, many=True)
SUMMARIZE_AGENT = Operation("runtime.summary", "observe", AgentTarget, f"{_VIEWS}.AgentSummary", _summary)
SNAPSHOT_AGENT = Operation("runtime.snapshot", "observe", AgentTarget, f"{_VIEWS}.AgentStateSnapshot", _snapshot)
LIST_AGENT_TOOLS = Operation(
    "runtime.tools", "observe", AgentTools, "wakeful.service.queries.tool_inventory.ToolInventory", _tools
)
LIST_BRIEFS = Operation(
    "runtime.briefs", "observe", AgentBriefs, "wakeful.views.runtime_records.BriefRecord", _briefs, many=True
)
LIST_WAITS = Operation("runtime.waits", "observe", WaitsOfAgent, f"{_VIEWS}.WaitRecord", _waits, many=True)
