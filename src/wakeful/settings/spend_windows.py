"""What the owner lets be spent over time: `[budget]` and `[principals]` in `wakeful.toml`.

    [budget]
    per_day = {usd = 5}                  # everything that runs here together
    per_month = {usd = 60}
    timezone = "Europe/Berlin"           # whose days and months; left out: UTC

    [principals."customer-17"]
    per_day = {usd = 0.50}               # all runs for this one

An agent's own windows stand with the agent. A line that cannot be read is an error, and never passed over.
"""

from collections.abc import Mapping
from datetime import UTC, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from wakeful.contracts.amounts import InvalidBudget
from wakeful.contracts.budgets import SpendWindow
from wakeful.contracts.errors import InvalidConfig, inside
from wakeful.contracts.spending import PERIODS, Period
from wakeful.decisions.spend_windows import NO_WINDOWS, OwnerWindows
from wakeful.settings.owner_file import OwnerFile, check_names, owner_file

BUDGET, PRINCIPALS, TIMEZONE = "budget", "principals", "timezone"
LINES: Mapping[str, Period] = {f"per_{period}": period for period in PERIODS}


def owner_windows(environ: Mapping[str, str], file: OwnerFile | None = None) -> OwnerWindows:
    """What the owner's file says. Raises InvalidConfig with the place."""
    file = owner_file(environ) if file is None else file
    budget = file.table(BUDGET)
    if not budget and not file.table(PRINCIPALS):
        return NO_WINDOWS
    where = f"{file.path}: [{BUDGET}]"
    principals = {}
    for name, table in file.table(PRINCIPALS).items():
        place = f'{file.path}: [{PRINCIPALS}."{name}"]'
        if not isinstance(table, Mapping):
            wrong = InvalidConfig(f"{place} is {table!r}", f'Write [{PRINCIPALS}."{name}"] above its lines.')
            raise wrong.within(PRINCIPALS, name)
        with inside(PRINCIPALS, name):
            principals[name] = _windows(table, place, ())
    zone: tzinfo = UTC
    with inside(BUDGET):
        if TIMEZONE in budget:
            with inside(TIMEZONE):
                zone = zone_named(budget[TIMEZONE], where)
        return OwnerWindows(_windows(budget, where, (TIMEZONE,)), principals, zone)


def _windows(table: Mapping[str, Any], where: str, others: tuple[str, ...]) -> tuple[SpendWindow, ...]:
    check_names(table, (*LINES, *others), f"{where} has")
    found = []
    for line, period in LINES.items():
        if line in table:
            with inside(line):
                found.append(_window(table[line], period, f"{where} {line}"))
    return tuple(found)


def _window(value: Any, period: Period, where: str) -> SpendWindow:
    if not isinstance(value, Mapping) or set(value) != {"usd"}:
        raise InvalidConfig(f"{where} is {value!r}", "Write an amount in dollars: {usd = 5}.")
    try:
        return SpendWindow(period, value["usd"])
    except InvalidBudget as error:
        raise InvalidConfig(f"{where}: {error.message}", error.hint) from None


def zone_named(name: Any, where: str) -> tzinfo:
    """A time zone by its name. Raises InvalidConfig with the place."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, TypeError, OSError, AttributeError):  # ZoneInfoNotFoundError is a KeyError
        hint = 'Name one of the tz database, such as "Europe/Berlin".'
        raise InvalidConfig(f"{where} {TIMEZONE} is {name!r}, which this machine does not know", hint) from None
