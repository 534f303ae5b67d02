"""The one entrance of chat messages: every message that `chat_routing` sends to the chat path is run here.

A thread belongs to whoever began it. Its turns run one after the other: a new message waits for the one before, and
only one that says so (`supersede`) has it stopped first. What the client sends chooses no tools: the belt follows from
the context, from what the server has, and from the policy. Somebody waits for the answer: the budget is `interactive`.

Coming back to a turn (`return_to_turn`): a client is sent what it missed, asked again what is still open, and waited
for. Where the message was said and which model answers it stand in the log: who comes back changes nothing of it.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from wakeful.contracts.budgets import Budget
from wakeful.contracts.content import Prompt
from wakeful.contracts.errors import InvalidRequest, NotEntitled
from wakeful.contracts.events import MessageAdmitted, TurnStarted
from wakeful.contracts.tools import Principal
from wakeful.decisions.policy.patterns import any_named
from wakeful.engine.agent import Agent
from wakeful.engine.prepare.tools import stated_policy
from wakeful.engine.run_request import Engine, MessageOrigin, RunRequest, WorkflowTerms
from wakeful.engine.workflow_parts import editor_tools
from wakeful.engine.workflow_registry import WorkflowRegistry
from wakeful.hosts.chat.client_bridge import ClientBridge
from wakeful.hosts.chat.client_manifest import ClientManifest
from wakeful.hosts.chat.toolbelt import chat_context_of, compose_toolbelt
from wakeful.hosts.run_access import known_as
from wakeful.service.commands.turns import continue_turn, run_turn
from wakeful.service.queries.turns import find_turn, turn_events
from wakeful.service.run_result import RunResult
from wakeful.service.watch import SendMessage, WireSender
from wakeful.tools.runtime_tools import AnsweredHere
from wakeful.tools.tool import Tool

_log = logging.getLogger("wakeful.chat")


async def run_chat_agent(
    engine: Engine,
    agent: Agent[Any, Any],
    *,
    thread_id: str,
    user_id: str,
    provider: str,
    model: str,
    chat_context: Mapping[str, Any] | None,
    registry: WorkflowRegistry | None,
    content: Prompt,
    collections: Sequence[str],
    memory_enabled: bool,
    request_seq: int,
    send_message: SendMessage,
    supersede: bool = False,
    bridge: ClientBridge | None = None,
    agents: tuple[Agent[Any, Any], ...] = (),
) -> RunResult[Any]:
    """Answer a message of a thread, and send what happens as it happens.

    `user_id` is who the connection was authenticated as. `registry` is what the server can do and `chat_context` where
    the user is: neither is guessed from the other. `collections` are searched wherever the user is; an empty list means
    none. With `memory_enabled` the agent's memory is searched for the message, and takes the turn in.
    `bridge` leads to the client's own tools, which an editor may use; while the client runs one it is waited for.
    Raises InvalidValue for a context that cannot be read and NotEntitled for a thread of somebody else, before anything
    is stored.
    """
    if memory_enabled and not agent.memory:
        raise InvalidRequest(
            f"memory_enabled=True, and agent {agent.name!r} keeps no memory",
            "give Agent(..., memory=True), or say memory_enabled=False",
        )
    context = chat_context_of(chat_context)
    speaker = known_as("user", user_id)
    await check_owner(engine, agent.name, thread_id, speaker)
    speaking = await with_belt(agent, chat_context, registry, bridge, send_message, memory_enabled)
    async with WireSender(send_message, keys=tuple(engine.surroundings.secrets())) as sender:
        request = RunRequest(
            speaking.changed(model=f"{provider}:{model}", fallbacks=()),
            content,
            context={"request_seq": request_seq},
            principal=Principal(id=speaker),
            thread=thread_id,
            supersede=supersede,
            budget=chat_budget(agent),
            watcher=sender,
            on_turn=sender.begun,
            collections=tuple(collections),
            recalls=memory_enabled,
            origin=MessageOrigin(policy_context=context.kind, model_from="user"),
            workflows=WorkflowTerms(
                agents=agents, editing=context.workflow_id if registry is not None else None, registry=registry
            ),
        )
        return await until_it_rests(engine, request, await run_turn(engine, request), bridge, sender)


async def until_it_rests(
    engine: Engine, request: RunRequest, result: RunResult[Any], bridge: ClientBridge | None, sender: WireSender
) -> RunResult[Any]:
    """Go on with a turn for as long as it rests on nothing but what the client at the other end answers."""
    while bridge is not None and result.runtime_tools and await bridge.answered(result):
        result = await continue_turn(engine, result.turn_id, request)
    sender.facts(result.facts())  # whatever somebody else did with the turn: a cancel that ended it at rest
    return result


def chat_budget(agent: Agent[Any, Any]) -> Budget:
    """What a turn may use while somebody waits for it; the agent's own budget, where it has one."""
    return agent.budget or Budget(profile="interactive")


