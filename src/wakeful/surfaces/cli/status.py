"""`wakeful status`: all agents at a glance, or one of them with what it used.

The first is asked for many times a day: with a daemon nothing is loaded for it but what prints its answer.
"""

import json as json_module
from contextlib import suppress
from decimal import Decimal
from typing import Annotated, Any

import typer

from wakeful.service.operations.overview import OVERVIEW, PATH, SHOWN, OverviewQuery
from wakeful.surfaces.cli.options import JsonOption, StoreOption, WideOption
from wakeful.surfaces.cli.people import named_people
from wakeful.surfaces.cli.places import NO_AGENTS, UNATTENDED, StoreAddress, ask, client_of, place_to_ask
from wakeful.surfaces.cli.problems import WrongRequest
from wakeful.surfaces.cli.screen import columns, prose
from wakeful.surfaces.cli.shown_values import (
    ago,
    counted,
    json_text,
    local_times,
    moment,
    one_line,
    out,
    plain,
    state_words,
)


def command(
    agent: Annotated[str | None, typer.Argument(metavar="AGENT", help="One agent. Default: all agents.")] = None,
    everything: Annotated[bool, typer.Option("--all", help=f"List every agent, not only the first {SHOWN}.")] = False,
    json: JsonOption = False,
    wide: WideOption = False,
    store: StoreOption = None,
) -> None:
    """Show the state of the agents, when each wakes, what it spent today, and what needs you; those come first.

    Of one agent: its open turns, pending approvals, unknown outcomes and tokens.
    """
    place = place_to_ask(store)
    if agent is not None:
        if everything:
            raise WrongRequest("--all was given with an agent", "give one of them")
        _tell_one(agent, place, json=json)
        return
    found = _overview(0 if everything else SHOWN, place)
    if json:
        out(json_text(found, indent=2))
    else:
        _tell(found, place, wide=wide)


def _overview(most: int, place: StoreAddress) -> dict[str, Any]:
    found: dict[str, Any]
    if place.daemon is None:
        found = ask(OVERVIEW, OverviewQuery(most), place).model_dump(mode="json")
        return found
    from wakeful.service.serving.daemon_client import ControlRefused

    client = client_of(place)
    try:
        answer = client.ask("GET", PATH, query={"most": most})
    except ControlRefused as refused:
        from wakeful.service.serving.remote_operations import told

        raise told(refused, client) from None
    found = json_module.loads(answer.body)
    return found


def _tell(found: dict[str, Any], place: StoreAddress, *, wide: bool) -> None:
    if found["held"]:
        out(
            [f"everything is {plain(named_people(found['held']))}; to let it run: wakeful resume --all{place.flag}", ""]
        )
    if found["agents"]:
        head = ("AGENT", "STATE", "NEXT WAKE", "TODAY USD", "NEEDS YOU")
        out(columns([_cells(each) for each in found["agents"]], head, wide=wide))
    else:
        out(f"{NO_AGENTS}{place.flag}")
    held = sum(Decimal(each["cut_off_today_usd"]) for each in found["agents"])
    if held:
        out(f"of today's money {held:f} USD were reserved for requests that were cut off: wakeful cost --today")
    if found["more"]:
        out(f"and {counted(found['more'], 'more agent')}: wakeful status --all{place.flag}")
    asked = []
    if found["approvals"]:
        asked.append(f"to decide: wakeful approvals{place.flag}")
    if found["unknown_outcomes"]:
        asked.append(f"to resolve: wakeful unknown{place.flag}")
    out(["", *asked] if asked else [])
    if place.is_unattended and any(each["state"] != "run" for each in found["agents"]):
        out(["", UNATTENDED])
    if found["file_problems"]:
        out(["", *_problem_lines(found["file_problems"])])


def _cells(each: dict[str, Any]) -> tuple[str, ...]:
    wakes = moment(round(each["next_wake"] * 1e6))[:16] if each["next_wake"] is not None else "-"
    spent = each["spent_today_usd"] if each["spent_is_complete"] else f"{each['spent_today_usd']} or more"
    state = state_words(each["state"], each["waiting_for"])
    return plain(each["agent"]), state, wakes, spent, one_line("; ".join(each["needs"]), 200) or "-"


def _problem_lines(problems: list[dict[str, Any]]) -> list[str]:
    from wakeful.contracts.file_problems import FileProblem
    from wakeful.surfaces.cli.file_words import problem_lines

    lines = problem_lines(FileProblem.model_validate(each) for each in problems)
    return ["files that are not in force", *(f"  {line}" for line in lines)]


def _tell_one(agent: str, place: StoreAddress, *, json: bool) -> None:
    from wakeful.contracts.errors import AgentNotFound
    from wakeful.service.operations.agents import STATUS, StatusQuery
    from wakeful.service.operations.operation import NoRequest
    from wakeful.service.operations.runtime import EXPLAIN_AGENT, FILE_PROBLEMS, RuntimeAgentName

    (found,) = ask(STATUS, StatusQuery(agent), place)
    problems = [each.model_dump(mode="json") for each in ask(FILE_PROBLEMS, NoRequest(), place) if each.agent == agent]
    if json:
        told: dict[str, Any] = {"agents": [found.model_dump(mode="json")]}
        out(json_text(told | ({"file_problems": problems} if problems else {}), indent=2))
        return
    with suppress(AgentNotFound):  # of single runs there is nothing to say
        life = ask(EXPLAIN_AGENT, RuntimeAgentName(agent), place)
        prose(plain(local_times(named_people(life.sentence))))
    used, last = found.token_usage, found.token_usage.last_turn
    queued = f"{counted(found.queued_messages, 'queued message')}, " if found.queued_messages else ""
    out(
        [
            found.agent,
            f"  open       {counted(found.open_turns, 'turn')}, {queued}{found.pending_actions} pending, "
            f"{counted(found.unknown_outcomes, 'unknown outcome')}",
            f"  tokens     {_tokens(used.total)}, in {counted(used.total_model_rounds, 'round')}",
            f"  last turn  {_tokens(last) if last is not None else 'no tokens reported yet'}",
        ]
    )
    for each in found.waiting_threads:
        out(
            [
                f"  behind     {plain(each.turn_id)}, thread {plain(each.thread)}: {counted(each.queued, 'message')}",
                *_queue(each),
            ]
        )
    if found.revised_at is not None:
        since = counted(found.turns_since_revision or 0, "turn")
        out(f"  changed    {ago(int(found.revised_at * 1e6))} ago, {since} since")
    if problems:
        out(_problem_lines(problems))


def _queue(waiting: Any) -> list[str]:
    lines = [
        f"             {each.kind} {each.message_id[:20]}, {ago(int(each.queued_at * 1e6))}"
        for each in waiting.messages
    ]
    more = waiting.queued - len(lines)
    return [*lines, f"             and {more} more"] if more else lines


def _tokens(usage: Any) -> str:
    return f"{usage.total_tokens:,} ({usage.input_tokens:,} in, {usage.output_tokens:,} out)"
