"""Which daemon a command asks: the one of the home, or one that the person names.

`--connect office` is a name of `wakeful.toml`; `--connect URL` and `--connect SOCKET` are addresses. A URL needs a
token: the one in the `token_file` of its name, else `$WAKEFUL_TOKEN`.
"""

import os
from pathlib import Path
from shlex import quote

from wakeful.contracts.errors import InvalidConfig, InvalidRequest
from wakeful.service.serving.daemon_client import DaemonAddress, DaemonClient, NoAnswer, NobodyThere, draining
from wakeful.service.serving.socket_place import socket_path
from wakeful.settings.connect_profiles import WEB, connect_profiles, is_usable_url, read_token
from wakeful.settings.home import home
from wakeful.settings.owner_file import owner_file
from wakeful.settings.store_file import VARIABLE, default_store

TOKEN = "WAKEFUL_TOKEN"


def daemon_of_home() -> DaemonClient | None:
    """The daemon that serves the store of this home; None: none does, or `$WAKEFUL_STORE` names another store.

    Raises NoAnswer for one that cannot be asked: it is shutting down, or is none of ours.
    """
    path = socket_path()
    if not path.is_socket():
        return None
    client = DaemonClient(DaemonAddress(str(path), home=str(home())))
    try:
        client.greet()
    except NobodyThere:
        if _is_alive():
            raise draining(str(path)) from None
        return None
    try:
        meant = default_store().resolve()
    except InvalidConfig:
        return client  # it goes on with the settings that it began with
    if not client.store or Path(client.store).resolve() == meant:
        return client
    client.close()
    if os.environ.get(VARIABLE):
        return None
    raise NoAnswer(
        f"the daemon of {home()} serves {client.store}, and the settings say {meant}",
        "To have it follow them: wakeful daemon restart   To work on the file instead: --store FILE",
    )


def address_named(said: str) -> DaemonAddress:
    """A URL, the path of a socket, or a name of `wakeful.toml`. Raises InvalidRequest or InvalidConfig."""
    flag = f" --connect {quote(said)}"
    if "://" in said:
        if not said.startswith(WEB) or not is_usable_url(said):
            raise InvalidRequest(f"{said} is not the address of a daemon", "Write it like this: http://127.0.0.1:7717")
        return DaemonAddress(said.rstrip("/"), os.environ.get(TOKEN, ""), flag=flag)
    if "/" in said:
        return DaemonAddress(str(Path(said).expanduser()), flag=flag)
    file = owner_file()
    profiles = connect_profiles(file)
    if said not in profiles:
        if is_usable_url(f"http://{said}") and ":" in said:
            raise InvalidRequest(f"--connect {said}: no such address", f"Did you mean http://{said}?")
        there = f"There are: {', '.join(sorted(profiles))}." if profiles else f"Write [connect.{said}] in {file.path}."
        raise InvalidRequest(f"--connect {said}: no such address", f"Give a URL or the path of a socket. {there}")
    found = profiles[said]
    token = read_token(found.token_file) if found.token_file is not None else os.environ.get(TOKEN, "")
    return DaemonAddress(found.address.rstrip("/"), token if found.address.startswith(WEB) else "", flag=flag)


def _is_alive() -> bool:
    """Is the process that served last still there?"""
    from wakeful.service.serving.run_files import read_record

    record = read_record()
    return record is not None and record.identity.is_alive()
