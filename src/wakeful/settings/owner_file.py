"""The owner's file, `wakeful.toml`: read whole, handed out as it is. Raises InvalidConfig, naming the file."""

import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from wakeful.contracts.errors import InvalidConfig
from wakeful.settings.home import home

SETTINGS_FILE = "wakeful.toml"
SECTIONS = (
    "store",
    "models",
    "budget",
    "principals",
    "providers",
    "hooks",
    "collections",
    "runtime",
    "retry",
    "daemon",
    "retention",
    "notify",
    "telemetry",
    "log",
    "heartbeat",
    "connect",
)
"""The names that may stand at the top of the file."""


class OwnerFile(NamedTuple):
    """The file's data; empty when there is no file."""

    path: Path
    data: Mapping[str, Any]

    def table(self, name: str) -> Mapping[str, Any]:
        """One of its tables; empty when it is not there."""
        found = self.data.get(name, {})
        if not isinstance(found, Mapping):
            raise InvalidConfig(f"{self.path}: {name} is {found!r}", f"Write [{name}] above its lines.").within(name)
        return found


_held: dict[str, OwnerFile] = {}
"""Files that are held, by path."""


def settings_path(environ: Mapping[str, str] = os.environ) -> Path:
    """`$WAKEFUL_CONFIG`, or `wakeful.toml` in the home.

    Never the current folder's: a repository that somebody checked out must not say where keys are sent.
    """
    named = environ.get("WAKEFUL_CONFIG")
    return Path(named).expanduser() if named else _file_of(home(environ))


@lru_cache(maxsize=8)
def _file_of(folder: Path) -> Path:
    """Every turn asks for it, and putting a path together takes longer than what it is asked for."""
    return folder / SETTINGS_FILE


def owner_file(environ: Mapping[str, str] = os.environ) -> OwnerFile:
    """The owner's settings."""
    path = settings_path(environ)
    if (held := _held.get(str(path))) is not None:
        return held
    try:
        file = read_owner_file(path)
    except FileNotFoundError:
        if environ.get("WAKEFUL_CONFIG"):
            raise InvalidConfig(f"WAKEFUL_CONFIG names {path}, and there is no such file") from None
        return OwnerFile(path, {})
    check_names(file.data, SECTIONS, f"{path}: there is")
    return file


def hold_owner_file(file: OwnerFile) -> None:
    """From here on the file says this in this process, whatever is written to the disk. For a runtime at work."""
    _held[str(file.path)] = file


def release_owner_file(path: Path) -> None:
    """From here on it says what is on the disk."""
    _held.pop(str(path), None)


def read_owner_file(path: Path) -> OwnerFile:
    """What stands in a file, whatever it is called there. Raises FileNotFoundError, or InvalidConfig with the file."""
    try:
        return OwnerFile(path, tomllib.loads(path.read_text("utf-8")))
    except tomllib.TOMLDecodeError as error:
        raise InvalidConfig(f"{path} is not TOML: {error}") from None
    except FileNotFoundError:
        raise
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        hint = f"See whose it is: ls -l {path}" if isinstance(error, OSError) else "Write it as UTF-8."
        raise InvalidConfig(f"{path} cannot be read: {why}", hint) from None


def check_names(table: Iterable[str], known: Sequence[str], where: str, *field: str) -> None:
    """A name that nothing reads would be a setting without effect. Raises InvalidConfig with near names."""
    for name in table:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(known)}."
            raise InvalidConfig(f"{where} no setting {name!r}", hint).within(*field, name)
