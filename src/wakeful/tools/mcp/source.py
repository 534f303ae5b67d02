"""A server among an agent's tools: asked what it has when a turn is taken up, and let go when nobody runs any more."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from wakeful.contracts.errors import InvalidConfig
from wakeful.tools.mcp import places
from wakeful.tools.mcp.calls import McpTool
from wakeful.tools.mcp.failures import NotReached, ServerProblem, ToolDrift
from wakeful.tools.mcp.pins import Pins
from wakeful.tools.mcp.servers import (
    HttpServer,
    OAuth,
    Protocol,
    Server,
    ServerLimits,
    StdioServer,
    check_classes,
    keys_of,
)
from wakeful.tools.mcp.shared_connections import ConnectionPlace, place_of
from wakeful.tools.mcp.tool_list import ListedTool, ServerToolRules, canonical, sort_out
from wakeful.tools.source import Offer, ToolSource, WithheldTool

if TYPE_CHECKING:
    from wakeful.tools.mcp.connection import OnProgress

OWNER = "owner"
"""Whose permission is used when a run acts for nobody in particular."""


class McpSource(ToolSource):
    """One server's tools. Made by `from_mcp` and `mcp_servers`; nothing is started before it is asked."""

    def __init__(
        self, server: Server, rules: ServerToolRules, limits: ServerLimits, pins: Pins, tokens: Path, principal: str
    ) -> None:
        self.server = server
        self.rules = rules
        self.limits = limits
        self.pins = pins
        self.tokens = tokens
        self.principal = principal
        self._keys = keys_of(server)
        self._held: WeakSet[asyncio.AbstractEventLoop] = WeakSet()

    def __repr__(self) -> str:
        return f"<{self.name} at {self.server.where}>"

    @property
    def name(self) -> str:
        return f"mcp.{self.server.name}"

    async def offer(self) -> Offer:
        place = self._place(None)
        loop = asyncio.get_running_loop()
        if loop not in self._held:
            self._held.add(loop)
            place.take()
        try:
            async with place.used() as connection:
                listing = await connection.listing(fresh=True)
            place.answered()
            kept, left = await asyncio.to_thread(sort_out, self.server, listing, self.rules)
            parked = await asyncio.to_thread(self.pins.check, self.server.name, [each.listed for each in kept])
        except (ServerProblem, InvalidConfig) as problem:
            return Offer((), await self._unavailable(problem.message))
        withheld = [WithheldTool(each.name, each.reason, each.description, "denied") for each in left]
        tools: list[McpTool] = []
        for each in kept:
            change = parked.get(each.listed.name)
            if change is None:
                tools.append(McpTool(each.declaration, each.listed, self._send))
                continue
            reason = (
                f"its description or schema changed since {change.since}; "
                f"`wakeful mcp approve {self.server.name}` to accept"
            )
            withheld.append(WithheldTool(each.declaration.name, reason, each.declaration.description, "denied"))
        return Offer(tuple(tools), tuple(withheld))

    async def close(self) -> None:
        loop = asyncio.get_running_loop()
        if loop in self._held:
            self._held.discard(loop)
            await self._place(None).give_back()

    async def _unavailable(self, why: str) -> tuple[WithheldTool, ...]:
        """Every tool the server is known to have: it is unavailable, and not missing."""
        reason = f"its server {self.server.name!r} ({self.server.where}) is not available: {why}"
        known: Sequence[str] = ()
        with suppress(InvalidConfig):
            known = [pin.tool for pin in await asyncio.to_thread(self.pins.known, self.server.name)]
        names = [canonical(self.server.name, tool) for tool in known] or [f"{self.name}/*"]
        return tuple(WithheldTool(name, reason) for name in names)

    async def _send(
        self,
        listed: ListedTool,
        arguments: dict[str, Any],
        seconds: float,
        on_progress: "OnProgress",
        principal: str | None,
    ) -> Any:
        """A call, on the connection of whoever it is for. A session that is gone is made anew once."""
        until = asyncio.get_running_loop().time() + seconds
        place = self._place(principal)

        def progressed(progress: float, total: float | None, message: str | None) -> None:
            on_progress(progress, total, message and self._keys.hide_keys(message))

        for attempt in (1, 2):
            async with place.used() as connection:
                try:
                    now = (await connection.listing()).find(listed.name)
                    if now is None or now.fingerprint != listed.fingerprint:
                        what = "it is gone" if now is None else "its description or schema changed"
                        raise ToolDrift(f"{what} since it was offered")
                    left = max(0.0, until - asyncio.get_running_loop().time())
                    result = await connection.call(listed.name, arguments, left, progressed)
                except NotReached:
                    if attempt == 2 or not connection.ended.is_set():
                        raise
                    continue
            place.answered()
            from wakeful.tools.mcp.results import output_of

            return output_of(result, self._keys)
        raise AssertionError("the second attempt returns or raises")

    def _place(self, principal: str | None) -> ConnectionPlace:
        own = principal if principal is not None and self._has_principals else self.principal
        return place_of(self.server, self.limits, own, self.tokens)

    @property
    def _has_principals(self) -> bool:
        return isinstance(self.server, HttpServer) and self.server.oauth is not None


