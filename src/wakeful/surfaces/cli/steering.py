"""`wakeful cancel`, `pause`, `interject`: what may be asked of a turn, wherever it runs."""

from typing import Annotated

import typer

from wakeful.service.operations.steering import CANCEL, INTERJECT, PAUSE, MessageToTurn, TurnControl
from wakeful.surfaces.cli.agent_control import ReasonOption
from wakeful.surfaces.cli.options import JsonOption, NamedTurn, StoreOption
from wakeful.surfaces.cli.outcomes import resume_line
from wakeful.surfaces.cli.places import UNATTENDED, ask, place_to_ask
from wakeful.surfaces.cli.problems import WrongRequest
from wakeful.surfaces.cli.runtime_watch import AllOption, hold
from wakeful.surfaces.cli.screen import prose, short
from wakeful.surfaces.cli.shown_values import json_text, out
from wakeful.views.store_records import TurnContinuation


def cancel(turn: NamedTurn, json: JsonOption = False, store: StoreOption = None) -> None:
    """Stop a turn. The process that runs it ends it as cancelled and records the outcome of every call."""
    place = place_to_ask(store)
    told = ask(CANCEL, TurnControl(turn), place)
    if json:
        out(json_text(told.model_dump(mode="json"), indent=2))
        return
    turn_id = short(told.turn_id)
    if not told.accepted:
        out(f"turn {turn_id} has ended already: {told.before}")
    elif not told.is_open:
        out(f"turn {turn_id} is {told.state}")
    else:
        out(f"turn {turn_id} was asked to stop")
        if told.ahead is None and place.is_unattended:
            out(UNATTENDED)
        elif told.ahead is not None:
            prose(f"No process runs it. To end it: {resume_line(told.ahead, place)}")


def pause(
    turn: Annotated[
        str | None, typer.Argument(metavar="TURN", help="The turn's id, its beginning, or its key.")
    ] = None,
    everything: AllOption = False,
    reason: ReasonOption = "",
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Pause a turn. Calls that are running finish first; nothing new starts until wakeful resume continues it.

    With --all every agent and every turn is paused, and running commands are ended, until wakeful resume --all.
    """
    if everything == (turn is not None):
        given = "TURN and --all were both given" if everything else "neither a turn nor --all was given"
        raise WrongRequest(given, "wakeful pause TURN, or wakeful pause --all")
    place = place_to_ask(store)
    if turn is None:
        hold("paused", reason, json, place)
        return
    if reason:
        raise WrongRequest("--reason goes with --all", "wakeful pause TURN")
    row = ask(PAUSE, TurnControl(turn), place)
    if json:
        out(json_text(row.model_dump(mode="json"), indent=2))
        return
    if row.accepted:
        out(f"turn {short(row.turn_id)} pauses as soon as its running calls have finished")
    elif row.is_open:
        out(f"turn {short(row.turn_id)} was paused already")
    else:
        out(f"turn {short(row.turn_id)} has ended already: {row.state}")
        return
    out(f"to continue: {resume_line(row.ahead or TurnContinuation(turn_id=row.turn_id, state=row.state), place)}")


def interject(
    turn: NamedTurn,
    text: Annotated[str, typer.Argument(metavar="TEXT")],
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Add a message to a running turn. The model reads it with its next request."""
    place = place_to_ask(store)
    said = ask(INTERJECT, MessageToTurn(turn, text), place)
    if json:
        out(json_text(said.model_dump(mode="json"), indent=2))
        return
    prose(f"{short(said.message_id)} is stored; turn {short(said.turn_id)} reads it with its next model request")
