"""Agents that work inside another one's turn, made ready: those that a workflow's nodes name, and those that are tools.

Each keeps its own model, tools, instructions, policy and hooks. Its deps come from its own factory, or are the run's.
What it would lose there is refused before the turn begins.
"""

import inspect
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.tools import Principal
from wakeful.decisions.workflows.children import as_child
from wakeful.engine.admission import check_deps
from wakeful.engine.agent import Agent, AgentTool
from wakeful.engine.prepare.configuration import config_of
from wakeful.engine.prepare.models import choices_of, window_of
from wakeful.engine.prepare.prompt import instructions_of
from wakeful.engine.prepare.tools import toolbelt
from wakeful.engine.run_request import Engine
from wakeful.engine.turn_work import OtherAgent
from wakeful.tools.context import RunContext
from wakeful.tools.tool import Tool


class RunInputs(NamedTuple):
    """What the run has for whoever works in it."""

    deps: Any
    context: Mapping[str, Any]
    principal: Principal | None
    thread: str
    turn_id: str

    def around(self, agent: str) -> RunContext[Any]:
        """What the instructions of an agent are made from, where a function makes them."""
        return RunContext(
            self.deps,
            context=self.context,
            principal=self.principal,
            agent=agent,
            thread=self.thread,
            turn_id=self.turn_id,
        )


def agents_among(tools: Iterable[Tool[Any]]) -> dict[str, Agent[Any, Any]]:
    """The agents that are tools, by the name of the call."""
    return {tool.name: tool.agent for tool in tools if isinstance(tool, AgentTool)}


def with_theirs(called: Mapping[str, Agent[Any, Any]]) -> dict[str, Agent[Any, Any]]:
    """These agents and those that they call in turn. Raises InvalidConfig when two different ones have one name."""
    found: dict[str, Agent[Any, Any]] = {}
    waiting = list(called.items())
    while waiting:
        name, agent = waiting.pop(0)
        if found.setdefault(name, agent) is not agent:
            raise InvalidConfig(
                f"two different agents of this run are called {name!r}", "name one of them: agent.as_tool(name=...)"
            )
        waiting += agents_among(agent.tools).items()
    return found


def check_called(engine: Engine, agent: Agent[Any, Any]) -> None:
    """What can be wrong with the agents that are its tools is wrong before its message is taken in."""
    called = agents_among(agent.tools)
    for other in with_theirs(called).values() if called else ():
        for name, what in (("work_items", "work items outlast one"), ("memory", "memory outlasts one")):
            if getattr(other, name):
                raise InvalidConfig(
                    f"Agent {other.name!r} has {name}=True and is a tool of agent {agent.name!r}: a call of it ends "
                    f"with this run, and {what}",
                    f"leave {name} out of {other.name!r}, or give it to {agent.name!r}",
                )
        choices_of(engine.resolve_model, other)


async def other_agents(
    engine: Engine, called: Mapping[str, Agent[Any, Any]], given: RunInputs, stack: AsyncExitStack
) -> dict[str, OtherAgent]:
    """What each of them is and works with, by the name of the call that runs it; also those that they call in turn.

    Sources stay open with the stack.
    """
    return {name: await _other(engine, agent, given, stack) for name, agent in with_theirs(called).items()}


async def _other(engine: Engine, agent: Agent[Any, Any], given: RunInputs, stack: AsyncExitStack) -> OtherAgent:
    deps = given.deps
    if agent.deps is not None:
        deps = agent.deps(given.context)
        if inspect.isawaitable(deps):
            deps = await deps
    check_deps(agent, deps, f"turn {given.turn_id}")
    now = engine.clock.now() / 1_000_000
    belt = await toolbelt(agent, await engine.store.rules(agent.name), now, engine.surroundings, stack)
    models = [engine.resolve_model(choice) for choice in (agent.model, *agent.fallbacks)]
    await engine.pricing.ready(models)
    told = await instructions_of(agent, None, given._replace(deps=deps).around)
    config = as_child(config_of(agent, belt, told)).changed(context_window=window_of(models[0]))
    ref = await engine.store.put_blob(config.model_dump_json().encode(), "application/json")
    return OtherAgent(config, ref, agent.output_schema, models, belt.tools, agent.hooks, deps)
