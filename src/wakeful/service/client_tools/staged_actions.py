"""What hosts keep in wakeful's store for somebody to decide or answer, outside any turn: staged once, settled once.

The same rows and the same compare-and-set as the calls of turns; the facts stand in a stream of their own.
"""

import json
from typing import Any

from wakeful.contracts.content import BlobRef
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import AlreadyDecided, EventRefused
from wakeful.contracts.events import ActionSettled, ActionStaged, AnyEvent, SessionStarted
from wakeful.contracts.events.gate import StagedType
from wakeful.engine.run_request import Engine
from wakeful.gate.large_content import INLINE_BYTES
from wakeful.ports import ActionRow, Blobs, Store

STREAM = "hosted-actions"
"""The agent whose stream these facts are in."""
NEVER = 253_402_300_799_000_000
"""Microseconds at the end of the year 9999: for what does not expire."""


async def stage(
    engine: Engine, action_id: str, kind: StagedType, name: str, record: dict[str, Any], expires_at: int
) -> bool:
    """Keep a record; False when there is one of that id already, which stays as it is."""
    store = engine.store
    if await store.action(action_id) is not None:
        return False
    kept, ref = await _placed(store, record)
    event = ActionStaged(
        action_id=action_id, action_type=kind, name=name, expires_at=expires_at, record=kept, record_ref=ref
    )
    begun: list[AnyEvent] = []
    if not await store.read(STREAM, limit=1):
        begun = [SessionStarted(agent_name=STREAM, temporary=True)]
    try:
        await store.admit(STREAM, [*(Fact(each, engine.clock.now()) for each in begun), _fact(engine, event)])
    except EventRefused:
        if await store.action(action_id) is None:
            raise
        return False  # somebody was faster
    return True


async def settle(engine: Engine, row: ActionRow, status: str, by: str, record: dict[str, Any]) -> bool:
    """End it; False when it had ended before, and nothing is written then."""
    kept, ref = await _placed(engine.store, record)
    event = ActionSettled(
        action_id=row.action_id,
        action_type="client_tool" if row.kind == "client_tool" else "pending_action",
        status=status,
        settled_by=by,
        record=kept,
        record_ref=ref,
    )
    try:
        await engine.store.admit(row.agent_id, [_fact(engine, event)])
    except AlreadyDecided:
        return False
    return True


async def recorded(store: Store, row: ActionRow) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The record as it was staged, and as it was settled."""
    (staged,) = await store.read(row.agent_id, after=row.required_seq - 1, limit=1)
    assert isinstance(staged.fact.event, ActionStaged)
    asked = await _whole(store, staged.fact.event)
    if row.resolved_seq is None:
        return asked, None
    (settled,) = await store.read(row.agent_id, after=row.resolved_seq - 1, limit=1)
    assert isinstance(settled.fact.event, ActionSettled)
    return asked, await _whole(store, settled.fact.event)


async def _placed(store: Blobs, record: dict[str, Any]) -> tuple[dict[str, Any] | None, BlobRef | None]:
    encoded = json.dumps(record).encode()
    if len(encoded) <= INLINE_BYTES:
        return record, None
    return None, await store.put_blob(encoded, "application/json")


async def _whole(store: Blobs, event: ActionStaged | ActionSettled) -> dict[str, Any]:
    if event.record_ref is None:
        return event.record or {}
    loaded = json.loads(await store.get_blob(event.record_ref.digest))
    assert isinstance(loaded, dict)
    return loaded


def _fact(engine: Engine, event: ActionStaged | ActionSettled) -> Fact:
    return Fact(event, engine.clock.now(), action_id=event.action_id)
