"""Where this user's pins and tokens are kept."""

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


def pins_file() -> Path:
    """What the tools of every server were when they were accepted."""
    return home() / "mcp" / "pins.json"


def tokens_folder() -> Path:
    """One file for each server and principal; only its owner can read it."""
    return home() / "mcp" / "tokens"
