"""What a serving process is started with. `serve` and `daemon` take the same, and check it the same way."""

import hashlib
import ipaddress
import json
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from wakeful.contracts.errors import InvalidRequest
from wakeful.contracts.owner_settings import LONGEST_DRAIN
from wakeful.contracts.values import Value
from wakeful.settings.home import home
from wakeful.settings.owner_file import owner_file
from wakeful.settings.store_file import default_store

Access: TypeAlias = Literal["local", "lan", "tunnel", "tailnet"]
"""local: this machine. lan: every address of this machine. tunnel: this machine, and a program that forwards to it from
outside. tailnet: an address of a private network."""
ACCESS = ("local", "lan", "tunnel", "tailnet")
DEFAULT_PORT = 7717
SHORTEST_TOKEN = 20
NOWHERE = "none"
END_SECONDS = 20.0
"""How long a process takes to end beyond its drain, at most: requests that are being answered, tasks, the store."""


class ServeOptions(Value):
    """Where to listen, for whom, with which code."""

    access: Access = "local"
    host: str | None = "127.0.0.1"
    """None: the socket of the home alone."""
    port: int = DEFAULT_PORT
    advertise: str = ""
    """Where programs outside reach it: the beginning of the addresses of triggers."""
    token_digest: str = ""
    """Of a token that was given for this process; it is on no file."""
    model: str | None = None
    """The model of the default agent."""
    tools: tuple[str, ...] = ()
    """Code, as MODULE:NAME: agents, and tools that files name."""
    folder: str = ""
    """Where the modules of `tools` are found, beside those that are installed; blank: the folder of the process."""

    @property
    def address(self) -> str | None:
        """Where it listens on the network."""
        if self.host is None:
            return None
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def checked_options(
    *,
    access: str = "local",
    host: str | None = None,
    port: int | None = None,
    listen: str | None = None,
    advertise: str | None = None,
    token: str | None = None,
    token_file: Path | None = None,
    model: str | None = None,
    tools: Sequence[str] = (),
) -> ServeOptions:
    """Raises InvalidRequest with what would be right. Nothing is started by it."""
    if access not in ACCESS:
        raise InvalidRequest(f"--access {access} is not known", f"Give one of: {', '.join(ACCESS)}.")
    if listen is not None and (host is not None or port is not None):
        raise InvalidRequest("--listen was given with --host or --port", "Give --listen HOST:PORT alone.")
    if listen is not None:
        host, port = _listen(listen)
    elif host is None:
        host = _host_of(access)
    if port is not None and not 0 <= port <= 65535:
        raise InvalidRequest(f"{port} is not a port", "Give one from 1 to 65535; 0 takes any that is free.")
    if host == NOWHERE:
        host = None
    if host is not None and access == "local" and not _is_loopback(host):
        raise InvalidRequest(
            f"--host {host} lets other machines in", "Say so: --access lan, or --access tailnet for a private network."
        )
    if host is None and access != "local":
        raise InvalidRequest(f"--access {access} needs an address to listen on", "Leave --listen none out.")
    return ServeOptions(
        access=access,
        host=host,
        port=DEFAULT_PORT if port is None else port,
        advertise=_advertised(advertise, access),
        token_digest=_digest(token, token_file),
        model=model,
        tools=tuple(tools),
        folder=str(Path.cwd()) if tools else "",
    )


def check_drain(seconds: float | None) -> None:
    """Raises InvalidRequest for what is no span that a daemon may take to end in."""
    if seconds is not None and not 0 <= seconds <= LONGEST_DRAIN:
        hint = f"Give seconds, from 0 (at once) to {LONGEST_DRAIN:.0f} (a day)."
        raise InvalidRequest(f"drain is {seconds:g}", hint)


class KeptOptions(NamedTuple):
    """Options of a process that takes the place of another, and what became of those of the other one."""

    options: ServeOptions
    kept: tuple[str, ...]
    """As they are typed."""
    dropped: tuple[str, ...]
    """As they are typed: of where the other one listened, where this one was told something else."""


def keep_options(given: ServeOptions, before: ServeOptions, *, is_placed: bool) -> KeptOptions:
    """What is not given is as before. Where it listens, and for whom, is one thing: `is_placed` says that something of
    it was given, and then nothing of it is kept."""
    update: dict[str, Any] = {}
    if not is_placed:
        update |= {field: getattr(before, field) for field in ("access", "host", "port", "advertise")}
    if before.tools and not given.tools:
        update |= {"tools": before.tools, "folder": before.folder}
    if before.model is not None and given.model is None:
        update["model"] = before.model
    said_anew = {field for field, _ in _access_words(given)}
    kept = [word for field, word in (*_access_words(before), *_code_words(before)) if field in update]
    dropped = [word for field, word in _access_words(before) if is_placed and field not in said_anew]
    return KeptOptions(given.model_copy(update=update), tuple(kept), tuple(dropped))


