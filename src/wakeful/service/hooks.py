"""Named hooks: the points at which a host listens in or has a say, in plain Python.

    hooks.register("loop_event", my_observer, priority=5)

or, from an installed package, an entry point of the group `wakeful.hooks` whose name is the hook's name (a suffix after
a dot tells several apart: `loop_event.acme`) and whose object is the callable; its `priority` attribute is read, when
it has one. Entry points are looked up the first time a hook of the registry is called.

Three kinds. *observer*: called, its answer ignored. *value*: gets the current value and returns the next. *resolver*:
returns a handler or None; the first handler wins, later ones see it and leave it in place. Hooks of one name run in
ascending priority, then in the order in which they were registered.
"""

import copy
import inspect
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal, TypeAlias

from wakeful import programs
from wakeful.contracts.errors import ForTheCaller, InvalidConfig
from wakeful.sandbox.own_code import is_agents_own

Kind: TypeAlias = Literal["observer", "value", "resolver"]
Hook: TypeAlias = Callable[..., Any]
"""May be plain or async."""

GROUP = "wakeful.hooks"
DEFAULT_PRIORITY = 10

NAMES: Mapping[str, Kind] = {
    "loop_event": "observer",
    "tool_audit_parameters": "value",
    "runtime_tool_policy": "value",
    "execution_principal": "resolver",
    "ability_invoked": "observer",
    "ability_executed": "observer",
    "ability_pre_execute_decision": "value",
    "pending_action_store": "resolver",
    "runtime_tool_request_created": "observer",
    "runtime_tool_result_submitted": "observer",
    "runtime_tool_request_timed_out": "observer",
    "runtime_tool_request_resumed": "observer",
    "tool_capability_denied": "observer",
    "pre_tool_call_decision": "value",
    "tool_policy_providers": "value",
    "resolved_tools": "value",
    "write_capable_categories": "value",
    "action_policy_providers": "value",
    "tool_action_policy": "value",
    "execution_targets": "value",
    "task_handler": "resolver",
    "task_dispatch_failed": "observer",
    "chat_handler": "resolver",
    "import_runtime_bundle": "resolver",
    "runtime_package_run_handler": "resolver",
    "runtime_package_run_dispatch_failed": "observer",
    "provider_turn_retry": "observer",
}
"""The hooks that exist: each is called by something."""


class UnknownHook(ForTheCaller):
    """A hook of this name does not exist."""


@dataclass(frozen=True, slots=True)
class _Registered:
    priority: int
    order: int
    hook: Hook


def _installed() -> Iterable[EntryPoint]:
    """Those that packages bring. A package in a folder that agents may write may be one of theirs, and brings none."""
    for each in entry_points(group=GROUP):
        place = os.path.realpath(str(each.dist.locate_file(""))) if each.dist is not None else ""
        if place and is_agents_own(place, tuple(programs.agent_roots())):
            words = "the hook %s is not loaded: it comes from %s, where agents may write"
            logging.getLogger("wakeful").warning(words, each.name, place)
        else:
            yield each


class HookRegistry:
    """The hooks of one host. `names` says which exist and of which kind they are."""

    def __init__(
        self, names: Mapping[str, Kind] = NAMES, *, find: Callable[[], Iterable[EntryPoint]] = _installed
    ) -> None:
        self._names = dict(names)
        self._find = find
        self._hooks: dict[str, list[_Registered]] = {name: [] for name in names}
        self._count = 0
        self._loaded = False

    def register(self, name: str, hook: Hook, priority: int = DEFAULT_PRIORITY) -> Callable[[], None]:
        """Add a hook; the returned callable takes it out again. Raises UnknownHook for other names."""
        self._kind(name)
        if not callable(hook):
            raise InvalidConfig(f"the hook {name!r} is a {type(hook).__name__}", "register a callable")
        entry = _Registered(priority, self._count, hook)
        self._count += 1
        hooks = self._hooks[name]
        hooks.append(entry)
        hooks.sort(key=lambda registered: (registered.priority, registered.order))

        def remove() -> None:
            if entry in hooks:
                hooks.remove(entry)

        return remove

    def load(self) -> None:
        """Register what installed packages offer, once. Raises InvalidConfig naming the entry point that is broken."""
        if self._loaded:
            return
        found = []
        for point in sorted(self._find(), key=lambda point: (point.name, point.value)):
            try:
                found.append((point.name.partition(".")[0], point.load()))
            except Exception as error:
                raise InvalidConfig(
                    f"the entry point {point.name!r} = {point.value!r} of {GROUP} cannot be loaded: {error}",
                    "repair or uninstall the package that brings it",
                ) from error
        self._loaded = True
        for name, hook in found:
            priority = getattr(hook, "priority", DEFAULT_PRIORITY)
            self.register(name, hook, priority if isinstance(priority, int) else DEFAULT_PRIORITY)

    async def observe(self, name: str, *arguments: Any) -> list[Exception]:
        """Tell every observer, each with a copy of its own. Their exceptions change nothing and are returned."""
        failures: list[Exception] = []
        for hook in self._of(name, "observer"):
            try:
                await _called(hook, *copy.deepcopy(arguments))
            except Exception as error:
                failures.append(error)
        return failures

    async def value(self, name: str, value: Any, *arguments: Any, hold: Callable[[Any, Any], Any] | None = None) -> Any:
        """Pass a value through every hook. Raises what a hook raises: only the caller knows what that has to mean.

        `hold(before, after)` says what stands after each hook, for values that later hooks may not do away with.
        """
        for hook in self._of(name, "value"):
            after = await _called(hook, value, *arguments)
            value = after if hold is None else hold(value, after)
        return value

    async def resolve(self, name: str, *arguments: Any) -> Any:
        """The first handler anybody returns, or None. Hooks get the handler found so far as their first argument."""
        handler: Any = None
        for hook in self._of(name, "resolver"):
            answer = await _called(hook, handler, *arguments)
            if handler is None:
                handler = answer
        return handler

    def has(self, name: str) -> bool:
        """Is anybody registered under this name?"""
        self._kind(name)
        self.load()
        return bool(self._hooks[name])

    def _of(self, name: str, kind: Kind) -> list[Hook]:
        if self._kind(name) != kind:
            raise InvalidConfig(f"{name!r} is a hook of kind {self._names[name]!r}, not {kind!r}")
        self.load()
        return [registered.hook for registered in self._hooks[name]]

    def _kind(self, name: str) -> Kind:
        kind = self._names.get(name)
        if kind is not None:
            return kind
        raise UnknownHook(f"there is no hook named {name!r}", f"these exist: {', '.join(sorted(self._names))}")


async def _called(hook: Hook, *arguments: Any) -> Any:
    answer = hook(*arguments)
    return await answer if inspect.isawaitable(answer) else answer


hooks = HookRegistry()
"""The registry of this process; whoever wants another makes one."""
