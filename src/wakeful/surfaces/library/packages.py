"""Bundles, packages and abilities from a program: `import_runtime_bundles`, `run_runtime_package`, `dispatch_ability`.

Who calls is what `principal=` says, or else the host's hook `execution_principal`. Without either it is nobody, and
nobody may run a package. `store=None` is the database in the home.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from wakeful.agents.definition import Agent
from wakeful.bootstrap import opened_store, runtime
from wakeful.contracts.principals import ExecutionPrincipal
from wakeful.service import host
from wakeful.service.abilities import Ability
from wakeful.service.hooks import hooks
from wakeful.service.host import Host
from wakeful.service.package_abilities import RUN
from wakeful.service.principals import resolve_principal
from wakeful.settings.home import home
from wakeful.surfaces.library.asking import StorePlace
from wakeful.tools.function import Tool


async def import_runtime_bundles(
    bundle_specs: Sequence[Mapping[str, Any]] | Mapping[str, Any],
    input: Mapping[str, Any] | None = None,
    *,
    store: StorePlace = None,
    agents: Iterable[Agent[Any, Any]] = (),
    tools: Sequence[Tool[Any]] = (),
) -> list[dict[str, Any]]:
    """Register the agents of bundles: `{"bundle": {...}}` or `{"source": "agent.json"}`, one result for each, in order.

    `tools` are those that bundles may name.
    """
    async with _opened(store, None, "import_runtime_bundles", agents, tools) as opened:
        return await opened.bundles.import_all(bundle_specs, input)


async def run_runtime_package(
    input: Mapping[str, Any],
    *,
    store: StorePlace = None,
    principal: ExecutionPrincipal | None = None,
) -> dict[str, Any]:
    """Run a workflow of a package: the ability `agents/run_runtime_package`, and whoever handles packages here."""
    answer: dict[str, Any] = await dispatch_ability(RUN, input, store=store, principal=principal)
    return answer


async def dispatch_ability(
    name: str,
    parameters: Mapping[str, Any] | None = None,
    *,
    store: StorePlace = None,
    principal: ExecutionPrincipal | None = None,
    agents: Iterable[Agent[Any, Any]] = (),
    tools: Sequence[Tool[Any]] = (),
) -> Any:
    """Call an ability, wakeful's own or one of `register_ability`, with its permission check and all its hooks.

    Raises AbilityRefused for a name that is blank or unknown, and when the call is not permitted.
    """
    async with _opened(store, principal, name, agents, tools) as opened:
        return await opened.abilities.call(name, dict(parameters) if parameters is not None else {})


def register_ability(ability: Ability) -> Callable[[], None]:
    """Let `dispatch_ability` call it; the returned callable takes it out again."""
    return host.abilities.register(ability)


@asynccontextmanager
async def _opened(
    store: StorePlace,
    principal: ExecutionPrincipal | None,
    what: str,
    agents: Iterable[Agent[Any, Any]],
    tools: Sequence[Tool[Any]],
) -> AsyncIterator[Host]:
    caller = principal
    if caller is None:
        caller = await resolve_principal({"surface": "library", "ability": what})
    place = store
    if place is None:
        home().mkdir(mode=0o700, parents=True, exist_ok=True)
        place = home() / "wakeful.db"
    async with opened_store(place) as opened:
        yield Host(runtime(opened), caller, agents=agents, tools=tools, abilities=host.abilities.all(), hooks=hooks)
