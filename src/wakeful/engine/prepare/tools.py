"""The tools of a turn: what the agent was given, what its sources have now, and what the policy leaves of both.

Fixed when the turn is taken up, and on record as a catalogue: what is offered, asked, denied, missing, and why. A tool
that is left out is refused like one that does not exist, whoever calls it.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from wakeful.contracts.controls import CompactionPolicy
from wakeful.contracts.errors import InvalidConfig, UnknownTool
from wakeful.contracts.policies import GatePolicy, PolicyContext, Rule, ToolPolicy
from wakeful.contracts.tool_catalog import ToolCatalog
from wakeful.contracts.tools import Confinement, ToolDeclaration
from wakeful.decisions.injected_fields import check_collisions
from wakeful.decisions.policy.catalog import Asks, resolve_catalog
from wakeful.decisions.policy.patterns import any_named, bare
from wakeful.decisions.policy.permissions import class_verdict, default_policy
from wakeful.decisions.policy.verdict import CompiledPolicy, compiled_once
from wakeful.decisions.secret_values import keys_only
from wakeful.engine.agent import Agent
from wakeful.engine.agent_options import OPTIONS
from wakeful.engine.agent_tool import AgentTool
from wakeful.ports import RuleRow
from wakeful.sandbox.settings import SandboxSettings
from wakeful.tools.function import Tool
from wakeful.tools.hooks import Hook
from wakeful.tools.runtime_tools import runtime_tools
from wakeful.tools.source import Offer, Surroundings, ToolSource, Withheld

_users: "WeakKeyDictionary[ToolSource, int]" = WeakKeyDictionary()
"""How many runs use a source; the last one closes it."""
_policies: "WeakKeyDictionary[Agent[Any, Any], tuple[tuple[str, ...], GatePolicy]]" = WeakKeyDictionary()
_catalogs: "WeakKeyDictionary[Agent[Any, Any], tuple[CompiledPolicy, Any, ToolCatalog]]" = WeakKeyDictionary()
"""What was worked out for an agent the last time, and what it rests on."""


class Belt(NamedTuple):
    """What a turn works with."""

    tools: dict[str, Tool[Any]]
    """The code, of whatever is offered."""
    offered: tuple[ToolDeclaration, ...]
    policy: GatePolicy
    catalog: ToolCatalog
    catalog_with: Callable[[Sequence[RuleRow], float], ToolCatalog]
    """The catalogue of the same tools under other standing answers, at a time in Unix seconds."""
    warnings: tuple[str, ...] = ()
    """What the agent was given and has no effect."""


async def toolbelt(
    agent: Agent[Any, Any],
    rules: Sequence[RuleRow],
    now: float,
    surroundings: Surroundings,
    stack: AsyncExitStack,
    context: PolicyContext = "library",
) -> Belt:
    """Put the belt together. Sources stay open until the stack is left."""
    tools, withheld = await registered(agent, surroundings, stack)
    if context == "library":  # elsewhere the context may have left a tool out, and that is nobody's mistake
        _check_hitl(agent, tools, withheld)
    check_collisions(f"Agent {agent.name!r}", agent.injected_tool_args, [tool.declaration for tool in tools.values()])
    policy = gate_policy(agent, rules, now, context)
    declarations = [tool.declaration for tool in tools.values()]
    confined, asks = _confined(tools), _asking(tools)

    def catalog_of(held_to: GatePolicy, at: float) -> ToolCatalog:
        return _catalog(agent, held_to, declarations, withheld, at, confined, asks)

    catalog = catalog_of(policy, now)
    reasons = {each.tool_name: each.policy_reason for each in catalog.entries}
    warnings: list[str] = []
    if replaces_default(agent):
        warnings += replaced_policy(agent, policy.tools, default_tools(agent, context), declarations)
    warnings += [*silent_servers(agent, catalog.offered, reasons), *idle_options(agent, has_tools=bool(tools))]
    if context == "library" and not any(isinstance(tool, AgentTool) for tool in tools.values()):
        warnings += rules_about_nothing(agent, list(reasons))
    offered = set(catalog.offered)
    kept = {name: tool for name, tool in tools.items() if name in offered}
    return Belt(
        kept,
        tuple(tool.declaration for tool in kept.values()),
        policy,
        catalog,
        lambda others, at: catalog_of(gate_policy(agent, others, at, context), at),
        told(agent, warnings),
    )


async def registered(
    agent: Agent[Any, Any], surroundings: Surroundings, stack: AsyncExitStack
) -> tuple[dict[str, Tool[Any]], list[Withheld]]:
    """Every tool there is for an agent, whatever its policy leaves of them, and what its sources hold back."""
    offers = await _offers([source.within(surroundings) for source in agent.sources], surroundings, stack)
    return _by_name(agent, offers), [each for offer in offers for each in offer.withheld]


def gate_policy(
    agent: Agent[Any, Any], rules: Sequence[RuleRow], now: float, context: PolicyContext = "library"
) -> GatePolicy:
    """What the owner says about this agent's calls, with the standing answers that hold now.

    The same object as before when nothing of it changed: what was worked out for it holds.
    """
    alive = [row for row in rules if row.revoked_at is None]
    standing = [Rule.model_validate(row.rule) for row in alive]
    held = [rule for rule in standing if rule.expires is None or rule.expires > now]
    key = (context, *(rule.id for rule in held))
    known = _policies.get(agent)
    if known is None or known[0] != key:
        known = _policies[agent] = key, _gate_policy(agent, held, context)
    return known[1]


def stated_policy(agent: Agent[Any, Any], context: PolicyContext = "library") -> GatePolicy:
    """What the owner says; the classes of tools, where the owner says nothing about them, are the default's."""
    if replaces_default(agent):
        assert agent.policy is not None
        return agent.policy
    tools = default_tools(agent, context)
    return GatePolicy(tools=tools) if agent.policy is None else agent.policy.model_copy(update={"tools": tools})