async def check_owner(engine: Engine, agent_id: str, thread_id: str, user_id: str | None) -> None:
    """A thread is its first speaker's. One that nobody began is anybody's to begin. Raises NotEntitled."""
    for entry in await engine.store.read(agent_id, thread_id=thread_id, limit=1):
        event = entry.fact.event
        owner = event.principal if isinstance(event, MessageAdmitted | TurnStarted) else None
        if owner != user_id:
            raise NotEntitled(
                f"the thread {thread_id!r} of agent {agent_id!r} does not belong to {user_id!r}",
                "begin a thread of your own: give another thread_id",
            )


async def with_belt(
    agent: Agent[Any, Any],
    chat_context: Mapping[str, Any] | None,
    registry: WorkflowRegistry | None,
    bridge: ClientBridge | None,
    send_message: object,
    memory_enabled: bool,
) -> Agent[Any, Any]:
    """The agent with the tools that this context unlocks. Sources are asked later; the same policy holds for theirs.

    Without `memory_enabled` it has no memory here: nothing is searched, shown or kept.
    """
    kind = chat_context_of(chat_context).kind
    built_here = editor_tools(kind, registry)
    candidates: tuple[Tool[Any], ...] = (*agent.tools, *map(AnsweredHere, built_here))
    belt = compose_toolbelt(
        chat_context=chat_context,
        registry=registry,
        providers=candidates,
        memory_enabled=memory_enabled,
        client_tools_manifest=await _proxies(candidates, registry, bridge) if built_here else (),
        tool_bridge=bridge,
        send_message=send_message,
        policy=stated_policy(agent, kind).tools,
        declared=lambda tool: tool.declaration,
    )
    asked = _still_asked(agent, candidates, belt)
    return agent.changed(tools=(*belt, *agent.given_sources), hitl_tools=asked, memory=memory_enabled)


def _still_asked(agent: Agent[Any, Any], candidates: Sequence[Tool[Any]], belt: Sequence[Tool[Any]]) -> tuple[str, ...]:
    """What needs a person, without what names nothing but tools that the context left out."""
    offered = {tool.name for tool in belt}
    locked = [tool.name for tool in candidates if tool.name not in offered]

    def is_locked(pattern: str) -> bool:
        is_there = any(any_named((pattern,), name) for name in offered)
        return not is_there and any(any_named((pattern,), name) for name in locked)

    return tuple(pattern for pattern in agent.hitl_tools if not is_locked(pattern))


async def _proxies(
    candidates: Sequence[Tool[Any]], registry: WorkflowRegistry | None, bridge: ClientBridge | None
) -> Sequence[Tool[Any]]:
    """What the client says it can do, as tools. It takes no name of a tool that is there."""
    if bridge is None:
        return ()
    nodes = registry.list_node_types() if registry is not None else ()
    taken = [*(tool.name for tool in candidates), *(node.ref for node in nodes)]
    manifest = ClientManifest(bridge.manifest, server_tools=taken, timeout=bridge.timeout)
    for warning in manifest.warnings:
        _log.warning(warning)
    return (await manifest.offer()).tools


async def return_to_turn(
    engine: Engine,
    agent: Agent[Any, Any],
    turn_id: str,
    *,
    user_id: str,
    send_message: SendMessage,
    after_seq: int = 0,
    registry: WorkflowRegistry | None = None,
    bridge: ClientBridge | None = None,
    agents: tuple[Agent[Any, Any], ...] = (),
) -> RunResult[Any]:
    """Send what comes after `after_seq`, and go on with the turn until it rests or is over.

    A turn that is over is told and not touched. Raises TurnNotFound, and NotEntitled for a thread of somebody else.
    """
    row = await find_turn(engine.store, turn_id)
    speaker = known_as("user", user_id)
    await check_owner(engine, row.agent_id, row.thread_id, speaker)
    said = [entry.fact.event for entry in await turn_events(engine.store, row)]
    admitted = next(event for event in said if isinstance(event, MessageAdmitted))
    started = next((event for event in said if isinstance(event, TurnStarted)), None)
    editing = admitted.editing if registry is not None else None
    context = {"kind": "editor", "workflow_id": editing} if editing is not None else None
    speaking = await with_belt(agent, context, registry, bridge, send_message, admitted.memory_enabled)
    if started is not None and admitted.workflow_ref is None:
        speaking = speaking.changed(model=started.model_ref, fallbacks=())
    keys = tuple(engine.surroundings.secrets())
    async with WireSender(send_message, keys=keys, after_seq=after_seq) as sender:
        request = RunRequest(
            speaking,
            "",
            principal=Principal(id=speaker),
            thread=row.thread_id,
            watcher=sender,
            origin=MessageOrigin(model_from="user"),
            workflows=WorkflowTerms(agents=agents, registry=registry),
        )
        sender.begun(row.turn_id, row.agent_id)
        result = await continue_turn(engine, row.turn_id, request)
        return await until_it_rests(engine, request, result, bridge, sender)
