"""`wakeful agent`, `agent pause`, `agent stop`, `agent resume` and `wakeful send`: agents of a runtime.

None of them needs the process that runs the agents: it finds what was asked in the log.
"""

from contextlib import suppress
from typing import Annotated

import typer

from wakeful.contracts.errors import AgentNotFound
from wakeful.contracts.messages import Priority
from wakeful.service.operations.runtime import (
    LIST_AGENTS,
    PAUSE_AGENT,
    RESUME_AGENT,
    SEND,
    STOP_AGENT,
    AgentControlRequest,
    AgentQuery,
    MessageToAgent,
)
from wakeful.surfaces.cli.options import JsonOption, StoreOption, WideOption, seconds_of
from wakeful.surfaces.cli.people import named_people
from wakeful.surfaces.cli.places import NO_AGENTS, UNATTENDED, StoreAddress, ask, place_to_ask
from wakeful.surfaces.cli.screen import columns, prose, short
from wakeful.surfaces.cli.shown_values import age_cell, json_text, moment, one_line, out, plain, state_words
from wakeful.views.runtime_records import AgentRecord

AgentArgument = Annotated[str, typer.Argument(metavar="AGENT", help="The agent's name.")]
ReasonOption = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; shown in the list of agents.")]
LoggedReasonOption = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; kept in the log.")]


def listed(
    agent: Annotated[str | None, typer.Argument(metavar="AGENT", help="One agent. Default: all agents.")] = None,
    private: Annotated[
        bool, typer.Option("--private", help="Include agents that belong to another agent or to a single run.")
    ] = False,
    archived: Annotated[bool, typer.Option("--archived", help="Include archived agents.")] = False,
    json: JsonOption = False,
    wide: WideOption = False,
    store: StoreOption = None,
) -> None:
    """List the agents of a runtime: whether they run, since when, and why not."""
    place = place_to_ask(store)
    found = ask(LIST_AGENTS, AgentQuery(agent, private, archived), place)
    if json:
        out(json_text([each.model_dump(mode="json") for each in found], indent=2))
    elif not found:
        out(f"{NO_AGENTS}{place.flag}")
    else:
        cells = [
            (
                plain(each.agent),
                state_words(each.status, each.waiting_for),
                age_cell(int(each.changed_at * 1e6)),
                each.source,
                _why(each),
            )
            for each in found
        ]
        out(columns(cells, ("AGENT", "STATE", "SINCE", "FROM", "WHY"), wide=wide))


def pause(
    agent: AgentArgument,
    duration: Annotated[
        str | None, typer.Option("--for", metavar="TIME", help="Resume by itself after this time: 30m, 8h, 7d.")
    ] = None,
    reason: ReasonOption = "",
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Pause an agent. Running turns pause before their next step; messages are kept until it resumes."""
    place = place_to_ask(store)
    seconds = seconds_of(duration) if duration else None
    record = ask(PAUSE_AGENT, AgentControlRequest(agent, reason=reason, seconds=seconds), place)
    ends = f" until {moment(int(record.resumes_at * 1e6))}" if record.resumes_at is not None else ""
    _told(record, json, f"agent {record.agent} is paused{ends}; it keeps its messages", place.flag)


def stop(
    agent: AgentArgument,
    reason: ReasonOption = "",
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Stop an agent. Running turns are cancelled and new messages refused until wakeful agent resume."""
    place = place_to_ask(store)
    record = ask(STOP_AGENT, AgentControlRequest(agent, reason=reason), place)
    _told(record, json, f"agent {record.agent} is stopped; it refuses messages", place.flag)


def resume(agent: AgentArgument, json: JsonOption = False, store: StoreOption = None) -> None:
    """Resume a paused or stopped agent, with every message that it kept."""
    place = place_to_ask(store)
    record = ask(RESUME_AGENT, AgentControlRequest(agent), place)
    if json:
        out(json_text(record.model_dump(mode="json"), indent=2))
    elif record.hint:  # everything is held
        out([f"agent {plain(record.agent)} runs again when everything does", plain(named_people(record.hint))])
    else:
        out(f"agent {plain(record.agent)} is running")


def send(
    agent: AgentArgument,
    text: Annotated[str, typer.Argument(metavar="TEXT")],
    thread: Annotated[str, typer.Option("--thread", metavar="NAME", help="The conversation.")] = "main",
    key: Annotated[
        str | None, typer.Option("--key", metavar="KEY", help="Sending the same key again sends nothing new.")
    ] = None,
    priority: Annotated[
        Priority, typer.Option("--priority", metavar="BAND", help="interject, next, normal or background.")
    ] = "normal",
    supersede: Annotated[
        bool, typer.Option("--supersede", help="Stop the turns of the thread that began before.")
    ] = False,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Send an agent a message. It is stored when this returns; the process that runs the agent answers it."""
    place = place_to_ask(store)
    sent = ask(SEND, MessageToAgent(agent, text, thread, key, priority, supersede=supersede), place)
    if json:
        out(json_text(sent.model_dump(mode="json"), indent=2))
    else:
        prose(f"{short(sent.message_id)} is stored for agent {plain(sent.agent)}, thread {plain(sent.thread)}")
        for line in _held(sent.agent, place):
            prose(line)
        if place.is_unattended:
            out(UNATTENDED)
        out(f"watch it: wakeful tail {plain(sent.agent)} --follow{place.flag}")


def _held(agent: str, place: StoreAddress) -> list[str]:
    """Lines about a message that is kept because its agent does not run, with the command that lets it run."""
    with suppress(AgentNotFound):  # it runs in a program of its own
        (record,) = ask(LIST_AGENTS, AgentQuery(agent), place)
        if record.control == "paused":
            return ["it is paused and keeps the message", f"to resume: wakeful agent resume {plain(agent)}{place.flag}"]
        return [plain(named_people(record.hint))] if record.hint else []
    return []


def _why(record: AgentRecord) -> str:
    if record.control == "running":
        return one_line(named_people(record.hint), 200) or "-"
    ends = f" until {moment(int(record.resumes_at * 1e6))}" if record.resumes_at is not None else ""
    why = f"{record.reason} ({record.changed_by})" if record.reason else f"by {record.changed_by}"
    return one_line(named_people(f"{why}{ends}"), 200)


def _told(record: AgentRecord, json: bool, words: str, flag: str) -> None:
    if json:
        out(json_text(record.model_dump(mode="json"), indent=2))
    else:
        out([words, f"to resume: wakeful agent resume {plain(record.agent)}{flag}"])
