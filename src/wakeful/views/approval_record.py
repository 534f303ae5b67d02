"""The approval record as a reader sees it, and the events that end one. Pure: the record is a view of its two facts."""

from typing import Protocol

from wakeful.contracts.approvals import RUNTIME, Approval, ApprovalState
from wakeful.contracts.events import ActionRequired, ActionResolved, RuntimeToolRequested, RuntimeToolResolved
from wakeful.decisions.levels import Call, OutsideRequest
from wakeful.decisions.secret_shapes import hide_shapes_in


class ApprovalTurn(Protocol):
    """Whose call it is."""

    @property
    def turn_id(self) -> str: ...

    @property
    def agent_id(self) -> str: ...

    @property
    def agent_name(self) -> str: ...

    @property
    def thread_id(self) -> str: ...


def approval_of(turn: ApprovalTurn, call: Call, pending: OutsideRequest) -> Approval:
    """A waiting call's record."""
    asked, said = pending.asked, pending.said
    assert isinstance(asked, ActionRequired)
    assert said is None or isinstance(said, ActionResolved)
    return approval(turn, call.call_id, asked, said, requested_at=pending.asked_at)


def approval(
    turn: ApprovalTurn,
    call_id: str,
    asked: ActionRequired,
    said: ActionResolved | None,
    *,
    requested_at: int,
    decided_at: int | None = None,
) -> Approval:
    """The record, from its facts."""
    status: ApprovalState = said.status if said is not None else "pending"
    return Approval(
        approval_id=asked.action_id,
        kind=asked.action_type,
        turn_id=turn.turn_id,
        run_kind=asked.run_kind,
        agent_id=turn.agent_id,
        agent=turn.agent_name,
        thread=turn.thread_id,
        call_id=call_id,
        tool=asked.tool_name,
        arguments=hide_shapes_in(asked.safe_args),
        arguments_sha256=asked.args_sha256,
        injected_args=asked.injected_args,
        working_directory=asked.working_directory,
        confinement=asked.confinement,
        prompt=asked.prompt,
        reason=asked.reason,
        choices=asked.choices,
        decisions=asked.decisions,
        approvers=asked.approvers,
        status=status,
        requested_at=requested_at / 1_000_000,
        expires_at=asked.expires_at / 1_000_000,
        decided_at=decided_at / 1_000_000 if decided_at is not None else None,
        decided_by=said.resolver if said is not None else None,
        note=(said.reason or None) if said is not None else None,
        decision=said.decision if said is not None else None,
    )


def expired(pending: OutsideRequest) -> ActionResolved | RuntimeToolResolved:
    """Nobody said anything in time."""
    asked = pending.asked
    if isinstance(asked, RuntimeToolRequested):
        return RuntimeToolResolved(
            request_id=asked.request_id,
            tool_name=asked.tool_name,
            status="runtime_tool_timeout",
            success=False,
            error=f"the client did not answer {asked.tool_name} in time",
            submitted_by=RUNTIME,
        )
    return ActionResolved(
        action_id=asked.action_id,
        tool_name=asked.tool_name,
        status="timed_out",
        decision="expire",
        resolver=RUNTIME,
        reason="nobody decided in time",
    )


def cancelled(pending: OutsideRequest, reason: str = "run_cancelled") -> ActionResolved | RuntimeToolResolved:
    """The run is over: nobody wants the answer any more."""
    asked = pending.asked
    if isinstance(asked, RuntimeToolRequested):
        return RuntimeToolResolved(
            request_id=asked.request_id,
            tool_name=asked.tool_name,
            status="runtime_tool_timeout",
            success=False,
            cancelled=True,
            error=reason,
            submitted_by=RUNTIME,
        )
    return ActionResolved(
        action_id=asked.action_id,
        tool_name=asked.tool_name,
        status="rejected",
        decision="cancel",
        resolver=RUNTIME,
        reason=reason,
    )
