"""`wakeful why`, `replay`, `debug latency`: reasons for a call or of an agent, proof of a log, time of a turn."""

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from wakeful.contracts.errors import AgentNotFound, CallNotFound, TurnNotFound
from wakeful.service.operations.calls import EXPLAIN, CallName
from wakeful.service.operations.operation import NoRequest
from wakeful.service.operations.runtime import EXPLAIN_AGENT, RuntimeAgentName
from wakeful.service.operations.subjects import EXPLAIN_ALL, EXPLAIN_SUBJECT, SubjectName
from wakeful.service.operations.turn_reports import REPLAY, SHOW_LATENCY
from wakeful.service.operations.turns import TurnName
from wakeful.surfaces.cli.exit_codes import FAILED
from wakeful.surfaces.cli.options import JsonOption, StoreOption, TurnArgument, WideOption
from wakeful.surfaces.cli.people import named_people
from wakeful.surfaces.cli.places import UNATTENDED, StoreAddress, ask, place_to_ask
from wakeful.surfaces.cli.screen import columns, prose, short
from wakeful.surfaces.cli.shown_values import (
    arguments_text,
    duration,
    json_text,
    local_times,
    moment,
    one_line,
    out,
    plain,
)

if TYPE_CHECKING:
    from wakeful.service.queries.replay import ReplayReport
    from wakeful.views.message_envelope import MessageLabels
    from wakeful.views.runtime_records import AgentLife
    from wakeful.views.subject_story import SubjectStory

FOR_A_RUNTIME = ("broken", "queued", "running", "waiting")
"""States of an agent that only a process which runs it can end."""
HELD, OF_ALL = ("paused", "stopped"), "everything was"
"""States that somebody ends, and how a reason begins that holds for all agents."""


