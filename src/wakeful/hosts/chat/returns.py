"""Coming back to a chat turn: a client is sent what it missed, asked again what is still open, and waited for.

Where the message was said and by which model it is answered stand in the log: who comes back changes nothing of it.
"""

from typing import Any

from wakeful.contracts.events import MessageAdmitted, TurnStarted
from wakeful.contracts.tools import Principal
from wakeful.engine.agent import Agent
from wakeful.engine.run_request import Engine, MessageOrigin, RunRequest, WorkflowTerms
from wakeful.engine.workflow_registry import WorkflowRegistry
from wakeful.hosts.chat.client_bridge import ClientBridge
from wakeful.hosts.chat.turns import check_owner, until_it_rests, with_belt
from wakeful.hosts.run_access import known_as
from wakeful.service.commands.turns import continue_turn
from wakeful.service.queries.turns import find_turn
from wakeful.service.run_result import RunResult
from wakeful.service.watch import SendMessage, WireSender


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
    said = [entry.fact.event for entry in await engine.store.read(row.agent_id, turn_id=row.turn_id)]
    admitted = next(event for event in said if isinstance(event, MessageAdmitted))
    started = next((event for event in said if isinstance(event, TurnStarted)), None)
    editing = admitted.editing if registry is not None else None
    context = {"kind": "editor", "workflow_id": editing} if editing is not None else None
    speaking = await with_belt(agent, context, registry, bridge, send_message)
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
