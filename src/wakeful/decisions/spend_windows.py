"""Spend windows: which hold for a request, when one began and turns, and what one more request would pass.

Windows of one scope and period follow each other without a gap and without overlap. A request counts in the windows
in which it was made, whenever its price becomes known: what is held back there settles there. A day and a month are
the owner's, by the timezone in the owner's file; an hour is an hour of UTC.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

from wakeful.contracts.budgets import SpendWindow
from wakeful.contracts.envelope import iso
from wakeful.contracts.events import ModelFailed
from wakeful.contracts.spending import (
    NOTICE_PERCENT,
    RUNTIME,
    Period,
    SpendRow,
    WindowKey,
    WindowPassed,
    WindowRef,
    agent_scope,
    dollars,
    nanodollars,
    principal_scope,
)

_SECOND = 1_000_000
_HOUR = 3_600 * _SECOND
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True, frozen=True)
class OwnerWindows:
    """What an owner says about money over time, besides what agents say of themselves."""

    runtime: tuple[SpendWindow, ...] = ()
    principals: Mapping[str, tuple[SpendWindow, ...]] | None = None
    zone: tzinfo = UTC
    """Whose days and months they are."""

    def of_principal(self, principal: str | None) -> tuple[SpendWindow, ...]:
        return (self.principals or {}).get(principal, ()) if principal is not None else ()


NO_WINDOWS = OwnerWindows()
"""Nobody has said anything."""


def bounds(period: Period, at: int, zone: tzinfo = UTC) -> tuple[int, int]:
    """When the window around a moment began, and when it turns: Unix microseconds."""
    if period == "hour":
        began = at - at % _HOUR
        return began, began + _HOUR
    day = (_EPOCH + timedelta(microseconds=at)).astimezone(zone).date()
    if period == "day":
        first, after = day, day + timedelta(days=1)
    else:
        first = day.replace(day=1)
        after = (first + timedelta(days=31)).replace(day=1)
    return _midnight(first.year, first.month, first.day, zone), _midnight(after.year, after.month, after.day, zone)


def _midnight(year: int, month: int, day: int, zone: tzinfo) -> int:
    """The beginning of a day. Where the clock skips midnight, the moment of the skip; where it is twice, the first."""
    since = datetime(year, month, day, tzinfo=zone).astimezone(UTC) - _EPOCH
    return (since.days * 86_400 + since.seconds) * _SECOND + since.microseconds


def applying(
    agents: Iterable[tuple[str, Sequence[SpendWindow]]], principal: str | None, owner: OwnerWindows, at: int
) -> tuple[WindowRef, ...]:
    """Every window that a request made at this moment counts in: those of the agents, the principal, the runtime."""
    said = [(agent_scope(name), window) for name, windows in agents for window in windows]
    said += [(principal_scope(principal or ""), window) for window in owner.of_principal(principal)]
    said += [(RUNTIME, window) for window in owner.runtime]
    return tuple(window_at(scope, window, at, owner.zone) for scope, window in said)


def window_at(scope: str, window: SpendWindow, at: int, zone: tzinfo) -> WindowRef:
    """The window of a scope that a moment is in."""
    began, turns = bounds(window.period, at, zone)
    return WindowRef(scope=scope, period=window.period, began=began, turns=turns, usd=window.usd)


def passed_by(windows: Iterable[WindowRef], rows: Mapping[WindowKey, SpendRow], needed: int) -> WindowPassed | None:
    """The window that has no room for a request of this price; of several, the one that takes longest to have it."""
    full = [window for window in windows if not has_room(window, rows.get(window.key), needed)]
    if not full:
        return None
    last = max(full, key=lambda window: (needed > allowed_in(window, rows.get(window.key)), window.turns))
    row = rows.get(last.key)
    allowed = allowed_in(last, row)
    left = max(0, allowed - (row.taken if row is not None else 0))
    return WindowPassed(**last.model_dump(), allowed=dollars(allowed), needed=dollars(needed), left=dollars(left))


def has_room(window: WindowRef, row: SpendRow | None, needed: int) -> bool:
    """Does a request of this price fit in? What is exactly used up was allowed."""
    return (row.taken if row is not None else 0) + needed <= allowed_in(window, row)


def allowed_in(window: WindowRef, row: SpendRow | None) -> int:
    """The limit as it is today, and what was granted."""
    return nanodollars(window.usd) + (row.granted if row is not None else 0)


def is_noticeable(row: SpendRow) -> bool:
    """Is so much spent that somebody should know, and does nobody yet?"""
    return not row.noticed and row.limit > 0 and row.spent * 100 >= row.allowed * NOTICE_PERCENT


def costs_nothing(event: ModelFailed) -> bool:
    """A request that was refused before it began. Anything later may have cost all that was held for it."""
    return event.status is not None or event.stage == "connect" or event.failure_kind == "unsupported_transport"


def scope_words(scope: str) -> str:
    """Whose window, for people."""
    kind, _, name = scope.partition(":")
    return f"{kind} {name}" if name else f"the {kind}"


def window_words(window: WindowRef | SpendRow) -> str:
    """A window in one line; it also names what a turn waits for."""
    return f"the {window.period} of {scope_words(window.scope)}, which turns at {iso(window.turns)}"
