"""The one entrance of chat messages: every message that `chat_routing` sends to the chat path is run here.

A thread belongs to whoever began it. Its turns run one after the other: a new message waits for the one before, and
only one that says so (`supersede`) has it stopped first. What the client sends chooses no tools: the belt follows from
the context, from what the server has, and from the policy.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from wakeful.agents.definition import Agent
from wakeful.contracts.content import Prompt
from wakeful.contracts.errors import NotBuiltYet, NotEntitled
from wakeful.contracts.events import MessageAdmitted
from wakeful.contracts.policies import PolicyContext
from wakeful.contracts.tools import Principal
from wakeful.decisions.policy.toolbelt import compose_toolbelt, context_kind
from wakeful.service.requests import RunRequest, Runtime
from wakeful.service.results import RunResult
from wakeful.service.sending import SendMessage, WireSender
from wakeful.service.toolbelt import stated_policy
from wakeful.service.turns import run_turn


async def run_chat_agent(
    runtime: Runtime,
    agent: Agent[Any, Any],
    *,
    thread_id: str,
    user_id: str,
    provider: str,
    model: str,
    chat_context: Mapping[str, Any] | None,
    registry: object | None,
    content: Prompt,
    collections: Sequence[str],
    memory_enabled: bool,
    request_seq: int,
    send_message: SendMessage,
    supersede: bool = False,
) -> RunResult[Any]:
    """Answer a message of a thread, and send what happens as it happens.

    `user_id` is who the connection was authenticated as. `registry` is what the server can do and `chat_context` where
    the user is: neither is guessed from the other. `collections` are searched wherever the user is; an empty list means
    none. Raises InvalidValue for a context that cannot be read and
    NotEntitled for a thread of somebody else, before anything is stored.
    """
    if memory_enabled:
        raise NotBuiltYet("memory_enabled=True", "give False")
    kind = context_kind(chat_context)
    await _check_owner(runtime, agent.name, thread_id, user_id)
    speaking = _with_belt(agent, kind, chat_context, registry, send_message)
    async with WireSender(send_message) as sender:
        request = RunRequest(
            speaking.changed(model=f"{provider}:{model}", fallbacks=()),
            content,
            context={"request_seq": request_seq},
            principal=Principal(id=user_id),
            thread=thread_id,
            supersede=supersede,
            watcher=sender,
            on_turn=sender.begun,
            model_from="user",
            collections=tuple(collections),
        )
        return await run_turn(runtime, request)


async def _check_owner(runtime: Runtime, agent_id: str, thread_id: str, user_id: str) -> None:
    """A thread is its first speaker's. One that nobody began is anybody's to begin."""
    for entry in await runtime.store.read(agent_id, thread_id=thread_id, limit=1):
        event = entry.fact.event
        owner = event.principal if isinstance(event, MessageAdmitted) else None
        if owner != user_id:
            raise NotEntitled(
                f"the thread {thread_id!r} of agent {agent_id!r} does not belong to {user_id!r}",
                "begin a thread of your own: give another thread_id",
            )


def _with_belt(
    agent: Agent[Any, Any],
    kind: PolicyContext,
    chat_context: Mapping[str, Any] | None,
    registry: object | None,
    send_message: object,
) -> Agent[Any, Any]:
    """The agent with the tools that this context unlocks. Sources are asked later; the same policy holds for theirs."""
    policy = stated_policy(agent, kind)
    belt = compose_toolbelt(
        chat_context=chat_context,
        registry=registry,
        providers=agent.tools,
        memory_enabled=False,
        client_tools_manifest=(),
        tool_bridge=send_message,
        send_message=send_message,
        policy=policy.tools,
        declared=lambda tool: tool.declaration,
    )
    return agent.changed(tools=(*belt, *agent.given_sources), policy=policy)
