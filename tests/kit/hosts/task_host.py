"""A host with abilities, targets and handlers, called by whoever a test says, shared by the suites about tasks."""

from collections.abc import Callable, Iterable
from typing import Any

from wakeful import Agent
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.principals import CapabilityCeiling, ExecutionPrincipal
from wakeful.hosts.abilities.registry import Ability
from wakeful.hosts.host import Host
from wakeful.hosts.run_access import MANAGE, UNREDACTED
from wakeful.ports import Store
from wakeful.service.hooks import HookRegistry
from wakeful.tools.tool import Tool


def user(name: str, *capabilities: str) -> ExecutionPrincipal:
    """A person; with capabilities, one whom the host names so."""
    if not capabilities:
        return ExecutionPrincipal.user_session(name, "support")
    ceiling = CapabilityCeiling(allowed=capabilities)
    return ExecutionPrincipal.user_session(name, "support", capability_ceiling=ceiling)


OWNER, OTHER = user("u1"), user("u2")
MANAGER = user("boss", MANAGE)
AUDITOR = user("auditor", MANAGE, UNREDACTED)


class TaskHost:
    """Abilities on a store; `failures` is what `task_dispatch_failed` and its like were told."""

    def __init__(
        self,
        store: Store,
        *,
        agents: Iterable[Agent[Any, Any]] = (),
        tools: Iterable[Tool[Any]] = (),
        abilities: Iterable[Ability] = (),
        **more: Any,
    ) -> None:
        self.store = store
        self.system = new_engine(store)
        self.hooks = HookRegistry(find=list)
        self.failures: list[tuple[str, Any]] = []
        for name in ("task_dispatch_failed", "runtime_package_run_dispatch_failed"):
            self.hooks.register(name, lambda code, given: self.failures.append((code, given)))
        self.host = Host(
            self.system,
            None,
            agents=tuple(agents),
            tools=tuple(tools),
            abilities=tuple(abilities),
            hooks=self.hooks,
            **more,
        )

    def target(self, name: str, handler: Callable[..., Any] | None = None, **fields: Any) -> None:
        """Add a target, and a handler for it."""
        self.hooks.register("execution_targets", lambda targets: [*targets, {"id": name, **fields}])
        if handler is not None:
            self.hooks.register("task_handler", lambda found, given, target: handler if target.id == name else None)

    async def call(self, name: str, given: Any = None, caller: ExecutionPrincipal | None = OWNER) -> Any:
        self.host.caller = caller
        return await self.host.abilities.call(f"agents/{name}", {} if given is None else given)

    async def events(self, run_id: str) -> list[str]:
        return [event.name for event in await self.store.dispatches.events(run_id)]
