"""The tools of a turn: what the agent was given, what its sources have now, and what the policy leaves of both.

Fixed when the turn is taken up, and on record as a catalogue: what is offered, asked, denied, missing, and why. A tool
that is left out is refused like one that does not exist, whoever calls it. The belt of an agent without sources follows
from the agent and the standing answers alone: it is kept with the agent.
"""

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import lru_cache
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from wakeful.contracts.errors import InvalidConfig, UnknownTool
from wakeful.contracts.policies import GatePolicy, PolicyContext, Rule, ToolPolicy
from wakeful.contracts.tool_catalog import ToolCatalog
from wakeful.contracts.tools import Confinement, ToolDeclaration
from wakeful.decisions.injected_fields import check_collisions
from wakeful.decisions.kept_results import KEPT, KeptResults
from wakeful.decisions.policy.catalog import Asks, resolve_catalog
from wakeful.decisions.policy.patterns import any_named
from wakeful.decisions.policy.permissions import default_policy
from wakeful.decisions.policy.verdict import CompiledPolicy, compiled_once
from wakeful.decisions.secret_values import keys_only
from wakeful.decisions.waking.wait_tools import is_wait_tool
from wakeful.engine.agent import Agent, AgentTool
from wakeful.engine.prepare.idle_options import (
    childless,
    idle_options,
    replaced_policy,
    rules_about_nothing,
    silent_servers,
    told,
    unheard_times,
)
from wakeful.ports import RuleRow
from wakeful.tools.agent_get import DECLARATION as AGENT_GET_DECLARATION
from wakeful.tools.local.source import LocalTools
from wakeful.tools.runtime_tools import runtime_tools
from wakeful.tools.source import Offer, Surroundings, ToolSource, WithheldTool
from wakeful.tools.tool import Tool
from wakeful.tools.workspaces import DECLARATION as USE_DECLARATION

_users: "WeakKeyDictionary[ToolSource, int]" = WeakKeyDictionary()
"""How many runs use a source; the last one closes it."""
_policies: "WeakKeyDictionary[Agent[Any, Any], tuple[tuple[str, ...], GatePolicy]]" = WeakKeyDictionary()
_catalogs: "WeakKeyDictionary[Agent[Any, Any], tuple[CompiledPolicy, Any, ToolCatalog]]" = WeakKeyDictionary()
_shared_catalogs: KeptResults[ToolCatalog] = KeptResults()
_digests: KeptResults[str] = KeptResults()
_belts: "WeakKeyDictionary[Agent[Any, Any], tuple[tuple[str, ...], Belt]]" = WeakKeyDictionary()
"""What was worked out for an agent the last time, and what it rests on."""


class Belt(NamedTuple):
    """What a turn works with."""

    tools: Mapping[str, Tool[Any]]
    """The code, of whatever is offered."""
    offered: tuple[ToolDeclaration, ...]
    policy: GatePolicy
    policy_digest: str
    catalog: ToolCatalog
    catalog_with: Callable[[Sequence[RuleRow], float], ToolCatalog]
    """The catalogue of the same tools under other standing answers, at a time in Unix seconds."""
    warnings: tuple[str, ...] = ()
    """What the agent was given and has no effect."""


class _Catalogs(NamedTuple):
    """What the catalogue of a belt rests on besides the policy. Kept with the agent: one object, and no closures."""

    agent: Agent[Any, Any]
    context: PolicyContext
    declarations: Sequence[ToolDeclaration]
    withheld: Sequence[WithheldTool]
    confined: dict[str, Confinement]
    asks: dict[str, Asks]

    def under(self, policy: GatePolicy, at: float) -> ToolCatalog:
        return _catalog(self.agent, policy, self.declarations, self.withheld, at, self.confined, self.asks)

    def with_answers(self, others: Sequence[RuleRow], at: float) -> ToolCatalog:
        return self.under(gate_policy(self.agent, _held(others, at), self.context), at)


async def toolbelt(
    agent: Agent[Any, Any],
    rules: Sequence[RuleRow],
    now: float,
    surroundings: Surroundings,
    stack: AsyncExitStack,
    context: PolicyContext = "library",
) -> Belt:
    """Put the belt together. Sources stay open until the stack is left."""
    standing = _held(rules, now)
    place = f"{context} wakes" if surroundings.wakes else context
    key = (place, *(f"{id(tool)}" for tool in surroundings.tools), *(rule.id for rule in standing))
    if not agent.sources and (known := _belts.get(agent)) is not None and known[0] == key:
        return known[1]
    tools, withheld = await registered(agent, surroundings, stack)
    confined = _confined(tools)
    belt = _belt(agent, tools, withheld, confined, standing, now, context, wakes=surroundings.wakes)
    # Of tools that run commands, what they are confined to may change from turn to turn.
    if not agent.sources and not confined and all(rule.expires is None for rule in belt.policy.rules):
        _belts[agent] = key, belt
    return belt


