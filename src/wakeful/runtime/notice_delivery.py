"""Delivers notices: what is pending is sent, each try is a fact, and what cannot be delivered is tried again later.

At least once: a kill between the delivery and its fact sends the notice again, with the same id. Bounded: after eight
tries it is given up, and stays in the list. A notice that nobody wants is settled without being sent. In quiet hours,
and where one message a day is wanted, notices are held; those that are held for the same hour are sent as one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from wakeful.contracts.envelope import Fact, iso
from wakeful.contracts.errors import EventRefused, InvalidConfig
from wakeful.contracts.events import ActionReminded, LimitChanged, NoticeAttempted
from wakeful.contracts.notices import AttemptOutcome, NotifyTarget
from wakeful.decisions.notices import AT_ONCE, OLDEST, digest_after, digest_text, pause_before, quiet_until
from wakeful.engine.run_request import Engine
from wakeful.ports import WakeRow
from wakeful.ports.notices import NoticeRow
from wakeful.runtime.channel_messages import Deliver, Delivery
from wakeful.settings.spend_windows import zone_named

TargetOf: TypeAlias = Callable[[str], Awaitable[NotifyTarget | None]]
"""Where the notices of an agent go; None: nowhere."""
SendNotice: TypeAlias = Callable[[NotifyTarget, Mapping[str, Any]], Awaitable[str]]
"""Sends one. Blank: it arrived; else what went wrong."""
MOST_IN_DIGEST = 256


@dataclass(slots=True)
class NoticeDelivery:
    """Delivers what is due."""

    engine: Engine
    target_of: TargetOf
    send: SendNotice
    show: Deliver
    """Shows one on a channel."""
    _one_digest: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def deliver(self, wake: WakeRow) -> None:
        """Try a notice once, and write down what became of it."""
        row, now = await self.engine.store.notice(wake.cause_id), self.engine.clock.now()
        if row is None or row.state != "pending":
            return
        try:
            target = await self.target_of(row.agent_id)
        except InvalidConfig as problem:
            await self._write(row, _failed(row, "", problem.message, now))
            return
        settled = _without_sending(row, target, now)
        if settled is None and await self._was_told(row):
            settled = _attempted(row, "not_sent")
        if settled is not None:
            await self._write(row, settled)
        elif target is not None and target.digest is not None and row.kind not in AT_ONCE:
            await self._deliver_digest(row, target)
        elif target is not None:
            await self._write(row, _sent(row, target, await self._tried(row, target), self.engine.clock.now()))

    async def _was_told(self, row: NoticeRow) -> bool:
        """Of a spending limit that is used up: have people been told of this very one? Each turn that meets it says
        so, and an agent may have a hundred conversations."""
        if row.cause != LimitChanged.kind or row.attempts:
            return False
        before = await self.engine.store.notices(row.agent_id, after=row, limit=MOST_IN_DIGEST)
        return any((each.cause, each.words) == (row.cause, row.words) for each in before)

    async def _deliver_digest(self, row: NoticeRow, target: NotifyTarget) -> None:
        """Everything that was held for the same place, as one message. Whoever comes second finds it done."""
        async with self._one_digest:
            if await self.engine.store.notice(row.notice_id) != row:
                return
            rows = await self._held_with(row, target)
            first = rows[0]._replace(words=digest_text([(each.agent_id, each.words) for each in rows]))
            found = await self._tried(first, target, among=rows)
            for each in rows:
                await self._write(each, _sent(each, target, found, self.engine.clock.now()))

    async def _held_with(self, row: NoticeRow, target: NotifyTarget) -> list[NoticeRow]:
        """The notice, and others that are due now for the same place."""
        now, found = self.engine.clock.now(), []
        for wake in await self.engine.store.due_wakes(now, limit=MOST_IN_DIGEST):
            if wake.cause != "notice":
                continue
            each = await self.engine.store.notice(wake.cause_id)
            if each is None or each.state != "pending" or each.kind in AT_ONCE:
                continue
            with suppress(InvalidConfig):
                theirs = await self.target_of(each.agent_id)
                if theirs is None or (theirs.to, theirs.digest) != (target.to, target.digest):
                    continue
                if _without_sending(each, theirs, now) is None and not await self._was_told(each):
                    found.append(each)
        return found if row in found else [row, *found]

    async def _tried(self, row: NoticeRow, target: NotifyTarget, among: "list[NoticeRow] | None" = None) -> Delivery:
        hidden = self.engine.keys().hide
        if target.channel is not None:
            found = await self.show(row, target.channel)
        else:
            body = notice_body(row, hidden(row.words))
            if among is not None:
                body |= {"kind": "digest", "text": hidden(row.words), "notices": [each.notice_id for each in among]}
            found = Delivery(await self.send(target, body))
        return found._replace(error=hidden(found.error))

    async def _write(self, row: NoticeRow, event: NoticeAttempted) -> None:
        with suppress(EventRefused):  # another process was faster
            await self.engine.store.admit(row.agent_id, [Fact(event, self.engine.clock.now())])


def notice_body(row: NoticeRow, words: str) -> dict[str, Any]:
    """What is sent."""
    return {
        "notice_id": row.notice_id,
        "kind": row.kind,
        "agent": row.agent_id,
        "thread": row.thread_id,
        "turn_id": row.turn_id or None,
        "about": row.about or None,
        "text": f"{row.agent_id}: {words}",
        "created_at": iso(row.created_at),
        "attempt": row.attempts + 1,
    }


def _without_sending(row: NoticeRow, target: NotifyTarget | None, now: int) -> NoticeAttempted | None:
    if target is None or (row.kind != "test" and row.kind not in target.on):
        return _attempted(row, "not_sent")
    zone = zone_named(target.timezone, "notify:")
    if row.kind not in AT_ONCE:
        if target.digest is not None and (due := digest_after(target.digest, zone, row.created_at)) > now:
            return _attempted(row, "held", next_at=due)
        if (ends := quiet_until(target.quiet, zone, now)) is not None:
            return _attempted(row, "held", next_at=ends)
    if not row.attempts and target.digest is None and now - row.created_at > OLDEST:
        return _attempted(row, "given_up", error="it could not be delivered for a day")
    return None


def _sent(row: NoticeRow, target: NotifyTarget, found: Delivery, now: int) -> NoticeAttempted:
    if found.error:
        return _failed(row, target.place, found.error, now, found.retry_after)
    shown = {"channel": target.channel or "", "message_ref": found.ref, "action_id": found.action_id}
    return _attempted(row, "delivered", row.attempts + 1, to=target.place, **shown)


def _failed(row: NoticeRow, to: str, error: str, now: int, wanted: float = 0.0) -> NoticeAttempted:
    """`wanted`: for how many seconds the other side wants to be left alone."""
    attempt = row.attempts + 1
    pause = pause_before(attempt)
    if pause is None:
        return _attempted(row, "given_up", attempt, to=to, error=error[:500])
    next_at = now + max(pause, round(wanted * 1_000_000))
    return _attempted(row, "failed", attempt, to=to, error=error[:500], next_at=next_at)


def _attempted(row: NoticeRow, outcome: AttemptOutcome, attempt: int = 0, **fields: Any) -> NoticeAttempted:
    return NoticeAttempted(notice_id=row.notice_id, attempt=attempt, outcome=outcome, **fields)


async def remind_of_action(engine: Engine, wake: WakeRow) -> None:
    """Half of the time for a decision is over: whoever could decide is told once more."""
    row, now = await engine.store.action(wake.cause_id), engine.clock.now()
    if row is None or row.status != "pending" or row.expires_at <= now:
        return  # its time ran out while its agent was paused: whoever takes it up says so
    event = ActionReminded(action_id=row.action_id, tool_name=row.tool_name, expires_at=row.expires_at)
    with suppress(EventRefused):  # it was decided meanwhile
        await engine.store.admit(row.agent_id, [Fact(event, now, row.thread_id)])
