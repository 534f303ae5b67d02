"""Where this user's pins and tokens are kept."""

from pathlib import Path

from wakeful.settings.home import home


def pins_file() -> Path:
    """What the tools of every server were when they were accepted."""
    return home() / "mcp" / "pins.json"


def tokens_folder() -> Path:
    """One file for each server and principal; only its owner can read it."""
    return home() / "mcp" / "tokens"
