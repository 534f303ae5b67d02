"""One report on the state of things, for every surface: what runs here, its providers, the store, and what waits."""

import platform
from collections.abc import Sequence
from typing import Any

from wakeful._version import __version__
from wakeful.contracts.catalogue import ModelProbe, ProviderState
from wakeful.contracts.errors import StoreDamaged, StoreProblem
from wakeful.contracts.values import Value
from wakeful.ports import Store
from wakeful.service.queries.tool_inventory import catalog_on_record
from wakeful.service.queries.turns import shown_states

LOOKED_AT = 100
"""The newest turns, which tell what tools agents have."""


class StoreFigures(Value):
    """What can be said of a store without understanding what is in it."""

    location: str
    exists: bool
    bytes: int = 0
    schema_version: int | None = None
    newest_schema_version: int
    engine: str
    """The database and its version."""


class DamageFound(Value):
    """Stored bytes that are not what was written."""

    agent_id: str
    """Empty when the file itself is damaged."""
    sequence: int
    what: str


class OpenTurn(Value):
    """A turn that is not over."""

    turn_id: str
    agent: str
    state: str
    waiting_for: tuple[str, ...] = ()


class DoctorReport(Value):
    """Everything one asks first when something is wrong."""

    version: str
    python: str
    platform: str
    store: StoreFigures
    confinement: str = ""
    """What holds commands here: `bubblewrap`, `landlock` or `not_enforced`."""
    confinement_reason: str = ""
    """Why not more."""
    warnings: tuple[str, ...] = ()
    """What is not wrong and should be known: code within reach of agents, a log without a record in the anchor."""
    healthy: bool
    """Nothing is wrong: neither with the store nor with what was configured or asked."""
    store_healthy: bool
    problems: tuple[str, ...] = ()
    """What is wrong, in words; empty when nothing is."""
    advice: str = ""
    """What to do about it."""
    damage: tuple[DamageFound, ...] = ()
    turns: int = 0
    open_turns: tuple[OpenTurn, ...] = ()
    unknown_outcomes: int = 0
    undeclared_tools: tuple[str, ...] = ()
    """Tools of agents on record that read and act and declare nothing: `agent: tool`."""
    providers: tuple[ProviderState, ...] = ()
    live: tuple[ModelProbe, ...] = ()
    """Tiny calls, to the models that were asked for."""


def with_providers(
    report: DoctorReport, providers: Sequence[ProviderState], live: Sequence[ModelProbe], unreadable: str = ""
) -> DoctorReport:
    """The report with what is known of providers. `unreadable` says why their settings are not."""
    problems = [unreadable] if unreadable else []
    problems += [f"provider {each.name}: {each.note}" for each in providers if each.status == "misconfigured"]
    problems += [f"{each.model_ref}: {each.message}" for each in live if not each.ok]
    return report.model_copy(
        update={
            "providers": tuple(providers),
            "live": tuple(live),
            "problems": (*report.problems, *problems),
            "healthy": report.healthy and not problems,
        }
    )


async def examine(store: Store, figures: StoreFigures) -> DoctorReport:
    """Read everything and say how it is. What a damaged store still tells is told."""
    found: dict[str, Any] = {}
    problems: list[str] = []
    try:
        differing = await store.verify()
        damage = [DamageFound(agent_id=d.agent_id, sequence=d.seq, what=d.what) for d in differing if not d.is_unproven]
        found["warnings"] = tuple(each.what for each in differing if each.is_unproven)
        found["damage"] = tuple(damage)
        problems += [each.what if each.agent_id else f"the database file: {each.what}" for each in damage]
        found["turns"] = await store.count_turns()
        rows = [row async for row in store.open_turns()][::-1]
        found["open_turns"] = tuple(
            OpenTurn(turn_id=row.turn_id, agent=row.agent_name, state=state, waiting_for=row.waiting_for)
            for row, state in zip(rows, await shown_states(store, rows), strict=True)
        )
        found["unknown_outcomes"] = len(await store.unknown())
        found["undeclared_tools"] = await _undeclared(store)
    except StoreProblem as problem:
        problems.append(problem.message)
        found["advice"] = problem.hint
    if found.get("damage"):
        found["advice"] = "Restore the store from a backup; agents that are not named here are as they were written."
    return _report(figures, tuple(problems), **found)


async def _undeclared(store: Store) -> tuple[str, ...]:
    """From the newest catalogue of each agent among the newest turns."""
    named: dict[str, tuple[str, ...]] = {}
    for row in await store.turns(limit=LOOKED_AT):
        if row.agent_name not in named and (catalog := await catalog_on_record(store, row)) is not None:
            named[row.agent_name] = catalog.undeclared
    return tuple(f"{agent}: {tool}" for agent, tools in sorted(named.items()) for tool in tools)


def cannot_be_opened(figures: StoreFigures, problem: StoreProblem) -> DoctorReport:
    """The report when the store itself says no."""
    damage: tuple[DamageFound, ...] = ()
    if isinstance(problem, StoreDamaged):
        damage = (DamageFound(agent_id=problem.agent_id, sequence=problem.sequence, what=problem.message),)
    return _report(figures, (problem.message,), damage=damage, advice=problem.hint)


def nothing_stored(figures: StoreFigures) -> DoctorReport:
    """The report before the first run."""
    return _report(figures, ())


def _report(figures: StoreFigures, problems: tuple[str, ...], **found: Any) -> DoctorReport:
    return DoctorReport(
        version=__version__,
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}",
        store=figures,
        healthy=not problems,
        store_healthy=not problems,
        problems=problems,
        **found,
    )
