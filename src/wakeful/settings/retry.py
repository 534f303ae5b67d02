"""How long turns of a runtime wait for a provider that is away: `[retry]` in `wakeful.toml`.

[retry]
patience = 7200    # seconds; an agent's own `retry` wins
"""

import os
from collections.abc import Mapping

from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.retries import LONGEST_PATIENCE
from wakeful.settings.owner_file import OwnerFile, check_names, owner_file

SECTION = "retry"
KNOWN = ("patience",)
RUNTIME_PATIENCE = 20 * 3600.0
"""Seconds: a night and the day after it."""


def owner_patience(environ: Mapping[str, str] = os.environ, file: OwnerFile | None = None) -> float:
    """Seconds. Raises InvalidConfig with the place."""
    file = owner_file(environ) if file is None else file
    table, where = file.table(SECTION), f"{file.path}: [{SECTION}]"
    check_names(table, KNOWN, f"{where} has", SECTION)
    given = table.get("patience", RUNTIME_PATIENCE)
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= LONGEST_PATIENCE:
        hint = f"Write seconds, from 0 to {LONGEST_PATIENCE:.0f} (a week)."
        raise InvalidConfig(f"{where} patience is {given!r}", hint).within(SECTION, "patience")
    return float(given)
