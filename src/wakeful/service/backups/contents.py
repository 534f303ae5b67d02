"""What of a home belongs in a backup, what never does, and under which names."""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

from wakeful.contracts.errors import InvalidConfig, InvalidRequest
from wakeful.contracts.sensitive_names import is_sensitive
from wakeful.service.serving.run_files import SECRETS, read_secrets
from wakeful.settings.access_tokens import FILE as TOKENS
from wakeful.settings.access_tokens import read_tokens
from wakeful.settings.agent_homes import FOLDER as AGENTS
from wakeful.settings.home import SECRET
from wakeful.settings.home_state import FILE as STATE
from wakeful.settings.owner_file import SETTINGS_FILE

FILES = (SETTINGS_FILE, "wakeful-trusted.json", "mcp.json", "mcp/pins.json")
"""Single files of a home that are in it, where they are there."""
SECRET_PLACES = (SECRET, SECRETS, TOKENS, "mcp/tokens")
_OF_THE_MACHINE = ("run", STATE, f"{TOKENS}.lock", "backup-staging")
"""Of a process or of this machine; a home that is restored makes its own."""
_REFERENCE = re.compile(r"\$\{?\w+")


class HomeContents(NamedTuple):
    """The names of a home whose store has this name."""

    database: str
    """Below the home."""

    @property
    def blobs(self) -> str:
        return f"{self.database}.blobs"

    def is_allowed(self, name: str) -> bool:
        """May a file of this name be in a backup? Its parts were checked before."""
        return name in (self.database, *FILES) or name.startswith((f"{AGENTS}/", f"{self.blobs}/"))

    def left_out(self, home: Path) -> list[str]:
        """Names at the top of the home that no backup holds and that nothing explains."""
        known = {AGENTS, "mcp", *(name for name in FILES), *SECRET_PLACES, *_OF_THE_MACHINE}
        own = Path(self.database)
        found = []
        for each in sorted(home.iterdir()):
            is_store = own.parent == Path() and each.name.startswith(own.name)
            if each.name not in known and not is_store:
                found.append(each.name)
        return found


def contents_of(home: Path, store: Path) -> HomeContents:
    """Raises InvalidRequest for a store outside the home."""
    try:
        inner = store.absolute().relative_to(home.absolute())
    except ValueError:
        raise InvalidRequest(
            f"the store {store} is not in the home {home}, and a backup holds a home",
            "Write its logs to a file instead: wakeful store export FILE",
        ) from None
    return HomeContents(inner.as_posix())


def contents_named(database: Any) -> HomeContents:
    """As a backup names it. Raises InvalidRequest for a name that is none of a store's."""
    is_name = isinstance(database, str) and database and "\0" not in database
    parts = database.split("/") if is_name else [".."]
    reserved = {*FILES, *SECRET_PLACES, *_OF_THE_MACHINE, AGENTS, "mcp", "repositories"}
    if any(part in ("", ".", "..") for part in parts) or parts[0] in reserved:
        raise InvalidRequest(f"a backup names {database!a} as its store", "Name a file that wakeful backup wrote.")
    return HomeContents(database)


def secrets_of(home: Path) -> list[str]:
    """The names of a home's secrets, and never their values."""
    found = []
    try:
        found += [f"{name} (in {SECRETS})" for name in read_secrets()]
    except InvalidConfig:
        found.append(SECRETS)
    try:
        found += [f"token {each.name} (wakeful token create {each.name})" for each in read_tokens(home / TOKENS)]
    except InvalidConfig:
        found.append(TOKENS)
    logins = home / "mcp" / "tokens"
    if logins.is_dir():
        found += [f"login {each.stem} (wakeful mcp login)" for each in sorted(logins.iterdir()) if each.is_file()]
    if holds_literal_secrets(home / "mcp.json"):
        found.append("mcp.json, because it holds a secret itself (write ${NAME} there instead)")
    return found


def holds_literal_secrets(path: Path) -> bool:
    """Does a file of MCP servers hold a secret itself, and not the name of a variable?"""
    try:
        data = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return False
    except (OSError, ValueError, RecursionError):
        return True  # nobody can tell
    servers = data.get("mcpServers") if isinstance(data, dict) else None
    for server in servers.values() if isinstance(servers, dict) else ():
        for table in ("env", "headers"):
            given = server.get(table) if isinstance(server, dict) else None
            for name, value in given.items() if isinstance(given, dict) else ():
                is_secret = is_sensitive(name) or name.lower() == "authorization"
                if is_secret and isinstance(value, str) and value and not _REFERENCE.search(value):
                    return True
    return False
