"""What a server lists, as tools: named, described, classed, or withheld with the reason.

A hint that is missing counts against the tool. What does not declare itself read-only gets no class by itself: an
operator gives it one, or it is withheld. What contradicts itself is not believed in its own favour.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from wakeful.contracts.tools import Effect, PermissionClass, ToolDeclaration
from wakeful.tools.mcp.servers import Server

MAX_DESCRIPTION = 8_000
MAX_SCHEMA_BYTES = 128 * 1024
MAX_NAME = 128
_UNFIT = re.compile(r"[^A-Za-z0-9_.-]")
_PLAIN = re.compile(r"^[\x21-\x7e][\x20-\x7e]*$")


@dataclass(frozen=True, slots=True)
class Listed:
    """One tool, as its server describes it. None: it says nothing."""

    name: str
    description: str
    input_schema: dict[str, Any]
    fingerprint: str
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """A server's tools."""

    tools: tuple[Listed, ...]
    cut: str = ""
    """Why there may be more than these."""

    def find(self, name: str) -> Listed | None:
        return next((tool for tool in self.tools if tool.name == name), None)


@dataclass(frozen=True, slots=True)
class Kept:
    """A tool that may be offered, if it is what it was when it was pinned."""

    listed: Listed
    declaration: ToolDeclaration


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A tool that is not offered."""

    name: str
    reason: str
    description: str


@dataclass(frozen=True, slots=True)
class Rules:
    """What the owner says of a server's tools."""

    classes: Mapping[str, PermissionClass]
    """Patterns of tool names to classes; the first that fits holds."""
    reads_private: bool
    timeout: float


def fingerprint(description: str | None, input_schema: Mapping[str, Any], hints: Mapping[str, Any]) -> str:
    """Changes when anything a model is told, or the runtime believes, about a tool changes."""
    text = json.dumps([description or "", input_schema, hints], sort_keys=True, ensure_ascii=True)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def canonical(server: str, tool: str) -> str:
    """`mcp.<server>/<tool>`; what a name here cannot hold becomes `_`."""
    fit = _UNFIT.sub("_", tool)
    return f"mcp.{server}/{fit if not fit[:1].isdigit() and fit[:1] not in '.-' else '_' + fit}"


def sort_out(server: Server, listing: Listing, rules: Rules) -> tuple[list[Kept], list[LeftOut]]:
    """Every listed tool, kept or left out."""
    kept: list[Kept] = []
    left: list[LeftOut] = []
    names = Counter(canonical(server.name, tool.name) for tool in listing.tools)
    for tool in listing.tools:
        name = canonical(server.name, tool.name)
        reason = _unfit(tool) or (
            f"{names[name]} tools of this server have that name" if names[name] > 1 else _unclassed(tool, rules)
        )
        if reason:
            left.append(LeftOut(name[:MAX_NAME], reason, tool.description[:MAX_DESCRIPTION]))
        else:
            kept.append(Kept(tool, _declare(server, tool, name, rules)))
    if listing.cut:
        left.append(LeftOut(f"mcp.{server.name}/*", listing.cut, ""))
    return kept, left


def is_read_only(tool: Listed) -> bool:
    """It says so, and nothing else it says contradicts it."""
    return tool.read_only is True and tool.destructive is not True


def _unfit(tool: Listed) -> str | None:
    if not _PLAIN.match(tool.name) or len(tool.name) > MAX_NAME - 70:
        return f"its name {tool.name[:80]!a} cannot be a tool's name"
    if tool.input_schema.get("type") != "object":
        return "its schema does not describe an object"
    if len(json.dumps(tool.input_schema)) > MAX_SCHEMA_BYTES:
        return f"its schema is larger than {MAX_SCHEMA_BYTES:,} bytes"
    return _no_schema(tool.input_schema)


def _no_schema(schema: dict[str, Any]) -> str | None:
    from jsonschema import Draft202012Validator, SchemaError

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return f"its schema is no JSON Schema: {error.message[:200]}"
    except RecursionError:
        return "its schema is nested too deeply"
    return None


def _unclassed(tool: Listed, rules: Rules) -> str | None:
    if is_read_only(tool) or _assigned(tool.name, rules) is not None:
        return None
    return (
        "it does not declare itself read-only and nobody gave it a permission class; "
        f"to offer it, give one: classes={{{tool.name!r}: 'external_write'}}"
    )


def _assigned(name: str, rules: Rules) -> PermissionClass | None:
    return next((given for pattern, given in rules.classes.items() if fnmatchcase(name, pattern)), None)


def _declare(server: Server, tool: Listed, name: str, rules: Rules) -> ToolDeclaration:
    read_only = is_read_only(tool)
    effect: Effect = "pure" if read_only else "keyed" if tool.idempotent is True else "irreversible"
    leaves = server.leaves_machine or tool.open_world is not False
    capabilities = ["read"] if read_only else ["write"]
    if leaves:
        capabilities.append("network")
    if not read_only and tool.destructive is not False:
        capabilities.append("custom:destructive")
    words = tool.description
    if len(words) > MAX_DESCRIPTION:
        words = words[:MAX_DESCRIPTION] + " [cut]"
    return ToolDeclaration(
        name=name,
        description=words,
        input_schema=tool.input_schema,
        effect=effect,
        timeout=rules.timeout,
        parallel_safe=read_only,
        reads_private=rules.reads_private,
        changes_state=not read_only,
        leaves_machine=leaves,
        external=True,
        permission_class=_assigned(tool.name, rules) or "network",
        capabilities=tuple(capabilities),
        categories=("mcp", f"mcp.{server.name}"),
        runtime_owner="mcp_server",
        interrupt_behavior="cancel",  # its server is told
    )
