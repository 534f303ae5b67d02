"""The model of an agent of a runtime: the one of its definition, or the one that its operator gave it.

An override is a fact of the agent's log. It is looked up when a turn begins, and holds for that turn: one that is under
way, or rests, goes on with the model that it began with. An agent that another one made has its maker's model, an
override of it too, unless its operator gave it one of its own: no agent gets round its override by its children.
"""

from typing import Any

from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import InvalidConfig, KeyMissing
from wakeful.contracts.events import AgentModelChanged, TurnStarted
from wakeful.engine.agent import Agent
from wakeful.engine.run_request import Engine
from wakeful.ports import TurnRow
from wakeful.ports.runtime_agents import RUNTIME_AGENTS, RuntimeAgentRow, RuntimeAgents
from wakeful.service.commands.agents import agent_named

FIRST_FACTS = 20
"""A turn that began says so in so many of its first facts."""


async def change_model(engine: Engine, name: str, model: str | None, *, by: str) -> RuntimeAgentRow:
    """Give an agent another model for turns to come; None: the one of its definition again.

    Raises AgentNotFound, UnknownProvider, or InvalidConfig for a model that the owner's rules exclude. A key that is
    missing here may be there where the agent runs.
    """
    await agent_named(engine.store, name)
    if model is not None:
        check_model(engine, model)
    event = AgentModelChanged(model=model, changed_by=by)
    await engine.store.admit(name, [Fact(event, engine.clock.now())])
    return await agent_named(engine.store, name)


def check_models(engine: Engine, agent: Agent[Any, Any]) -> None:
    """Raises UnknownProvider or InvalidConfig for a model or fallback that no turn could ask."""
    for model in (agent.model, *agent.fallbacks):
        if isinstance(model, str):
            check_model(engine, model)


def check_model(engine: Engine, model: str) -> None:
    """Raises UnknownProvider, or InvalidConfig for a model that the owner's rules exclude."""
    try:
        found = engine.resolve_model(model)
    except KeyMissing:
        return
    out = engine.model_rules.against(found.ref, leaves_machine=getattr(found, "leaves_machine", False))
    if out is not None:
        raise InvalidConfig(f"model {model!r} is ruled out: {out.detail}", "Name another one, or change the rules.")


async def with_model(
    engine: Engine, agent: Agent[Any, Any], thread: str, row: RuntimeAgentRow | None
) -> Agent[Any, Any]:
    """An agent as a thread of it is run next."""
    rows = await _with_makers(engine.store, row)
    if all(row.model_changed_at is None for row in rows):
        return agent
    for turn in await engine.store.turns_of_thread(agent.name, thread, open_only=True):
        started = await _started(engine, turn)
        if started is not None:
            return _asking(agent, started.model_ref)
    return _asking(agent, next((row.model_override for row in rows if row.model_override is not None), None))


async def ancestry(store: RuntimeAgents, name: str) -> list[RuntimeAgentRow]:
    """An agent, the one that made it, and so on; also those that were deleted since."""
    return await _with_makers(store, await store.runtime_agent(name))


async def _with_makers(store: RuntimeAgents, row: RuntimeAgentRow | None) -> list[RuntimeAgentRow]:
    found: dict[str, RuntimeAgentRow] = {}
    while row is not None and row.agent_id not in found:
        found[row.agent_id] = row
        row = None if row.parent is None else await store.get_row(RUNTIME_AGENTS, row.parent)
    return list(found.values())


def _asking(agent: Agent[Any, Any], model: str | None) -> Agent[Any, Any]:
    """The agent with this model first, and what it falls back on behind it."""
    if model is None or model == model_ref(agent.model):
        return agent
    return agent.changed(model=model, fallbacks=[each for each in agent.fallbacks if model_ref(each) != model])


def model_ref(model: Any) -> str:
    """What a model is called."""
    return model if isinstance(model, str) else str(model.ref)


async def _started(engine: Engine, turn: TurnRow) -> TurnStarted | None:
    entries = await engine.store.read(turn.agent_id, after=turn.first_seq - 1, turn_id=turn.turn_id, limit=FIRST_FACTS)
    return next((entry.fact.event for entry in entries if isinstance(entry.fact.event, TurnStarted)), None)