def _belt(
    agent: Agent[Any, Any],
    tools: dict[str, Tool[Any]],
    withheld: Sequence[WithheldTool],
    confined: dict[str, Confinement],
    standing: Sequence[Rule],
    now: float,
    context: PolicyContext,
    *,
    wakes: bool,
) -> Belt:
    if context == "library":  # elsewhere the context may have left a tool out, and that is nobody's mistake
        _check_hitl(agent, tools, withheld)
    declarations = [tool.declaration for tool in tools.values()]
    check_collisions(f"Agent {agent.name!r}", agent.injected_tool_args, declarations)
    policy, asks = gate_policy(agent, standing, context), _asking(tools)

    catalogs = _Catalogs(agent, context, declarations, withheld, confined, asks)
    catalog = catalogs.under(policy, now)
    reasons = {each.tool_name: each.policy_reason for each in catalog.entries}
    warnings: list[str] = []
    if replaces_default(agent):
        warnings += replaced_policy(agent, policy.tools, default_tools(agent, context), declarations)
    warnings += [*unheard_times(agent), *childless(agent)] if not wakes else ()
    warnings += [*silent_servers(agent, catalog.offered, reasons), *idle_options(agent, has_tools=bool(tools))]
    if context == "library" and not any(isinstance(tool, AgentTool) for tool in tools.values()):
        warnings += rules_about_nothing(agent, list(reasons))
    offered = set(catalog.offered)
    kept = {name: tool for name, tool in tools.items() if name in offered}
    return Belt(
        kept,
        tuple(tool.declaration for tool in kept.values()),
        policy,
        _digests.of((policy,), lambda: _digest(policy)),
        catalog,
        catalogs.with_answers,
        told(agent, warnings),
    )


async def registered(
    agent: Agent[Any, Any], surroundings: Surroundings, stack: AsyncExitStack
) -> tuple[dict[str, Tool[Any]], list[WithheldTool]]:
    """Every tool there is for an agent, whatever its policy leaves of them, and what its sources hold back."""
    offers = await _offers([source.within(surroundings) for source in agent.sources], surroundings, stack)
    return _by_name(agent, offers, surroundings), [each for offer in offers for each in offer.withheld]


async def local_tools_of(agent: Agent[Any, Any], surroundings: Surroundings, stack: AsyncExitStack) -> list[Tool[Any]]:
    """The built-in tools of an agent's workspace. Raises what its folder makes impossible."""
    sources = [source.within(surroundings) for source in agent.sources if isinstance(source, LocalTools)]
    return [tool for offer in await _offers(sources, surroundings, stack) for tool in offer.tools]


def _held(rules: Sequence[RuleRow], now: float) -> list[Rule]:
    """The standing answers that hold at a time."""
    standing = [Rule.model_validate(row.rule) for row in rules if row.revoked_at is None]
    return [rule for rule in standing if rule.expires is None or rule.expires > now]


def gate_policy(
    agent: Agent[Any, Any], standing: Sequence[Rule] = (), context: PolicyContext = "library"
) -> GatePolicy:
    """What the owner says about this agent's calls, with the standing answers that hold now.

    The same object as before when nothing of it changed: what was worked out for it holds.
    """
    key = (context, *(rule.id for rule in standing))
    known = _policies.get(agent)
    if known is None or known[0] != key:
        given = stated_policy(agent, context)
        added = {"rules": (*given.rules, *standing), "hitl_tools": (*given.hitl_tools, *agent.hitl_tools)}
        policy = given.model_copy(update=added) if standing or agent.hitl_tools else given
        known = _policies[agent] = key, policy
    return known[1]


def stated_policy(agent: Agent[Any, Any], context: PolicyContext = "library") -> GatePolicy:
    """What the owner says; the classes of tools, where the owner says nothing about them, are the default's."""
    if replaces_default(agent):
        assert agent.policy is not None
        return agent.policy
    default = _default_of(agent, context)
    return default if agent.policy is None else agent.policy.model_copy(update={"tools": default.tools})


def replaces_default(agent: Agent[Any, Any]) -> bool:
    """Does `policy=` say which classes are on? Rules alone add to what holds by default."""
    return agent.policy is not None and "tools" in agent.policy.model_fields_set


def default_tools(agent: Agent[Any, Any], context: PolicyContext = "library") -> ToolPolicy:
    """What holds by itself in this context."""
    return _default_of(agent, context).tools


def _default_of(agent: Agent[Any, Any], context: PolicyContext) -> GatePolicy:
    root = str(agent.workspace) if agent.workspace is not None else None
    # Whoever put a server among the tools named it.
    servers = tuple(source.name.removeprefix("mcp.") for source in agent.sources if source.name.startswith("mcp."))
    return _default(context, agent.profile, root, servers)


