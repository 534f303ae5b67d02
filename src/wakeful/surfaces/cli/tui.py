"""`wakeful tui`: the terminal UI on the daemon of the home."""

import os
import sys
from typing import Annotated

import typer

from wakeful.contracts.errors import InvalidRequest
from wakeful.service.serving.control import ask_process
from wakeful.service.serving.socket_place import socket_path
from wakeful.views.presentation.display_modes import display_mode

MODULE = "wakeful.surfaces.tui"


def command(
    agent: Annotated[str | None, typer.Option("--agent", metavar="NAME", help="The agent to begin with.")] = None,
    display: Annotated[
        str,
        typer.Option(
            "--display", metavar="MODE", help="info (3): results. verbose (4): activity. debug (5): with previews."
        ),
    ] = "info",
    no_alt_screen: Annotated[
        bool, typer.Option("--no-alt-screen", help="Stay in the scrollback instead of taking the whole screen.")
    ] = False,
) -> None:
    """Watch the agents of the daemon and talk to them. Leaving it stops nothing: Ctrl+Q."""
    mode = display_mode(display)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InvalidRequest("wakeful tui needs a terminal", "For programs: wakeful tail --json, wakeful send")
    ask_process(socket_path(), "GET", "/health")
    sys.stdout.flush()
    # This process becomes the terminal UI: the command line is not part of it.
    os.execv(
        sys.executable, [sys.executable, "-P", "-m", MODULE, mode, "inline" if no_alt_screen else "full", agent or ""]
    )
