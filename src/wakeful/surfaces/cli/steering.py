"""`wakeful cancel`, `pause`, `interject`: what may be asked of a turn, wherever it runs."""

from typing import Annotated

import typer

from wakeful.service.operations.operation import OPERATOR
from wakeful.service.operations.steering import CANCEL, INTERJECT, PAUSE, MessageToTurn, TurnControl
from wakeful.surfaces.cli.agent_control import ByOption, ReasonOption
from wakeful.surfaces.cli.options import JsonOption, NamedTurn, StoreOption
from wakeful.surfaces.cli.outcomes import resume_line
from wakeful.surfaces.cli.places import ask, store_to_read
from wakeful.surfaces.cli.problems import WrongRequest
from wakeful.surfaces.cli.runtime_watch import AllOption, hold
from wakeful.surfaces.cli.screen import prose, short
from wakeful.surfaces.cli.shown_values import out


def cancel(turn: NamedTurn, store: StoreOption = None) -> None:
    """Stop a turn. The process that runs it ends it as cancelled and records the outcome of every call."""
    place = store_to_read(store)
    told = ask(CANCEL, TurnControl(turn), place)
    turn_id = short(told.before.turn_id)
    if not told.accepted:
        out(f"turn {turn_id} has ended already: {told.before.state}")
    elif not told.now.is_open:
        out(f"turn {turn_id} is {told.now.state}")
    else:
        out(f"turn {turn_id} was asked to stop")
        if told.ahead is not None:
            prose(f"No process runs it. To end it: {resume_line(told.ahead, place)}")


def pause(
    turn: Annotated[
        str | None, typer.Argument(metavar="TURN", help="The turn's id, its beginning, or its key.")
    ] = None,
    everything: AllOption = False,
    reason: ReasonOption = "",
    by: ByOption = OPERATOR,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Pause a turn. Calls that are running finish first; nothing new starts until wakeful resume continues it.

    With --all every agent and every turn is paused, and running commands are ended, until wakeful resume --all.
    """
    if everything == (turn is not None):
        given = "TURN and --all were both given" if everything else "neither a turn nor --all was given"
        raise WrongRequest(given, "wakeful pause TURN, or wakeful pause --all")
    place = store_to_read(store)
    if turn is None:
        hold("paused", by, reason, json, place)
        return
    if json or reason or by != OPERATOR:
        raise WrongRequest("--json, --reason and --as go with --all", "wakeful pause TURN")
    row, accepted, ahead = ask(PAUSE, TurnControl(turn), place)
    if accepted:
        out(f"turn {short(row.turn_id)} pauses as soon as its running calls have finished")
    elif row.is_open:
        out(f"turn {short(row.turn_id)} was paused already")
    else:
        out(f"turn {short(row.turn_id)} has ended already: {row.state}")
        return
    if ahead is not None:
        out(f"to continue: {resume_line(ahead, place)}")


def interject(
    turn: NamedTurn,
    text: Annotated[str, typer.Argument(metavar="TEXT")],
    store: StoreOption = None,
) -> None:
    """Add a message to a running turn. The model reads it with its next request."""
    place = store_to_read(store)
    turn_id, message_id = ask(INTERJECT, MessageToTurn(turn, text), place)
    prose(f"{short(message_id)} is stored; turn {short(turn_id)} reads it with its next model request")
