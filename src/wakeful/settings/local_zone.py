"""The time zone of this machine, by its name in the tz database."""

import os
from collections.abc import Mapping
from pathlib import Path
from zoneinfo import ZoneInfo

UNKNOWN = "UTC"
_LINK = Path("/etc/localtime")
_FOLDER = "zoneinfo/"


def local_zone(environ: Mapping[str, str] = os.environ) -> str:
    """`$TZ`, or what the system is set to; `UTC` where neither has a name."""
    named = environ.get("TZ", "").lstrip(":")
    for name in (named, _of_link()):
        if name and _is_zone(name):
            return name
    return UNKNOWN


def _of_link() -> str:
    try:
        target = str(_LINK.resolve(strict=True))
    except OSError:
        return ""
    return target.partition(_FOLDER)[2]


def _is_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return False
    return True
