"""The chat path: messages routed, turns run, clients with tools of their own.

    from wakeful.hosts.chat import answer_message, open_engine

    async with open_engine("chats.db") as engine:
        await answer_message(engine, agent, message, user_id="ann", send_message=send)

A server brings the connection and says who is at its other end. Each name is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wakeful.engine.workflow_parts import workflow_registry as workflow_registry
    from wakeful.engine.workflow_registry import WorkflowRegistry as WorkflowRegistry
    from wakeful.hosts.chat.client_bridge import ClientBridge as ClientBridge
    from wakeful.hosts.chat.client_bridge import ClientToolResult as ClientToolResult
    from wakeful.hosts.chat.client_manifest import ClientManifest as ClientManifest
    from wakeful.hosts.chat.messages import ChatMessage as ChatMessage
    from wakeful.hosts.chat.messages import answer_message as answer_message
    from wakeful.hosts.chat.routing import ChatContext as ChatContext
    from wakeful.hosts.chat.routing import NotRouted as NotRouted
    from wakeful.hosts.chat.routing import ToChat as ToChat
    from wakeful.hosts.chat.routing import ToWorkflow as ToWorkflow
    from wakeful.hosts.chat.routing import route as route
    from wakeful.hosts.chat.toolbelt import compose_toolbelt as compose_toolbelt
    from wakeful.hosts.chat.turns import return_to_turn as return_to_turn
    from wakeful.hosts.chat.turns import run_chat_agent as run_chat_agent
    from wakeful.hosts.entrances import open_engine as open_engine
    from wakeful.views.chat_messages import ClientToolCall as ClientToolCall

_WHERE = {
    "ChatContext": "wakeful.hosts.chat.routing",
    "ChatMessage": "wakeful.hosts.chat.messages",
    "ClientBridge": "wakeful.hosts.chat.client_bridge",
    "ClientManifest": "wakeful.hosts.chat.client_manifest",
    "ClientToolCall": "wakeful.views.chat_messages",
    "ClientToolResult": "wakeful.hosts.chat.client_bridge",
    "NotRouted": "wakeful.hosts.chat.routing",
    "ToChat": "wakeful.hosts.chat.routing",
    "ToWorkflow": "wakeful.hosts.chat.routing",
    "WorkflowRegistry": "wakeful.engine.workflow_registry",
    "answer_message": "wakeful.hosts.chat.messages",
    "compose_toolbelt": "wakeful.hosts.chat.toolbelt",
    "open_engine": "wakeful.hosts.entrances",
    "return_to_turn": "wakeful.hosts.chat.turns",
    "route": "wakeful.hosts.chat.routing",
    "run_chat_agent": "wakeful.hosts.chat.turns",
    "workflow_registry": "wakeful.engine.workflow_parts",
}

__all__ = list(_WHERE)


def __getattr__(name: str) -> Any:
    where = _WHERE.get(name)
    if where is None:
        raise AttributeError(f"module 'wakeful.hosts.chat' has no attribute {name!r}")
    value = getattr(import_module(where), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
