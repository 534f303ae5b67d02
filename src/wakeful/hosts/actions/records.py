"""Pending actions as a view of what waits for a person in wakeful's own store.

An approval or a question of a turn is an action that waits, and deciding about it here decides about it there. What a
host's abilities stage is kept beside them. All of it is there again after a restart, and each ends once.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from wakeful.contracts.approvals import Always, Approval, Approve, Decided, Reject
from wakeful.contracts.envelope import iso
from wakeful.engine.run_request import Engine
from wakeful.hosts.actions.pending_action import INVALID_DECISION, ActionStatus, PendingAction, PendingActionError
from wakeful.ports import ActionRow
from wakeful.service.client_tools.staged_actions import NEVER, recorded, settle, stage
from wakeful.service.client_tools.store import micros
from wakeful.service.commands import approvals

Actions: TypeAlias = list[PendingAction]
KIND: Literal["pending_action"] = "pending_action"
REMEMBER = "remember"
"""In the metadata of an accepted action: do not ask again about what is like it."""
OF_TURNS: Mapping[str, ActionStatus] = {
    "pending": "pending",
    "approved": "accepted",
    "rejected": "rejected",
    "timed_out": "expired",
}


class OwnPendingActionStore:
    """A PendingActionStore on wakeful's store."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._store = engine.store

    async def store(self, action: PendingAction) -> None:
        expires = micros(action.expires_at) if action.expires_at else NEVER
        kept = await stage(self._engine, action.action_id, KIND, action.kind, _dump(action), expires)
        if not kept:
            raise ValueError(f"there is an action {action.action_id!r} already")

    async def get(self, action_id: str) -> PendingAction | None:
        row = await self._row(action_id)
        return await self._action(row) if row is not None else None

    async def list(self, query: Mapping[str, Any]) -> Actions:
        return (await self._found(query))[: query.get("limit")]

    async def summary(self, query: Mapping[str, Any]) -> dict[str, int]:
        return dict(Counter(action.status for action in await self._found(query)))

    async def record_resolution(self, action: PendingAction) -> bool:
        row = await self._row(action.action_id)
        if row is None or row.status != "pending" or action.is_pending:
            return False
        if row.kind == KIND:
            return await settle(self._engine, row, action.status, action.resolver or "runtime", _dump(action))
        decided = _decided(action)
        outcome = await approvals.decide(self._engine, row.action_id, decided, by=action.resolver or "program")
        return not outcome.duplicate

    async def carries_out(self, action_id: str) -> bool:
        """Is it carried out by the turn that waits for it?"""
        row = await self._row(action_id)
        return row is not None and row.kind in approvals.KINDS

    async def expire(self, now: str) -> int:
        ended = 0
        for row in await self._store.actions(pending_only=True):
            if row.kind == KIND and row.expires_at <= micros(now):
                action = await self._action(row)
                late = action.model_copy(update={"status": "expired", "resolved_at": now})
                ended += await settle(self._engine, row, "expired", "runtime", _dump(late))
            elif row.kind in approvals.KINDS and row.expires_at <= micros(now):
                seen = await approvals.show(self._engine, row.action_id)  # what is past its time ends when it is seen
                ended += seen.status == "timed_out"
        return ended

    async def delete(self, action_id: str, *, resolver: str, now: str) -> bool:
        action = await self.get(action_id)
        if action is None or not action.is_pending:
            return False
        return await self.record_resolution(
            action.model_copy(update={"status": "deleted", "resolved_at": now, "resolver": resolver})
        )

    # --- reading ------------------------------------------------------------------------------------------------------

    async def _row(self, action_id: str) -> ActionRow | None:
        row = await self._store.action(action_id)
        return row if row is not None and row.kind in (KIND, *approvals.KINDS) else None

    async def _found(self, query: Mapping[str, Any]) -> Actions:
        rows = [row for row in await self._store.actions() if row.kind in (KIND, *approvals.KINDS)]
        actions = [await self._action(row) for row in reversed(rows)]
        return [action for action in actions if _fits(action, query)]

    async def _action(self, row: ActionRow) -> PendingAction:
        if row.kind == KIND:
            staged, settled = await recorded(self._store, row)
            return PendingAction.normalise(settled if settled is not None else staged)
        return _of_approval(await approvals.show(self._engine, row.action_id))


def _decided(action: PendingAction) -> Decided:
    """The decision about a call of a turn."""
    note = action.resolution_metadata.get("note")
    words = action.resolution_error or (note if isinstance(note, str) else "")
    if action.status != "accepted":
        return Reject(words)
    remember = action.resolution_metadata.get(REMEMBER)
    if not remember:
        return Approve(words)
    given = remember if isinstance(remember, dict) else {}
    scope = given.get("scope", "call")
    if scope not in ("call", "tool"):
        raise PendingActionError(INVALID_DECISION, f"remember.scope is call or tool, not {scope!r}")
    return Always(scope, for_seconds=given.get("for_seconds"), note=words)


def _of_approval(record: Approval) -> PendingAction:
    """The call that waits. What is executed after acceptance is what the approval is bound to; here it is redacted."""
    status = OF_TURNS[record.status]
    ended: dict[str, Any] = {}
    if status != "pending":
        at = record.decided_at if record.decided_at is not None else record.expires_at
        ended = {"resolved_at": iso(int(at * 1_000_000)), "resolver": record.decided_by or "runtime"}
        if record.note:
            ended["resolution_error" if status != "accepted" else "resolution_metadata"] = (
                record.note if status != "accepted" else {"note": record.note}
            )
    call = {"tool_name": record.tool, "parameters": record.arguments}
    return PendingAction(
        action_id=record.id,
        kind="tool_call" if record.kind == "approval" else "question",
        summary=record.prompt or record.reason or str(record.tool),
        preview=call,
        apply_input=call,
        created_at=iso(int(record.requested_at * 1_000_000)),
        status=status,
        agent=record.agent or None,
        expires_at=iso(int(record.expires_at * 1_000_000)),
        metadata={"run_id": record.turn_id, "tool_call_id": record.call_id, "reason": record.reason},
        **ended,
    )


def _dump(action: PendingAction) -> dict[str, Any]:
    return action.model_dump(mode="json", exclude_none=True) | {
        "preview": action.preview,
        "apply_input": action.apply_input,
    }


def _fits(action: PendingAction, query: Mapping[str, Any]) -> bool:
    return all(query.get(name) in (None, getattr(action, name)) for name in ("status", "kind", "agent", "workspace"))
