"""The host's own policies in a run: which tools are there, and what may become of an action.

The resolving is pure (`decisions.policy`); here the hooks of the host's registry are asked for what goes into it. A
hook that raises takes away or forbids; none gives back what was hidden or lifts what is forbidden.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from wakeful.contracts.policies import PolicyFragment
from wakeful.decisions.policy.actions import (
    FORBIDDEN,
    ActionPolicyResolver,
    PolicyTable,
    RememberedKey,
    ResolvedAction,
    after_hook,
    remembered_key,
)
from wakeful.hosts.host_calls import at_once
from wakeful.hosts.policies.tool_visibility import (
    WRITE_CATEGORIES,
    Resolution,
    ToolPolicyFilter,
    ToolVisibility,
    fields_of,
    mode_of,
)
from wakeful.hosts.tools.tool_declaration import RuntimeToolDeclaration
from wakeful.ports.client_requests import PlainOrAsync
from wakeful.service.hooks import HookRegistry

ACTION_PROVIDERS, ACTION_HOOK = "action_policy_providers", "tool_action_policy"


RememberedApprovals: TypeAlias = Callable[[RememberedKey], PlainOrAsync[bool]]
"""Was a tool accepted for good by this user, in this workspace, for this agent?"""


@dataclass(frozen=True, slots=True)
class AgentPolicies:
    """What an agent's own configuration says, and what was remembered; the run's own words are in its context."""

    tools: PolicyFragment | None = None
    actions: PolicyTable | None = None
    remembered: RememberedApprovals | None = None

    @classmethod
    def read(
        cls,
        tools: Mapping[str, Any] | None,
        actions: Mapping[str, Any] | None,
        remembered: RememberedApprovals | None,
    ) -> "AgentPolicies":
        """Raises InvalidConfig for what is no policy of tools. A word about actions is judged when it is asked for."""
        fragment = ToolPolicyFilter.read(tools, "agent's policy").fragment if tools is not None else None
        return cls(fragment, actions, remembered)


class _Broken:
    """A provider in the place of a hook that raised: it raises too, and the policy falls shut."""

    def __init__(self, hook: str, error: Exception) -> None:
        self._words = f"the hook {hook} raised {type(error).__name__}: {error}"

    def get_tool_policy(self, context: Mapping[str, Any]) -> Mapping[str, Any] | None:
        raise RuntimeError(self._words)

    def get_action_policy(self, context: Mapping[str, Any]) -> str | None:
        raise RuntimeError(self._words)


async def visible_tools(
    tools: tuple[RuntimeToolDeclaration, ...], context: Mapping[str, Any], hooks: HookRegistry, agent: AgentPolicies
) -> Resolution:
    """The tools of a run. What has to be named by a policy is hidden where there is none."""
    policy = ToolVisibility(
        agent.tools,
        await _providers(hooks, "tool_policy_providers", context),
        write_categories=await _write_categories(hooks, context),
    )
    found = policy.explained({tool.name: tool for tool in tools}, context)
    if not hooks.has("resolved_tools"):
        return found
    answer: Any
    try:
        answer = await hooks.value("resolved_tools", dict(found.tools), mode_of(context), context)
    except Exception as error:
        answer = error
    return found.after_hook(answer)


async def action_policy(
    tool: RuntimeToolDeclaration, context: Mapping[str, Any], hooks: HookRegistry, agent: AgentPolicies
) -> ResolvedAction:
    """What may become of a call of this tool: direct, preview or forbidden."""
    denied = context.get("deny")
    resolver = ActionPolicyResolver(
        agent.actions,
        await _providers(hooks, ACTION_PROVIDERS, context),
        await _remembered(agent.remembered, tool.name, context),
    )
    outcome = resolver.resolve(
        tool.name, fields_of(tool), context, denied=denied if isinstance(denied, list | tuple | set) else ()
    )
    if outcome.policy is FORBIDDEN or not hooks.has(ACTION_HOOK):
        return outcome
    value: Any
    try:
        value = await hooks.value(ACTION_HOOK, outcome.policy.value, tool.name, mode_of(context), context)
    except Exception as error:
        value = error
    return after_hook(outcome, tool.name, value)


async def _remembered(
    ask: RememberedApprovals | None, tool_name: str, context: Mapping[str, Any]
) -> tuple[RememberedKey, ...]:
    """The key, where the host knows that it was accepted for good. One that cannot say remembers nothing."""
    key = remembered_key(tool_name, context)
    if ask is None or key is None:
        return ()
    try:
        return (key,) if await at_once(ask, key) is True else ()
    except Exception:
        return ()


async def _providers(hooks: HookRegistry, name: str, context: Mapping[str, Any]) -> tuple[Any, ...]:
    if not hooks.has(name):
        return ()
    try:
        providers = await hooks.value(name, [], context)
        if not isinstance(providers, list | tuple):
            raise TypeError(f"returned a {type(providers).__name__}, not a list")
    except Exception as error:
        return (_Broken(name, error),)
    return tuple(providers)


async def _write_categories(hooks: HookRegistry, context: Mapping[str, Any]) -> frozenset[str]:
    if not hooks.has("write_capable_categories"):
        return WRITE_CATEGORIES
    try:
        return frozenset(map(str, await hooks.value("write_capable_categories", sorted(WRITE_CATEGORIES), context)))
    except Exception:
        return WRITE_CATEGORIES  # a hook that cannot say leaves the gate as it is
