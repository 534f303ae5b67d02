"""`wakeful resume TURN` where a daemon runs the turn's agent: it goes on there, and is not taken away from it."""

from collections.abc import Mapping
from typing import Any

import typer

from wakeful.contracts.errors import AgentNotFound
from wakeful.service.operations.overview import OVERVIEW, OverviewQuery
from wakeful.service.operations.runtime import EXPLAIN_AGENT, LIST_AGENTS, AgentQuery, RuntimeAgentName
from wakeful.service.operations.steering import UNPAUSE, TurnControl
from wakeful.service.operations.subjects import EXPLAIN_SUBJECT, SubjectName
from wakeful.service.operations.turn_reports import SHOW_RESULT
from wakeful.service.operations.turns import SHOW_TURN, TurnName
from wakeful.service.run_result import RunResult
from wakeful.surfaces.cli.daemon_turns import check_options, end_with
from wakeful.surfaces.cli.exit_codes import NEEDS_PERSON
from wakeful.surfaces.cli.people import named_people
from wakeful.surfaces.cli.places import StoreAddress, ask
from wakeful.surfaces.cli.problems import WrongRequest
from wakeful.surfaces.cli.screen import prose, short
from wakeful.surfaces.cli.shown_values import json_text, out, plain
from wakeful.views.runtime_records import AgentRecord
from wakeful.views.store_records import SteeredTurn, TurnRecord

MOVES = ("running", "queued")
"""States of a thread that nobody has to do anything about."""


def resumed_by_daemon(turn: str, own: Mapping[str, Any], place: StoreAddress, *, json: bool, quiet: bool) -> bool:
    """Let a turn of the daemon go on, say what became of it, and end the command where a person has to act first.

    False: the daemon does not run the turn, and its store is on this machine. Raises WrongRequest for an option that
    only a run in this process has.
    """
    row = ask(SHOW_TURN, TurnName(turn), place)
    agent = _agent(row, place) if row.is_open else None
    if agent is not None:
        check_options(own, agent.agent, place)
        told = ask(UNPAUSE, TurnControl(row.turn_id), place)
        if told.is_open:
            _tell_open(told, agent, place, json=json)
            return True
    if place.is_far and agent is None and row.is_open:
        raise WrongRequest(
            f"turn {short(row.turn_id)} belongs to a run of {row.agent}, which the daemon does not run",
            f"resume it on the machine where its store is: wakeful resume {short(row.turn_id)}",
        )
    if place.is_far:
        result = ask(SHOW_RESULT, TurnName(row.turn_id), place)
        end_with(RunResult.from_dict(result), place, json=json, quiet=quiet)
    return False


def _agent(row: TurnRecord, place: StoreAddress) -> AgentRecord | None:
    """The agent of a turn, if it is one of the daemon's."""
    try:
        [found] = ask(LIST_AGENTS, AgentQuery(row.agent_id), place)
    except AgentNotFound:
        return None
    return found


def _tell_open(told: SteeredTurn, agent: AgentRecord, place: StoreAddress, *, json: bool) -> None:
    """Raises typer.Exit where a person has to act before the turn goes on."""
    turn, held = short(told.turn_id), _held(told, agent, place)
    said = f"turn {turn} is not paused any more" if told.accepted else f"turn {turn} was not paused"
    if agent.waiting_for and agent.waiting_for in told.waiting_for:
        said = f"turn {turn} asks {plain(agent.waiting_for)} now"
    if json:
        out(json_text(told.model_dump(mode="json"), indent=2))
    elif held:
        prose(f"{said}. {plain(named_people(held[0]))}")
        out(f"next: {held[1]}{place.flag}")
    else:
        out([f"{said}; the daemon goes on with it", f"watch it: wakeful events {turn} --follow{place.flag}"])
    if held:
        raise typer.Exit(NEEDS_PERSON)


def _held(told: SteeredTurn, agent: AgentRecord, place: StoreAddress) -> tuple[str, str] | None:
    """The reason why the turn does not go on, and the command about it; None: there is none."""
    if everything := ask(OVERVIEW, OverviewQuery(1), place).held:
        return f"Everything is {everything}.", "wakeful resume --all"
    if agent.control != "running":
        return f"Agent {agent.agent} is {agent.control}.", f"wakeful agent resume {agent.agent}"
    if told.accepted:
        return None  # the process that runs it is about to see that
    found = ask(EXPLAIN_AGENT, RuntimeAgentName(agent.agent), place)
    life = next((each for each in found.threads if each.thread == told.thread), None)
    if life is None or life.state in MOVES:
        return None
    return life.sentence, ask(EXPLAIN_SUBJECT, SubjectName(told.turn_id), place).next_command
