"""MCP servers that an agent names and does not bring: looked up in the owner's `mcp.json` when a turn is prepared.

    mcp.json in the home                    the owner's own; its entries win
    mcp.json, .mcp.json in the workspace    somebody else may have written them: read only as the owner trusted them

A file of a workspace starts nothing before `wakeful trust` accepted it, and nothing again after its content changed:
the bytes that are parsed are the bytes whose digest was accepted.
"""

import json
import os
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.events import ContextOmission
from wakeful.engine.trusted_files import SERVER_FILES, TrustedFiles
from wakeful.settings.home import home
from wakeful.tools.source import Offer, Surroundings, ToolSource
from wakeful.workspaces.found_files import read_found

if TYPE_CHECKING:
    from wakeful.tools.mcp.source import McpSource

SERVERS = "mcpServers"
MAX_FILE = 1_000_000
"""Bytes of a file in a workspace."""


class ServerFile(NamedTuple):
    """A file that names servers."""

    path: Path
    is_trusted: bool
    data: Mapping[str, Any]
    problem: str = ""
    """Why a file of a workspace could not be read."""

    @property
    def names(self) -> tuple[str, ...]:
        servers = self.data.get(SERVERS)
        return tuple(servers) if isinstance(servers, Mapping) else ()


class NamedServer(ToolSource):
    """A server by its name: nothing is read before a turn uses it."""

    def __init__(self, server: str, workspace: Path | None) -> None:
        self.server = server
        self._workspace = workspace

    @property
    def name(self) -> str:
        return f"mcp.{self.server}"

    def within(self, surroundings: Surroundings) -> ToolSource:
        """The server itself. Raises InvalidConfig where no file that counts names it."""
        return find_server(self.server, self._workspace)

    async def offer(self) -> Offer:
        raise AssertionError("a named server is looked up before it is asked")


def server_files(workspace: Path | None) -> list[ServerFile]:
    """The files there are, the owner's first. Raises InvalidConfig for one that counts and cannot be read."""
    own = home() / SERVER_FILES[0]
    found = [ServerFile(own, True, _parsed(own, own.read_bytes()))] if own.is_file() else []
    for name in SERVER_FILES if workspace is not None else ():
        assert workspace is not None
        path = workspace / name
        if os.path.realpath(path) == os.path.realpath(own):
            continue
        file = read_found(workspace, name, MAX_FILE, lambda each: each)
        if isinstance(file, ContextOmission):
            found.append(ServerFile(path, False, {}, file.detail))
        elif file is not None:
            trusted = TrustedFiles().holds(str(path), file.digest)
            data = _parsed(path, file.data) if trusted else _glanced(file.data)
            found.append(ServerFile(path, trusted, data))
    return found


def find_server(name: str, workspace: Path | None) -> "McpSource":
    """A server by its name. Raises InvalidConfig, saying where it was looked for and what to do."""
    from wakeful.tools.mcp.config import servers_of

    files = server_files(workspace)
    for file in files:
        if file.is_trusted and name in file.names:
            sources = servers_of(file.data, str(file.path), file.path.absolute().parent, only=[name])
            if not sources:
                raise InvalidConfig(f"the MCP server {name!r} is disabled in {file.path}", "Remove disabled: true.")
            return sources[0]
    for file in files:
        if name in file.names:
            hint = f"Read the file, then trust it: wakeful trust {file.path}"
            raise InvalidConfig(f"the MCP server {name!r} is in {file.path}, which is not trusted yet", hint)
    known = [each for file in files if file.is_trusted for each in file.names]
    near = get_close_matches(name, known, n=2, cutoff=0.5)
    there = f"There are: {', '.join(known)}." if known else "Add one: docs/guides/mcp.md has an example."
    hint = f"Did you mean {' or '.join(near)}?" if near else there
    hint += "".join(f" {file.path} was not read: {file.problem}." for file in files if file.problem)
    raise InvalidConfig(f"there is no MCP server {name!r} in {home() / SERVER_FILES[0]}", hint)


def check_servers(names: Iterable[str], workspace: Path | None) -> None:
    """Raises InvalidConfig for a server that an agent names and no file that counts has. Starts none."""
    for name in names:
        find_server(name, workspace)


def _parsed(path: Path, content: bytes) -> Mapping[str, Any]:
    try:
        data = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise InvalidConfig(f"{path} cannot be read as JSON: {error}") from None
    if not isinstance(data, dict):
        raise InvalidConfig(f"{path} holds a {type(data).__name__}, not an object")
    return data


def _glanced(content: bytes) -> Mapping[str, Any]:
    """What stands in a file that does not count, for a hint; nothing where it is no JSON."""
    try:
        data = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}
