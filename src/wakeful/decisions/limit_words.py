"""What a limit on money says when a request does not fit: what is left, and what the request would need."""

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from wakeful.contracts.events import LimitChanged
from wakeful.contracts.spending import WindowPassed
from wakeful.decisions.ledger import KEPT_FOR_ANSWER
from wakeful.decisions.spend_windows import window_words

_SHOWN = Decimal("0.0001")


def money_words(event: LimitChanged) -> str:
    """Of a run's own budget."""
    said = _left(event.left or "0", f"the budget of {event.limit:g} USD", event.needed or "0")
    return f"{said}; {KEPT_FOR_ANSWER}" if event.what == KEPT_FOR_ANSWER and Decimal(event.left or "0") else said


def full_window_words(window: WindowPassed) -> str:
    """Of a spend window."""
    if window.left is None:  # of a log from before it was written down
        return f"there is not enough money left in {window_words(window)}"
    return _left(window.left, window_words(window), window.needed)


def _left(left: str, of: str, needed: str) -> str:
    if not Decimal(left):
        return f"no money is left of {of}"
    return (
        f"{_shown(left, ROUND_FLOOR)} USD are left of {of}, and the next request needs up to "
        f"{_shown(needed, ROUND_CEILING)} USD"
    )


def _shown(usd: str, rounding: str) -> str:
    """To a hundredth of a cent: what is left is not rounded up, and what is needed not down."""
    amount = Decimal(usd)
    rounded = amount.quantize(_SHOWN, rounding=rounding)
    text = f"{rounded or amount:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
