"""Rules of `spending` and `holds`: what was spent in each window of time, and what requests under way hold back.

The rules are the ledger's. What a request may cost is held in every window it names, and refused when one of them has
no room: whoever comes second changes nothing, and is told. What nobody can say settles at what was held; a price that
is named later takes that place. Each settlement touches only what was held for its own request.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import AlreadyNoticed, WindowFull
from wakeful.contracts.events import (
    AssistantRecorded,
    BudgetGranted,
    BudgetNoticed,
    CostRecorded,
    ModelFailed,
    ModelRequested,
    Terminal,
    TurnCompleted,
    TurnFailed,
)
from wakeful.contracts.spending import WindowRef, nanodollars
from wakeful.decisions.spend_windows import costs_nothing, has_room, window_words
from wakeful.ports.spending import HOLDS, HOLDS_OF_TURN, SPENDING, HoldRow, WindowRow
from wakeful.store.tables.row_rules import AtHand, Gone, LogEntry, Need, RowKey, RowList, RowRule, Rules

# --- spending ----------------------------------------------------------------------------------------------------


def _requested(entry: LogEntry, event: ModelRequested, rows: AtHand) -> list[WindowRow]:
    moved = _settled(_hold(entry, rows))
    needed = _needed(event)
    for window in event.windows:
        if entry.is_new:
            _check(window, needed, moved, rows)
        limit = nanodollars(window.usd)
        moved.append(WindowRow(*window.key, window.turns, limit, entry.fact.at, held=needed))
    return moved


def _check(window: WindowRef, needed: int, moved: Iterable[WindowRow], rows: AtHand) -> None:
    at_hand = rows.get(SPENDING, *window.key) or WindowRow(*window.key)
    for other in moved:
        if other[:3] == window.key:
            at_hand = at_hand.merge(other)
    if not has_room(window, at_hand.row, needed):
        raise WindowFull(f"there is no room in {window_words(window)}", "Nothing was changed; look at it again.")


def _paid(entry: LogEntry, event: CostRecorded, rows: AtHand) -> list[WindowRow]:
    hold = _hold(entry, rows)
    if hold is None:
        return []
    return _moved(hold, spent=nanodollars(event.amount) - (hold.provisional if event.lost else 0))


def _lost(entry: LogEntry, event: ModelFailed, rows: AtHand) -> list[WindowRow]:
    hold = _hold(entry, rows)
    return [] if hold is None else _moved(hold, spent=_price(hold, event), held=-hold.held)


def _recorded(entry: LogEntry, event: AssistantRecorded, rows: AtHand) -> list[WindowRow]:
    return _settled(_hold(entry, rows))


def _turn_ended(entry: LogEntry, event: Terminal, rows: AtHand) -> list[WindowRow]:
    return [move for hold in _holds(entry, rows) for move in _settled(hold)]


def _noticed(entry: LogEntry, event: BudgetNoticed, rows: AtHand) -> list[WindowRow]:
    window = event.window
    there = rows.get(SPENDING, *window.key)
    if entry.is_new and there is not None and there.noticed:
        raise AlreadyNoticed(f"{window_words(window)}: this was said before", "Nothing was changed.")
    return [WindowRow(*window.key, window.turns, noticed=True)]


def _granted(entry: LogEntry, event: BudgetGranted, rows: AtHand) -> list[WindowRow]:
    window = event.window
    limit = nanodollars(window.usd)
    return [WindowRow(*window.key, window.turns, limit, 1 if limit else 0, granted=nanodollars(event.usd))]


def _settled(hold: HoldRow | None) -> list[WindowRow]:
    """It is over: what nobody named a price of cost what was held."""
    return [] if hold is None else _moved(hold, spent=0 if hold.priced else hold.held, held=-hold.held)


def _moved(hold: HoldRow, *, spent: int, held: int = 0) -> list[WindowRow]:
    return [WindowRow(*key, spent=spent, held=held) for key in hold.window_keys]


# --- holds -------------------------------------------------------------------------------------------------------


def _hold_requested(entry: LogEntry, event: ModelRequested, rows: AtHand) -> Sequence[HoldRow | Gone]:
    if event.windows:
        turn_id, level = _key(entry.fact)
        keys = tuple([*window.key] for window in event.windows)
        return [HoldRow(turn_id, level, entry.agent_id, keys, _needed(event))]
    return _hold_settled(entry, event, rows)


def _hold_paid(entry: LogEntry, event: CostRecorded, rows: AtHand) -> list[HoldRow]:
    hold = _hold(entry, rows)
    if hold is None:
        return []
    return [hold._replace(provisional=0) if event.lost else hold._replace(priced=True)]


def _hold_lost(entry: LogEntry, event: ModelFailed, rows: AtHand) -> list[HoldRow]:
    hold = _hold(entry, rows)
    return [] if hold is None else [hold._replace(held=0, provisional=_price(hold, event), priced=False)]


def _hold_settled(entry: LogEntry, event: Any, rows: AtHand) -> list[Gone]:
    return [] if _hold(entry, rows) is None else [Gone(_key(entry.fact))]


def _holds_ended(entry: LogEntry, event: Terminal, rows: AtHand) -> list[Gone]:
    return [Gone(HOLDS.key_of(hold)) for hold in _holds(entry, rows)]


# --- both --------------------------------------------------------------------------------------------------------


def _needed(event: ModelRequested) -> int:
    return nanodollars(event.reserved_usd) if event.reserved_usd is not None else 0


def _price(hold: HoldRow, event: ModelFailed) -> int:
    return 0 if costs_nothing(event) else hold.held


def _hold(entry: LogEntry, rows: AtHand) -> HoldRow | None:
    return rows.get(HOLDS, *_key(entry.fact)) if rows.has_any(HOLDS) else None


def _holds(entry: LogEntry, rows: AtHand) -> Sequence[HoldRow]:
    return rows.list(HOLDS, HOLDS_OF_TURN, entry.fact.turn_id or "")


def _key(fact: Fact) -> tuple[str, str]:
    return fact.turn_id or "", fact.level or ""


def _own(agent_id: str, fact: Fact, event: Any) -> Sequence[Need]:
    return (RowKey(HOLDS, (fact.turn_id or "", fact.level or "")),)


def _of_turn(agent_id: str, fact: Fact, event: Any) -> Sequence[Need]:
    return (RowList(HOLDS, HOLDS_OF_TURN, (fact.turn_id or "",)),)


def _of_windows(agent_id: str, fact: Fact, event: ModelRequested) -> Sequence[Need]:
    return [RowKey(SPENDING, window.key) for window in event.windows] if event.windows else ()


def _of_window(agent_id: str, fact: Fact, event: Any) -> Sequence[Need]:
    return (RowKey(SPENDING, event.window.key),)


SPENDING_RULES: Rules = {
    ModelRequested: RowRule(_requested, (_own, _of_windows)),
    CostRecorded: RowRule(_paid, (_own,)),
    AssistantRecorded: RowRule(_recorded, (_own,)),
    ModelFailed: RowRule(_lost, (_own,)),
    TurnCompleted: RowRule(_turn_ended, (_of_turn,)),
    TurnFailed: RowRule(_turn_ended, (_of_turn,)),
    BudgetNoticed: RowRule(_noticed, (_of_window,)),
    BudgetGranted: RowRule(_granted),
}
HOLD_RULES: Rules = {
    ModelRequested: RowRule(_hold_requested, (_own,)),
    CostRecorded: RowRule(_hold_paid, (_own,)),
    AssistantRecorded: RowRule(_hold_settled, (_own,)),
    ModelFailed: RowRule(_hold_lost, (_own,)),
    TurnCompleted: RowRule(_holds_ended, (_of_turn,)),
    TurnFailed: RowRule(_holds_ended, (_of_turn,)),
}