@lru_cache(maxsize=KEPT)
def _default(context: PolicyContext, profile: str | None, root: str | None, servers: tuple[str, ...]) -> GatePolicy:
    """One object for all agents of a kind: what is worked out for it serves them all."""
    return GatePolicy(tools=default_policy(context, profile=profile, workspace_root=root, allowed_mcp_servers=servers))


def _digest(policy: GatePolicy) -> str:
    return "sha256:" + hashlib.sha256(policy.model_dump_json(exclude_defaults=True).encode()).hexdigest()


def _catalog(
    agent: Agent[Any, Any],
    policy: GatePolicy,
    declarations: Sequence[ToolDeclaration],
    withheld: Sequence[WithheldTool],
    now: float,
    confined: dict[str, Confinement],
    asks: dict[str, Asks],
) -> ToolCatalog:
    """The catalogue, made again only when something in it may have changed."""
    compiled = compiled_once(policy, declarations)

    def make() -> ToolCatalog:
        return ToolCatalog(entries=resolve_catalog(compiled, withheld, now=now, confined=confined, asks=asks))

    if compiled.steady and not withheld and not confined and not asks:
        return _shared_catalogs.of((compiled,), make)
    rest = tuple(withheld), confined, asks
    known = _catalogs.get(agent)
    if known is not None and known[0] is compiled and compiled.steady and known[1] == rest:
        return known[2]
    catalog = make()
    _catalogs[agent] = compiled, rest, catalog
    return catalog


async def _offers(sources: Sequence[ToolSource], surroundings: Surroundings, stack: AsyncExitStack) -> list[Offer]:
    for source in sources:
        _users[source] = _users.get(source, 0) + 1
        stack.push_async_callback(_give_back, source)
    return list(await asyncio.gather(*(_offer(source, surroundings) for source in sources)))


async def _offer(source: ToolSource, surroundings: Surroundings) -> Offer:
    try:
        return await source.offer()
    except Exception as raised:  # a source that breaks its promise costs its own tools, and no turn
        reason = f"{source.name} could not say what it has: {type(raised).__name__}: {raised}"
        return Offer((), (WithheldTool(f"{source.name}/*", keys_only(surroundings.secrets()).hide_keys(reason)),))


async def _give_back(source: ToolSource) -> None:
    left = _users.get(source, 1) - 1
    if left > 0:
        _users[source] = left
        return
    _users.pop(source, None)
    await source.close()


def _by_name(agent: Agent[Any, Any], offers: Sequence[Offer], around: Surroundings) -> dict[str, Tool[Any]]:
    tools: dict[str, Tool[Any]] = {}
    own = runtime_tools(
        subtasks=agent.subtasks,
        parallel=agent.max_parallel_subagents if agent.allow_parallel_subagents else None,
        work_items=agent.work_items,
        memory=agent.memory,
        waits=around.wakes,
        workspaces=around.wakes and agent.workspace is not None and agent.profile != "chat",
        spawn=agent.spawn if around.wakes else None,
    )
    later = (*around.tools, *(tool for tool in own if tool.declaration is USE_DECLARATION))
    for tool in (*agent.tools, *(tool for offer in offers for tool in offer.tools), *own, *around.tools):
        ours = is_wait_tool(tool.declaration) or tool.declaration is AGENT_GET_DECLARATION or tool in later
        if tool.name in tools and ours:
            continue  # the agent has a tool of its own by that name, and was written before it lived in a runtime
        if tool.name in tools:
            raise InvalidConfig(
                f"Agent {agent.name!r}: two tools are called {tool.name!r}", "give one of them another name"
            )
        tools[tool.name] = tool
    return tools


def _check_hitl(agent: Agent[Any, Any], tools: dict[str, Tool[Any]], withheld: Sequence[WithheldTool]) -> None:
    """A tool that needs a person and is not there any more: better to stop than to run what took its place."""
    known = [*tools, *(each.name for each in withheld)]
    for pattern in agent.hitl_tools:
        if not any(any_named((pattern,), name) for name in known):
            raise UnknownTool(
                f"Agent {agent.name!r}: hitl_tools names {pattern!r}, which is not among its tools",
                f"its tools are: {', '.join(tools) or 'none'}",
            )


def _asking(tools: dict[str, Tool[Any]]) -> dict[str, Asks]:
    return {name: "always" if tool.always_asks else "sometimes" for name, tool in tools.items() if tool.may_ask}


def _confined(tools: dict[str, Tool[Any]]) -> dict[str, Confinement]:
    """What calls are held to, for the catalogue; arguments may make it narrower."""
    found: dict[str, Confinement] = {}
    for name, tool in tools.items():
        if tool.declaration.permission == "execute":
            try:
                confinement = tool.confinement({})
            except Exception:  # it depends on the arguments
                continue
            if confinement is not None:
                found[name] = confinement
    return found
