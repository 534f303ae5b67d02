"""What may be asked about agents of a runtime: which there are, to pause, stop or resume one, to send it a message.

Each is a fact in the log. The process that runs the agents finds it there, so none of them needs that process.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wakeful.contracts.messages import Priority
from wakeful.service.operations.operation import OPERATOR, OpenStore, Operation

if TYPE_CHECKING:
    from wakeful.views.runtime_records import AgentLife, AgentRecord, SentMessage

_AGENT = "wakeful.views.runtime_records.AgentRecord"


@dataclass(frozen=True, slots=True)
class RuntimeAgentName:
    """One agent of a runtime."""

    agent: str


@dataclass(frozen=True, slots=True)
class AgentQuery:
    """One agent by its name, or all that are listed."""

    agent: str | None = None
    private: bool = False
    """Those as well that belong to another agent or to a single run."""


@dataclass(frozen=True, slots=True)
class AgentControlRequest:
    """An agent to pause, stop or resume, and who wants it."""

    agent: str
    by: str = OPERATOR
    reason: str = ""
    seconds: float | None = None
    """Of a pause: after how long it ends by itself."""


@dataclass(frozen=True, slots=True)
class MessageToAgent:
    """A message for an agent's thread."""

    agent: str
    text: str
    thread: str = "main"
    key: str | None = None
    priority: Priority = "normal"
    sender: str | None = None


async def _list(opened: OpenStore, asked: AgentQuery) -> "list[AgentRecord]":
    from wakeful.service.queries.agent_records import agent_record, agent_records

    if asked.agent is not None:
        return [await agent_record(opened.engine, asked.agent)]
    return await agent_records(opened.engine, private=asked.private)


async def _pause(opened: OpenStore, asked: AgentControlRequest) -> "AgentRecord":
    from wakeful.service.commands.agents import pause_agent
    from wakeful.service.queries.agent_records import record_of

    ends = None if asked.seconds is None else opened.engine.clock.now() + round(asked.seconds * 1_000_000)
    row = await pause_agent(opened.engine, asked.agent, by=asked.by, reason=asked.reason, resumes_at=ends)
    return await record_of(opened.engine, row)


async def _stop(opened: OpenStore, asked: AgentControlRequest) -> "AgentRecord":
    from wakeful.service.commands.agents import stop_agent
    from wakeful.service.queries.agent_records import record_of

    return await record_of(
        opened.engine, await stop_agent(opened.engine, asked.agent, by=asked.by, reason=asked.reason)
    )


async def _resume(opened: OpenStore, asked: AgentControlRequest) -> "AgentRecord":
    from wakeful.service.commands.agents import resume_agent
    from wakeful.service.queries.agent_records import record_of

    return await record_of(opened.engine, await resume_agent(opened.engine, asked.agent, by=asked.by))


async def _send(opened: OpenStore, asked: MessageToAgent) -> "SentMessage":
    from wakeful.service.commands.agents import send_message
    from wakeful.service.queries.runtime_agents import sent_message

    row = await send_message(
        opened.engine,
        asked.agent,
        asked.text,
        thread=asked.thread,
        key=asked.key,
        priority=asked.priority,
        sender=asked.sender,
        surface="cli_prompt",
    )
    return sent_message(row)


async def _why(opened: OpenStore, asked: RuntimeAgentName) -> "AgentLife":
    from wakeful.service.queries.agent_lives import why_agent

    return await why_agent(opened.engine, asked.agent)


LIST_AGENTS = Operation("runtime.agents", "observe", AgentQuery, _AGENT, _list, many=True)
PAUSE_AGENT = Operation("runtime.pause", "operate", AgentControlRequest, _AGENT, _pause)
STOP_AGENT = Operation("runtime.stop", "operate", AgentControlRequest, _AGENT, _stop)
RESUME_AGENT = Operation("runtime.resume", "operate", AgentControlRequest, _AGENT, _resume)
SEND = Operation("runtime.send", "operate", MessageToAgent, "wakeful.views.runtime_records.SentMessage", _send)
EXPLAIN_AGENT = Operation("runtime.why", "observe", RuntimeAgentName, "wakeful.views.runtime_records.AgentLife", _why)
