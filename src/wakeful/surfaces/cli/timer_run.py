"""`wakeful timer run`: what a timer does when it is due, now."""

from typing import Annotated

import typer

from wakeful.service.operations.operation import OPERATOR
from wakeful.service.operations.timers import RUN_TIMER, TimerToRun
from wakeful.surfaces.cli.agent_control import ByOption
from wakeful.surfaces.cli.options import JsonOption, StoreOption
from wakeful.surfaces.cli.places import ask, store_to_read
from wakeful.surfaces.cli.screen import short
from wakeful.surfaces.cli.shown_values import json_text, out, plain


def command(
    timer: Annotated[str, typer.Argument(metavar="TIMER", help="A timer's id or name, or an agent with one timer.")],
    by: ByOption = OPERATOR,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Run a timer now, by the same path as its due time: its check, its words, its thread. Its schedule stays."""
    place = store_to_read(store)
    record = ask(RUN_TIMER, TimerToRun(timer, by), place)
    if json:
        out(json_text(record.model_dump(mode="json"), indent=2))
        return
    agent = plain(record.agent)
    out(f"{plain(record.name) or short(record.timer_id)} of agent {agent} is due now; the daemon runs it")
    out(f"watch it: wakeful tail {agent} --follow{place.flag}")
