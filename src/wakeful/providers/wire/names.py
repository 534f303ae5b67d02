"""Tool names on a provider's wire, mapped both ways.

A canonical name such as `client/search_docs` travels as `client__search_docs`: letters, digits and underscores, at most
64 of them, a letter first. The name depends on what was declared before it and on nothing after it, so adding a tool
changes no name that a conversation already used.
"""

import hashlib
from collections.abc import Mapping, Sequence

from wakeful.contracts.tools import ToolDeclaration, provider_safe_name

MAX_WIRE_NAME = 64
_SHORT_HASH = 8


class WireNames:
    """The names of one request's tools.

    `aliases` are names a declaration gives by itself (`provider_aliases`): they are understood when a model uses them,
    and never sent.
    """

    __slots__ = ("_aliases", "_canonical", "_wire", "freeform")

    def __init__(self, tools: Sequence[ToolDeclaration] = (), aliases: Mapping[str, str] | None = None) -> None:
        self._wire: dict[str, str] = {}
        self._canonical: dict[str, str] = {}
        for tool in tools:
            if tool.name not in self._wire:
                wire = self._free(tool.name)
                self._wire[tool.name] = wire
                self._canonical[wire] = tool.name
        self.freeform: dict[str, str] = {
            tool.name: tool.freeform.parameter
            for tool in tools
            if tool.freeform is not None and list(tool.input_schema.get("properties", ())) == [tool.freeform.parameter]
        }
        """Tools whose only parameter may be written bare, by canonical name, and that parameter."""
        self._aliases = {alias: name for alias, name in (aliases or {}).items() if alias not in self._canonical}

    def to_wire(self, name: str) -> str:
        """The name a provider sees. A name that is not declared (an earlier tool's) gets one that no tool has."""
        wire = self._wire.get(name)
        if wire is None:
            wire = self._wire[name] = self._free(name)
        return wire

    def from_wire(self, name: str) -> str:
        """The canonical name. What no tool is called comes back as it is, and is a call to an unknown tool."""
        return self._canonical.get(name) or self._aliases.get(name, name)

    def declared(self) -> tuple[str, ...]:
        """The names a provider sees of the tools that are declared."""
        return tuple(self._canonical)

    def _free(self, name: str) -> str:
        alias = provider_safe_name(name)
        if len(alias) <= MAX_WIRE_NAME and alias not in self._canonical:
            return alias
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
        for size in range(_SHORT_HASH, MAX_WIRE_NAME - 1):
            hashed = f"{alias[: MAX_WIRE_NAME - size - 1]}_{digest[:size]}"
            if hashed not in self._canonical:
                return hashed
        raise AssertionError(f"no free name for {name!r}")  # needs a collision of sha256
