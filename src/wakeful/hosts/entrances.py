"""The entrances for a host's program: an engine on a store, a host on it, and its bundles, packages and abilities.

    async with open_engine("runs.db") as engine: ...
    async with open_host("runs.db", principal=caller, agents=[writer]) as host: ...

Who calls is what `principal=` says, or else the host's hook `execution_principal`. Without either it is nobody, and
nobody may run a package. `store=None` is the database in the home.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from os import PathLike
from typing import Any

from wakeful.bootstrap.engines import new_engine
from wakeful.bootstrap.stores import opened_store
from wakeful.contracts.principals import ExecutionPrincipal
from wakeful.engine.agent import Agent
from wakeful.engine.run_request import Engine
from wakeful.hosts.abilities.packages import RUN
from wakeful.hosts.abilities.registry import Ability
from wakeful.hosts.dispatch.dispatcher import Control
from wakeful.hosts.host import Host, abilities
from wakeful.hosts.run_access import RunAccess, resolve_principal
from wakeful.ports import Store
from wakeful.service.hooks import HookRegistry
from wakeful.service.hooks import hooks as default_hooks
from wakeful.settings.home import home
from wakeful.tools.tool import Tool


@asynccontextmanager
async def open_engine(store: Store | str | PathLike[str] | None = None) -> AsyncIterator[Engine]:
    """An engine on a store, for the functions of `wakeful.hosts` that take an engine.

    A store by its path is closed at the end, when nobody else in this process uses it.
    """
    place = store
    if place is None:
        home().mkdir(mode=0o700, parents=True, exist_ok=True)
        place = home() / "wakeful.db"
    async with opened_store(place) as opened:
        yield new_engine(opened)


@asynccontextmanager
async def open_host(
    store: Store | str | PathLike[str] | None = None,
    *,
    principal: ExecutionPrincipal | None = None,
    request_context: Mapping[str, Any] | None = None,
    agents: Iterable[Agent[Any, Any]] = (),
    tools: Sequence[Tool[Any]] = (),
    hooks: HookRegistry = default_hooks,
    access: RunAccess | None = None,
    status_handler: Control | None = None,
    cancel_handler: Control | None = None,
) -> AsyncIterator[Host]:
    """A host as one caller meets it: `agents`, `dispatcher`, `packages`, `bundles` and `abilities`.

    `request_context` is what the hook `execution_principal` is told where `principal` is left out. `tools` are those
    that bundles may name. `status_handler` and `cancel_handler` are the host's word on runs that
    targets of its own carry out; `access` says who manages runs and who sees their secrets.
    """
    caller = principal
    if caller is None:
        caller = await resolve_principal({"surface": "library", **(request_context or {})}, hooks=hooks)
    async with open_engine(store) as engine:
        yield Host(
            engine,
            caller,
            agents=agents,
            tools=tools,
            abilities=abilities.all(),
            hooks=hooks,
            access=access,
            status_handler=status_handler,
            cancel_handler=cancel_handler,
        )


async def import_runtime_bundles(
    bundle_specs: Sequence[Mapping[str, Any]] | Mapping[str, Any],
    input: Mapping[str, Any] | None = None,
    *,
    store: Store | str | PathLike[str] | None = None,
    agents: Iterable[Agent[Any, Any]] = (),
    tools: Sequence[Tool[Any]] = (),
) -> list[dict[str, Any]]:
    """Register the agents of bundles: `{"bundle": {...}}` or `{"source": "agent.json"}`, one result for each, in order.

    `tools` are those that bundles may name.
    """
    asked = {"ability": "import_runtime_bundles"}
    async with open_host(store, request_context=asked, agents=agents, tools=tools) as host:
        return await host.bundles.import_all(bundle_specs, input)


async def run_runtime_package(
    input: Mapping[str, Any],
    *,
    store: Store | str | PathLike[str] | None = None,
    principal: ExecutionPrincipal | None = None,
) -> dict[str, Any]:
    """Run a workflow of a package: the ability `agents/run_runtime_package`, and whoever handles packages here."""
    answer: dict[str, Any] = await dispatch_ability(RUN, input, store=store, principal=principal)
    return answer


async def dispatch_ability(
    name: str,
    parameters: Mapping[str, Any] | None = None,
    *,
    store: Store | str | PathLike[str] | None = None,
    principal: ExecutionPrincipal | None = None,
    agents: Iterable[Agent[Any, Any]] = (),
    tools: Sequence[Tool[Any]] = (),
) -> Any:
    """Call an ability, wakeful's own or one of `register_ability`, with its permission check and all its hooks.

    Raises AbilityRefused for a name that is blank or unknown, and when the call is not permitted.
    """
    asked = {"ability": name}
    async with open_host(store, principal=principal, request_context=asked, agents=agents, tools=tools) as host:
        return await host.abilities.call(name, dict(parameters) if parameters is not None else {})


def register_ability(ability: Ability) -> Callable[[], None]:
    """Let `dispatch_ability` call it; the returned callable takes it out again."""
    return abilities.register(ability)
