"""The belt of a chat turn: registered, and allowed by the policy, and unlocked by the context.

Listing is a convenience. What is left out here is refused again when it is called (`judging`), in the same words as a
tool that does not exist. What a client sends can put its own tools before the policy, and changes nothing about it.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.policies import ToolPolicy
from wakeful.contracts.tools import ToolDeclaration
from wakeful.contracts.workflows import EDITOR_TOOLS
from wakeful.decisions.policy.patterns import bare
from wakeful.decisions.policy.permissions import class_verdict
from wakeful.hosts.chat.routing import ChatContext, NotRouted, read_context

T = TypeVar("T")
MEMORY_TOOLS = frozenset({"memory_list", "memory_read", "memory_write"})


def compose_toolbelt(
    *,
    chat_context: Mapping[str, Any] | None,
    registry: object | None,
    providers: Iterable[T],
    memory_enabled: bool,
    client_tools_manifest: Iterable[T],
    tool_bridge: object | None,
    send_message: object | None,
    policy: ToolPolicy,
    declared: Callable[[T], ToolDeclaration],
) -> tuple[T, ...]:
    """The tools of a turn, in the order they were registered; `declared` reads the declaration of one.

    `providers` are the tools registered on the server, those of MCP servers included; the client's own come after
    them and only when there is a bridge to call them by. `registry` and `send_message` are looked at only for whether
    they are there: an editor without a registry builds no workflow, and nothing can be shown to nobody.
    """
    editing = chat_context_of(chat_context).kind == "editor" and registry is not None
    reachable = tool_bridge is not None and send_message is not None
    belt: dict[str, T] = {}
    registered: set[str] = set()

    def offer(tool: T, declaration: ToolDeclaration) -> None:
        unlocked = _unlocked(declaration, editing=editing, memory=memory_enabled, reachable=reachable)
        if unlocked and class_verdict(policy, declaration).decision != "deny":
            belt.setdefault(declaration.name, tool)

    for tool in providers:
        declaration = declared(tool)
        registered.add(declaration.name)
        offer(tool, declaration)
    for tool in client_tools_manifest if reachable else ():
        # A client's tool is the client's whatever its manifest says. It does not take the name of a registered one,
        # not even of one that is left out.
        declaration = declared(tool).model_copy(update={"runtime_owner": "client"})
        if declaration.name not in registered:
            offer(tool, declaration)
    return tuple(belt.values())


def chat_context_of(given: Mapping[str, Any] | None) -> ChatContext:
    """Where the user is; left out means a thread. Raises InvalidValue: an unknown kind is not taken for another."""
    context = read_context(given)
    if isinstance(context, NotRouted):
        raise InvalidValue(context.error, "chat_context", context.message, context.hint)
    return context


def _unlocked(declaration: ToolDeclaration, *, editing: bool, memory: bool, reachable: bool) -> bool:
    """Does the context have what this tool is about?"""
    name = bare(declaration.name)
    if name in EDITOR_TOOLS:
        return editing
    if name.startswith("ui_"):
        return editing and reachable
    return memory if name in MEMORY_TOOLS else True