def typed(options: ServeOptions) -> tuple[str, ...]:
    """What differs from the defaults, as it is typed behind `wakeful daemon start`."""
    return tuple(word for _, word in (*_access_words(options), *_code_words(options)))


def _code_words(options: ServeOptions) -> list[tuple[str, str]]:
    """The field that each option is kept in, and how it is typed."""
    words = [("tools", f"--tools {shlex.quote(each)}") for each in options.tools]
    return words + ([("model", f"--model {shlex.quote(options.model)}")] if options.model is not None else [])


def _access_words(options: ServeOptions) -> list[tuple[str, str]]:
    """The same, of where it listens and for whom."""
    words = [("access", f"--access {options.access}")] if options.access != "local" else []
    if options.host is None:
        words.append(("host", f"--listen {NOWHERE}"))
    else:
        if options.access == "tailnet" or options.host != _host_of(options.access):
            words.append(("host", f"--host {options.host}"))
        if options.port != DEFAULT_PORT:
            words.append(("host", f"--port {options.port}"))
    return words + ([("advertise", f"--advertise {shlex.quote(options.advertise)}")] if options.advertise else [])


def fingerprint(options: ServeOptions) -> str:
    """The same for two processes that would behave the same. No secret is in it."""
    owners = owner_file()
    said = {
        "home": str(home().resolve()),
        "store": str(default_store().resolve()),
        "options": options.model_dump(mode="json", exclude={"token_digest", "folder"}),
        "models": owners.data.get("models"),
        "providers": owners.data.get("providers"),
        "default_agent": os.environ.get("WAKEFUL_AGENT_ID", ""),
    }
    return hashlib.sha256(json.dumps(said, sort_keys=True, default=str).encode()).hexdigest()[:16]


def allowed_hosts(options: ServeOptions, address: str | None) -> frozenset[str]:
    """Names under which clients on the network may call it."""
    names = {"localhost", "127.0.0.1", "::1"}
    for each in (options.host, urlsplit(options.advertise).hostname, address):
        if each and each not in ("0.0.0.0", "::"):
            names.add(each.lower())
    if options.access == "lan":
        names |= _own_names()
    return frozenset(names)


def _own_names() -> set[str]:
    import socket

    name = socket.gethostname().lower()
    found = {name, f"{name}.local"}
    try:
        found |= {str(each[4][0]) for each in socket.getaddrinfo(name, None)}
    except OSError:
        pass
    return found


def _host_of(access: str) -> str:
    if access == "lan":
        return "0.0.0.0"
    if access == "tailnet":
        raise InvalidRequest("--access tailnet needs the address to listen on", "Give it: --host 100.64.0.7")
    return "127.0.0.1"


def _listen(said: str) -> tuple[str, int | None]:
    if said == NOWHERE:
        return NOWHERE, None
    host, _, port = said.rpartition(":")
    host = host.strip("[]")
    if not host or not port.isdigit():
        raise InvalidRequest(f"--listen {said} is not an address", "Give HOST:PORT, such as 127.0.0.1:7717, or none.")
    return host, int(port)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _advertised(advertise: str | None, access: str) -> str:
    if not advertise:
        if access == "tunnel":
            raise InvalidRequest(
                "--access tunnel needs the address under which it is reached",
                "Give it: --advertise https://hooks.example.org",
            )
        return ""
    parts = urlsplit(advertise)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise InvalidRequest(f"--advertise {advertise} is not an address", "Give one such as https://hooks.example.org")
    return advertise.rstrip("/")


def _digest(token: str | None, token_file: Path | None) -> str:
    from wakeful.settings.access_tokens import digest_of

    if token is not None and token_file is not None:
        raise InvalidRequest("--token and --token-file were both given", "Give one of them.")
    if token_file is not None:
        try:
            token = token_file.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidRequest(f"{token_file} cannot be read: {error}", "Give a file that holds the token.") from None
    if token is None:
        return ""
    if len(token) < SHORTEST_TOKEN:
        raise InvalidRequest(
            f"the token has {len(token)} characters", f"Give {SHORTEST_TOKEN} or more, or: wakeful token create NAME"
        )
    return digest_of(token)
