"""Money over time: windows in which so much may be spent, whoever spends it.

A window belongs to a scope (an agent, a principal, the whole runtime), has a period, and is one stretch of time: it
began, and it turns. Amounts are kept in whole billionths of a dollar, so that sums are the same everywhere; a fraction
of one counts as a whole.
"""

from decimal import ROUND_CEILING, Decimal
from typing import Final, Literal, NamedTuple, TypeAlias

from wakeful.contracts.values import Value

Period: TypeAlias = Literal["hour", "day", "month"]
PERIODS: Final[tuple[Period, ...]] = ("hour", "day", "month")
RUNTIME: Final = "runtime"
"""The scope of everything that runs on one store."""
NOTICE_PERCENT: Final = 80
"""From here on a window is worth a word."""
_BILLIONTH: Final = Decimal(10) ** 9


def agent_scope(name: str) -> str:
    """All runs of an agent."""
    return f"agent:{name}"


def principal_scope(principal: str) -> str:
    """All runs for one principal."""
    return f"principal:{principal}"


def nanodollars(usd: Decimal | str) -> int:
    """Dollars in whole billionths, rounded up."""
    return int((Decimal(usd) * _BILLIONTH).to_integral_value(ROUND_CEILING))


def dollars(nano: int) -> str:
    """The same as a decimal text, the shortest there is."""
    text = format(Decimal(nano) / _BILLIONTH, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


class WindowKey(NamedTuple):
    """Which window: whose, of what length, from when on (Unix microseconds)."""

    scope: str
    period: Period
    began: int


class WindowRef(Value):
    """A window as events name it."""

    scope: str
    period: Period
    began: int
    """Unix microseconds."""
    turns: int
    """When it is over and the next one begins."""
    usd: str
    """What may be spent in it, without what was granted beyond."""

    @property
    def key(self) -> WindowKey:
        return WindowKey(self.scope, self.period, self.began)


class WindowPassed(WindowRef):
    """A window that has no room for a request."""

    allowed: str
    """What may be spent in it, with what was granted."""
    needed: str
    """The most that the request can cost, in dollars."""
    left: str | None = None
    """Dollars that are left in it."""

    @property
    def is_hopeless(self) -> bool:
        """The request does not fit into any window of this size: waiting would be for ever."""
        return Decimal(self.needed) > Decimal(self.allowed)


class SpendRow(NamedTuple):
    """What is known of one window. Amounts in billionths of a dollar."""

    scope: str
    period: Period
    began: int
    turns: int
    limit: int
    """What the newest request was held to; 0 where none was made yet."""
    spent: int = 0
    held: int = 0
    """Of requests under way: the most that they can cost."""
    granted: int = 0
    """What somebody allowed beyond the limit."""
    noticed: bool = False

    @property
    def key(self) -> WindowKey:
        return WindowKey(self.scope, self.period, self.began)

    @property
    def taken(self) -> int:
        return self.spent + self.held

    @property
    def allowed(self) -> int:
        return self.limit + self.granted
