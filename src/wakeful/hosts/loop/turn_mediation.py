"""The mediation of one turn by itself, for hosts that run their own loop: `mediate_turn`.

It is one turn of the one loop, so that its calls pass the one gate: nothing here lets a call through.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from wakeful.contracts.transcript import Message
from wakeful.hosts.loop.conversation_loop import ConversationLoop

OWN = ("max_turns", "should_continue")
"""Options that say how many turns there are: here it is one."""


async def mediate_turn(
    messages: Iterable[Message | Mapping[str, Any]],
    turn: Mapping[str, Any],
    options: Mapping[str, Any] | None = None,
    *,
    loop: ConversationLoop | None = None,
) -> dict[str, Any]:
    """Run the calls of a turn that the host has taken: `turn` is what a turn runner returns. Raises like the loop.

    `conversation_complete`: nothing was called, or a mediator or the completion policy said that with this turn the run
    is complete.
    """
    given = {name: value for name, value in (options or {}).items() if name not in OWN}
    ran = await (loop or ConversationLoop()).run(
        messages, lambda *_: turn, {**given, "max_turns": 1, "should_continue": None}
    )
    result = ran.to_wire()
    called = bool(turn.get("tool_calls"))
    said_so = "completed_by" in ran.metadata or any(event.type == "completion_policy_stop" for event in ran.events)
    return {
        "messages": result["messages"],
        "tool_execution_results": result["tool_execution_results"],
        "tool_events": result["tool_events"],
        "tool_audit_events": result["tool_audit_events"],
        "events": result["events"],
        "conversation_complete": ran.completed and (not called or said_so),
        "exceeded_budget": ran.budget,
        "approval_required": result.get("approval_required"),
        "runtime_tool_pending": result.get("runtime_tool_pending"),
    }
