"""Permission classes: which are on, which need a person, and what that says about one tool.

The rule: what is not on is off. A policy is built from the owner's settings alone; the only thing that can be done to
it afterwards is to narrow it. A tool that the policy leaves out is answered like one that does not exist.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.policies import PolicyContext, ToolPolicy
from wakeful.contracts.tool_catalog import CAPABILITIES
from wakeful.contracts.tools import Confinement, PermissionClass, ToolDeclaration
from wakeful.contracts.verdicts import Decision, Verdict, combined

ALWAYS_ON: frozenset[PermissionClass] = frozenset({"safe", "knowledge", "subagent", "network", "workspace_write"})
SHELL_PROFILES = frozenset({"coding", "shell_first"})
"""Profiles whose agents run commands, sandboxed."""
OUTSIDE_OWNERS = frozenset({"mcp_server", "client", "hosted_connector"})
"""Whoever runs these tools is not the caller's own program."""
CLASS_FLAGS: Mapping[PermissionClass, str] = MappingProxyType(
    {"network": "network", "workspace_write": "filesystem", "editor_mutate": "write"}
)
"""The capability that a class is about: every tool of the class has it."""
NOT_FOUND = "tool_not_found"
"""A tool that policy leaves out is told to the model as one there is not."""


def default_policy(
    context: PolicyContext,
    *,
    profile: str | None = None,
    workspace_root: str | None = None,
    allowed_mcp_servers: Iterable[str] = (),
    secrets: bool = False,
    unconfined: Decision = "ask",
) -> ToolPolicy:
    """The classes a session has unless its owner says otherwise.

    `secrets` is opt-in: in a chat it is off without it, in a library run, where the caller hands such a tool over by
    name, it asks. `execute` is on for profiles that run commands, and in a library run.
    `external_write` is on and asks. A command that nothing confines asks: it could do whatever its user can, decide
    approvals among it.
    """
    if context not in ("thread", "editor", "library"):
        raise InvalidConfig(f"no tool policy for context {context!r}", "give thread, editor or library")
    classes = set(ALWAYS_ON) | {"external_write"}
    if context == "editor":
        classes.add("editor_mutate")
    if context == "library" or profile in SHELL_PROFILES:
        classes.add("execute")
    ask: set[PermissionClass] = {"external_write"}
    if secrets or context == "library":
        classes.add("secrets")
    if not secrets:
        ask.add("secrets")
    return ToolPolicy(
        context=context,
        classes=frozenset(classes),
        ask=frozenset(ask & classes),
        workspace_root=workspace_root,
        allowed_mcp_servers=tuple(dict.fromkeys(allowed_mcp_servers)),
        unconfined=unconfined,
    )


def class_of(declaration: ToolDeclaration) -> PermissionClass:
    """The class a tool is judged by. What a client says of its own tool counts only where it makes it stricter."""
    declared = declaration.permission
    if declaration.runtime_owner == "client" and declared in ("safe", "knowledge", "subagent", "network"):
        return "network" if declaration.is_read_only else "external_write"
    return declared


def capabilities_of(declaration: ToolDeclaration) -> tuple[str, ...]:
    """What it was declared with and what its class is about; flags nobody knows as `custom:<name>`."""
    flags = [
        flag if flag in CAPABILITIES or flag.startswith("custom:") else f"custom:{flag}"
        for flag in declaration.capabilities
    ]
    flags += [CLASS_FLAGS[kind] for kind in (class_of(declaration),) if kind in CLASS_FLAGS]
    if declaration.runtime_owner == "client":
        flags.append("custom:client")
    return tuple(dict.fromkeys(flags))


def server_of(declaration: ToolDeclaration) -> str | None:
    """The MCP server a tool is from; blank when it is from one and does not say which; None for every other tool."""
    prefix, slash, _ = declaration.name.partition("/")
    named = slash and prefix.startswith("mcp.")
    if not named and declaration.runtime_owner != "mcp_server":
        return None
    return prefix.removeprefix("mcp.") if named else ""


def class_verdict(policy: ToolPolicy, declaration: ToolDeclaration) -> Verdict:
    """What the classes say about a tool, whatever its arguments."""
    name, kind = declaration.name, class_of(declaration)
    server = server_of(declaration)
    if server is not None and server not in policy.allowed_mcp_servers:
        return _left_out(f"{name} is from the MCP server {server or 'without a name'!r}, which the owner did not allow")
    if kind not in policy.classes:
        return _left_out(f"{name} is of class {kind}, which is off in context {policy.context}")
    if kind == "workspace_write" and policy.workspace_root is None:
        return _left_out(f"{name} works on files of a workspace, and this session has no workspace")
    if kind in policy.ask and not _handed_over(policy, declaration, kind):
        return Verdict("ask", "mode", f"{name} is of class {kind}, which needs a person", layer="class")
    return Verdict(
        "allow", "mode", f"{name} is of class {kind}, which is on in context {policy.context}", layer="class"
    )


def _handed_over(policy: ToolPolicy, declaration: ToolDeclaration, kind: PermissionClass) -> bool:
    """In a library run the caller's own function needs nobody's leave: the caller wrote it and passed it in.

    The same holds for a tool that the caller declared for its own client: the client is asked, and can refuse.
    """
    return (
        policy.context == "library"
        and kind == "external_write"
        and (declaration.runtime_owner not in OUTSIDE_OWNERS or declaration.answered_by == "client")
        and server_of(declaration) is None
    )


def _left_out(reason: str) -> Verdict:
    return Verdict("deny", "mode", reason, layer="class", error_type=NOT_FOUND)


def confinement_verdict(policy: ToolPolicy, name: str, confinement: Confinement | None) -> Verdict | None:
    """What a command needs because nothing confines it; None when something does, or when there is no command."""
    if confinement is None or confinement.mode != "not_enforced":
        return None
    why = f" ({confinement.reason})" if confinement.reason else ""
    return Verdict(policy.unconfined, "sandbox", f"{name} would run unconfined: not_enforced{why}", layer="confinement")


def stricter(policy: ToolPolicy, declared: ToolDeclaration, for_this_call: ToolDeclaration) -> Verdict:
    """The class verdict when a tool says more of one call than it declared. Both hold."""
    return combined((class_verdict(policy, declared), class_verdict(policy, for_this_call)))
