"""Runs that were handed on, and agents that came in bundles. A run that became a turn is shown as that turn stands;
nothing is written, and no other target is asked."""

import json
from typing import Any

from wakeful.contracts.errors import AgentNotFound, StoreDamaged, TurnDeleted, TurnNotFound
from wakeful.decisions.dispatch_answers import OVER, joined
from wakeful.decisions.redaction import redact
from wakeful.engine.run_request import Engine
from wakeful.ports.dispatches import DispatchKind, DispatchRow
from wakeful.ports.imported_agents import ImportedAgent
from wakeful.service.queries.dispatch_states import LOCAL, RUNTIME, local_state, runtime_state
from wakeful.service.queries.record_names import several
from wakeful.views.dispatch_records import (
    DispatchDetails,
    DispatchedRun,
    DispatchLogLine,
    ImportedAgentRecord,
)


async def dispatched_runs(engine: Engine, kind: DispatchKind, limit: int) -> list[DispatchedRun]:
    """The newest first."""
    rows = await engine.store.dispatches.all(kind, limit=limit)
    return [DispatchedRun(**await _fields(engine, row)) for row in rows]


async def dispatched_run(engine: Engine, named: str) -> DispatchDetails:
    """A run by its id, or by the beginning of one. Raises TurnNotFound."""
    row = await engine.store.dispatches.get(named) or await _beginning_with(engine, named)
    log = tuple(
        DispatchLogLine(seq=each.seq, at=each.at / 1e6, event=each.name, payload=_data(each.payload))
        for each in await engine.store.dispatches.events(row.run_id)
    )
    return DispatchDetails(**await _fields(engine, row), log=log)


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


async def _beginning_with(engine: Engine, named: str) -> DispatchRow:
    fitting = [row for row in await engine.store.dispatches.all("target") if named and row.run_id.startswith(named)]
    if len(fitting) > 1:
        raise TurnNotFound(*several(named, "runs", [row.run_id for row in fitting]))
    if not fitting:
        raise TurnNotFound(f"there is no dispatched run {named!r}", "List them: wakeful dispatch list")
    return fitting[0]


async def _fields(engine: Engine, row: DispatchRow) -> dict[str, Any]:
    record = await _as_it_stands(engine, row)
    return {
        "run_id": row.run_id,
        "kind": row.kind,
        "session_id": row.session_id,
        "status": _status(row, record),
        "created_at": row.created_at / 1e6,
        "updated_at": row.updated_at / 1e6,
        "record": redact(record),
    }


def _status(row: DispatchRow, record: dict[str, Any]) -> str:
    result = record.get("result") if row.kind == "target" else None
    said = result.get("status") if isinstance(result, dict) else None
    return said if isinstance(said, str) else row.status


async def _as_it_stands(engine: Engine, row: DispatchRow) -> dict[str, Any]:
    """The record, with what has become of its turn since it was written. One changed by hand is shown as it is."""
    record = json.loads(row.record)
    if not isinstance(record, dict):
        return {"value": record}
    if row.kind != "target" or row.status in OVER:
        return record
    try:
        target = record["result"]["executor_id"]
        if target == RUNTIME:
            said = await runtime_state(engine, str(record["input"]["metadata"]["agent"]), row.run_id)
        else:
            said = await local_state(engine, row.run_id) if target == LOCAL else None
        if said is None:
            return record
        return {**record, "result": engine.keys().hide_in(joined(record["result"], said))}
    except (KeyError, TypeError, StoreDamaged, TurnDeleted):  # what was said is gone, and no other run's
        return record


def _data(text: str) -> dict[str, Any]:
    found = redact(json.loads(text))
    return found if isinstance(found, dict) else {"value": found}
