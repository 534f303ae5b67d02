"""What a turn waits for from outside while somebody here works on it: an approver's word, the end of an approval.

Both are written past the owner, like any word from outside: whoever is first decides, and the others change nothing.
An approver that raises or answers nonsense has not approved. One that answers None leaves the record as it is, and the
turn rests on it.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from inspect import isawaitable
from typing import Any, TypeAlias

from wakeful.contracts.approvals import Always, Answer, Approval, Approve, Decided, Edit, Reject
from wakeful.contracts.errors import AlreadyDecided, NotEntitled, StoreProblem, WakefulError
from wakeful.contracts.events import ActionRequired
from wakeful.decisions.levels import Call
from wakeful.engine.turn_work import TurnWork
from wakeful.tools.parameters import is_async
from wakeful.views.approval_record import approval_of, expired

Approver: TypeAlias = Callable[[Approval], Any]
"""Async or not. Returns True, False, a decision, or None for no word."""


class OpenQuestions:
    """The open questions of one turn, as far as this process does something about them."""

    def __init__(self, work: TurnWork) -> None:
        self._work = work
        self._asking: set[str] = set()
        """Actions that an approver is asked about, or was."""
        self._heard: set[str] = set()
        """Those whose approver has spoken, and whose word is on disk; or has no word."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def is_busy(self) -> bool:
        """Is there an approver here whose word is still to come? Then the turn does not rest yet."""
        return self._work.people.approver is not None and any(
            call.is_waiting
            and call.pending is not None
            and isinstance(call.pending.asked, ActionRequired)
            and call.pending.action_id not in self._heard
            for call in self._work.state.tree.waiting.values()
        )

    def opened(self, call: Call) -> None:
        """Somebody is asked; the record is on disk."""
        pending = call.pending
        if pending is None or pending.said is not None:
            return
        self._spawn(self._expire(call, pending.action_id, pending.expires_at))
        approver = self._work.people.approver
        if approver is not None and isinstance(pending.asked, ActionRequired) and pending.action_id not in self._asking:
            self._asking.add(pending.action_id)
            self._spawn(self._ask(approver, approval_of(self._work.place.row, call, pending)))

    def reopen(self, calls: Sequence[Call]) -> None:
        """The turn is taken up with these open: what is still pending is asked about here, too."""
        now = self._work.clock.now()
        for call in calls:
            if call.is_waiting and call.pending is not None and call.pending.expires_at > now:
                self.opened(call)

    def close(self) -> None:
        """The turn rests: what is still open stays on record."""
        self._closed = True
        for task in self._tasks:
            task.cancel()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._work.tasks.spawn(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _ask(self, approver: Approver, approval: Approval) -> None:
        try:
            decided = _decided(await _said(approver, approval))
        except asyncio.CancelledError:
            if self._closed:
                raise
            decided = Reject("the approver cancelled itself")
        except Exception as raised:
            decided = Reject(f"the approver raised {type(raised).__name__}: {raised}")
        if decided is not None:
            await self._write(approval, decided)
        self._heard.add(approval.id)
        self._work.inbox.look_again()  # without a word, or with one that counts for nothing, the turn rests

    async def _write(self, approval: Approval, decided: Decided) -> None:
        decide = self._work.people.decide_action
        assert decide is not None
        try:
            await decide(approval, decided, "approver")
        except (AlreadyDecided, NotEntitled):
            pass  # somebody elsewhere was faster, or has to say it
        except StoreProblem:
            raise  # what could not be written is no decision: the record stays open, and the run stops
        except WakefulError as refused:
            await decide(approval, Reject(f"the approver's answer cannot be used: {refused}"), "approver")

    async def _expire(self, call: Call, action_id: str, expires_at: int) -> None:
        work = self._work
        await work.clock.sleep(max(0.0, (expires_at - work.clock.now()) / 1_000_000))
        pending = call.pending
        if pending is None or pending.action_id != action_id or pending.said is not None:
            return
        try:
            over = work.fact(expired(pending), call.step, call.call_id, call.level)
            await work.place.store.admit(work.place.claim.agent_id, [over])
        except AlreadyDecided:
            pass


async def _said(approver: Approver, approval: Approval) -> Any:
    """An approver's word. One that is no async function may wait for a person at a terminal: it runs off the loop."""
    if is_async(approver):
        return await approver(approval)
    said = await asyncio.to_thread(approver, approval)
    return await said if isawaitable(said) else said


def _decided(said: Any) -> Decided | None:
    """What an approver returned. Anything but a clear yes is none."""
    if said is None or isinstance(said, Approve | Reject | Edit | Answer | Always):
        return said
    if said is True:
        return Approve()
    if said is False:
        return Reject()
    return Reject(f"the approver answered {said!r}, which is not a decision")
