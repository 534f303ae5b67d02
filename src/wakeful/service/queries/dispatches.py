"""Runs that were handed on, and agents that came in bundles, as the store keeps them. Nobody is asked how they are."""

import json
from typing import Any

from wakeful.contracts.errors import AgentNotFound, TurnNotFound
from wakeful.decisions.redaction import redact
from wakeful.engine.run_request import Engine
from wakeful.ports.dispatches import DispatchKind, DispatchRow
from wakeful.ports.imported_agents import ImportedAgent
from wakeful.views.dispatch_records import (
    DispatchDetails,
    DispatchedRun,
    DispatchLogLine,
    ImportedAgentRecord,
)


async def dispatched_runs(engine: Engine, kind: DispatchKind, limit: int) -> list[DispatchedRun]:
    """The newest first."""
    return [DispatchedRun(**_fields(row)) for row in await engine.store.dispatches.all(kind, limit=limit)]


async def dispatched_run(engine: Engine, run_id: str) -> DispatchDetails:
    """Raises TurnNotFound."""
    row = await engine.store.dispatches.get(run_id)
    if row is None:
        raise TurnNotFound(f"there is no dispatched run {run_id!r}", "List them: wakeful dispatch list")
    log = tuple(
        DispatchLogLine(seq=each.seq, at=each.at / 1e6, event=each.name, payload=_data(each.payload))
        for each in await engine.store.dispatches.events(run_id)
    )
    return DispatchDetails(**_fields(row), log=log)


async def imported_agents(engine: Engine) -> list[ImportedAgentRecord]:
    """By slug."""
    return [_imported(each) for each in await engine.store.imported_agents.all()]


async def imported_agent(engine: Engine, slug: str) -> ImportedAgentRecord:
    """Raises AgentNotFound."""
    found = await engine.store.imported_agents.get(slug)
    if found is None:
        raise AgentNotFound(f"no agent {slug!r} came in a bundle", "wakeful package import FILE")
    return _imported(found)


def _imported(row: ImportedAgent) -> ImportedAgentRecord:
    return ImportedAgentRecord(slug=row.slug, imported_at=row.imported_at / 1e6, definition=_data(row.definition))


def _fields(row: DispatchRow) -> dict[str, Any]:
    return {
        "run_id": row.run_id,
        "kind": row.kind,
        "session_id": row.session_id,
        "status": row.status,
        "created_at": row.created_at / 1e6,
        "updated_at": row.updated_at / 1e6,
        "record": _data(row.record),
    }


def _data(text: str) -> dict[str, Any]:
    found = redact(json.loads(text))
    return found if isinstance(found, dict) else {"value": found}
