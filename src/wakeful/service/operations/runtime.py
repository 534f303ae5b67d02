"""What may be asked about agents of a runtime: which there are, to pause, stop or resume one, to send it a message.

Each is a fact in the log. The process that runs the agents finds it there, so none of them needs that process.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from wakeful.contracts.agent_identity import AgentControl
from wakeful.contracts.errors import ForTheCaller
from wakeful.contracts.messages import Priority
from wakeful.service.operations.agents import AgentName
from wakeful.service.operations.operation import NoRequest, OpenStore, Operation

if TYPE_CHECKING:
    from wakeful.contracts.file_problems import FileProblem, ReloadReport
    from wakeful.engine.run_request import Engine
    from wakeful.ports import MessageRow
    from wakeful.runtime.refusals import RefusalTally
    from wakeful.views.runtime_records import (
        AgentLife,
        AgentRecord,
        NoticeRecord,
        RuntimeHold,
        SentMessage,
        TimerRecord,
    )

_AGENT = "wakeful.views.runtime_records.AgentRecord"
_FILES = "wakeful.contracts.file_problems"
_TIMER = "wakeful.views.runtime_records.TimerRecord"


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
    archived: bool = False
    """Archived agents as well."""
    after: str | None = None
    """The last agent of the page before."""
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class AgentControlRequest:
    """An agent to pause, stop or resume, and who wants it."""

    agent: str
    by: str = ""
    reason: str = ""
    seconds: float | None = None
    """Of a pause: after how long it ends by itself."""


@dataclass(frozen=True, slots=True)
class HoldRequest:
    """All agents to pause, stop or resume, and who wants it."""

    control: AgentControl
    by: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ReloadRequest:
    """The files of the home are to be read again, and who wants it."""

    by: str = ""


@dataclass(frozen=True, slots=True)
class NoticeQuery:
    """The newest notices, of one agent or of all."""

    agent: str | None = None
    limit: int = 100
    after: str | None = None
    """The last notice of the page before."""


@dataclass(frozen=True, slots=True)
class TimerName:
    """A timer to cancel, and who wants it."""

    timer: str
    by: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class MessageToAgent:
    """A message for an agent's thread."""

    agent: str
    text: str
    thread: str = "main"
    key: str | None = None
    priority: Priority = "normal"
    sender: str | None = None
    by_http: bool = False
    """It came over the control interface, from a caller that was authenticated."""
    supersede: bool = False
    """Stop the turns of the thread that began before: their answers are not wanted any more."""


async def _list(opened: OpenStore, asked: AgentQuery) -> "list[AgentRecord]":
    from wakeful.service.queries.agent_records import agent_record, agent_records

    if asked.agent is not None:
        found = [await agent_record(opened.engine, asked.agent)]
    else:
        found = await agent_records(
            opened.engine, private=asked.private, archived=asked.archived, after=asked.after, limit=asked.limit
        )
    return found if opened.living is None else [await opened.living.refusals.counted(each) for each in found]


async def _pause(opened: OpenStore, asked: AgentControlRequest) -> "AgentRecord":
    from wakeful.service.commands.agents import end_of_pause, pause_agent
    from wakeful.service.queries.agent_records import record_of

    ends = end_of_pause(opened.engine, asked.seconds)
    row = await pause_agent(opened.engine, asked.agent, by=asked.by, reason=asked.reason, resumes_at=ends)
    return await record_of(opened.engine, row)


async def _stop(opened: OpenStore, asked: AgentControlRequest) -> "AgentRecord":
    from wakeful.service.commands.agents import stop_agent
    from wakeful.service.queries.agent_records import record_of

    if opened.living is not None:
        row = await opened.living.stop(asked.agent, by=asked.by, reason=asked.reason)
    else:
        row = await stop_agent(opened.engine, asked.agent, by=asked.by, reason=asked.reason)
    return await record_of(opened.engine, row)


async def _resume(opened: OpenStore, asked: AgentControlRequest) -> "AgentRecord":
    from wakeful.service.commands.agents import resume_agent
    from wakeful.service.queries.agent_records import record_of

    if opened.living is not None:
        row = await opened.living.resume(asked.agent, by=asked.by)
    else:
        row = await resume_agent(opened.engine, asked.agent, by=asked.by)
    return await record_of(opened.engine, row)


async def _hold(opened: OpenStore, asked: HoldRequest) -> "RuntimeHold":
    from wakeful.service.commands.runtime_holds import hold_everything, release_everything
    from wakeful.service.queries.notices import hold_record

    if opened.living is not None:
        return await opened.living.hold(asked.control, by=asked.by, reason=asked.reason)
    if asked.control == "running":
        return hold_record(await release_everything(opened.engine, by=asked.by))
    return hold_record(await hold_everything(opened.engine, asked.control, by=asked.by, reason=asked.reason))


async def _notices(opened: OpenStore, asked: NoticeQuery) -> "list[NoticeRecord]":
    from wakeful.service.queries.notices import notices_of

    return await notices_of(opened.store, asked.agent, asked.limit, asked.after)


