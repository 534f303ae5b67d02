"""How long things are kept: `[retention]` in `wakeful.toml`, in days.

[retention]
turns = 30               # 0: for ever
spilled_output = 14
notice_gb = 10
"""

import os
from collections.abc import Mapping

from pydantic import ValidationError

from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.retention import Retention
from wakeful.settings.owner_file import OwnerFile, check_names, owner_file

SECTION = "retention"


def owner_retention(environ: Mapping[str, str] = os.environ, file: OwnerFile | None = None) -> Retention:
    """What the owner's file says. Raises InvalidConfig with the place."""
    file = owner_file(environ) if file is None else file
    where = f"{file.path}: [{SECTION}]"
    table = file.table(SECTION)
    check_names(table, tuple(Retention.model_fields), f"{where} has", SECTION)
    for name, value in table.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            wrong = InvalidConfig(f"{where} {name} is {value!r}", "Write a number: 30. 0 keeps it for ever.")
            raise wrong.within(SECTION, name)
    try:
        return Retention(**table)
    except ValidationError as error:
        field = str(error.errors()[0]["loc"][0])
        wrong = InvalidConfig(f"{where} {field} is {table[field]!r}", "Write a number, 0 or more.")
        raise wrong.within(SECTION, field) from None
