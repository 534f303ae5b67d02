"""`wakeful cancel`, `pause`, `interject`: what may be asked of a turn, wherever it runs."""

from typing import Annotated

import typer

from wakeful.service.operations import CANCEL, INTERJECT, PAUSE, MessageToTurn, TurnName
from wakeful.surfaces.cli.options import StoreOption
from wakeful.surfaces.cli.outcomes import resume_line
from wakeful.surfaces.cli.places import ask, store_to_read
from wakeful.surfaces.cli.shown_values import out


def cancel(turn: Annotated[str, typer.Argument(metavar="TURN")], store: StoreOption = None) -> None:
    """Ask a turn to stop. Whoever runs it ends it as cancelled, with every call accounted for."""
    place = store_to_read(store)
    told = ask(CANCEL, TurnName(turn), place)
    turn_id = told.before.turn_id
    if not told.accepted:
        out(f"turn {turn_id} is over already: {told.before.state}")
    elif not told.now.is_open:
        out(f"turn {turn_id} rested, and is {told.now.state}")
    else:
        out(f"turn {turn_id} is asked to stop")
        if told.ahead is not None:
            out(f"no process runs it: this ends it: {resume_line(told.ahead, place)}")


def pause(turn: Annotated[str, typer.Argument(metavar="TURN")], store: StoreOption = None) -> None:
    """Let a turn rest. What is under way is finished first; nothing new begins until somebody resumes it."""
    place = store_to_read(store)
    row, accepted, ahead = ask(PAUSE, TurnName(turn), place)
    if accepted:
        out(f"turn {row.turn_id} rests as soon as nothing of it is under way")
    elif row.is_open:
        out(f"turn {row.turn_id} was paused already")
    else:
        out(f"turn {row.turn_id} is over already: {row.state}")
        return
    if ahead is not None:
        out(f"to go on: {resume_line(ahead, place)}")


def interject(
    turn: Annotated[str, typer.Argument(metavar="TURN")],
    text: Annotated[str, typer.Argument(metavar="TEXT")],
    store: StoreOption = None,
) -> None:
    """Say something to a turn that is under way. The model reads it with its next request."""
    place = store_to_read(store)
    turn_id, message_id = ask(INTERJECT, MessageToTurn(turn, text), place)
    out(f"{message_id} is safe; turn {turn_id} reads it with its next request")
