"""Which tools may run inside a runtime: a projection of declarations, by what they say about themselves.

A tool is for the runtime when both its environment and its capability scope are `runtime_local`; whatever is missing is
`control_plane`. A host may adjust the projection and make it stricter; it cannot let a control-plane tool in.
"""

import copy
import re
from collections.abc import Iterable, Mapping
from typing import Any

from wakeful.contracts.runtime_metadata import CONTROL_PLANE, RUNTIME_LOCAL
from wakeful.hosts.tools.tool_declaration import RuntimeToolDeclaration
from wakeful.service.hooks import HookRegistry
from wakeful.service.hooks import hooks as default_hooks

SCHEMA = "wakeful/runtime-tool-policy/v1"
VERSION = 1


async def runtime_local_declarations(
    tools: Iterable[RuntimeToolDeclaration],
    context: Mapping[str, Any] | None = None,
    *,
    hooks: HookRegistry = default_hooks,
) -> tuple[RuntimeToolDeclaration, ...]:
    """The tools that a runtime is offered: never those of the control plane, also when a hook adds one."""
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


def projected(tools: Iterable[RuntimeToolDeclaration], context: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The envelope: one entry a tool; of the context, scalars."""
    envelope: dict[str, Any] = {"schema": SCHEMA, "version": VERSION, "tools": [_entry(tool) for tool in tools]}
    kept = _scalars(context or {})
    return {**envelope, "context": kept} if kept else envelope


def held(projection: Mapping[str, Any], adjusted: Any) -> dict[str, Any]:
    """What a host made of the projection, as far as it is no looser. What is no envelope lets nothing in."""
    if not isinstance(adjusted, Mapping) or not isinstance(adjusted.get("tools"), list | tuple):
        return closed(projection)
    own = {entry["id"]: entry for entry in projection["tools"]}
    entries = [_held(own[entry["id"]], entry) for entry in adjusted["tools"] if _is_one_of(entry, own)]
    envelope: dict[str, Any] = {"schema": SCHEMA, "version": VERSION, "tools": entries}
    context = adjusted.get("context")
    kept = _scalars(context) if isinstance(context, Mapping) else {}
    return {**envelope, "context": kept} if kept else envelope


def closed(projection: Mapping[str, Any]) -> dict[str, Any]:
    """The same tools, and none of them allowed."""
    return {**projection, "tools": [{**entry, "allowed": False} for entry in projection["tools"]]}


def _entry(tool: RuntimeToolDeclaration) -> dict[str, Any]:
    declared = (tool.model_extra or {}).get("runtime_tool_id") or tool.runtime.get("runtime_tool_id")
    own_id = declared if isinstance(declared, str) and declared else re.sub(r"[/-]", "_", tool.name)
    return _made(
        tool.name, own_id, _place(tool.runtime, "environment"), _place(tool.runtime, "capability_scope"), tool.source
    )


def _made(tool_id: str, own_id: str, environment: str, scope: str, source: str | None) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "id": tool_id,
        "runtime_tool_id": own_id,
        "allowed": environment == scope == RUNTIME_LOCAL,
        "environment": environment,
        "capability_scope": scope,
        "runtime": {"environment": environment, "capability_scope": scope},
    }
    return {**entry, "source": source} if source else entry


def _place(runtime: Mapping[str, Any], key: str) -> str:
    """Only what plainly says so is local."""
    return RUNTIME_LOCAL if runtime.get(key) == RUNTIME_LOCAL else CONTROL_PLANE


def _held(own: Mapping[str, Any], adjusted: Mapping[str, Any]) -> dict[str, Any]:
    nested = adjusted.get("runtime")
    said: tuple[Mapping[str, Any], ...] = (adjusted, nested if isinstance(nested, Mapping) else {})
    places = []
    for key in ("environment", "capability_scope"):
        stricter = any(place.get(key, own[key]) != RUNTIME_LOCAL for place in said)
        places.append(CONTROL_PLANE if stricter else str(own[key]))
    own_id = adjusted.get("runtime_tool_id")
    entry = _made(
        own["id"],
        own_id if isinstance(own_id, str) and own_id else own["runtime_tool_id"],
        places[0],
        places[1],
        own.get("source"),
    )
    return {**entry, "allowed": entry["allowed"] and own["allowed"] and adjusted.get("allowed") is True}


def _is_one_of(entry: Any, own: Mapping[str, Any]) -> bool:
    """A tool that nobody declared cannot be let in by naming it."""
    return isinstance(entry, Mapping) and isinstance(entry.get("id"), str) and entry["id"] in own


def _scalars(context: Mapping[Any, Any]) -> dict[str, Any]:
    return {
        key: value
        for key, value in context.items()
        if isinstance(key, str) and isinstance(value, str | bool | int | float)
    }
