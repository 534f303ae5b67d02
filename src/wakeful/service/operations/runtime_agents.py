"""What may be asked about one agent of a runtime: all that is known of it, to make it, to change its model, to put it
away, and what it was before. None of them needs the process that runs the agents."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from wakeful.service.operations.operation import OpenStore, Operation, check_no_tool

if TYPE_CHECKING:
    from wakeful.service.agent_supply import AgentSupply
    from wakeful.views.agent_state import AgentModelState
    from wakeful.views.runtime_records import AgentDetails, AgentRecord, AgentRevision

_RECORDS = "wakeful.views.runtime_records"


@dataclass(frozen=True, slots=True)
class AgentTarget:
    """An agent by its name; None: the default agent."""

    agent: str | None = None


@dataclass(frozen=True, slots=True)
class NewAgent:
    """An agent that is to be made."""

    definition: Mapping[str, Any] = field(default_factory=dict)
    template: str | None = None
    """A template that the agent begins with."""
    by: str = ""


@dataclass(frozen=True, slots=True)
class ModelOfAgent:
    """The model that an agent is to have; None: the one of its definition."""

    agent: str
    model: str | None
    by: str = ""


@dataclass(frozen=True, slots=True)
class AgentRemoval:
    """An agent that is to be archived or deleted."""

    agent: str
    by: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class AgentChange:
    """Fields of an agent that are to be different from now on."""

    agent: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    by: str = ""


@dataclass(frozen=True, slots=True)
class RevisionName:
    """A definition of an agent; None: the one in force."""

    agent: str
    revision: str | None = None
    """A revision of this agent, or enough of its beginning. Without it, the one in force."""


@dataclass(frozen=True, slots=True)
class RevisionPair:
    """Two revisions of an agent; None: the newest change."""

    agent: str
    old: str | None = None
    new: str | None = None


@dataclass(frozen=True, slots=True)
class RevisionChange:
    """What changed, line by line."""

    agent: str
    diff: str


@dataclass(frozen=True, slots=True)
class AgentToRun:
    """An agent that a single run is for, and the definition to make it from where it may be made."""

    agent: str
    new: Mapping[str, Any] | None = None
    by: str = ""


@dataclass(frozen=True, slots=True)
class RunnableAgent:
    """An agent as it is run now."""

    definition: Mapping[str, Any]
    revision: str
    model: str | None
    """The model that its operator gave it."""
    is_code: bool = False
    """Its definition holds code, which the caller has to have."""


async def _runnable(opened: OpenStore, asked: AgentToRun) -> RunnableAgent:
    from wakeful.contracts.errors import InvalidRequest
    from wakeful.runtime.builtin_templates import DEFAULT_TEMPLATE
    from wakeful.service.commands.agents import agent_named
    from wakeful.service.queries.agent_details import definition_of

    check_no_tool("agents")
    name, store = asked.agent, opened.store
    if asked.new is not None and await store.runtime_agent(name) is None:
        await supply_of(opened).create(asked.new, by=asked.by, template=DEFAULT_TEMPLATE)
    row = await agent_named(store, name)
    if row.visibility != "public" or row.ownership != "self_owned":
        raise InvalidRequest(f"agent {name!r} belongs to {row.parent}", "Run that agent instead.")
    if row.control == "paused":
        raise InvalidRequest(
            f"agent {name!r} is paused: {row.reason or row.cause}",
            f'It keeps messages: wakeful send {name} "..." To let it run: wakeful agent resume {name}',
        )
    definition = await definition_of(opened.engine, row)
    return RunnableAgent(definition, row.revision, row.model_override, row.source == "code")


async def _show(opened: OpenStore, asked: AgentTarget) -> "AgentDetails":
    from wakeful.service.queries.agent_details import agent_details
    from wakeful.settings.agent_homes import default_agent_id

    found = await agent_details(opened.engine, asked.agent if asked.agent is not None else default_agent_id())
    return found if opened.living is None else await opened.living.refusals.counted(found)


async def _create(opened: OpenStore, asked: NewAgent) -> "AgentRecord":
    from wakeful.service.queries.agent_records import record_of

    check_no_tool("agents")
    row = await supply_of(opened).create(asked.definition, by=asked.by, template=asked.template)
    return await record_of(opened.engine, row)


async def _update(opened: OpenStore, asked: AgentChange) -> "AgentRecord":
    from wakeful.service.queries.agent_records import record_of

    check_no_tool("agents")
    return await record_of(opened.engine, await supply_of(opened).update(asked.agent, asked.changes))


async def _definition(opened: OpenStore, asked: RevisionName) -> dict[str, Any]:
    from wakeful.service.queries.agent_revisions import revision_named

    return await supply_of(opened).definition(await revision_named(opened.engine, asked.agent, asked.revision))


async def _model(opened: OpenStore, asked: ModelOfAgent) -> "AgentModelState":
    from wakeful.service.agent_models import change_model
    from wakeful.service.queries.agent_details import agent_details

    check_no_tool("models")
    await change_model(opened.engine, asked.agent, asked.model, by=asked.by)
    return (await agent_details(opened.engine, asked.agent)).model


async def _archive(opened: OpenStore, asked: AgentRemoval) -> "AgentRecord":
    from wakeful.service.commands.agent_removal import archive_agent
    from wakeful.service.queries.agent_records import record_of

    check_no_tool("agents")
    row = await archive_agent(opened.engine, asked.agent, by=asked.by, reason=asked.reason)
    return await record_of(opened.engine, row)


async def _delete(opened: OpenStore, asked: AgentRemoval) -> AgentTarget:
    check_no_tool("agents")
    await supply_of(opened).delete(asked.agent, by=asked.by, reason=asked.reason)
    return AgentTarget(asked.agent)


async def _history(opened: OpenStore, asked: AgentTarget) -> "list[AgentRevision]":
    from wakeful.service.queries.agent_revisions import revisions_of
    from wakeful.settings.agent_homes import default_agent_id

    return await revisions_of(opened.engine, asked.agent if asked.agent is not None else default_agent_id())


async def _diff(opened: OpenStore, asked: RevisionPair) -> RevisionChange:
    from wakeful.service.queries.agent_revisions import difference

    return RevisionChange(asked.agent, await difference(opened.engine, asked.agent, asked.old, asked.new))


def supply_of(opened: OpenStore) -> "AgentSupply":
    """Where agents come from: the runtime's code and files; where none is here, the store alone."""
    if opened.living is not None:
        return opened.living.supply
    from wakeful.runtime.agent_roster import AgentRoster
    from wakeful.service.agent_supply import AgentSupply

    return AgentSupply(opened.engine, AgentRoster())


