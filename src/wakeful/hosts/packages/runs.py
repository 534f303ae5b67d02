"""Runs of packages: the envelope, the record and the seam. What a package is and what running it does is the host's.

The run is recorded before anybody is asked to do it. What a handler answers is held to the contract: a status that is
missing or unknown is no success.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from wakeful.contracts.envelope import iso
from wakeful.contracts.errors import InvalidValue
from wakeful.decisions.redaction import redact
from wakeful.engine.run_request import Engine
from wakeful.hosts.host_calls import awaited
from wakeful.hosts.packages.package_run import (
    ALREADY_STARTED,
    HANDLER_FAILED,
    NO_HANDLER,
    NOT_FOUND,
    PackageRunRequest,
    PackageRunResult,
)
from wakeful.hosts.run_access import RunRefused, failure_of
from wakeful.ports import DispatchRow
from wakeful.service.hooks import HookRegistry
from wakeful.service.hooks import hooks as default_hooks

PAGE, MAX_PAGE = 100, 500
Handler: TypeAlias = Callable[[dict[str, Any]], Any]
"""Gets the request as JSON data; plain or async; answers an object like a PackageRunResult, or an error."""

FindHandler: TypeAlias = Callable[[PackageRunRequest], Awaitable[Handler | None]]


class PackageRuns:
    """The package runs of one host."""

    def __init__(
        self, engine: Engine, *, hooks: HookRegistry = default_hooks, otherwise: FindHandler | None = None
    ) -> None:
        self._engine = engine
        self._store = engine.store.dispatches
        self._hooks = hooks
        self._otherwise = otherwise
        """Who runs a package that no hook knows."""

    async def run(self, raw: Mapping[str, Any]) -> PackageRunResult:
        """Raises InvalidValue for a request that is none, and nothing is recorded then.

        Raises RunRefused when nobody runs it or its handler fails, and InvalidValue for an answer that is none.
        """
        request = PackageRunRequest.normalise(raw, self._engine.ids.new)
        begun = PackageRunResult(status="running", run_id=request.run_id, replay=request.replay)
        claimed = await self._store.claim(
            request.run_id,
            "package",
            "",
            begun.status,
            self._record(request.model_dump(mode="json"), begun),
            at=self._engine.clock.now(),
            event="runtime_package_run_started",
            payload=self._text({"package": request.package, "workflow": request.workflow}),
        )
        if not claimed:
            raise RunRefused(ALREADY_STARTED, f"the run {request.run_id!r} was started before", "leave run_id out")
        try:
            handler = await self._hooks.resolve(
                "runtime_package_run_handler", request.model_dump(mode="json"), dict(raw)
            )
            if not callable(handler) and self._otherwise is not None:
                handler = await self._otherwise(request)
            if not callable(handler):
                raise RunRefused(NO_HANDLER, "no handler runs packages here", "register runtime_package_run_handler")
            said = await awaited(handler(request.model_dump(mode="json")))
            if isinstance(said, Exception):
                raise said
            result = PackageRunResult.normalise(said, request.run_id)
        except Exception as error:
            code, words = failure_of(error, HANDLER_FAILED)
            failed = begun.model_copy(update={"status": "failed", "error": {"code": code, "message": words}})
            await self._keep(request.run_id, failed)
            shown = redact(request.model_dump(mode="json"))
            await self._hooks.observe("runtime_package_run_dispatch_failed", code, shown)
            if isinstance(error, InvalidValue | RunRefused):
                raise
            raise RunRefused(code, words, getattr(error, "hint", "")) from error
        return await self._keep(request.run_id, result)

    async def get(self, run_id: str) -> PackageRunResult:
        """Raises RunRefused `runtime_package_run_not_found`."""
        return _result(await self._row(run_id))

    async def cancel(self, run_id: str) -> tuple[bool, PackageRunResult]:
        """End a run for whoever reads it, as far as that can be done from here. False when it was over before.

        What its handler still says is kept among its events, and changes nothing.
        """
        while True:
            row = await self._row(run_id)
            result = _result(row)
            if result.is_over:
                return False, result
            ended = result.model_copy(update={"status": "cancelled"})
            if await self._change(row, ended):
                return True, ended

    async def settle(self, run_id: str, answer: Mapping[str, Any]) -> PackageRunResult:
        """What became of a run that its handler left waiting. What is over stays as it is.

        Raises RunRefused for a run that nobody knows, and InvalidValue for an answer that is none.
        """
        return await self._keep(run_id, PackageRunResult.normalise(answer, run_id))

    async def events(self, run_id: str, cursor: str | int | None = None, limit: int = PAGE) -> dict[str, Any]:
        """A page of what happened to a run; the cursor of one page is where the next begins."""
        await self._row(run_id)
        after = _place(cursor)
        found = await self._store.events(run_id, after=after, limit=min(limit, MAX_PAGE) + 1)
        page = found[: min(limit, MAX_PAGE)]
        return {
            "events": [
                {"seq": event.seq, "at": iso(event.at), "event": event.name, "payload": json.loads(event.payload)}
                for event in page
            ],
            "cursor": str(page[-1].seq if page else after),
            "has_more": len(found) > len(page),
        }

    # --- the record -----------------------------------------------------------------------------------------------

    async def _row(self, run_id: str) -> DispatchRow:
        row = await self._store.get(run_id)
        if row is None or row.kind != "package":
            raise RunRefused(NOT_FOUND, f"there is no package run {run_id!r}")
        return row

    async def _keep(self, run_id: str, result: PackageRunResult) -> PackageRunResult:
        while True:
            row = await self._row(run_id)
            now = _result(row)
            if now.is_over:
                await self._store.note(
                    run_id,
                    at=self._engine.clock.now(),
                    event="runtime_package_run_answered_late",
                    payload=self._text(result.model_dump(mode="json")),
                )
                return now
            if await self._change(row, result):
                return result

    async def _change(self, row: DispatchRow, result: PackageRunResult) -> bool:
        return await self._store.change(
            row.run_id,
            row.revision,
            result.status,
            self._record(json.loads(row.record)["request"], result),
            at=self._engine.clock.now(),
            event=f"runtime_package_run_{result.status}",
            payload=self._text({"status": result.status, "error": result.error}),
        )

    def _record(self, request: dict[str, Any], result: PackageRunResult) -> str:
        return self._text({"request": request, "result": result.model_dump(mode="json")})

    def _text(self, data: dict[str, Any]) -> str:
        """What is written down holds no key of the runtime's."""
        return json.dumps(self._engine.keys().hide_in(data))


def _result(row: DispatchRow) -> PackageRunResult:
    return PackageRunResult.model_validate(json.loads(row.record)["result"])


def _place(cursor: str | int | None) -> int:
    try:
        return max(0, int(cursor or 0))
    except ValueError:
        raise InvalidValue("runtime_package_run_invalid_cursor", "cursor", f"{cursor!r} is not a cursor") from None
