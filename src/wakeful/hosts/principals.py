"""Two questions to the host, through its hooks: who asks, and which tools may run inside a runtime."""

import copy
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.principals import INVALID, ExecutionPrincipal
from wakeful.hosts.declarations.runtime_policy import closed, held, projected
from wakeful.hosts.declarations.tool_declaration import RuntimeToolDeclaration
from wakeful.service.hooks import HookRegistry
from wakeful.service.hooks import hooks as default_hooks


async def resolve_principal(
    request_context: Mapping[str, Any],
    *,
    hooks: HookRegistry = default_hooks,
    auth_sources: Collection[str] = (),
) -> ExecutionPrincipal | None:
    """The principal the host names, or None. Raises InvalidValue for an answer that is none."""
    found = await hooks.resolve("execution_principal", dict(request_context))
    if found is None:
        return None
    if not isinstance(found, ExecutionPrincipal | dict):
        raise InvalidValue(
            INVALID,
            "",
            f"the hook 'execution_principal' answered a {type(found).__name__}",
            "answer a principal or None",
        )
    return ExecutionPrincipal.normalise(found, auth_sources=auth_sources)


async def runtime_local_declarations(
    tools: Iterable[RuntimeToolDeclaration],
    context: Mapping[str, Any] | None = None,
    *,
    hooks: HookRegistry = default_hooks,
) -> tuple[RuntimeToolDeclaration, ...]:
    """What a runtime is offered of these tools: none of the control plane is among it, whatever a hook says."""
    listed = tuple(tools)
    allowed = {
        entry["id"] for entry in (await runtime_tool_policy(listed, context, hooks=hooks))["tools"] if entry["allowed"]
    }
    return tuple(tool for tool in listed if tool.name in allowed)


async def runtime_tool_policy(
    tools: Iterable[RuntimeToolDeclaration],
    context: Mapping[str, Any] | None = None,
    *,
    hooks: HookRegistry = default_hooks,
) -> dict[str, Any]:
    """The policy envelope of these tools. A hook that raises, or answers nonsense, lets nothing in."""
    listed = tuple(tools)
    projection = projected(listed, context)
    if not hooks.has("runtime_tool_policy"):
        return projection
    try:
        adjusted = await hooks.value("runtime_tool_policy", copy.deepcopy(projection), listed, dict(context or {}))
    except Exception:  # whatever it was: a policy that cannot be asked allows nothing
        return closed(projection)
    return held(projection, adjusted)