def from_mcp(
    name: str,
    *,
    command: Sequence[str] | None = None,
    env: Mapping[str, str] | None = None,
    cwd: "str | PathLike[str] | None" = None,
    url: str | None = None,
    headers: Mapping[str, str] | None = None,
    oauth: OAuth | bool = False,
    allow_private: bool = False,
    classes: Mapping[str, str] | None = None,
    reads_private: bool | None = None,
    untrusted: bool | Sequence[str] | None = None,
    content: Mapping[str, Sequence[str]] | None = None,
    timeout: float = 300.0,
    protocol: Protocol = "auto",
    principal: str = OWNER,
    pins: "str | PathLike[str] | None" = None,
    tokens: "str | PathLike[str] | None" = None,
    limits: ServerLimits | None = None,
) -> McpSource:
    """The tools of an MCP server, named `mcp.<name>/<tool>`: a program (`command=`) or a URL (`url=`).

    A tool that does not declare itself read-only is of class `external_write`, and its calls ask; `classes` gives
    others, by pattern (`{"merge_*": "workspace_write"}`). A program gets a bare environment and `env`.
    Results count as untrusted unless the tool declares that its world is closed (`openWorldHint: false`);
    `untrusted` sets this for all tools, or for some by pattern. `content={"send_*": ["body"]}` names free text.
    """
    need_the_package()
    if (command is None) == (url is None):
        raise InvalidConfig(f"from_mcp({name!r}): give command=[...] or url=..., and not both")
    if isinstance(command, str):
        raise InvalidConfig(
            f"from_mcp({name!r}): command is a text", "give a list: command=['npx', '-y', 'the-server']"
        )
    if not timeout > 0:
        raise InvalidConfig(f"from_mcp({name!r}): timeout={timeout!r} is not a number of seconds")
    server: Server
    if url is None:
        for given, what in ((headers, "headers"), (oauth, "oauth"), (allow_private, "allow_private")):
            if given:
                raise InvalidConfig(f"from_mcp({name!r}): {what}= is for servers at a URL")
        folder = fspath(cwd) if cwd is not None else None
        server = StdioServer(
            name=name, command=tuple(command or ()), env=dict(env or {}), cwd=folder, protocol=protocol
        )
    else:
        if env or cwd is not None:
            raise InvalidConfig(f"from_mcp({name!r}): env= and cwd= are for servers that are started here")
        login = OAuth() if oauth is True else oauth or None
        server = HttpServer(
            name=name,
            url=url,
            headers=dict(headers or {}),
            allow_private=allow_private,
            oauth=login,
            protocol=protocol,
        )
    private = server.holds_private if reads_private is None else reads_private
    return McpSource(
        server,
        ServerToolRules(
            check_classes(name, classes or {}),
            private,
            timeout,
            _untrusted(name, untrusted),
            {pattern: _texts(name, f"content[{pattern!r}]", paths) for pattern, paths in (content or {}).items()},
        ),
        limits or ServerLimits(),
        Pins(Path(pins) if pins is not None else places.pins_file()),
        Path(tokens) if tokens is not None else places.tokens_folder(),
        principal,
    )


def _untrusted(name: str, given: bool | Sequence[str] | None) -> bool | tuple[str, ...] | None:
    return given if given is None or isinstance(given, bool) else _texts(name, "untrusted", given)


def _texts(name: str, what: str, given: Sequence[Any]) -> tuple[str, ...]:
    if isinstance(given, str) or not all(isinstance(each, str) and each for each in given):
        raise InvalidConfig(f"from_mcp({name!r}): {what} is {given!r}", 'give a list of names: ["read_*"]')
    return tuple(given)


def need_the_package() -> None:
    """Raises InvalidConfig when the package `mcp` is not there."""
    if find_spec("mcp") is None:
        raise InvalidConfig("MCP servers need the package mcp, which is not installed", "pip install 'wakeful[mcp]'")