def why(
    subject: Annotated[
        str | None,
        typer.Argument(
            metavar="X",
            help="An agent, turn, call (TURN/CALL), message, timer or notice. Default: all that is not at rest.",
        ),
    ] = None,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Explain why something is as it is, with the facts that show it.

    An agent: why it runs, waits or sleeps. A call: every verdict with its reason, rules, approval, sandbox and outcome.
    A message, timer, notice or turn: where it is, and what it waits for.
    """
    place = place_to_ask(store)
    if subject is None:
        _tell_all(ask(EXPLAIN_ALL, NoRequest(), place), json, place)
        return
    try:
        life = ask(EXPLAIN_AGENT, RuntimeAgentName(subject), place)
        _tell_life(life, json, place)
        _tell_unattended([life], json, place)
        return
    except AgentNotFound as error:
        agents = error.hint.replace("It has", "Agents", 1)
    is_call = "/" in subject or subject.startswith("call_")
    if not is_call:
        with suppress(TurnNotFound):
            _tell_story(ask(EXPLAIN_SUBJECT, SubjectName(subject), place), json, place)
            return
    try:
        told = ask(EXPLAIN, CallName(subject), place)
    except CallNotFound as error:
        if is_call or not error.message.startswith("there is no call"):
            raise
        others = f"{agents} Turns: wakeful events{place.flag}   Timers: wakeful timer list{place.flag}"
        raise CallNotFound(
            f"there is no agent, turn, message, timer or notice {subject!r}, and no call in the newest turns",
            error.hint if error.hint.startswith("Did you mean") else others,
        ) from None
    if json:
        out(json_text(told.model_dump(mode="json"), indent=2))
        return
    prose(f"{plain(told.tool)}({arguments_text(told.arguments, 200)})")
    prose(f"  call {plain(told.call_id)} of agent {plain(told.agent)}, turn {short(told.turn_id)}")
    for each in told.messages:
        prose(f"  its turn began with {_message_words(each)}")
    prose(f"  {told.verdict}, {told.outcome or 'not finished yet'}")
    out("")
    for step in told.steps:
        by = f"{plain(short(named_people(step.by)))}: " if step.by else ""
        prose(f"  {moment(step.at)}  {step.kind:<10}{by}{one_line(named_people(step.words), 400)}")
        for rule in step.rules:
            text = f": {one_line(rule.text, 300)}" if rule.text else ""
            prose(f"  {'':<21}{'rule':<10}{plain(rule.ref)}{text}")
        if step.traceback:
            out("")
            for line in step.traceback.splitlines():
                prose(f"    {plain(line)}")


def _tell_all(lives: "list[AgentLife]", json: bool, place: StoreAddress) -> None:
    if json:
        out(json_text([life.model_dump(mode="json") for life in lives], indent=2))
    elif not lives:
        out("every agent is idle or asleep")
    for life in lives if not json else ():
        _tell_life(life, json, place)
    _tell_unattended(lives, json, place)


def _tell_unattended(lives: "list[AgentLife]", json: bool, place: StoreAddress) -> None:
    if place.is_unattended and not json and any(life.state in FOR_A_RUNTIME for life in lives):
        out(UNATTENDED)


def _tell_story(story: "SubjectStory", json: bool, place: StoreAddress) -> None:
    if json:
        out(json_text(story.model_dump(mode="json"), indent=2))
        return
    prose(_words(story.sentence))
    for fact in story.evidence:
        prose(f"  {_words(fact)}")
    if place.is_unattended and story.kind == "message" and story.state in ("queued", "deferred"):
        out(UNATTENDED)
    if story.next_command:
        out(f"next: {plain(story.next_command)}{place.flag}")


def _words(text: str) -> str:
    """A sentence of the runtime: people by their names, times as the reader's own."""
    return plain(local_times(named_people(text)))


def _tell_life(life: "AgentLife", json: bool, place: StoreAddress) -> None:
    if json:
        out(json_text(life.model_dump(mode="json"), indent=2))
        return
    prose(_words(life.sentence))
    for thread in life.threads:
        if thread.sentence != life.sentence:
            prose(f"  {_words(thread.sentence)}")
        for fact in thread.evidence:
            prose(f"    {_words(fact)}")
    if life.state in HELD:
        is_of_all = life.sentence.startswith(f"{life.agent} is {life.state}: {OF_ALL}")
        command = "wakeful resume --all" if is_of_all else f"wakeful agent resume {plain(life.agent)}"
        out(f"  to let it run again: {command}{place.flag}")


def _message_words(message: "MessageLabels") -> str:
    """`webhook_event from webhook ci by http_webhook, authority external_evidence`."""
    origin = message.origin.model_dump(exclude_none=True)
    kind = origin.pop("kind")
    whence = plain(named_people(" ".join([kind, *map(str, origin.values())])))
    behind = f", because of {message.derived_from}" if message.derived_from != message.authority_class else ""
    return f"{message.kind} from {whence} by {message.delivery_surface}, authority {message.authority_class}{behind}"


def replay(turn: TurnArgument = None, store: StoreOption = None, json: JsonOption = False) -> None:
    """Recompute every decision of a stored turn from its log, and compare each with the recorded one.

    Needs neither the model nor the tools. Ends with exit code 1 at the first difference.
    """
    place = place_to_ask(store)
    report = ask(REPLAY, TurnName(turn), place)
    if json:
        out(json_text(report.to_dict(), indent=2))
    else:
        _tell_replay(report, place)
    if report.divergence is not None:
        raise typer.Exit(FAILED)


def _tell_replay(report: "ReplayReport", place: StoreAddress) -> None:
    still = " (unfinished)" if report.is_open else ""
    out(f"turn {short(report.turn_id)} of agent {report.agent}, {report.state}{still}")
    if report.checked:
        out(columns([(kind, str(count)) for kind, count in report.checked.items()], ("DECISION", "SAME")))
    total = report.decisions
    if report.expired:
        prose(
            f"expired: retention removed the details of {report.expired} of its {report.events} events. Its decisions "
            "cannot be recomputed any more; its conversation, costs and approvals are still there."
        )
        return
    first = report.divergence or report.outdated
    if first is None:
        out(f"identical: {total} decisions from {report.events} events")
        return
    where = f"after {total} decisions, at event {first.event_id} ({first.kind}):"
    if report.outdated is not None:
        when = "earlier" if report.rules < report.rules_now else "later"
        out(f"decided by {when} rules ({report.rules}, this version has {report.rules_now}): another decision {where}")
    else:
        out(f"DIFFERENT {where}")
    out(f"  recorded:    {one_line(first.recorded, 400)}")
    out(f"  recomputed:  {one_line(first.recomputed, 400)}")
    out(f"the log: wakeful events {short(report.turn_id)}{place.flag}")


INSIDE = "  "
"""Work of a child is indented."""


def latency(
    turn: TurnArgument = None, store: StoreOption = None, json: JsonOption = False, wide: WideOption = False
) -> None:
    """Show where a turn spent its time: building requests, waiting for models, running tools."""
    report = ask(SHOW_LATENCY, TurnName(turn), place_to_ask(store))
    if json:
        out(json_text(report.model_dump(mode="json"), indent=2))
        return
    whole = f"{duration(report.turn_ms)}, {duration(report.active_ms or 0)} of it active" if report.turn_ms else "-"
    out(f"turn {short(report.turn_id)}: {whole}")
    if report.queue_wait_ms is not None:
        out(f"  queue     {duration(report.queue_wait_ms)}")
    out(f"  context   {duration(report.context_build_ms)}")
    out(f"  models    {duration(report.provider_ms)}")
    out(f"  tools     {duration(report.tools_ms)}")
    if report.cleanup_ms is not None:
        out(f"  cleanup   {duration(report.cleanup_ms)}")
    if report.asked_at is not None:
        out(f"  now       waits for a model since {moment(int(report.asked_at * 1e6))}")
    rows = []
    for each in report.rounds:
        lost = f"{each.lost_attempts} lost, {duration(each.lost_ms)}" if each.lost_attempts else ""
        rows.append(
            (str(each.step), "model", INSIDE * each.depth + each.model_ref, duration(each.provider_round_ms), lost)
        )
    rows += [
        (str(t.step), "tool", INSIDE * t.depth + t.tool, duration(t.execution_ms), "" if t.succeeded else "failed")
        for t in report.tools
    ]
    if rows:
        out(
            [
                "",
                *columns(
                    sorted(rows, key=lambda row: int(row[0])), ("STEP", "KIND", "NAME", "TOOK", "NOTES"), wide=wide
                ),
            ]
        )
