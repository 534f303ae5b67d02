"""Delivers notices: what is pending is sent, each try is a fact, and what cannot be delivered is tried again later.

At least once: a kill between the delivery and its fact sends the notice again, with the same id. Bounded: after eight
tries it is given up, and stays in the list. A notice that nobody wants is settled without being sent.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, TypeAlias

from wakeful.contracts.envelope import Fact, iso
from wakeful.contracts.errors import EventRefused, InvalidConfig
from wakeful.contracts.events import ActionReminded, NoticeAttempted
from wakeful.contracts.notices import AttemptOutcome, NotifyTarget
from wakeful.decisions.notices import OLDEST, pause_before, quiet_until
from wakeful.engine.run_request import Engine
from wakeful.ports import WakeRow
from wakeful.ports.notices import NoticeRow
from wakeful.settings.spend_windows import zone_named

TargetOf: TypeAlias = Callable[[str], Awaitable[NotifyTarget | None]]
"""Where the notices of an agent go; None: nowhere."""
SendNotice: TypeAlias = Callable[[NotifyTarget, Mapping[str, Any]], Awaitable[str]]
"""Sends one. Blank: it arrived; else what went wrong."""


async def deliver_notice(engine: Engine, target_of: TargetOf, send: SendNotice, wake: WakeRow) -> None:
    """Try a notice once, and write down what became of it."""
    row, now = await engine.store.notice(wake.cause_id), engine.clock.now()
    if row is None or row.state != "pending":
        return
    try:
        target = await target_of(row.agent_id)
    except InvalidConfig as problem:
        event: NoticeAttempted | None = _failed(row, "", problem.message, now)
    else:
        event = _without_sending(row, target, now)
    if event is None:
        assert target is not None
        hidden = engine.keys().hide
        error = await send(target, notice_body(row, hidden(row.words)))
        event = _sent(row, target, hidden(error), engine.clock.now())
    with suppress(EventRefused):  # another process was faster
        await engine.store.admit(row.agent_id, [Fact(event, engine.clock.now())])


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
    if not row.attempts and now - row.created_at > OLDEST:
        return _attempted(row, "given_up", error="nobody could be told for a day")
    if row.kind not in ("action_required", "test"):
        ends = quiet_until(target.quiet, zone_named(target.timezone, "notify:"), now)
        if ends is not None:
            return _attempted(row, "held", next_at=ends)
    return None


def _sent(row: NoticeRow, target: NotifyTarget, error: str, now: int) -> NoticeAttempted:
    attempt = row.attempts + 1
    if not error:
        return _attempted(row, "delivered", attempt, to=target.place)
    return _failed(row, target.place, error, now)


def _failed(row: NoticeRow, to: str, error: str, now: int) -> NoticeAttempted:
    attempt = row.attempts + 1
    pause = pause_before(attempt)
    if pause is None:
        return _attempted(row, "given_up", attempt, to=to, error=error[:500])
    return _attempted(row, "failed", attempt, to=to, error=error[:500], next_at=now + pause)


def _attempted(row: NoticeRow, outcome: AttemptOutcome, attempt: int = 0, **fields: Any) -> NoticeAttempted:
    return NoticeAttempted(notice_id=row.notice_id, attempt=attempt, outcome=outcome, **fields)


async def remind_of_action(engine: Engine, wake: WakeRow) -> None:
    """Half of the time for a decision is over: whoever could decide is told once more."""
    row, now = await engine.store.action(wake.cause_id), engine.clock.now()
    if row is None or row.status != "pending":
        return
    event = ActionReminded(action_id=row.action_id, tool_name=row.tool_name, expires_at=row.expires_at)
    with suppress(EventRefused):  # it was decided meanwhile
        await engine.store.admit(row.agent_id, [Fact(event, now, row.thread_id)])
