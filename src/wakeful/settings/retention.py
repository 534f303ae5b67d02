"""How long things are kept: `[retention]` in `wakeful.toml`, in days.

[retention]
turns = 30               # 0: for ever
spilled_output = 14
notice_gb = 10
"""

import os
from collections.abc import Mapping
from difflib import get_close_matches

from pydantic import ValidationError

from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.retention import Retention
from wakeful.settings.owner_file import owner_file

SECTION = "retention"


def owner_retention(environ: Mapping[str, str] = os.environ) -> Retention:
    """What the owner's file says. Raises InvalidConfig with the place."""
    file = owner_file(environ)
    where = f"{file.path}: [{SECTION}]"
    table = file.table(SECTION)
    known = tuple(Retention.model_fields)
    for name, value in table.items():
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(known)}."
            raise InvalidConfig(f"{where} has no setting {name!r}", hint)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InvalidConfig(f"{where} {name} is {value!r}", "Write a number: 30. 0 keeps it for ever.")
    try:
        return Retention(**table)
    except ValidationError as error:
        wrong = str(error.errors()[0]["loc"][0])
        raise InvalidConfig(f"{where} {wrong} is {table[wrong]!r}", "Write a number from 0 on.") from None
