"""What a server lists, as tools: named, described, classed, or withheld with the reason.

A hint that is missing counts against the tool. What does not declare itself read-only is `external_write` unless an
operator gives it another class: it is offered, and each call asks. What contradicts itself is not believed in its own
favour. Withheld is only what cannot be used: no fit name, no schema that can be checked.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from wakeful.contracts.tools import Effect, PermissionClass, ToolDeclaration
from wakeful.decisions.schema_keywords import WorkAllowance
from wakeful.decisions.schema_validator import schema_problem
from wakeful.tools.mcp.servers import Server, keys_of

MAX_DESCRIPTION = 8_000
MAX_SCHEMA_BYTES = 128 * 1024
MAX_NAME = 128
MAX_LISTING_STEPS = 10_000_000
"""What checking all schemas of one server may take; the tools after that are left out."""
_UNFIT = re.compile(r"[^A-Za-z0-9_.-]")
_PLAIN = re.compile(r"^[\x21-\x7e][\x20-\x7e]*$")


@dataclass(frozen=True, slots=True)
class ListedTool:
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
class ToolList:
    """A server's tools."""

    tools: tuple[ListedTool, ...]
    cut: str = ""
    """Why there may be more than these."""

    def find(self, name: str) -> ListedTool | None:
        return next((tool for tool in self.tools if tool.name == name), None)


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool that may be offered, if it is what it was when it was pinned."""

    listed: ListedTool
    declaration: ToolDeclaration


@dataclass(frozen=True, slots=True)
class LeftOutTool:
    """A tool that is not offered."""

    name: str
    reason: str
    description: str


@dataclass(frozen=True, slots=True)
class ServerToolRules:
    """What the owner says of a server's tools."""

    classes: Mapping[str, PermissionClass]
    """Patterns of tool names to classes; the first that fits holds."""
    reads_private: bool
    timeout: float
    untrusted: bool | tuple[str, ...] | None = None
    """Whose results anybody may have written: all, none, patterns of tool names. None: those of an open world."""
    content: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Patterns of tool names to parameters with free text."""


def fingerprint(description: str | None, input_schema: Mapping[str, Any], hints: Mapping[str, Any]) -> str:
    """Changes when anything a model is told, or the runtime believes, about a tool changes."""
    text = json.dumps([description or "", input_schema, hints], sort_keys=True, ensure_ascii=True)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def canonical(server: str, tool: str) -> str:
    """`mcp.<server>/<tool>`; what a name here cannot hold becomes `_`."""
    fit = _UNFIT.sub("_", tool)
    return f"mcp.{server}/{fit if not fit[:1].isdigit() and fit[:1] not in '.-' else '_' + fit}"


def sort_out(server: Server, listing: ToolList, rules: ServerToolRules) -> tuple[list[OfferedTool], list[LeftOutTool]]:
    """Every listed tool, kept or left out."""
    kept: list[OfferedTool] = []
    left: list[LeftOutTool] = []
    names = Counter(canonical(server.name, tool.name) for tool in listing.tools)
    steps = WorkAllowance(MAX_LISTING_STEPS)
    for tool in listing.tools:
        name = canonical(server.name, tool.name)
        reason = _unfit(tool, steps) or (
            f"{names[name]} tools of this server have that name" if names[name] > 1 else None
        )
        if reason:
            words = keys_of(server).hide_keys(tool.description[:MAX_DESCRIPTION])
            left.append(LeftOutTool(name[:MAX_NAME], reason, words))
        else:
            kept.append(OfferedTool(tool, _declare(server, tool, name, rules)))
    for pattern, paths in rules.content.items():
        meant = [tool for tool in listing.tools if fnmatchcase(tool.name, pattern)]
        for path in paths:
            if not any(path in _content(tool, rules) for tool in meant):
                reason = f"content names {path!r} for {pattern!r}, and no tool of the server has such a parameter"
                left.append(LeftOutTool(f"mcp.{server.name}/{pattern}"[:MAX_NAME], reason, ""))
    if listing.cut:
        left.append(LeftOutTool(f"mcp.{server.name}/*", listing.cut, ""))
    return kept, left


def is_read_only(tool: ListedTool) -> bool:
    """It says so, and nothing else it says contradicts it."""
    return tool.read_only is True and tool.destructive is not True


def _unfit(tool: ListedTool, steps: WorkAllowance) -> str | None:
    if not _PLAIN.match(tool.name) or len(tool.name) > MAX_NAME - 70:
        return f"its name {tool.name[:80]!a} cannot be a tool's name"
    if tool.input_schema.get("type") != "object":
        return "its schema does not describe an object"
    if len(json.dumps(tool.input_schema)) > MAX_SCHEMA_BYTES:
        return f"its schema is larger than {MAX_SCHEMA_BYTES:,} bytes"
    problem = schema_problem(tool.input_schema, steps)
    return None if problem is None else f"its schema is {problem}"


def _assigned(name: str, rules: ServerToolRules) -> PermissionClass | None:
    return next((given for pattern, given in rules.classes.items() if fnmatchcase(name, pattern)), None)


def _untrusted(tool: ListedTool, rules: ServerToolRules) -> bool | None:
    """The owner's word, else the tool's own: one that says that its world is closed is believed.

    None: it follows from where the tool runs, which is elsewhere.
    """
    if isinstance(rules.untrusted, bool):
        return rules.untrusted
    if rules.untrusted is not None and any(fnmatchcase(tool.name, pattern) for pattern in rules.untrusted):
        return True
    return False if tool.open_world is False else None


def _content(tool: ListedTool, rules: ServerToolRules) -> tuple[str, ...]:
    """Parameters that the owner named as free text, as far as the tool has them."""
    properties = tool.input_schema.get("properties")
    known = properties if isinstance(properties, Mapping) else {}
    named = [path for pattern, paths in rules.content.items() if fnmatchcase(tool.name, pattern) for path in paths]
    return tuple(dict.fromkeys(path for path in named if path.partition(".")[0] in known))


def _declare(server: Server, tool: ListedTool, name: str, rules: ServerToolRules) -> ToolDeclaration:
    read_only = is_read_only(tool)
    effect: Effect = "pure" if read_only else "keyed" if tool.idempotent is True else "irreversible"
    leaves = tool.open_world is not False
    capabilities = ["read"] if read_only else ["write"]
    if leaves:
        capabilities.append("network")
    if not read_only and tool.destructive is not False:
        capabilities.append("custom:destructive")
    words = keys_of(server).hide_keys(tool.description)
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
        untrusted=_untrusted(tool, rules),
        content=_content(tool, rules),
        external=True,
        permission_class=_assigned(tool.name, rules) or ("network" if read_only else "external_write"),
        capabilities=tuple(capabilities),
        categories=("mcp", f"mcp.{server.name}"),
        runtime_owner="mcp_server",
        interrupt_behavior="cancel",  # its server is told
    )
