"""Facts about spend windows. That a request was held back for, and what it cost, stands with the model's facts."""

from typing import ClassVar

from wakeful.contracts.events.base import Event, Need
from wakeful.contracts.spending import WindowRef


class BudgetNoticed(Event):
    """Most of a window is used up. Once a window, by whoever saw it first."""

    kind: ClassVar[str] = "budget.noticed"

    window: WindowRef
    percent: int
    spent: str
    """Dollars, as a decimal text."""
    held: str
    """Dollars that requests under way may cost."""
    granted: str = "0"


class BudgetGranted(Event):
    """Somebody allowed more in one window, beyond its limit."""

    kind: ClassVar[str] = "budget.granted"
    needs: ClassVar[tuple[Need, ...]] = ()
    outsider: ClassVar[bool] = True

    window: WindowRef
    """Its `usd` is what the owner's file said of it then; 0 where the file says nothing."""
    usd: str
    """How much more, as a decimal text."""
    granted_by: str
    reason: str = ""
