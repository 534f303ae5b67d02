"""How the daemon ends: `[daemon]` in `wakeful.toml`.

[daemon]
drain = 300    # seconds; `wakeful daemon stop --drain` wins
"""

import os
from collections.abc import Mapping

from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.owner_settings import DRAIN_SECONDS, LONGEST_DRAIN
from wakeful.settings.owner_file import OwnerFile, check_names, owner_file

SECTION = "daemon"
KNOWN = ("drain",)


def owner_drain(environ: Mapping[str, str] = os.environ, file: OwnerFile | None = None) -> float:
    """Seconds that calls under way have to end in when the daemon is stopped. Raises InvalidConfig with the place."""
    file = owner_file(environ) if file is None else file
    table, where = file.table(SECTION), f"{file.path}: [{SECTION}]"
    check_names(table, KNOWN, f"{where} has", SECTION)
    given = table.get("drain", DRAIN_SECONDS)
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= LONGEST_DRAIN:
        hint = f"Write seconds, from 0 (at once) to {LONGEST_DRAIN:.0f} (a day)."
        raise InvalidConfig(f"{where} drain is {given!r}", hint).within(SECTION, "drain")
    return float(given)
