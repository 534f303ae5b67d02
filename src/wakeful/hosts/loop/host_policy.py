"""The host's own policies in a run: which tools are there, and what may become of an action.

The resolving is pure (`decisions.policy`); here the hooks of the host's registry are asked for what goes into it. A
hook that raises takes away or forbids; none gives back what was hidden or lifts what is forbidden.
"""

from collections.abc import Mapping
from typing import Any

from wakeful.decisions.policy.actions import (
    FORBIDDEN,
    ActionPolicyResolver,
    ResolvedAction,
    after_hook,
)
from wakeful.hosts.declarations.tool_declaration import RuntimeToolDeclaration
from wakeful.hosts.loop.visibility import WRITE_CATEGORIES, Resolution, ToolVisibility, fields_of, mode_of
from wakeful.service.hooks import HookRegistry

SAYS_SO = ("tool_policy", "mode", "allow_only", "deny", "categories", "allow_write_tools")
"""Keys of a context that say something about which tools there are."""
VISIBILITY_HOOKS = ("tool_policy_providers", "resolved_tools", "write_capable_categories")
ACTION_PROVIDERS, ACTION_HOOK = "action_policy_providers", "tool_action_policy"


class _Broken:
    """A provider in the place of a hook that raised: it raises too, and the policy falls shut."""

    def __init__(self, hook: str, error: Exception) -> None:
        self._words = f"the hook {hook} raised {type(error).__name__}: {error}"

    def get_tool_policy(self, context: Mapping[str, Any]) -> Mapping[str, Any] | None:
        raise RuntimeError(self._words)

    def get_action_policy(self, context: Mapping[str, Any]) -> str | None:
        raise RuntimeError(self._words)


async def visible_tools(
    tools: tuple[RuntimeToolDeclaration, ...], context: Mapping[str, Any], hooks: HookRegistry
) -> Resolution:
    """The tools of a run. Where nobody says anything about them, all that were declared."""
    declared = {tool.name: tool for tool in tools}
    if not any(context.get(key) is not None for key in SAYS_SO) and not any(map(hooks.has, VISIBILITY_HOOKS)):
        return Resolution(dict(declared))
    policy = ToolVisibility(
        providers=await _providers(hooks, "tool_policy_providers", context),
        write_categories=await _write_categories(hooks, context),
    )
    found = policy.explained(declared, context)
    if not hooks.has("resolved_tools"):
        return found
    answer: Any
    try:
        answer = await hooks.value("resolved_tools", dict(found.tools), mode_of(context), context)
    except Exception as error:
        answer = error
    return found.after_hook(answer)


async def action_policy(
    tool: RuntimeToolDeclaration, context: Mapping[str, Any], hooks: HookRegistry
) -> ResolvedAction:
    """What may become of a call of this tool: direct, preview or forbidden."""
    denied = context.get("deny")
    resolver = ActionPolicyResolver(providers=await _providers(hooks, ACTION_PROVIDERS, context))
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
