"""Facts of a turn to the messages of its chat: the wire messages, and what somebody outside has to do about the turn.

A request to a client that was answered before the client came is not shown to it: there is nothing to run any more.
Once somebody asked the turn to stop, nothing new is asked of anybody.
"""

from collections.abc import Collection
from typing import Any

from wakeful.contracts.envelope import Fact, StoredFact, iso
from wakeful.contracts.events import (
    ActionRequired,
    ActionResolved,
    RuntimeToolRequested,
    RuntimeToolResolved,
    TurnInterjected,
    TurnResumed,
    TurnSuspended,
)
from wakeful.contracts.models import TextDelta
from wakeful.decisions.run_secrets import RunSecrets
from wakeful.views.chat_messages import (
    ApprovalRequired,
    ApprovalResolved,
    ChatMessage,
    ClientToolCall,
    ClientToolEnded,
    Interjection,
    RunningOutput,
    SuspendedTurn,
    TurnResumption,
)
from wakeful.views.wire import WireView
from wakeful.views.wire_messages import ToolCallUpdate

CLIENT = "client/"
_ASKED_OR_TOLD = (
    RuntimeToolRequested,
    RuntimeToolResolved,
    ActionRequired,
    ActionResolved,
    TurnInterjected,
    TurnSuspended,
    TurnResumed,
)
"""What a chat shows beside the wire messages."""


class ChatView:
    """The chat of one turn. Feed it the turn's facts from the first, and words as they are heard."""

    def __init__(self, turn_id: str, secrets: RunSecrets) -> None:
        self.wire = WireView(turn_id, secrets=secrets)
        self.answered: Collection[str] = ()
        """Requests to clients that are known to be over."""
        self._running: dict[str, ToolCallUpdate] = {}
        """Calls that were shown, and not their end."""

    @property
    def ended(self) -> bool:
        return self.wire.ended

    def feed(self, recorded: StoredFact, now: int, arguments: dict[str, Any] | None = None) -> list[ChatMessage]:
        """What a stored fact is sent as. `arguments`: of a request to a client, for whoever may answer it."""
        seq, fact = recorded.seq, recorded.fact
        was_over = self.ended
        messages: list[ChatMessage] = [*self.wire.feed(recorded)]
        for message in messages:
            if isinstance(message, ToolCallUpdate):
                self._running[message.tool_call_id] = message
                if message.status == "end":
                    del self._running[message.tool_call_id]
        if was_over or fact.turn_id != self.wire.turn_id or not isinstance(fact.event, _ASKED_OR_TOLD):
            return messages
        shown = self._asked_or_told(seq, fact, now, arguments)
        return messages if shown is None else [*messages, shown]

    def words(self, step: int, attempt: int, text: str, level: str | None) -> list[ChatMessage]:
        """Words of an attempt that is under way."""
        if not self.wire.hears(step, attempt, level):
            return []
        return [*self.wire.glimpse(step, TextDelta(text=self.wire.secrets.hide(text)), level)]

    def runs(self, call_id: str) -> bool:
        """Was the beginning of a call shown, and not its end?"""
        return call_id in self._running and not self.wire.is_stopping

    def output(self, call_id: str, text: str, offset: int) -> list[ChatMessage]:
        """Lines of a call that is under way."""
        if not self.runs(call_id):
            return []
        call = self._running[call_id]
        return [
            RunningOutput(
                thread_id=call.thread_id,
                turn_id=call.turn_id,
                tool_call_id=call_id,
                name=call.name,
                text=self.wire.secrets.hide(text),
                offset=offset,
                parent_id=call.parent_id,
                depth=call.depth,
            )
        ]

    def _asked_or_told(self, seq: int, fact: Fact, now: int, arguments: dict[str, Any] | None) -> ChatMessage | None:
        secrets = self.wire.secrets
        ids = {"thread_id": fact.thread_id or "", "turn_id": self.wire.turn_id, "event_seq": seq}
        call_id = fact.call_id or ""
        place = {"parent_id": fact.parent_call_id, "depth": fact.depth}
        match fact.event:
            case RuntimeToolRequested() as asked if not self.wire.is_stopping and asked.request_id not in self.answered:
                return ClientToolCall(
                    **ids,
                    **place,
                    request_id=asked.request_id,
                    tool_call_id=call_id,
                    name=asked.tool_name.removeprefix(CLIENT),
                    args=arguments if arguments is not None else secrets.hide_keys_in(asked.safe_args),
                    timeout_ms=max(0, (asked.timeout_at - now) // 1000),
                )
            case RuntimeToolResolved() as said:
                return ClientToolEnded(
                    **ids,
                    request_id=said.request_id,
                    tool_call_id=call_id,
                    name=said.tool_name.removeprefix(CLIENT),
                    status=_ended(said),
                    ended_by=said.submitted_by,
                )
            case ActionRequired() as asked if not self.wire.is_stopping:
                return ApprovalRequired(
                    **ids,
                    **place,
                    approval_id=asked.action_id,
                    kind=asked.action_type,
                    tool_call_id=call_id,
                    name=asked.tool_name,
                    args=secrets.hide_keys_in(asked.safe_args),
                    prompt=secrets.hide_keys(asked.prompt),
                    reason=asked.reason,
                    choices=asked.choices,
                    decisions=asked.decisions,
                    expires_at=iso(asked.expires_at),
                )
            case ActionResolved() as said:
                return ApprovalResolved(
                    **ids,
                    approval_id=said.action_id,
                    tool_call_id=call_id,
                    name=said.tool_name,
                    status=said.status,
                    decision=said.decision,
                    decided_by=said.resolver,
                    note=secrets.hide(said.reason) or None,
                )
            case TurnInterjected() as said:
                return Interjection(
                    **ids, message_id=said.message_id, content=secrets.hide(said.item.text), said_by=said.said_by
                )
            case TurnSuspended() as rests:
                return SuspendedTurn(**ids, reason=rests.reason, waiting_for=rests.waiting_for)
            case TurnResumed() as resumed:
                return TurnResumption(**ids, cause=resumed.cause)
        return None


def _ended(said: RuntimeToolResolved) -> Any:
    if said.status == "runtime_tool_timeout":
        return "cancelled" if said.cancelled else "timed_out"
    return "completed" if said.success else "failed"
