"""What an agent or a run was given and has no effect: said in the log of the process once, and in the turn's log."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from wakeful.contracts.controls import CompactionPolicy
from wakeful.contracts.policies import ToolPolicy
from wakeful.contracts.tools import ToolDeclaration
from wakeful.decisions.policy.patterns import any_named, bare
from wakeful.decisions.policy.permissions import class_verdict
from wakeful.engine.agent import Agent
from wakeful.engine.agent_options import OPTIONS
from wakeful.sandbox.settings import SandboxSettings
from wakeful.tools.hooks import Hook

ANY = "*"
NAMED = 5
"""How many tools a line names."""
_PARALLEL = OPTIONS["max_parallel_subagents"].default
_SANDBOX = SandboxSettings()
_COMPACTION = CompactionPolicy()
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


def unheard_times(agent: Agent[Any, Any]) -> Iterator[str]:
    """Times at which nobody wakes the agent, because no runtime runs it."""
    if agent.wake:
        yield (
            f"Agent {agent.name!r}: wake= has no effect in a run: only a runtime wakes agents. "
            f"Use `async with Runtime(..., agents=[...])` or `wakeful daemon start`."
        )
    if agent.notify is not None:
        yield (
            f"Agent {agent.name!r}: notify= has no effect in a run: only a runtime sends notices. "
            f"Use `async with Runtime(..., agents=[...])` or `wakeful daemon start`."
        )


def childless(agent: Agent[Any, Any]) -> Iterator[str]:
    """An agent that may spawn others where nobody would look after them."""
    if agent.spawn is not None:
        yield (
            f"Agent {agent.name!r}: spawn= has no effect in a run: only a runtime looks after child agents. "
            f"Use `async with Runtime(..., agents=[...])`, or subtasks=True for children of one turn."
        )


def rules_about_nothing(agent: Agent[Any, Any], tools: Sequence[str]) -> Iterator[str]:
    """Rules about tools that neither the agent nor an agent that it calls has; `tools` are its own, by name."""
    for rule in agent.policy.rules if agent.policy is not None else ():
        if rule.match != ANY and not any(any_named((rule.match,), name) for name in tools):
            yield f"Agent {agent.name!r}: the rule {rule.decision} {rule.match} matches none of its tools."


def hooks_about_nothing(agent: Agent[Any, Any], more: Iterable[Hook], tools: Sequence[str]) -> Iterator[str]:
    """Hooks of the agent and of the run about tools that are not there."""
    for hook in (*agent.hooks, *more):
        if hook.match != ANY and not any(any_named((hook.match,), name) for name in tools):
            yield f"Agent {agent.name!r}: the hook {hook.name} is for {hook.match}, which matches none of its tools."


def idle_options(agent: Agent[Any, Any], *, has_tools: bool) -> Iterator[str]:
    """Options that need another one to have an effect."""
    who = f"Agent {agent.name!r}"
    for name in ("planning_model", "planning_instructions"):
        if getattr(agent, name) and not agent.planning_enabled:
            yield f"{who}: {name} has no effect without planning_enabled=True."
    if agent.max_parallel_subagents != _PARALLEL and not agent.allow_parallel_subagents:
        yield f"{who}: max_parallel_subagents has no effect without allow_parallel_subagents=True."
    if agent.sandbox != _SANDBOX and (agent.workspace is None or agent.profile == "chat"):
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
    if window is None and agent.compaction.enabled and agent.compaction != _COMPACTION:
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