def replaces_default(agent: Agent[Any, Any]) -> bool:
    """Does `policy=` say which classes are on? Rules alone add to what holds by default."""
    return agent.policy is not None and "tools" in agent.policy.model_fields_set


def default_tools(agent: Agent[Any, Any], context: PolicyContext = "library") -> ToolPolicy:
    """What holds by itself in this context."""
    return default_policy(
        context,
        profile=agent.profile,
        workspace_root=str(agent.workspace) if agent.workspace is not None else None,
        # Whoever put a server among the tools named it.
        allowed_mcp_servers=[
            source.name.removeprefix("mcp.") for source in agent.sources if source.name.startswith("mcp.")
        ],
    )


def _gate_policy(agent: Agent[Any, Any], standing: Sequence[Rule], context: PolicyContext = "library") -> GatePolicy:
    given = stated_policy(agent, context)
    return given.model_copy(
        update={"rules": (*given.rules, *standing), "hitl_tools": (*given.hitl_tools, *agent.hitl_tools)}
    )


def _catalog(
    agent: Agent[Any, Any],
    policy: GatePolicy,
    declarations: Sequence[ToolDeclaration],
    withheld: Sequence[Withheld],
    now: float,
    confined: dict[str, Confinement],
    asks: dict[str, Asks],
) -> ToolCatalog:
    """The catalogue, made again only when something in it may have changed."""
    compiled = compiled_once(policy, declarations)
    rest = tuple(withheld), confined, asks
    known = _catalogs.get(agent)
    if known is not None and known[0] is compiled and compiled.steady and known[1] == rest:
        return known[2]
    catalog = ToolCatalog(entries=resolve_catalog(compiled, withheld, now=now, confined=confined, asks=asks))
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
        return Offer((), (Withheld(f"{source.name}/*", keys_only(surroundings.secrets()).hide_keys(reason)),))


async def _give_back(source: ToolSource) -> None:
    left = _users.get(source, 1) - 1
    if left > 0:
        _users[source] = left
        return
    _users.pop(source, None)
    await source.close()


def _by_name(agent: Agent[Any, Any], offers: Sequence[Offer]) -> dict[str, Tool[Any]]:
    tools: dict[str, Tool[Any]] = {}
    own = runtime_tools(
        subtasks=agent.subtasks, parallel=agent.max_parallel_subagents if agent.allow_parallel_subagents else None
    )
    for tool in (*agent.tools, *(tool for offer in offers for tool in offer.tools), *own):
        if tool.name in tools:
            raise InvalidConfig(
                f"Agent {agent.name!r}: two tools are called {tool.name!r}", "give one of them another name"
            )
        tools[tool.name] = tool
    return tools


def _check_hitl(agent: Agent[Any, Any], tools: dict[str, Tool[Any]], withheld: Sequence[Withheld]) -> None:
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


ANY = "*"
NAMED = 5
"""How many tools a line names."""
_log = logging.getLogger("wakeful.tools")
_said: "WeakKeyDictionary[Agent[Any, Any], set[str]]" = WeakKeyDictionary()


