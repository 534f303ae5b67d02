"""Everything a host can be asked for, in one place: its agents, its tasks, its packages, and all its abilities.

One host is made for one caller: who asks is settled before anything is asked.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.principals import ExecutionPrincipal
from wakeful.engine.agent import Agent
from wakeful.engine.run_request import Engine
from wakeful.hosts.abilities.chat import ChatAbility
from wakeful.hosts.abilities.client_tools import RuntimeToolAbilities
from wakeful.hosts.abilities.dispatch import DispatchAbilities
from wakeful.hosts.abilities.packages import PackageAbilities
from wakeful.hosts.abilities.registry import Abilities, Ability
from wakeful.hosts.agent_registry import AgentRegistry
from wakeful.hosts.dispatch.dispatcher import Control, Dispatcher
from wakeful.hosts.packages.imports import BundleImporter
from wakeful.hosts.packages.runs import FindHandler, PackageRuns
from wakeful.hosts.run_access import RunAccess
from wakeful.service.hooks import HookRegistry
from wakeful.service.hooks import hooks as default_hooks
from wakeful.tools.tool import Tool


class Host:
    """A host as one caller meets it."""

    def __init__(
        self,
        engine: Engine,
        caller: ExecutionPrincipal | None,
        *,
        agents: Iterable[Agent[Any, Any]] = (),
        tools: Sequence[Tool[Any]] = (),
        abilities: Iterable[Ability] = (),
        hooks: HookRegistry = default_hooks,
        access: RunAccess | None = None,
        status_handler: Control | None = None,
        cancel_handler: Control | None = None,
        runs_packages: Callable[[AgentRegistry], FindHandler] | None = None,
    ) -> None:
        self.caller = caller
        self.agents = AgentRegistry(engine, agents, tools)
        self.dispatcher = Dispatcher(
            engine,
            self.agents,
            hooks=hooks,
            access=access,
            status_handler=status_handler,
            cancel_handler=cancel_handler,
        )
        otherwise = runs_packages(self.agents) if runs_packages is not None else None
        self.packages = PackageRuns(engine, hooks=hooks, otherwise=otherwise)
        self.bundles = BundleImporter(self.agents, hooks=hooks)
        self.abilities = Abilities.on(engine, hooks)
        asks = self._asks
        RuntimeToolAbilities(engine, asks, hooks=hooks).register(self.abilities)
        DispatchAbilities(self.dispatcher, asks, access).register(self.abilities)
        ChatAbility(engine, self.agents, asks, hooks=hooks).register(self.abilities)
        PackageAbilities(self.packages, asks, access).register(self.abilities)
        for ability in abilities:
            self.abilities.register(ability)

    def _asks(self) -> ExecutionPrincipal | None:
        return self.caller


class OwnAbilities:
    """The abilities that the code of this process brings, besides wakeful's own."""

    def __init__(self) -> None:
        self._abilities: dict[str, Ability] = {}

    def register(self, ability: Ability) -> Callable[[], None]:
        """Add one; the returned callable takes it out again. Raises InvalidConfig for a name that is taken."""
        if not ability.name.strip() or ability.name in self._abilities:
            raise InvalidConfig(f"an ability cannot be called {ability.name!r}: it is blank or taken")
        self._abilities[ability.name] = ability

        def remove() -> None:
            self._abilities.pop(ability.name, None)

        return remove

    def all(self) -> tuple[Ability, ...]:
        return tuple(self._abilities.values())


abilities = OwnAbilities()
"""Those of this process."""
