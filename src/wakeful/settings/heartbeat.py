"""The heartbeat: `[heartbeat]` in `wakeful.toml`.

[heartbeat]
url_env = "HEARTBEAT_URL"    # the variable that holds the address; or `url`
seconds = 60
"""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from wakeful.contracts.errors import InvalidConfig
from wakeful.settings.owner_file import OwnerFile, check_names, owner_file

SECTION = "heartbeat"
KNOWN = ("url", "url_env", "seconds", "allow_private")
SECONDS = 60.0
LEAST = 1.0


class HeartbeatTerms(NamedTuple):
    """Where, and how often."""

    url: str
    seconds: float = SECONDS
    allow_private: bool = False


def owner_heartbeat(environ: Mapping[str, str] = os.environ, file: OwnerFile | None = None) -> HeartbeatTerms | None:
    """What the owner's file says; None: nothing. Raises InvalidConfig with the place."""
    table = check_heartbeat(owner_file(environ) if file is None else file)
    if not table:
        return None
    url, variable = table.get("url"), table.get("url_env")
    if variable is not None:
        url = environ.get(variable, "")
        if not url:
            raise InvalidConfig(f"[{SECTION}] names the variable {variable}, which is not set", f"Set {variable}.")
        if not _is_address(url):
            hint = f"Put a http or https URL into {variable}."
            raise InvalidConfig(f"[{SECTION}] has no address: {variable} does not hold a URL", hint)
    return HeartbeatTerms(str(url), float(table.get("seconds", SECONDS)), bool(table.get("allow_private", False)))


def check_heartbeat(file: OwnerFile) -> Mapping[str, Any]:
    """The table as it stands in the file. Raises InvalidConfig with the place."""
    table, where = file.table(SECTION), f"{file.path}: [{SECTION}]"
    check_names(table, KNOWN, f"{where} has", SECTION)
    if not table:
        return {}
    if ("url" in table) == ("url_env" in table):
        told = "url and url_env" if "url" in table else "no address"
        raise InvalidConfig(f"{where} has {told}", 'Write url_env = "VARIABLE", or url = "https://...".').within(
            SECTION
        )
    for name in ("url_env", "url"):
        if name in table and not isinstance(table[name], str):
            raise InvalidConfig(f"{where} {name} is {table[name]!r}", "Write a text.").within(SECTION, name)
    if "url" in table and not _is_address(table["url"]):
        raise InvalidConfig(f"{where} url is not an address", "Write a http or https URL.").within(SECTION, "url")
    seconds = table.get("seconds", SECONDS)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds < LEAST:
        wrong = InvalidConfig(f"{where} seconds is {seconds!r}", f"Write a number, {LEAST:g} or more.")
        raise wrong.within(SECTION, "seconds")
    if not isinstance(table.get("allow_private", False), bool):
        wrong = InvalidConfig(f"{where} allow_private is {table['allow_private']!r}", "Write true or false.")
        raise wrong.within(SECTION, "allow_private")
    return table


def _is_address(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.query
