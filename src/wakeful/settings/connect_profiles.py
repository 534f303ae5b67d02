"""Daemons elsewhere, by name: `[connect.NAME]` of the owner's file.

[connect.office]
address = "https://agents.example:8420"    # or the path of a socket
token_file = "office.token"                # beside wakeful.toml, readable by its owner alone
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from wakeful.contracts.errors import InvalidConfig
from wakeful.settings.owner_file import OwnerFile, check_names

TABLE = "connect"
KNOWN = ("address", "token_file")
WEB = ("http://", "https://")


class ConnectProfile(NamedTuple):
    """One of them."""

    address: str
    """A URL, or the path of a socket."""
    token_file: Path | None = None


def connect_profiles(file: OwnerFile) -> dict[str, ConnectProfile]:
    """The daemons that the owner's file names. Raises InvalidConfig."""
    return {name: _profile(file, name, said) for name, said in file.table(TABLE).items()}


def is_usable_url(url: str) -> bool:
    """A host, perhaps a port and a path, and nothing else."""
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and not (parts.query or parts.fragment or parts.username) and (parts.port or 1) > 0
    except ValueError:
        return False


def read_token(path: Path) -> str:
    """The token in a file. Raises InvalidConfig for one that others can read."""
    try:
        mode, text = path.stat().st_mode, path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfig(f"{path} cannot be read: {error}", "Write the token into it: one line.") from None
    if mode & 0o077:
        raise InvalidConfig(f"{path} can be read by others", f"chmod 600 {path}")
    if not text or not text.isprintable():
        raise InvalidConfig(f"{path} holds no token", "Write the token into it: one line.")
    return text


def _profile(file: OwnerFile, name: str, said: object) -> ConnectProfile:
    where, folder = f"{file.path}: [{TABLE}.{name}]", file.path.absolute().parent
    if not isinstance(said, Mapping):
        hint = f"Write [{TABLE}.{name}] above its lines."
        raise InvalidConfig(f"{file.path}: {TABLE}.{name} is {said!r}", hint).within(TABLE, name)
    check_names(said, KNOWN, f"{where} has", TABLE, name)
    address, token_file = said.get("address"), said.get("token_file")
    if not isinstance(address, str) or not address or (address.startswith(WEB) and not is_usable_url(address)):
        hint = 'Write address = "https://HOST:PORT", or the path of a socket.'
        raise InvalidConfig(f"{where}: address is {address!r}", hint).within(TABLE, name)
    if token_file is not None and (not isinstance(token_file, str) or not address.startswith(WEB)):
        hint = (
            "A socket takes no token." if isinstance(token_file, str) else 'Write a path: token_file = "office.token".'
        )
        raise InvalidConfig(f"{where}: token_file is {token_file!r}", hint).within(TABLE, name, "token_file")
    place = address if address.startswith(WEB) else str(folder / Path(address).expanduser())
    return ConnectProfile(place, folder / Path(token_file).expanduser() if token_file is not None else None)
