"""Spend windows and what requests under way hold back in them.

A window is spent by many agents: its row is merged from all their logs, whichever is read first.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from wakeful.contracts.spending import PERIODS, Period, SpendRow, WindowKey
from wakeful.ports.tables import RowQuery, Rows, Table, TableIndex


class WindowRow(NamedTuple):
    """A window as it is stored, or what a fact adds to it. Amounts in billionths of a dollar."""

    scope: str
    period: Period
    began: int
    turns: int = 0
    limit: int = 0
    limited_at: int = 0
    """When the limit was said; 0: nobody says one here."""
    spent: int = 0
    held: int = 0
    granted: int = 0
    noticed: bool = False

    def merge(self, other: "WindowRow") -> "WindowRow":
        """Both, whichever comes first."""
        newest = max(self, other, key=lambda window: (window.limited_at, window.limit))
        return self._replace(
            turns=max(self.turns, other.turns),
            limit=newest.limit,
            limited_at=newest.limited_at,
            spent=self.spent + other.spent,
            held=self.held + other.held,
            granted=self.granted + other.granted,
            noticed=self.noticed or other.noticed,
        )

    @property
    def row(self) -> SpendRow:
        """As readers see it."""
        return SpendRow(*self[:5], *self[6:])


BY_END = RowQuery(("turns", "scope", "period", "began"), served_by="spending_by_end")

SPENDING = Table(
    "spending",
    WindowRow,
    key=("scope", "period", "began"),
    indexes=(TableIndex("spending_by_end", ("turns",)),),
    queries=(BY_END,),
    renamed={"limit": "spend_limit"},
    merge=WindowRow.merge,
)


class HoldRow(NamedTuple):
    """What one request holds back, and what is left of that until its price is known."""

    turn_id: str
    level: str
    """Blank: the root's."""
    agent_id: str
    windows: tuple[list[Any], ...]
    """The keys of the windows it is held in."""
    held: int
    provisional: int = 0
    """Of a lost attempt: settled at what was held, until somebody names its price."""
    priced: bool = False

    @property
    def window_keys(self) -> list[WindowKey]:
        return [WindowKey(*key) for key in self.windows]


HOLDS_OF_TURN = RowQuery(("level",), equal=("turn_id",), served_by="key")

HOLDS = Table("holds", HoldRow, key=("turn_id", "level"), queries=(HOLDS_OF_TURN,))


class Spending(Rows, Protocol):
    """Reads what was spent in each window."""

    async def spending(self, scopes: Sequence[str] | None = None, *, after: int = 0) -> list[SpendRow]:
        """Spend windows that turn after a moment, by scope, length and time; of these scopes, or of all."""
        found = await self.list_rows(SPENDING, BY_END, after=(after,))
        rows = [window.row for window in found if scopes is None or window.scope in scopes]
        return sorted(rows, key=lambda row: (row.scope, PERIODS.index(row.period), row.began))
