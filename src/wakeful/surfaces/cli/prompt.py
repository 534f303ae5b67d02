"""`wakeful prompt`: ask an agent of the daemon, and print its answer."""

from typing import Annotated

import typer

from wakeful.service import default_agent_id
from wakeful.service.operations.runtime import MessageToAgent
from wakeful.service.serving.daemon_client import START, NoAnswer
from wakeful.surfaces.cli.daemon_turns import answer_by_daemon
from wakeful.surfaces.cli.options import JsonOption
from wakeful.surfaces.cli.places import place_without_store
from wakeful.surfaces.cli.prompt_input import prompt_of


def command(
    text: Annotated[
        str | None,
        typer.Argument(metavar="TEXT", help="The message. Text that is piped in is added to it; - reads stdin alone."),
    ] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", metavar="NAME", help="Another agent than the default one.")
    ] = None,
    thread: Annotated[str, typer.Option("--thread", metavar="NAME", help="The conversation.")] = "main",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False,
    json: JsonOption = False,
) -> None:
    """Ask the default agent of the daemon, and print its answer. The default agent is main, or $WAKEFUL_AGENT_ID.

    wakeful send leaves a message without waiting, wakeful run works in the current folder without a daemon.
    """
    asked = prompt_of(text, (), (), "prompt")
    assert isinstance(asked, str)  # nothing is attached
    place = place_without_store()
    if place.daemon is None:
        raise NoAnswer("no daemon runs for this home", f"{START}   Without one: wakeful run")
    answer_by_daemon(MessageToAgent(agent or default_agent_id(), asked, thread), place, json=json, quiet=quiet)
