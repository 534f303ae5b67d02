"""Taking in a chat message: read, routed, and run where it belongs.

A message that goes nowhere is refused with the code of what is wrong with it, and nothing runs and nothing is stored.
Both ways send what happens through the same channel.
"""

import logging
from collections.abc import Mapping
from typing import Any

from pydantic import ConfigDict, ValidationError

from wakeful.contracts.errors import InvalidValue, WorkflowNotFound
from wakeful.contracts.tools import Principal
from wakeful.contracts.values import Value
from wakeful.engine.agent import Agent
from wakeful.engine.run_request import Engine, MessageOrigin, RunRequest, WorkflowTerms
from wakeful.engine.workflow_registry import WorkflowRegistry
from wakeful.hosts.chat.client_bridge import ClientBridge
from wakeful.hosts.chat.routing import NotRouted, ToWorkflow, route
from wakeful.hosts.chat.turns import chat_budget, check_owner, run_chat_agent
from wakeful.hosts.run_access import known_as
from wakeful.service.run_result import RunResult
from wakeful.service.watch import SendMessage, WireSender
from wakeful.service.workflows.runs import run_workflow


class ChatMessage(Value):
    """What is read of a message, wherever it goes. Who speaks is known from the connection and is no field of it."""

    model_config = ConfigDict(extra="ignore")

    thread_id: str
    content: str
    provider: str | None = None
    model: str | None = None
    """The model that answers; a saved workflow needs none."""
    collections: tuple[str, ...] = ()
    memory_enabled: bool = False
    request_seq: int = 0
    supersede: bool = False
    """The turn of the thread that still runs is to be stopped first."""
    workflow_inputs: dict[str, Any] = {}


INVALID_MESSAGE = "invalid_message"
_log = logging.getLogger("wakeful.chat")


async def answer_message(
    engine: Engine,
    agent: Agent[Any, Any],
    message: Mapping[str, Any],
    *,
    user_id: str,
    send_message: SendMessage,
    registry: WorkflowRegistry | None = None,
    bridge: ClientBridge | None = None,
    agents: tuple[Agent[Any, Any], ...] = (),
) -> RunResult[Any]:
    """Answer a message of whoever the connection was authenticated as. `agents` are those that nodes may name.

    Raises InvalidValue (`unsupported_route`, `invalid_chat_context`, `invalid_workflow_target`, `invalid_message`,
    `invalid_workflow_input`), WorkflowNotFound and NotEntitled before anything runs.
    """
    routed = route(message)
    if isinstance(routed, NotRouted):
        raise InvalidValue(routed.error, "", routed.message, routed.hint)
    if routed.ignored:
        _log.debug("fields of a message that change nothing: %s", ", ".join(routed.ignored))
    read = _read(message)
    if isinstance(routed, ToWorkflow):
        return await _run_saved(engine, agent, routed.workflow_id, read, user_id, send_message, registry, agents)
    if not read.provider or not read.model:
        missing = "provider" if not read.provider else "model"
        raise InvalidValue(INVALID_MESSAGE, missing, "it is not said which model answers", "give provider and model")
    return await run_chat_agent(
        engine,
        agent,
        thread_id=read.thread_id,
        user_id=user_id,
        provider=read.provider,
        model=read.model,
        chat_context=message.get("chat_context"),
        registry=registry,
        content=read.content,
        collections=read.collections,
        memory_enabled=read.memory_enabled,
        request_seq=read.request_seq,
        send_message=send_message,
        supersede=read.supersede,
        bridge=bridge,
        agents=agents,
    )


def _read(message: Mapping[str, Any]) -> ChatMessage:
    try:
        return ChatMessage.model_validate(dict(message))
    except ValidationError as error:
        wrong = error.errors()[0]
        path = ".".join(map(str, wrong["loc"]))
        raise InvalidValue(INVALID_MESSAGE, path, wrong["msg"], "thread_id and content are texts") from None


async def _run_saved(
    engine: Engine,
    agent: Agent[Any, Any],
    workflow_id: str,
    message: ChatMessage,
    user_id: str,
    send_message: SendMessage,
    registry: WorkflowRegistry | None,
    agents: tuple[Agent[Any, Any], ...],
) -> RunResult[Any]:
    """A saved workflow, as it is: no model is asked about it but those of its own nodes."""
    if registry is None:
        raise WorkflowNotFound(f"there is no workflow {workflow_id!r}: this server has no registry of workflows")
    saved = await registry.get(workflow_id)
    speaker = known_as("user", user_id)
    await check_owner(engine, agent.name, message.thread_id, speaker)
    async with WireSender(send_message, keys=tuple(engine.surroundings.secrets())) as sender:
        request = RunRequest(
            agent,
            message.content,
            context={"request_seq": message.request_seq},
            principal=Principal(id=speaker),
            thread=message.thread_id,
            supersede=message.supersede,
            budget=chat_budget(agent),
            watcher=sender,
            on_turn=sender.begun,
            origin=MessageOrigin(policy_context="thread"),
            workflows=WorkflowTerms(agents=agents),
        )
        result = (await run_workflow(engine, registry, saved, request, message.workflow_inputs)).run
        sender.facts(result.facts())
        return result
