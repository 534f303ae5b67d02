"""The report on a store and on this installation."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wakeful import programs
from wakeful.bootstrap.models import try_model
from wakeful.bootstrap.stores import check_not_lost, opened_store
from wakeful.contracts.errors import ForTheCaller, InvalidConfig, StoreProblem

if TYPE_CHECKING:
    from wakeful.contracts.catalogue import ModelProbe
    from wakeful.service.queries.doctor import DoctorReport


async def doctor(location: str | Path, live: Sequence[str] = (), *, timeout: float | None = None) -> "DoctorReport":
    """The report on a store by its path, and on this installation. Makes no store where there is none.

    The models in `live` are asked for a word each.
    """
    from wakeful.providers.catalogue import provider_states
    from wakeful.sandbox.level_probe import probe as confinement_here
    from wakeful.sandbox.own_code import exposures
    from wakeful.service.queries.doctor import with_providers

    stored = await _store_report(location)
    level = await asyncio.to_thread(confinement_here)  # after the store, which says where agents work
    report = stored.model_copy(
        update={
            "confinement": level.mode,
            "confinement_reason": level.reason,
            "warnings": (*exposures(_write_roots_here()), *stored.warnings),
        }
    )
    try:
        states = provider_states()
    except InvalidConfig as problem:
        return with_providers(report, (), (), unreadable=str(problem))
    return with_providers(report, states, [await _probed(reference, timeout) for reference in live])


def _write_roots_here() -> tuple[str, ...]:
    """Where agents write: those of this process, and the current folder, where one works unless told otherwise."""
    return tuple(sorted({str(Path.cwd().resolve()), *programs.agent_roots()}))


async def _store_report(location: str | Path) -> "DoctorReport":
    from wakeful.service.queries.doctor import StoreFigures, cannot_be_opened, examine, nothing_stored
    from wakeful.store.sqlite.figures import figures

    measured = StoreFigures(location=str(location), **figures(Path(location)))
    try:
        if not measured.exists:
            check_not_lost(location)
            return nothing_stored(measured)
        async with opened_store(location, reading=True) as store:
            return await examine(store, measured)
    except StoreProblem as problem:
        return cannot_be_opened(measured, problem)


async def _probed(reference: str, timeout: float | None) -> "ModelProbe":
    """In a report, a model that cannot even be asked is one more finding."""
    from wakeful.contracts.catalogue import ModelProbe

    try:
        return await try_model(reference, timeout=timeout)
    except ForTheCaller as problem:
        return ModelProbe(model_ref=reference, ok=False, duration_ms=0.0, message=problem.message, advice=problem.hint)
