"""How long a run waits for a provider that is away."""

from typing import Any

from pydantic import ValidationError

from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.values import Value

PATIENCE = 120.0
LONGEST_PATIENCE = 7 * 24 * 3600.0


class Retry(Value):
    """Patience with a provider that is away: `Retry(patience=600)`.

    Quick attempts and fallbacks are made in any case. Then the request is made again later, and whoever called `run`
    waits for so many seconds altogether. After that the run returns with status `waiting`, and can be continued.
    """

    patience: float = PATIENCE
    """Seconds. 0: `run` returns after the quick attempts."""

    def __init__(self, *, patience: float = PATIENCE) -> None:
        """Raises InvalidConfig, naming the value."""
        given: Any = patience
        if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= LONGEST_PATIENCE:
            hint = f"give seconds, from 0 to {LONGEST_PATIENCE:.0f} (a week)"
            raise InvalidConfig(f"Retry(patience={given!r})", hint)
        checked: dict[str, Any] = {"patience": float(given)}
        super().__init__(**checked)


USUAL = Retry()


def checked_retry(where: str, given: Any) -> Retry:
    """What an agent or a run holds: a `Retry`, or the mapping that a file has. Raises InvalidConfig."""
    if given is None:
        return USUAL
    if isinstance(given, Retry):
        return given
    if isinstance(given, dict):
        try:
            return Retry(**given)
        except (TypeError, ValidationError):
            pass
    raise InvalidConfig(f"{where}={given!r} is not a Retry", "write Retry(patience=600), or retry: {patience: 600}")
