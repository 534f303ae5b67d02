"""Where an installation keeps its own: the database, the owner's file, pins and tokens."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path


def home(environ: Mapping[str, str] = os.environ) -> Path:
    """`$WAKEFUL_HOME`, or the place where this system keeps a user's data."""
    named = environ.get("WAKEFUL_HOME")
    if named:
        return Path(named).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "wakeful"
    return Path(environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "wakeful"
