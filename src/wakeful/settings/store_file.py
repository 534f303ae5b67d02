"""The store of commands that name none: `$WAKEFUL_STORE`, `store` in `wakeful.toml`, or `wakeful.db` in the home.

    store = "agents/runs.db"     # at the top of wakeful.toml; relative to that file

Nothing in the current folder is looked at: a repository that was checked out must not choose where a run is stored.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from wakeful.contracts.errors import InvalidConfig
from wakeful.settings.home import home
from wakeful.settings.owner_file import OwnerFile, owner_file

FILE = "wakeful.db"
VARIABLE = "WAKEFUL_STORE"
FIELD = "store"


def home_store(environ: Mapping[str, str] = os.environ) -> Path:
    """The store of the home."""
    return home(environ) / FILE


def default_store(environ: Mapping[str, str] = os.environ, file: OwnerFile | None = None) -> Path:
    """Where the store is. Raises InvalidConfig for an owner's file that cannot be read."""
    named = environ.get(VARIABLE)
    if named:
        return Path(named).expanduser()
    file = owner_file(environ) if file is None else file
    said = file.data.get(FIELD)
    if said is None:
        return home_store(environ)
    if not isinstance(said, str) or not said:
        hint = f'Write the path of a file: {FIELD} = "runs.db".'
        raise InvalidConfig(f"{file.path}: {FIELD} is {said!r}", hint).within(FIELD)
    return file.path.absolute().parent / Path(said).expanduser()
