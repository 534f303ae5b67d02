"""What facts do to spend windows: held back with a request, settled with its outcome, in the transaction of the fact.

The rules are the ledger's. What a request may cost is held in every window it names, and refused when one of them has
no room: whoever comes second changes nothing, and is told. What nobody can say settles at what was held; a price that
is named later takes that place. Each settlement touches only what was held for its own request.
"""

from collections.abc import Iterable, Mapping, MutableMapping
from typing import NamedTuple, Protocol, TypeAlias

from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import AlreadyNoticed, WindowFull
from wakeful.contracts.events import (
    AnyEvent,
    AssistantRecorded,
    BudgetGranted,
    BudgetNoticed,
    CostRecorded,
    ModelFailed,
    ModelRequested,
    Terminal,
)
from wakeful.contracts.spending import PERIODS, SpendRow, WindowKey, WindowRef, nanodollars
from wakeful.decisions.spend_windows import costs_nothing, has_room, window_words

HoldKey: TypeAlias = tuple[str, str]
"""Turn and level; the root's level is empty."""


class Hold(NamedTuple):
    """What one request holds back, and what is left of that until its price is known."""

    windows: tuple[WindowKey, ...]
    held: int
    provisional: int = 0
    """Of a lost attempt: settled at what was held, until somebody names its price."""
    priced: bool = False


class Move(NamedTuple):
    """What changes in a window."""

    turns: int = 0
    limit: int = 0
    limited_at: int = 0
    """When the limit was said; 0: nobody says one here."""
    spent: int = 0
    held: int = 0
    granted: int = 0
    noticed: bool = False

    def __or__(self, other: "Move") -> "Move":
        """Both, whichever comes first."""
        newest = max(self, other, key=lambda move: (move.limited_at, move.limit))
        return Move(
            max(self.turns, other.turns),
            newest.limit,
            newest.limited_at,
            self.spent + other.spent,
            self.held + other.held,
            self.granted + other.granted,
            self.noticed or other.noticed,
        )

    def row(self, key: WindowKey) -> SpendRow:
        return SpendRow(*key, self.turns, self.limit, self.spent, self.held, self.granted, self.noticed)


class KnownSpending(Protocol):
    """What is stored of windows already."""

    @property
    def checks_windows(self) -> bool:
        """False where facts are read again: they were let in when they were written."""
        ...

    def window(self, key: WindowKey) -> Move | None: ...

    def hold(self, key: HoldKey) -> Hold | None: ...

    def holds_of(self, turn_id: str) -> Mapping[HoldKey, Hold]: ...


class Spending:
    """The changes of one append."""

    __slots__ = ("holds", "windows")

    def __init__(self) -> None:
        self.windows: dict[WindowKey, Move] = {}
        self.holds: dict[HoldKey, Hold | None] = {}

    def __bool__(self) -> bool:
        return bool(self.windows or self.holds)

    def take_in(self, fact: Fact, known: KnownSpending) -> None:
        """What this fact changes. Raises WindowFull or AlreadyNoticed."""
        event: AnyEvent = fact.event
        match event:
            case ModelRequested():
                self._requested(fact, event, known)
            case CostRecorded():
                self._cost(fact, event, known)
            case AssistantRecorded():
                self._settle(_key(fact), known)
            case ModelFailed():
                self._lost(fact, event, known)
            case Terminal():
                turn_id = fact.turn_id or ""
                for key in {*known.holds_of(turn_id), *(key for key in self.holds if key[0] == turn_id)}:
                    self._settle(key, known)
            case BudgetNoticed():
                window = event.window
                if known.checks_windows and self._window(window.key, known).noticed:
                    raise AlreadyNoticed(f"{window_words(window)}: this was said before", "Nothing was changed.")
                self._move((window.key,), Move(turns=window.turns, noticed=True))
            case BudgetGranted():
                window = event.window
                granted = nanodollars(event.usd)
                limit = nanodollars(window.usd)
                self._move((window.key,), Move(window.turns, limit, 1 if limit else 0, granted=granted))

    def _requested(self, fact: Fact, event: ModelRequested, known: KnownSpending) -> None:
        key = _key(fact)
        if self._hold(key, known) is not None:
            self._settle(key, known)
        if not event.windows:
            return
        needed = nanodollars(event.reserved_usd) if event.reserved_usd is not None else 0
        if known.checks_windows:
            for window in event.windows:
                self._check(window, needed, known)
        for window in event.windows:
            self._move((window.key,), Move(window.turns, nanodollars(window.usd), fact.at, held=needed))
        self.holds[key] = Hold(tuple(window.key for window in event.windows), needed)

    def _check(self, window: WindowRef, needed: int, known: KnownSpending) -> None:
        row = self._window(window.key, known).row(window.key)
        if not has_room(window, row, needed):
            raise WindowFull(f"there is no room in {window_words(window)}", "Nothing was changed; look at it again.")

    def _cost(self, fact: Fact, event: CostRecorded, known: KnownSpending) -> None:
        key = _key(fact)
        hold = self._hold(key, known)
        if hold is None:
            return
        amount = nanodollars(event.amount)
        if event.lost:
            self._move(hold.windows, Move(spent=amount - hold.provisional))
            self.holds[key] = hold._replace(provisional=0)
        else:
            self._move(hold.windows, Move(spent=amount))
            self.holds[key] = hold._replace(priced=True)

    def _lost(self, fact: Fact, event: ModelFailed, known: KnownSpending) -> None:
        key = _key(fact)
        hold = self._hold(key, known)
        if hold is None:
            return
        cost = 0 if costs_nothing(event) else hold.held
        self._move(hold.windows, Move(held=-hold.held, spent=cost))
        self.holds[key] = Hold(hold.windows, 0, cost)

    def _settle(self, key: HoldKey, known: KnownSpending) -> None:
        """It is over: what nobody named a price of cost what was held."""
        hold = self._hold(key, known)
        if hold is not None:
            self._move(hold.windows, Move(held=-hold.held, spent=0 if hold.priced else hold.held))
            self.holds[key] = None

    def _hold(self, key: HoldKey, known: KnownSpending) -> Hold | None:
        return self.holds[key] if key in self.holds else known.hold(key)

    def _window(self, key: WindowKey, known: KnownSpending) -> Move:
        stored, here = known.window(key) or Move(), self.windows.get(key)
        return stored if here is None else stored | here

    def _move(self, keys: Iterable[WindowKey], move: Move) -> None:
        for key in keys:
            before = self.windows.get(key)
            self.windows[key] = move if before is None else before | move


CONCERNED: tuple[type, ...] = (
    ModelRequested,
    CostRecorded,
    AssistantRecorded,
    ModelFailed,
    BudgetNoticed,
    BudgetGranted,
)
"""Events that may change a window, besides the end of a turn."""


def apply(windows: MutableMapping[WindowKey, Move], made: Mapping[WindowKey, Move]) -> None:
    """Take an append's changes over."""
    for key, move in made.items():
        before = windows.get(key)
        windows[key] = move if before is None else before | move


def in_order(rows: Iterable[SpendRow]) -> list[SpendRow]:
    """By scope, length and time."""
    return sorted(rows, key=lambda row: (row.scope, PERIODS.index(row.period), row.began))


def _key(fact: Fact) -> HoldKey:
    return fact.turn_id or "", fact.level or ""
