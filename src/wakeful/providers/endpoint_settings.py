"""The owner's settings file, as far as it is about providers: `[providers.NAME]` in `wakeful.toml`.

A mistake is told with its place and what was probably meant. A key does not belong into a file: it is refused.
"""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any
from urllib.parse import urlsplit

from wakeful.contracts.errors import InvalidConfig
from wakeful.providers.prices import own_prices
from wakeful.providers.wire.addresses import trimmed
from wakeful.providers.wire.redaction import public_url
from wakeful.settings.owner_file import owner_file

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
KNOWN = (
    "transport",
    "base_url",
    "key_env",
    "auth",
    "key_required",
    "api_version",
    "dialect",
    "headers",
    "quirks",
    "profile",
    "prices",
)


def provider_settings(environ: Mapping[str, str]) -> tuple[str, dict[str, Mapping[str, Any]]]:
    """The file's name and its `[providers.NAME]` tables; nothing when there is no file."""
    file = owner_file(environ)
    return str(file.path), tables(file.data, str(file.path))


def tables(data: Mapping[str, Any], where: str) -> dict[str, Mapping[str, Any]]:
    """The tables of providers in a file's data."""
    tables = data.get("providers", {})
    if not isinstance(tables, Mapping) or not all(isinstance(table, Mapping) for table in tables.values()):
        raise InvalidConfig(
            f"{where}: [providers] holds one table a provider", "Write [providers.NAME] above its lines."
        ).within("providers")
    return dict(tables)


def setting(name: str, value: Any, where: str) -> Any:
    """One setting's value, checked."""
    if name in ("api_key", "key", "token"):
        raise InvalidConfig(
            f"{where}: {name} holds a key", 'Put the key into a variable and name that: key_env = "MY_API_KEY"'
        )
    if name not in KNOWN:
        near = get_close_matches(name, KNOWN, n=1)
        raise InvalidConfig(
            f"{where}: there is no setting {name!r}",
            f"Did you mean {near[0]}?" if near else f"There are: {', '.join(KNOWN)}.",
        )
    if name == "key_env":
        names = [value] if isinstance(value, str) else value
        if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
            raise InvalidConfig(f"{where}: key_env is {value!r}", "Write the name of a variable, or a list of names.")
        if not all(_VARIABLE.fullmatch(each) for each in names):  # not shown: it may well be the key itself
            raise InvalidConfig(
                f"{where}: key_env does not hold the name of a variable",
                'Put the key into a variable and name that: key_env = "MY_API_KEY"',
            )
        return tuple(names)
    if name in ("headers", "quirks", "profile"):
        if not isinstance(value, Mapping) or (
            name == "headers" and not all(isinstance(v, str) for v in value.values())
        ):
            raise InvalidConfig(f"{where}: {name} is not a table", f"Write [providers.NAME.{name}] above its lines.")
        return dict(value)
    if name == "prices":
        return own_prices(value, where)
    if name == "key_required":
        if not isinstance(value, bool):
            raise InvalidConfig(f"{where}: key_required is {value!r}", "Write true or false.")
        return value
    if not isinstance(value, str):
        raise InvalidConfig(f"{where}: {name} is {value!r}", "Write a text in quotes.")
    if name == "auth" and value not in ("bearer", "x-api-key", "api-key", "x-goog-api-key", "none"):
        raise InvalidConfig(f"{where}: auth is {value!r}", "Write bearer, x-api-key, api-key, x-goog-api-key or none.")
    if name == "dialect" and value not in ("openai", "compatible"):
        raise InvalidConfig(
            f"{where}: dialect is {value!r}", "Write openai for OpenAI's own API at any address, or compatible."
        )
    return address(value, where) if name == "base_url" else value


def address(text: str, where: str) -> str:
    """A base URL without a slash at its end. Raises InvalidConfig when it is none, or holds a password."""
    parts = urlsplit(text.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidConfig(
            f"{where}: {public_url(text)!r} is not an address", "Write one such as http://127.0.0.1:8000/v1."
        )
    if parts.username or parts.password:
        raise InvalidConfig(f"{where}: the address holds a user or a password", "Name a variable with key_env instead.")
    return trimmed(text)
