"""`wakeful timer run`: what a timer does when it is due, now."""

from typing import Annotated

import typer

from wakeful.service.operations.timers import RUN_TIMER, TimerToRun
from wakeful.surfaces.cli.options import JsonOption, StoreOption
from wakeful.surfaces.cli.places import UNATTENDED, ask, place_to_ask
from wakeful.surfaces.cli.screen import short
from wakeful.surfaces.cli.shown_values import json_text, out, plain


def command(
    timer: Annotated[str, typer.Argument(metavar="TIMER", help="A timer's id or name, or an agent with one timer.")],
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Run a timer now, in the same way as at its due time: its check, its message, its thread. Its schedule stays."""
    place = place_to_ask(store)
    record = ask(RUN_TIMER, TimerToRun(timer), place)
    if json:
        out(json_text(record.model_dump(mode="json"), indent=2))
        return
    agent = plain(record.agent)
    by = "; the daemon runs it" if place.daemon is not None else ""
    out(f"{plain(record.name) or short(record.timer_id)} of agent {agent} is due now{by}")
    if place.is_unattended:
        out(UNATTENDED)
    out(f"watch it: wakeful tail {agent} --follow{place.flag}")