def replaced_policy(
    agent: Agent[Any, Any], tools: ToolPolicy, default: ToolPolicy, declarations: Sequence[ToolDeclaration]
) -> Iterator[str]:
    """What `policy=` leaves out that the default policy would offer."""
    left = {
        each.name: verdict
        for each in declarations
        if (verdict := class_verdict(tools, each)).decision == "deny"
        and class_verdict(default, each).decision != "deny"
    }
    if left:
        more = f" and {len(left) - NAMED} more" if len(left) > NAMED else ""
        yield (
            f"Agent {agent.name!r}: policy= replaces the default policy and leaves out {len(left)} of its tools: "
            f"{', '.join(list(left)[:NAMED])}{more} ({next(iter(left.values())).reason}). "
            "To keep the default and add rules to it, give GatePolicy(rules=...) without tools=."
        )


def silent_servers(agent: Agent[Any, Any], offered: Sequence[str], reasons: Mapping[str, str]) -> Iterator[str]:
    """MCP servers none of whose tools are offered; `reasons` says why a tool is not."""
    for source in agent.sources:
        own = f"{source.name}/"
        if not source.name.startswith("mcp.") or any(name.startswith(own) for name in offered):
            continue
        why = next((f"{name}: {reason}" for name, reason in reasons.items() if name.startswith(own)), "it lists none")
        yield f"Agent {agent.name!r}: no tool of the MCP server {source.name[4:]!r} is offered ({why})."


def rules_about_nothing(agent: Agent[Any, Any], tools: Sequence[str]) -> Iterator[str]:
    """Rules about tools that neither the agent nor an agent that it calls has; `tools` are its own, by name."""
    for rule in agent.policy.rules if agent.policy is not None else ():
        if rule.match != ANY and not any(any_named((rule.match,), name) for name in tools):
            yield f"Agent {agent.name!r}: the rule {rule.decision} {rule.match} is about none of its tools."


def hooks_about_nothing(agent: Agent[Any, Any], more: Iterable[Hook], tools: Sequence[str]) -> Iterator[str]:
    """Hooks of the agent and of the run about tools that are not there."""
    for hook in (*agent.hooks, *more):
        if hook.match != ANY and not any(any_named((hook.match,), name) for name in tools):
            yield f"Agent {agent.name!r}: the hook {hook.name} is about {hook.match}, which is none of its tools."


def idle_options(agent: Agent[Any, Any], *, has_tools: bool) -> Iterator[str]:
    """Options that need another one to have an effect."""
    who = f"Agent {agent.name!r}"
    for name in ("planning_model", "planning_instructions"):
        if getattr(agent, name) and not agent.planning_enabled:
            yield f"{who}: {name} has no effect without planning_enabled=True."
    usual = OPTIONS["max_parallel_subagents"].default
    if agent.max_parallel_subagents != usual and not agent.allow_parallel_subagents:
        yield f"{who}: max_parallel_subagents has no effect without allow_parallel_subagents=True."
    if agent.sandbox != SandboxSettings() and (agent.workspace is None or agent.profile == "chat"):
        needed = "a workspace" if agent.workspace is None else 'another profile than "chat"'
        yield f"{who}: sandbox= has no effect without {needed}: there are no commands to confine."
    if agent.injected_tool_args and not has_tools:
        yield f"{who}: injected_tool_args has no effect without tools."


def limits_of_nothing(agent: Agent[Any, Any], limits: Iterable[str], tools: Sequence[str]) -> Iterator[str]:
    """Limits on calls of tools that are not there, by the names of the limits."""
    for limit in limits:
        if not any(name == limit or bare(name) == limit for name in tools):
            yield f"Agent {agent.name!r}: Budget(per_tool=...) names {limit}, which is none of its tools."


def idle_compaction(agent: Agent[Any, Any], window: int | None) -> Iterator[str]:
    """A compaction that was asked for, and a model whose window nobody knows."""
    if window is None and agent.compaction.enabled and agent.compaction != CompactionPolicy():
        yield (
            f"Agent {agent.name!r}: compaction= has no effect: the context window of its model is not known. "
            "Give its profile a context_window."
        )


def told(agent: Agent[Any, Any], words: Iterable[str]) -> tuple[str, ...]:
    """The warnings, which the log of the process hears of once."""
    listed = tuple(words)
    said = _said.setdefault(agent, set()) if listed else set()
    for each in listed:
        if each not in said:
            said.add(each)
            _log.warning("%s", each)
    return listed