RUNNABLE_AGENT = Operation("runtime.runnable", "operate", AgentToRun, f"{__name__}.RunnableAgent", _runnable)
SHOW_AGENT = Operation("runtime.agent", "observe", AgentTarget, f"{_RECORDS}.AgentDetails", _show)
CREATE_AGENT = Operation("runtime.create", "operate", NewAgent, f"{_RECORDS}.AgentRecord", _create)
UPDATE_AGENT = Operation("runtime.update", "operate", AgentChange, f"{_RECORDS}.AgentRecord", _update, repeatable=True)
SHOW_DEFINITION = Operation("runtime.definition", "observe", RevisionName, "builtins.dict", _definition)
SET_MODEL = Operation(
    "runtime.model", "operate", ModelOfAgent, "wakeful.views.agent_state.AgentModelState", _model, repeatable=True
)
ARCHIVE_AGENT = Operation(
    "runtime.archive", "operate", AgentRemoval, f"{_RECORDS}.AgentRecord", _archive, repeatable=True
)
DELETE_AGENT = Operation("runtime.delete", "operate", AgentRemoval, f"{__name__}.AgentTarget", _delete, repeatable=True)
LIST_REVISIONS = Operation(
    "runtime.revisions", "observe", AgentTarget, f"{_RECORDS}.AgentRevision", _history, many=True
)
SHOW_CHANGE = Operation("runtime.diff", "observe", RevisionPair, f"{__name__}.RevisionChange", _diff)
