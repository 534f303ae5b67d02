"""Where an installation keeps its own: the database, the owner's file, pins and tokens."""

import contextlib
import os
import secrets
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

SECRET = "secret"
"""The file of the home's secret."""
OF_THE_HOME = (
    SECRET,
    "wakeful.toml",
    "wakeful-trusted.json",
    "mcp.json",
    "mcp/",
    "agents/",
    "repositories/",
    "tokens.json",
    "secrets.env",
    "run/",
    "home-state.json",
    "backup-staging/",
)
"""What is obeyed or believed where it stands in the home; a folder ends with a slash."""
_SECRET_BYTES = 32


def home(environ: Mapping[str, str] = os.environ) -> Path:
    """`$WAKEFUL_HOME`, or the place where this system keeps a user's data."""
    # A user's own folder is the process's, whoever's environment is asked about.
    return _home(environ.get("WAKEFUL_HOME"), environ.get("XDG_DATA_HOME"), os.environ.get("HOME"))


@lru_cache(maxsize=8)
def _home(named: str | None, data: str | None, _: str | None) -> Path:
    if named:
        return Path(named).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "wakeful"
    return Path(data or Path.home() / ".local" / "share") / "wakeful"


def home_secret(environ: Mapping[str, str] = os.environ) -> bytes | None:
    """The secret of the home, made with its first use; None where there is no home, or none that can be written.

    It is on disk before it has its name, so that two who make it at once get the same one.
    """
    path = home(environ) / SECRET
    try:
        if not path.parent.is_dir():
            return None
        with contextlib.suppress(FileNotFoundError):
            return _read(path)
        unnamed = path.with_name(f"{SECRET}.{secrets.token_hex(8)}.new")
        descriptor = os.open(unnamed, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        try:
            with open(descriptor, "wb") as file:  # noqa: PTH123  (a handle, not a path)
                file.write(secrets.token_hex(_SECRET_BYTES).encode())
                file.flush()
                os.fsync(descriptor)
            with contextlib.suppress(FileExistsError):
                os.link(unnamed, path)
        finally:
            unnamed.unlink()
        return _read(path)
    except OSError:
        return None


def _read(path: Path) -> bytes | None:
    """None for a file that holds something else."""
    try:
        secret = bytes.fromhex(path.read_text("ascii").strip())
    except ValueError:
        return None
    return secret if len(secret) >= _SECRET_BYTES else None
