"""The options of `serve`, `daemon start` and `daemon restart`: the same for all, checked the same way."""

import sys
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from wakeful.service.serving.lifecycle import RestartedDaemon, first_token
from wakeful.service.serving.options import ServeOptions
from wakeful.service.serving.run_files import keep_first_token
from wakeful.surfaces.cli.problems import note
from wakeful.surfaces.cli.shown_values import plain

AccessOption: TypeAlias = Annotated[
    str, typer.Option("--access", metavar="MODE", help="local (default), lan, tunnel or tailnet.")
]
KeptAccessOption: TypeAlias = Annotated[
    str | None, typer.Option("--access", metavar="MODE", help="local, lan, tunnel or tailnet. Default: as before.")
]
HostOption: TypeAlias = Annotated[
    str | None, typer.Option("--host", metavar="HOST", help="The address to listen on. Default: 127.0.0.1.")
]
PortOption: TypeAlias = Annotated[
    int | None, typer.Option("--port", metavar="PORT", help="The port. Default: 7717; 0 takes any that is free.")
]
ListenOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--listen", metavar="HOST:PORT", help="Both at once; none: the socket of the home alone."),
]
AdvertiseOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--advertise", metavar="URL", help="The address under which programs outside reach it."),
]
TokenOption: TypeAlias = Annotated[
    str | None, typer.Option("--token", metavar="TOKEN", help="A token for callers on the network, for this process.")
]
TokenFileOption: TypeAlias = Annotated[
    Path | None, typer.Option("--token-file", metavar="FILE", help="A file that holds that token.")
]
DefaultModelOption: TypeAlias = Annotated[
    str | None, typer.Option("--model", metavar="PROVIDER:MODEL", help="The model of the default agent.")
]


def restart_lines(restarted: RestartedDaemon) -> list[str]:
    """Lines about the options of the daemon before: which were kept, and which were not."""
    lines = []
    if restarted.kept_options:
        lines.append(f"  kept     {plain(' '.join(restarted.kept_options))}")
    if restarted.dropped_options:
        lines.append(f"  dropped  {plain(' '.join(restarted.dropped_options))} (give it again where it is wanted)")
    return lines


def show_first_token(options: ServeOptions) -> None:
    """To a person at a terminal, once. Elsewhere stderr is a log, or becomes one: the token is left in a file."""
    made = first_token(options)
    if made is None:
        return
    if sys.stderr.isatty():
        note(f"token `{made.name}` for callers over the network, shown once: {made.token}")
    else:
        note(f"token `{made.name}` for callers over the network is in {keep_first_token(made.token)}")
        note("Only you can read that file: remove it when you have kept the token elsewhere.")