async def _test_notice(opened: OpenStore, asked: AgentControlRequest) -> "AgentRecord":
    from wakeful.service.commands.agents import agent_named
    from wakeful.service.queries.agent_records import record_of
    from wakeful.service.queries.notices import request_test

    await request_test(opened.engine, asked.agent, by=asked.by)
    return await record_of(opened.engine, await agent_named(opened.store, asked.agent))


async def _timers(opened: OpenStore, asked: AgentName) -> "list[TimerRecord]":
    from wakeful.service.queries.runtime_agents import list_timers

    return await list_timers(opened.engine, asked.agent)


async def _cancel_timer(opened: OpenStore, asked: TimerName) -> "TimerRecord":
    from wakeful.contracts.errors import TimerNotFound
    from wakeful.ports.timers import TIMERS
    from wakeful.runtime.timers import cancel_timer, meant_timer
    from wakeful.service.queries.record_names import meant_row
    from wakeful.service.queries.runtime_agents import timer_record

    row = await meant_row(opened.store, TIMERS, asked.timer, "timer_", "timers", TimerNotFound)
    rows = await opened.store.timers() if row is None else []
    is_name = any(asked.timer in (each.name, each.agent_id) for each in rows)
    timer_id = meant_timer(rows, asked.timer).timer_id if is_name else asked.timer if row is None else row.timer_id
    return timer_record(await cancel_timer(opened.engine, timer_id, by=asked.by, reason=asked.reason))


class _Sending(NamedTuple):
    """What a message is sent with, loaded with the first one: to look for a module that is there takes longer than most
    of what is done for a message, and there may be thousands a second."""

    send_message: "Callable[..., Awaitable[MessageRow]]"
    sent_message: "Callable[[MessageRow], SentMessage]"
    tally: "Callable[[Engine], RefusalTally]"


@cache
def _sending() -> _Sending:
    from wakeful.runtime.refusals import RefusalTally
    from wakeful.service.commands.agents import send_message
    from wakeful.service.queries.runtime_agents import sent_message

    return _Sending(send_message, sent_message, RefusalTally)


async def _send(opened: OpenStore, asked: MessageToAgent) -> "SentMessage":
    send_message, sent_message, tally = _sending()
    agent, living = asked.agent, opened.living
    if living is not None:
        agent = await living.supply.addressee(agent, living.default_model)
    refusals = living.refusals if living is not None else tally(opened.engine)
    try:
        row = await send_message(
            opened.engine,
            agent,
            asked.text,
            thread=asked.thread,
            key=asked.key,
            priority=asked.priority,
            sender=asked.sender,
            surface="http_control_prompt" if asked.by_http else "cli_prompt",
            admission="control_authenticated" if asked.by_http else "local_process",
            supersede=asked.supersede,
        )
    except ForTheCaller as refusal:
        await refusals.take(agent, refusal)
        raise
    return sent_message(row)


async def _reload(opened: OpenStore, asked: ReloadRequest) -> "ReloadReport":
    from wakeful.service.file_reloads import request_reload

    return await request_reload(opened.engine, by=asked.by)


async def _file_problems(opened: OpenStore, asked: NoRequest) -> "list[FileProblem]":
    from wakeful.service.file_reloads import file_problems

    return list(await file_problems(opened.store))


async def _why(opened: OpenStore, asked: RuntimeAgentName) -> "AgentLife":
    from wakeful.service.queries.agent_lives import why_agent

    if opened.living is not None:
        return await opened.living.why(asked.agent)
    return await why_agent(opened.engine, asked.agent)


LIST_AGENTS = Operation("runtime.agents", "observe", AgentQuery, _AGENT, _list, many=True)
PAUSE_AGENT = Operation("runtime.pause", "operate", AgentControlRequest, _AGENT, _pause, repeatable=True)
STOP_AGENT = Operation("runtime.stop", "operate", AgentControlRequest, _AGENT, _stop, repeatable=True)
RESUME_AGENT = Operation("runtime.resume", "operate", AgentControlRequest, _AGENT, _resume, repeatable=True)
SEND = Operation("runtime.send", "operate", MessageToAgent, "wakeful.views.runtime_records.SentMessage", _send)
EXPLAIN_AGENT = Operation("runtime.why", "observe", RuntimeAgentName, "wakeful.views.runtime_records.AgentLife", _why)
HOLD_ALL = Operation(
    "runtime.hold_all", "operate", HoldRequest, "wakeful.views.runtime_records.RuntimeHold", _hold, repeatable=True
)
RELOAD = Operation("runtime.reload", "operate", ReloadRequest, f"{_FILES}.ReloadReport", _reload, repeatable=True)
FILE_PROBLEMS = Operation(
    "runtime.file_problems", "observe", NoRequest, f"{_FILES}.FileProblem", _file_problems, many=True
)
LIST_NOTICES = Operation(
    "runtime.notices", "observe", NoticeQuery, "wakeful.views.runtime_records.NoticeRecord", _notices, many=True
)
TEST_NOTICE = Operation("runtime.test_notice", "operate", AgentControlRequest, _AGENT, _test_notice)
LIST_TIMERS = Operation("runtime.timers", "observe", AgentName, _TIMER, _timers, many=True)
CANCEL_TIMER = Operation("runtime.cancel_timer", "operate", TimerName, _TIMER, _cancel_timer, repeatable=True)
