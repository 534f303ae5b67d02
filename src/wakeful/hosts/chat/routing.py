"""Where an incoming chat message goes: a saved workflow, the one chat path, or nowhere.

The order is fixed: `workflow_target`, then `media_generation`, then chat. What a message does not say in so many words
is never guessed from its other fields, and what cannot be read is refused; it does not become something else.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

IGNORED = ("tools", "agent_mode", "user_id")
"""Fields that change nothing. Tools come from the belt, there is one kind of chat, and who speaks is known from the
connection."""
KINDS = ("thread", "editor")


class ChatContext(NamedTuple):
    """Where in the user interface the message was written."""

    kind: Literal["thread", "editor"] = "thread"
    workflow_id: str | None = None
    """What the editor shows."""


class ToChat(NamedTuple):
    """The one path of every message that is neither for a saved workflow nor for something that is not there."""

    context: ChatContext
    ignored: tuple[str, ...] = ()
    """Fields that were there and change nothing: worth a debug line at most."""


class ToWorkflow(NamedTuple):
    """A saved workflow is run."""

    workflow_id: str
    ignored: tuple[str, ...] = ()


class NotRouted(NamedTuple):
    """The message is answered with an error, and nothing is run."""

    error: Literal["unsupported_route", "invalid_chat_context", "invalid_workflow_target"]
    message: str
    hint: str


Route: TypeAlias = ToChat | ToWorkflow | NotRouted


def route(message: Mapping[str, Any]) -> Route:
    """Where the message goes. Fields that are not named here have no say in it."""
    ignored = tuple(name for name in IGNORED if name in message)
    if message.get("workflow_target") == "workflow":
        return _to_workflow(message, ignored)
    media = message.get("media_generation")
    mode = media.get("mode") if isinstance(media, Mapping) else None
    if mode is not None and mode != "chat":
        return NotRouted(
            "unsupported_route",
            f"media_generation.mode is {mode!r}, and media are not generated here",
            "leave media_generation out to chat",
        )
    context = read_context(message.get("chat_context"))
    return context if isinstance(context, NotRouted) else ToChat(context, ignored)


def _to_workflow(message: Mapping[str, Any], ignored: tuple[str, ...]) -> Route:
    workflow_id = message.get("workflow_id")
    if isinstance(workflow_id, str) and workflow_id:
        return ToWorkflow(workflow_id, ignored)
    return NotRouted(
        "invalid_workflow_target",
        f"workflow_target is 'workflow', and workflow_id is {workflow_id!r}",
        "name the saved workflow in workflow_id",
    )


def read_context(given: Any) -> ChatContext | NotRouted:
    """What a `chat_context` says; left out, it is a thread."""
    if given is None:
        return ChatContext()
    kind = given.get("kind") if isinstance(given, Mapping) else None
    workflow_id = given.get("workflow_id") if isinstance(given, Mapping) else None
    if kind == "thread":
        return ChatContext("thread")
    if kind != "editor":
        said = f"its kind is {kind!r}" if isinstance(given, Mapping) else f"it is {given!r}"
        return NotRouted(
            "invalid_chat_context",
            f"chat_context has to say where the message was written, and {said}",
            f"kind is one of {', '.join(KINDS)}; without chat_context it is a thread",
        )
    if isinstance(workflow_id, str) and workflow_id:
        return ChatContext("editor", workflow_id)
    return NotRouted(
        "invalid_chat_context",
        f"chat_context.kind is 'editor', and its workflow_id is {workflow_id!r}",
        "name the workflow that the editor shows in chat_context.workflow_id",
    )
