"""Requests to clients, kept where everything else is: in wakeful's own store.

A call of a turn is asked by the gate and found here as a request with its real parameters; a host may keep requests of
its own beside them. Whoever ends a request, from whatever process, is first or is told who was. A request past its time
is ended by whoever looks first, and what is answered after that is late.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal

from wakeful.contracts.content import BlobRef
from wakeful.contracts.conversation import CallPart
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import AlreadyDecided, InvalidValue
from wakeful.contracts.events import (
    AnyEvent,
    AssistantRecorded,
    RuntimeToolContinued,
    RuntimeToolRequested,
    RuntimeToolResolved,
    TurnConfigChanged,
    TurnStarted,
)
from wakeful.contracts.runtime_tools import (
    COMPLETED,
    INVALID_REQUEST,
    PENDING,
    TIMEOUT,
    RequestStatus,
    RuntimeToolRequest,
    RuntimeToolResult,
    timed_out,
)
from wakeful.engine.run_request import Engine
from wakeful.engine.state_loader import load_config
from wakeful.gate.large_content import INLINE_BYTES, arguments_of
from wakeful.ports import ActionRow
from wakeful.ports.client_requests import RequestEnding
from wakeful.service.client_tools.staged_actions import NEVER, recorded, settle, stage
from wakeful.views.client_requests import request_view, result_view

KIND: Literal["client_tool"] = "client_tool"
CLIENT = "client"


class OwnRequestStore:
    """A RuntimeToolRequestStore on wakeful's store. `by` is who answers through it, for the log."""

    compare_and_set = True

    def __init__(self, engine: Engine, *, by: str = CLIENT) -> None:
        self._engine = engine
        self._store = engine.store
        self._by = by

    async def create(self, request: RuntimeToolRequest) -> None:
        """Keep a host's own request. One that a turn of this store asked for is there already."""
        await stage(
            self._engine,
            request.request_id,
            KIND,
            request.tool_name,
            request.model_dump(mode="json"),
            micros(request.timeout_at) if request.timeout_at else NEVER,
        )

    async def get(self, request_id: str) -> RuntimeToolRequest | None:
        row = await self._row(request_id)
        return await self._request(row) if row is not None else None

    async def complete(self, request_id: str, result: RuntimeToolResult) -> RequestEnding | None:
        return await self._end(request_id, COMPLETED, result, self._by)

    async def timeout(self, request_id: str, result: RuntimeToolResult | None = None) -> RequestEnding | None:
        return await self._end(request_id, TIMEOUT, result, self._by)

    async def recent_pending(self, query: Mapping[str, Any]) -> list[RuntimeToolRequest]:
        run_id, tool_name, before = query.get("run_id"), query.get("tool_name"), query.get("before")
        # A run that is a turn of this store has its own rows; any other name is the caller's, and in the requests.
        turn_id = run_id if run_id is not None and await self._store.turn(run_id) is not None else None
        rows = [
            row
            for row in await self._store.actions(pending_only=True, turn_id=turn_id)
            if row.kind == KIND and tool_name in (None, row.tool_name)
            if before is None or (row.expires_at < NEVER and row.expires_at < micros(before))
        ]
        found: list[RuntimeToolRequest] = []
        for row in reversed(rows):
            request = await self._request(row)
            if turn_id is not None or run_id in (None, request.run_id):
                found.append(request)
            if len(found) == query.get("limit"):
                break
        return found

    async def record(self, name: str, envelopes: dict[str, Any]) -> None:
        """The log entry of a step of the lifecycle: what this store writes anyway is there already."""
        if name != "runtime_tool_request_resumed":
            return
        request = envelopes["request"]
        row = await self._store.action(request["request_id"])
        if row is None:
            return
        event = RuntimeToolContinued(
            request_id=row.action_id, tool_name=row.tool_name, run_id=str(request.get("run_id", ""))
        )
        # No fact of the turn: that may have come to its end while it was continued.
        await self._store.admit(row.agent_id, [Fact(event, self._engine.clock.now(), action_id=row.action_id)])

    # --- reading ------------------------------------------------------------------------------------------------------

    async def _row(self, request_id: str) -> ActionRow | None:
        row = await self._store.action(request_id) if request_id else None
        return row if row is not None and row.kind == KIND else None

    async def _request(self, row: ActionRow) -> RuntimeToolRequest:
        if not row.turn_id:
            staged, settled = await recorded(self._store, row)
            status = _status(row) if settled is not None else PENDING
            return RuntimeToolRequest.normalise(staged).settled(status)
        asked, part, injected = await self._asked(row)
        written = await arguments_of(part, self._store.get_blob) if part is not None else {}
        return request_view(row, row.step, row.call_id, asked, written or {}, injected, _status(row))

    async def _asked(self, row: ActionRow) -> tuple[RuntimeToolRequested, CallPart | None, tuple[str, ...]]:
        """What was asked, the call as the model wrote it, and which of its arguments are not the tool's."""
        asked: RuntimeToolRequested | None = None
        part: CallPart | None = None
        config: BlobRef | None = None
        for entry in await self._store.read(row.agent_id, turn_id=row.turn_id):
            if entry.seq > row.required_seq:
                break
            event = entry.fact.event
            if isinstance(event, AssistantRecorded) and entry.fact.step == row.step:
                part = next((call for call in event.item.calls if call.call_id == row.call_id), part)
            elif isinstance(event, TurnStarted | TurnConfigChanged):
                config = event.config_ref
            elif isinstance(event, RuntimeToolRequested) and event.request_id == row.action_id:
                asked = event
        assert asked is not None, f"{row.action_id} has a row and no event"
        injected = (await load_config(self._store, config.digest)).injected_tool_args if config is not None else {}
        return asked, part, tuple(injected)

    async def _result(self, row: ActionRow, request: RuntimeToolRequest) -> RuntimeToolResult | None:
        if row.resolved_seq is None:
            return None
        if not row.turn_id:
            settled = (await recorded(self._store, row))[1]
            return RuntimeToolResult.normalise(settled or {}, request)
        (entry,) = await self._store.read(row.agent_id, after=row.resolved_seq - 1, limit=1)
        said = entry.fact.event
        assert isinstance(said, RuntimeToolResolved)
        ref = said.result_ref
        value = said.result if ref is None else json.loads(await self._store.get_blob(ref.digest))
        return result_view(request, said, value)

    # --- ending -------------------------------------------------------------------------------------------------------

    async def _end(
        self, request_id: str, status: RequestStatus, result: RuntimeToolResult | None, by: str
    ) -> RequestEnding | None:
        row = await self._row(request_id)
        if row is None:
            return None
        request = await self._request(row)
        if row.status == "pending" and status == COMPLETED and row.expires_at <= self._engine.clock.now():
            await self._write(row, request, TIMEOUT, timed_out(request), "runtime")  # too late, whoever sees it first
            won = False
        else:
            won = row.status == "pending" and await self._write(row, request, status, result, by)
        row = await self._row(request_id) or row
        request = request.settled(_status(row))
        return RequestEnding(won, request, await self._result(row, request))

    async def _write(
        self,
        row: ActionRow,
        request: RuntimeToolRequest,
        status: RequestStatus,
        result: RuntimeToolResult | None,
        by: str,
    ) -> bool:
        end = result if result is not None else timed_out(request)
        if not row.turn_id:
            settled = "completed" if status == COMPLETED else "timed_out"
            return await settle(self._engine, row, settled, by, end.model_dump(mode="json", exclude_none=True))
        event = await self._resolution(row, status, end, by)
        fact = Fact(event, self._engine.clock.now(), row.thread_id, row.turn_id, row.step, row.call_id, row.action_id)
        try:
            await self._store.admit(row.agent_id, [fact])
        except AlreadyDecided:
            return False
        return True

    async def _resolution(self, row: ActionRow, status: RequestStatus, end: RuntimeToolResult, by: str) -> AnyEvent:
        more: dict[str, Any] = {}
        if status == COMPLETED and end.success:
            encoded = json.dumps(end.result).encode()
            if len(encoded) > INLINE_BYTES:
                more["result_ref"] = await self._store.put_blob(encoded, "application/json")
            else:
                more["result"] = end.result
        else:
            more["error"] = end.error
        if status == TIMEOUT and end.metadata.get("cancelled") is True:
            more["cancelled"] = True
        if end.metadata and status == COMPLETED:
            more["metadata"] = end.metadata
        return RuntimeToolResolved(
            request_id=row.action_id,
            tool_name=row.tool_name,
            status="runtime_tool_completed" if status == COMPLETED else "runtime_tool_timeout",
            success=status == COMPLETED and end.success,
            submitted_by=by,
            **more,
        )


def _status(row: ActionRow) -> RequestStatus:
    if row.status == "pending":
        return PENDING
    return COMPLETED if row.status == "completed" else TIMEOUT


def micros(time: Any) -> int:
    """An ISO 8601 time as microseconds since the epoch; without a zone it is UTC."""
    try:
        read = datetime.fromisoformat(time)
    except (TypeError, ValueError):
        raise InvalidValue(INVALID_REQUEST, "time", f"{time!r} is not an ISO 8601 time") from None
    read = read if read.tzinfo is not None else read.replace(tzinfo=UTC)
    return int(read.timestamp() * 1_000_000)
