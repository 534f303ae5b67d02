"""The record of a task's run: claimed before anything is done for it, changed one step after the other, ended once.

A change is based on what was read; whoever comes second reads again. What is over stays as it is.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from wakeful.contracts.envelope import iso
from wakeful.decisions.dispatch_answers import FALLBACK, joined
from wakeful.engine.run_request import Engine
from wakeful.hosts.dispatch.dispatch_request import (
    RESULT_SCHEMA,
    DispatchRequest,
    DispatchResult,
    ExecutorTarget,
    RunOwner,
)
from wakeful.ports import DispatchRow


class DispatchRun(NamedTuple):
    """A run as it is kept."""

    revision: int
    given: DispatchRequest
    result: DispatchResult


class DispatchRecords:
    """The runs of tasks in wakeful's store."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._store = engine.store.dispatches

    async def start(
        self,
        given: DispatchRequest,
        target: ExecutorTarget,
        owner: RunOwner | None,
        fallback: dict[str, Any] | None = None,
    ) -> DispatchResult | None:
        """Record a run as running, and that its target is not the preferred one. None: its id was claimed before."""
        at = self._engine.clock.now()
        place = {"target_kind": target.kind, "resource_class": given.placement.resource_class}
        result = DispatchResult.normalise(
            {
                "schema": RESULT_SCHEMA,
                "run_id": given.run_id,
                "session_id": given.session_id,
                "executor_id": target.id,
                "status": "running",
                "owner": owner,
                "started_at": iso(at),
                "updated_at": iso(at),
                "metadata": place,
                **(
                    {"diagnostics": {FALLBACK: fallback}, "events": [{"event": FALLBACK, **fallback}]}
                    if fallback
                    else {}
                ),
            }
        )
        payload = {"task_id": given.task_id, "executor_id": target.id, **place}
        claimed = await self._store.claim(
            given.run_id,
            "target",
            given.session_id,
            result.status,
            self._record(given, result),
            at=at,
            event="task_run_started",
            payload=self._text(payload),
        )
        if claimed and fallback:
            await self._note(given.run_id, FALLBACK, fallback)
        return result if claimed else None

    async def get(self, run_id: str) -> DispatchRun | None:
        row = await self._store.get(run_id)
        return _run(row) if row is not None and row.kind == "target" else None

    async def all(self, limit: int | None = None) -> list[DispatchRun]:
        """Newest first."""
        return [_run(row) for row in await self._store.all("target", limit=limit)]

    async def readable(self, limit: int) -> list[DispatchRun]:
        """Newest first, without records that were changed by hand: one of them stands in nobody's way."""
        rows = await self._store.all("target", limit=limit)
        return [run for row in rows if (run := _readable(row)) is not None]

    async def readable_one(self, run_id: str) -> DispatchRun | None:
        """None also for a record that was changed by hand."""
        row = await self._store.get(run_id)
        return _readable(row) if row is not None and row.kind == "target" else None

    async def _note(self, run_id: str, event: str, payload: Mapping[str, Any]) -> None:
        await self._store.note(run_id, at=self._engine.clock.now(), event=event, payload=self._text(payload))

    async def events(self, run_id: str) -> list[dict[str, Any]]:
        """What happened to a run, in order."""
        return [
            {"seq": event.seq, "at": iso(event.at), "event": event.name, "payload": json.loads(event.payload)}
            for event in await self._store.events(run_id)
        ]

    async def change(self, run_id: str, made: Callable[[DispatchResult], DispatchResult | None]) -> DispatchResult:
        """The run with what `made` makes of it; None from it, and a run that is over, change nothing."""
        while True:
            run = await self.get(run_id)
            assert run is not None, f"{run_id} was recorded"
            wanted = None if run.result.is_over else made(run.result)
            if wanted is None:
                return run.result
            at = self._engine.clock.now()
            result = wanted.model_copy(update={"updated_at": iso(at)})
            changed = await self._store.change(
                run_id,
                run.revision,
                result.status,
                self._record(run.given, result),
                at=at,
                event=f"task_run_{result.status}",
                payload=self._text({"status": result.status, "diagnostics": result.diagnostics}),
            )
            if changed:
                return result

    def _record(self, given: DispatchRequest, result: DispatchResult) -> str:
        return self._text({"input": given.to_wire(), "result": result.to_wire()})

    def _text(self, data: Mapping[str, Any]) -> str:
        """What is written down holds no key of the runtime's."""
        return json.dumps(self._engine.keys().hide_in(dict(data)))


def answered(now: DispatchResult, said: Mapping[str, Any], code: str) -> DispatchResult:
    """The run with what an executor says of it. Raises InvalidValue with `code`."""
    return DispatchResult.normalise(joined(now.to_wire(), said), code)


def _readable(row: DispatchRow) -> DispatchRun | None:
    try:
        return _run(row)
    except (ValueError, KeyError, TypeError):
        return None


def _run(row: DispatchRow) -> DispatchRun:
    record = json.loads(row.record)
    given = DispatchRequest.model_validate(record["input"])
    return DispatchRun(row.revision, given, DispatchResult.normalise(record["result"]))
