"""A server as its owner names it: what to start or where to connect, and what is believed of it.

The values hold secrets (environment, headers): they show their names and never themselves.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias, get_args
from urllib.parse import urlsplit

from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.sensitive_names import is_sensitive
from wakeful.contracts.tools import PermissionClass
from wakeful.decisions.secret_shapes import looks_secret
from wakeful.decisions.secret_values import SecretValues

NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$")
Protocol: TypeAlias = Literal["auto", "2025-11-25", "2026-07-28"]
"""auto: the newer revision is tried first, and a server that does not know it is spoken to in the older one."""
HIDDEN = "[redacted]"
SHORTEST_SECRET = 6
_KEY_NAMES = frozenset({"key", "keys", "pat", "pass", "pw", "auth", "session", "dsn", "pin"})
"""Words in the name of a variable that say, beside those for every name, that it holds a key."""
Secrets: TypeAlias = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """How much of a server's time, words and insistence is borne."""

    connect_seconds: float = 30.0
    idle_seconds: float = 300.0
    """How long a connection stays open after the last run that used it."""
    call_seconds: float = 300.0
    list_seconds: float = 30.0
    tools: int = 1_000
    pages: int = 100
    message_bytes: int = 16 * 1024 * 1024
    """The longest message, and the longest answer over HTTP."""
    garbage_lines: int = 1_000
    """After so many lines that are no messages, the server is given up."""
    retry_seconds: tuple[float, ...] = (0.0, 0.5, 1.0, 2.0, 5.0, 15.0, 30.0)
    """How long after the first, second ... failure in a row no new connection is tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StdioServer:
    """A program that is started here and spoken to over its standard input and output."""

    name: str
    command: tuple[str, ...]
    env: Secrets = field(default_factory=dict, repr=False)
    cwd: str | None = None
    protocol: Protocol = "auto"

    def __post_init__(self) -> None:
        check_name(self.name)
        check_protocol(self.protocol)
        if not self.command or not all(map(_is_text, self.command)):
            raise InvalidConfig(
                f"the MCP server {self.name!r} has the command {list(self.command)!r}",
                'give the program and its arguments, as in command=["npx", "-y", "some-server"]',
            )
        _check_secrets(self.name, "env", self.env)

    @property
    def holds_private(self) -> bool:
        """It runs as this user: whatever this user can read, it can."""
        return True

    @property
    def where(self) -> str:
        """What a person is shown: the program without its arguments, which may hold secrets."""
        return Path(self.command[0]).name

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no message may repeat."""
        return tuple(self.env.values())

    @property
    def key(self) -> str:
        """The same for the same server, and for no other."""
        return _digest("stdio", self.name, self.protocol, list(self.command), dict(self.env), self.cwd)


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuth:
    """How the owner's permission to use a server is asked for. Without a client id the client registers itself."""

    scopes: tuple[str, ...] = ()
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    redirect_port: int = 33_418
    """Where, on this machine, the browser brings the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpServer:
    """A server at a URL (streamable HTTP)."""

    name: str
    url: str
    headers: Secrets = field(default_factory=dict, repr=False)
    allow_private: bool = False
    oauth: OAuth | None = None
    protocol: Protocol = "auto"

    def __post_init__(self) -> None:
        check_name(self.name)
        check_protocol(self.protocol)
        try:
            parts = urlsplit(self.url)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        except ValueError:
            usable = False
        if not usable:
            raise InvalidConfig(f"the MCP server {self.name!r} has no usable URL", "give http://... or https://...")
        if parts.username or parts.password:
            raise InvalidConfig(
                f"the URL of the MCP server {self.name!r} holds a user or password", "give it in headers= instead"
            )
        _check_secrets(self.name, "headers", self.headers)

    @property
    def holds_private(self) -> bool:
        """Whoever is let in by a key sees what the key opens."""
        return bool(self.headers) or self.oauth is not None

    @property
    def where(self) -> str:
        """What a person is shown: without the query, which may hold secrets."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}{parts.path}"

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no message may repeat: a header with and without its first word, and what stands in the query."""
        values = [*self.headers.values(), *(pair.partition("=")[2] for pair in urlsplit(self.url).query.split("&"))]
        if self.oauth is not None and self.oauth.client_secret:
            values.append(self.oauth.client_secret)
        return (*values, *(value.partition(" ")[2] for value in values))

    @property
    def key(self) -> str:
        """The same for the same server, and for no other."""
        oauth = None
        if self.oauth is not None:
            oauth = [list(self.oauth.scopes), self.oauth.client_id, self.oauth.client_secret, self.oauth.redirect_port]
        headers = {name.lower(): value for name, value in self.headers.items()}
        return _digest("http", self.name, self.protocol, self.url, headers, self.allow_private, oauth)


Server: TypeAlias = StdioServer | HttpServer


def without_secrets(text: str, server: Server) -> str:
    """The text without what the server was given, by value. Short values are words that stand there by themselves."""
    for secret in sorted(server.secrets, key=len, reverse=True):
        if len(secret) >= SHORTEST_SECRET:
            text = text.replace(secret, HIDDEN)
    return text


def keys_of(server: Server) -> SecretValues:
    """What no result of a server may repeat: what it was given under the name of a secret, or looks like one.

    Settings that it was given beside them (a level, a folder) are words that may stand in its answers.
    """
    if isinstance(server, StdioServer):
        return SecretValues(value for name, value in server.env.items() if _is_key(name, value))
    asked = [pair.partition("=") for pair in urlsplit(server.url).query.split("&")]
    named = [*server.headers.items(), *((name, value) for name, _, value in asked)]
    keys = [value for name, value in named if _is_key(name, value)]
    keys += [value.partition(" ")[2] for value in keys]
    if server.oauth is not None and server.oauth.client_secret:
        keys.append(server.oauth.client_secret)
    return SecretValues(keys)


def _is_key(name: str, value: str) -> bool:
    spelled = name.lower().replace("-", "_")
    if is_sensitive(name) or any(word in _KEY_NAMES for word in spelled.split("_")) or spelled.endswith("key"):
        return True
    plain = value.isascii() and not set(value) & set("/\\: ")
    mixed = any(sign.isdigit() for sign in value) and any(sign.isalpha() for sign in value)
    return looks_secret(value) or (len(value) >= 20 and plain and mixed)


def check_name(name: str) -> None:
    """Raises InvalidConfig when tools could not be named after it."""
    if not _is_text(name) or not NAME.match(name):
        raise InvalidConfig(
            f"{name!r} cannot be the name of an MCP server", "letters, digits, _ and -, not a digit first, at most 64"
        )


def check_protocol(protocol: str) -> None:
    if protocol not in get_args(Protocol):
        raise InvalidConfig(f"protocol={protocol!r}: no such revision", f"give one of: {', '.join(get_args(Protocol))}")


def check_classes(name: str, classes: Mapping[str, str]) -> dict[str, PermissionClass]:
    """Patterns of tool names with the class an operator gives them."""
    known: tuple[PermissionClass, ...] = get_args(PermissionClass)
    by_name: dict[str, PermissionClass] = {each: each for each in known}
    for pattern, given in classes.items():
        if given not in by_name:
            raise InvalidConfig(
                f"the MCP server {name!r}: {given!r} for {pattern!r} is not a permission class",
                f"give one of: {', '.join(known)}",
            )
    return {pattern: by_name[given] for pattern, given in classes.items()}


def _check_secrets(name: str, what: str, given: Mapping[str, str]) -> None:
    for key, value in given.items():
        if not _is_text(key) or not _is_text(value) or any(sign in key + value for sign in "\r\n"):
            raise InvalidConfig(f"the MCP server {name!r}: {what} has a value for {key!r} that cannot be sent")


def _is_text(value: object) -> bool:
    return isinstance(value, str) and "\x00" not in value


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
