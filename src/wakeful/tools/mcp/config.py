"""Servers from a file its owner names: `{"mcpServers": {name: {...}}}`, as other programs write it.

Nothing is looked for: a `.mcp.json` that lies in a folder starts nothing until somebody passes its path here. A key
that this version does not know is refused, because it may be a restriction.
"""

import json
import os
import re
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from wakeful.contracts.errors import InvalidConfig
from wakeful.tools.mcp.servers import OAuth
from wakeful.tools.mcp.source import McpSource, from_mcp

TYPES = {"stdio": "command", "http": "url", "streamable-http": "url", "streamableHttp": "url"}
SAID_BY_OTHERS = frozenset({"description", "title", "icon"})
"""Keys that change nothing and may stand there."""
KEYS = frozenset(
    {
        "type",
        "command",
        "args",
        "env",
        "cwd",
        "url",
        "headers",
        "oauth",
        "allow_private",
        "classes",
        "reads_private",
        "untrusted",
        "content",
        "timeout",
        "protocol",
        "disabled",
    }
)
OWNERS_WORD = ("allow_private", "classes", "reads_private", "untrusted", "content", "timeout", "protocol")
"""Keys that are given to `from_mcp` as they are."""
GRANTS = frozenset({"alwaysAllow", "autoApprove", "trust"})
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


def mcp_servers(
    config: "str | PathLike[str] | Mapping[str, Any]",
    *,
    only: Iterable[str] | None = None,
    environ: Mapping[str, str] = os.environ,
    pins: "str | PathLike[str] | None" = None,
    tokens: "str | PathLike[str] | None" = None,
) -> list[McpSource]:
    """The servers of a file or a mapping; with `only`, those of that list and no other.

    `${NAME}` and `${NAME:-otherwise}` stand for variables of this process in args, env, url and headers.
    """
    folder: Path | None = None
    where = "the MCP configuration"
    if not isinstance(config, Mapping):
        path = Path(config).expanduser()
        folder, where, config = path.absolute().parent, str(path), _read(path)
    return servers_of(config, where, folder, only=only, environ=environ, pins=pins, tokens=tokens)


def servers_of(
    config: Mapping[str, Any],
    where: str,
    folder: Path | None,
    *,
    only: Iterable[str] | None = None,
    environ: Mapping[str, str] = os.environ,
    pins: "str | PathLike[str] | None" = None,
    tokens: "str | PathLike[str] | None" = None,
) -> list[McpSource]:
    """The same for a configuration that was read already; `cwd` of a program is relative to `folder`."""
    servers = config.get("mcpServers")
    if not isinstance(servers, Mapping):
        raise InvalidConfig(
            f"{where} has no object mcpServers", 'as in {"mcpServers": {"docs": {"url": "https://..."}}}'
        )
    wanted = None if only is None else set(only)
    if wanted is not None and (unknown := sorted(wanted - set(servers))):
        raise InvalidConfig(f"{where} names no server {', '.join(map(repr, unknown))}", f"it has: {', '.join(servers)}")
    sources = []
    for name, entry in servers.items():
        if wanted is not None and name not in wanted:
            continue
        options = _options(f"{where}: {name}", entry, folder, environ)
        if options is not None:
            sources.append(from_mcp(name, pins=pins, tokens=tokens, **options))
    return sources


def _read(path: Path) -> Mapping[str, Any]:
    try:
        data = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise InvalidConfig(f"there is no {path}") from None
    except (OSError, ValueError) as error:
        raise InvalidConfig(f"{path} cannot be read as JSON: {error}") from None
    if not isinstance(data, dict):
        raise InvalidConfig(f"{path} holds a {type(data).__name__}, not an object")
    return data


def _options(where: str, entry: Any, folder: Path | None, environ: Mapping[str, str]) -> dict[str, Any] | None:
    """One entry as keywords of `from_mcp`; None for one that is switched off."""
    if not isinstance(entry, Mapping):
        raise InvalidConfig(f"{where} is a {type(entry).__name__}, not an object")
    if granted := sorted(GRANTS & set(entry)):
        raise InvalidConfig(f"{where} says {granted[0]}, which is not honoured", "say classes, and leave it out")
    if unknown := sorted(set(entry) - KEYS - SAID_BY_OTHERS):
        raise InvalidConfig(f"{where} has the unknown key {unknown[0]!r}", f"there are: {', '.join(sorted(KEYS))}")
    if entry.get("disabled") is True:
        return None
    kind = entry.get("type")
    if kind is not None and TYPES.get(kind) not in entry:
        raise InvalidConfig(f"{where} has type {kind!r}", f"known: {', '.join(TYPES)}; with command, or with url")

    def filled(key: str, value: Any) -> str:
        if not isinstance(value, str):
            raise InvalidConfig(f"{where}: {key} holds a {type(value).__name__}, not a text")
        return _VARIABLE.sub(lambda found: _variable(where, key, found, environ), value)

    options: dict[str, Any] = {key: entry[key] for key in OWNERS_WORD if key in entry}
    if "command" in entry:
        arguments = entry.get("args", [])
        if not isinstance(arguments, list):
            raise InvalidConfig(f"{where}: args is a {type(arguments).__name__}, not a list")
        options["command"] = [filled("command", entry["command"]), *(filled("args", each) for each in arguments)]
        options["env"] = _texts(where, "env", entry.get("env", {}), filled)
        if "cwd" in entry:
            options["cwd"] = str((folder or Path()) / filled("cwd", entry["cwd"]))
    if "url" in entry:
        options["url"] = filled("url", entry["url"])
        options["headers"] = _texts(where, "headers", entry.get("headers", {}), filled)
        options["oauth"] = _oauth(where, entry.get("oauth", False), filled)
    return options


def _texts(where: str, key: str, given: Any, filled: Any) -> dict[str, str]:
    if not isinstance(given, Mapping):
        raise InvalidConfig(f"{where}: {key} is a {type(given).__name__}, not an object")
    return {str(name): filled(f"{key}.{name}", value) for name, value in given.items()}


def _oauth(where: str, given: Any, filled: Any) -> OAuth | bool:
    if isinstance(given, bool):
        return given
    if not isinstance(given, Mapping) or set(given) - {"scopes", "client_id", "client_secret", "redirect_port"}:
        raise InvalidConfig(f"{where}: oauth is true, or has scopes, client_id, client_secret and redirect_port")
    options: dict[str, Any] = {key: filled(key, given[key]) for key in ("client_id", "client_secret") if key in given}
    if "scopes" in given:
        options["scopes"] = tuple(filled("scopes", each) for each in given["scopes"])
    if "redirect_port" in given:
        options["redirect_port"] = int(given["redirect_port"])
    return OAuth(**options)


def _variable(where: str, key: str, found: "re.Match[str]", environ: Mapping[str, str]) -> str:
    value = environ.get(found.group(1), found.group(2))
    if value is None:
        raise InvalidConfig(f"{where}: {key} wants the variable {found.group(1)}, which is not set")
    return value
