"""`wakeful notices`, `notify test`, `timer list`, `timer cancel` and `stop --all`: a runtime from a terminal."""

from typing import Annotated

import typer

from wakeful.contracts.agent_identity import AgentControl
from wakeful.service import default_agent_id
from wakeful.service.operations.agents import AgentName
from wakeful.service.operations.runtime import (
    CANCEL_TIMER,
    HOLD_ALL,
    LIST_NOTICES,
    LIST_TIMERS,
    TEST_NOTICE,
    AgentControlRequest,
    HoldRequest,
    NoticeQuery,
    TimerName,
)
from wakeful.surfaces.cli.agent_control import LoggedReasonOption, ReasonOption
from wakeful.surfaces.cli.last_list import remember
from wakeful.surfaces.cli.options import JsonOption, StoreOption, WideOption
from wakeful.surfaces.cli.people import named_people, named_stream
from wakeful.surfaces.cli.places import StoreAddress, ask, place_to_ask
from wakeful.surfaces.cli.problems import WrongRequest
from wakeful.surfaces.cli.screen import columns, prose, short
from wakeful.surfaces.cli.shown_values import age_cell, json_text, moment, one_line, out, plain
from wakeful.views.runtime_records import TimerRecord

NOTICE_ID = 12
"""So much of the id of a notice is shown: enough to ask why it is as it is."""
AllOption = Annotated[bool, typer.Option("--all", help="Everything: every agent, and every turn.")]
OneAgent = Annotated[str | None, typer.Argument(metavar="AGENT", help="One agent. Default: all agents.")]


def notices(
    agent: OneAgent = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="How many.")] = 20,
    json: JsonOption = False,
    wide: WideOption = False,
    store: StoreOption = None,
) -> None:
    """List notices, newest first: what each said, and whether it arrived."""
    place = place_to_ask(store)
    found = ask(LIST_NOTICES, NoticeQuery(agent, limit), place)
    remember("notices", [each.notice_id for each in found], place, [each.agent for each in found])
    if json:
        out(json_text([each.model_dump(mode="json") for each in found], indent=2))
    elif not found:
        out("no notices")
    else:
        cells = [
            (
                plain(each.notice_id[:NOTICE_ID]),
                age_cell(int(each.created_at * 1e6)),
                plain(named_stream(each.agent)),
                each.kind,
                each.state if not each.error else f"{each.state} ({each.attempts}x)",
                one_line(each.text, 200),
            )
            for each in found
        ]
        out(columns(cells, ("ID", "AGE", "AGENT", "KIND", "STATE", "NOTICE"), wide=wide))
        failed = dict.fromkeys(f"{plain(each.to)}: {plain(each.error)}" for each in found if each.error)
        out([f"could not be sent to {words}" for words in [*failed][:3]])
        if any(each.state == "not_sent" and each.kind in ("test", "action_required") for each in found):
            out("not_sent: no notices are sent. To get them on a phone: wakeful channel add ntfy")


def notify_test(
    agent: Annotated[
        str | None, typer.Argument(metavar="AGENT", help="The agent's name. Default: main, or $WAKEFUL_AGENT_ID.")
    ] = None,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Have a test notice sent about an agent, by the process that runs it. wakeful notices shows whether it arrived."""
    place, agent = place_to_ask(store), agent or default_agent_id()
    record = ask(TEST_NOTICE, AgentControlRequest(agent), place)
    if json:
        out(json_text(record.model_dump(mode="json"), indent=2))
        return
    out(f"a test notice about {plain(agent)} is stored; see: wakeful notices {plain(agent)}{place.flag}")


def timers(
    agent: OneAgent = None, json: JsonOption = False, wide: WideOption = False, store: StoreOption = None
) -> None:
    """List timers: the next due time, what became of the last one, failures in a row, and who set it."""
    place = place_to_ask(store)
    found = ask(LIST_TIMERS, AgentName(agent), place)
    if agent is None:
        found.sort(key=lambda each: (each.next is None, each.next or 0.0))
    taken = [name for each in found for name in (each.name, each.agent)]
    remember("timers", [each.timer_id for each in found], place, taken)
    if json:
        out(json_text([each.model_dump(mode="json") for each in found], indent=2))
    elif not found:
        out("no timers")
    else:
        head = ("TIMER", "AGENT", "NEXT", "SCHEDULE", "LAST", "FAILED", "SET BY")
        out(columns([_cells(each) for each in found], head, wide=wide))


def cancel_timer(
    timer: Annotated[str, typer.Argument(metavar="TIMER", help="A timer's id or name, or an agent with one timer.")],
    reason: LoggedReasonOption = "",
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Cancel a timer. One that an agent's file or program sets is set again when that is loaded."""
    record = ask(CANCEL_TIMER, TimerName(timer, reason=reason), place_to_ask(store))
    if json:
        out(json_text(record.model_dump(mode="json"), indent=2))
        return
    out(f"timer {short(record.timer_id)} of agent {plain(record.agent)} is cancelled")
    if record.armed_by == "file":
        out("it stands in the agent's file: take it out there, or the next start sets it again")


def stop(
    everything: AllOption = False,
    reason: ReasonOption = "",
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Stop every agent: turns are cancelled, commands ended, messages refused, until wakeful resume --all."""
    if not everything:
        raise WrongRequest(
            "wakeful stop stops everything, and --all was not given",
            "wakeful stop --all, wakeful agent stop AGENT for one agent, wakeful cancel TURN for one turn",
        )
    hold("stopped", reason, json, place_to_ask(store))


def hold(control: AgentControl, reason: str, json: bool, place: StoreAddress) -> None:
    """Pause, stop or resume everything, and say so."""
    record = ask(HOLD_ALL, HoldRequest(control, reason=reason), place)
    if json:
        out(json_text(record.model_dump(mode="json"), indent=2))
    elif control == "running":
        prose("all agents run again, but for those that were paused or stopped by name")
    else:
        out([f"all agents are {record.control}", f"to resume: wakeful resume --all{place.flag}"])


def _cells(record: TimerRecord) -> tuple[str, ...]:
    following = moment(int(record.next * 1e6)) if record.next is not None else record.state
    last = f"{record.outcome} {moment(int(record.last * 1e6))}" if record.last is not None else "-"
    schedule = f"{record.cron} {record.timezone}" if record.cron is not None else "once"
    name = record.name or short(record.timer_id)
    return (
        plain(name),
        plain(record.agent),
        following,
        schedule,
        last,
        str(record.failures),
        plain(named_people(record.armed_by)),
    )
