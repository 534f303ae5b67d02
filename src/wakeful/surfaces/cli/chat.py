"""`wakeful chat`: a conversation with an agent of the daemon, line by line."""

import sys
from typing import Annotated

import typer

from wakeful.contracts.errors import WakefulError
from wakeful.service.operations.runtime import LIST_AGENTS, AgentQuery, MessageToAgent
from wakeful.service.serving.daemon_client import START, NoAnswer
from wakeful.surfaces.cli.agent_control import AgentArgument
from wakeful.surfaces.cli.approval_words import pending_lines
from wakeful.surfaces.cli.daemon_turns import turn_of_daemon
from wakeful.surfaces.cli.options import JsonOption, StoreOption
from wakeful.surfaces.cli.outcomes import headline
from wakeful.surfaces.cli.places import StoreAddress, ask, place_to_ask
from wakeful.surfaces.cli.problems import WrongRequest, complain, note
from wakeful.surfaces.cli.shown_values import json_text, out, plain


def command(
    agent: AgentArgument,
    thread: Annotated[str, typer.Option("--thread", metavar="NAME", help="The conversation.")] = "main",
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Talk to an agent of the daemon: one line is one message, and its answer follows. Leave with Ctrl-D.

    Leaving stops nothing. Text that is piped in is read line by line, too; with --json each answer is a line of JSON.
    """
    if store is not None:
        raise WrongRequest("wakeful chat talks to a daemon, not to a file", "leave --store out, or use: wakeful run")
    place = place_to_ask(None)
    if place.daemon is None:
        raise NoAnswer("no daemon runs for this home", START)
    ask(LIST_AGENTS, AgentQuery(agent), place)  # one that is not there is told before anything is typed
    is_person = sys.stdin.isatty() and sys.stdout.isatty()
    if is_person and not json:
        note(f"{plain(agent)}, thread {plain(thread)}. An empty line sends nothing; Ctrl-D leaves.")
    while (line := _line(is_person)) is not None:
        if line.strip():
            _say(MessageToAgent(agent, line, thread), place, json=json, quiet=json or not is_person)


def _line(is_person: bool) -> str | None:
    """The next line; None: there is none."""
    try:
        return input("> " if is_person else "")
    except EOFError:
        if is_person:
            out("")
        return None


def _say(asked: MessageToAgent, place: StoreAddress, *, json: bool, quiet: bool) -> None:
    """A failure ends this message, not the conversation."""
    try:
        result = turn_of_daemon(asked, place, quiet=quiet).result
    except NoAnswer:
        raise
    except WakefulError as error:
        if json:
            raise
        complain(error.message, error.hint)
        return
    if json:
        out(json_text(result.to_dict()))
        return
    if result.final_content:
        out(plain(result.final_content).rstrip("\n"))
    if not result.completed:
        note(headline(result))
    if waiting := [*result.approvals, *result.questions]:
        note("\n".join(pending_lines(waiting, place)))
        if not quiet:
            note("Decide in another terminal: what you say here next waits until then.")
