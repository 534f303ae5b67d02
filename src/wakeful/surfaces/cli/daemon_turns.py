"""A turn that the daemon runs: a message for an agent, and the answer to it, as `wakeful run` would print it."""

import json as json_lines
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn
from urllib.parse import quote

import typer

from wakeful.contracts.errors import MessageNotFound, WakefulError
from wakeful.service.operations.answers import ANSWER, AnswerQuery
from wakeful.service.operations.calls import LIST_UNKNOWN
from wakeful.service.operations.chat import SHOW_MESSAGE, MessageName
from wakeful.service.operations.operation import NoRequest
from wakeful.service.operations.runtime import SEND, MessageToAgent
from wakeful.service.operations.turn_reports import LIST_LINES, LineQuery
from wakeful.service.run_result import RunResult
from wakeful.surfaces.cli.connect_option import connect_to
from wakeful.surfaces.cli.exit_codes import INTERRUPTED
from wakeful.surfaces.cli.outcomes import exit_code, tell, tell_json
from wakeful.surfaces.cli.places import StoreAddress, ask, await_daemon, place_to_fill
from wakeful.surfaces.cli.problems import WrongRequest, note
from wakeful.surfaces.cli.screen import short
from wakeful.views.runtime_records import SentMessage

if TYPE_CHECKING:
    from wakeful.service.serving.daemon_client import DaemonAddress, DaemonClient, NotNow

LOOK_AGAIN_SECONDS = 0.1
LAST_LINES_SECONDS = 5.0
"""How long the answer is held back for lines that say how it came about."""
PATIENCE_SECONDS = 60.0
"""How long a daemon that went away is waited for."""
OUTPUT_LINES = 5
"""Shown of what a command puts out at once: the last ones."""


class DaemonTurn(NamedTuple):
    """A message that was answered."""

    sent: SentMessage
    result: RunResult[Any]


def check_options(own: Mapping[str, Any], name: str, place: StoreAddress) -> None:
    """The daemon runs its agent, as that is. Raises WrongRequest for an option that only a run in this process has."""
    for option in (option for option, given in own.items() if given not in (None, False, "", [])):
        raise WrongRequest(
            f"{option} is for a run in this process, and the daemon runs agent {name}",
            f"leave it out, or change the agent: wakeful agent show {name}{place.flag}",
        )


def daemon_for(name: str, store: Path | None) -> StoreAddress:
    """The daemon whose agent is named. Raises WrongRequest where none is asked, or NoAnswer."""
    place = place_to_fill(store)
    if place.daemon is None:
        where = "--store names a file" if store is not None else "no daemon runs"
        raise WrongRequest(
            f"--agent {name} is an agent of a daemon, and {where}",
            "start it: wakeful daemon start; for a run in this process: --agent FILE or --tools MODULE:NAME",
        )
    return place


def check_own_run(*, no_wait: bool = False) -> None:
    """Raises WrongRequest for `--connect` or `--no-wait` on work that names no agent of a daemon."""
    said = connect_to.get()
    if said is not None:
        raise WrongRequest(f"the daemon {said} was named, and none of its agents", "say which one: --agent NAME")
    if no_wait:
        raise WrongRequest("--no-wait leaves a run to a daemon, and this run is in this process", "leave it out")


def wait_for(message: str, place: StoreAddress, go_on: str) -> None:
    """Until the turn of a message has ended or rests, or it has become clear that there will be none."""
    try:
        answer_of(message, place, quiet=False)
    except MessageNotFound:
        return  # it was cancelled before it began
    except KeyboardInterrupt:
        note(f"\nThe daemon goes on with it: {go_on}{place.flag}")
        raise typer.Exit(INTERRUPTED) from None


def turn_of_daemon(asked: MessageToAgent, place: StoreAddress, *, quiet: bool = False) -> DaemonTurn:
    """Send a message and wait until its turn has ended, or rests until somebody acts. Ctrl-C ends the waiting alone."""
    sent = ask(SEND, asked, place)
    watching = _watch(sent.message_id, place) if sys.stderr.isatty() and not quiet else None
    try:
        result = answer_of(sent.message_id, place, quiet=quiet)
        if watching is not None and result.get("waiting_for") != "provider":  # else lines may come in an hour
            watching.join(LAST_LINES_SECONDS)
    except KeyboardInterrupt:
        note(f"\nThe daemon goes on with it: wakeful transcript {sent.agent}{place.flag}")
        raise typer.Exit(INTERRUPTED) from None
    return DaemonTurn(sent, RunResult.from_dict(result))


def answer_of(
    message: str, place: StoreAddress, *, quiet: bool, patience: float = PATIENCE_SECONDS
) -> Mapping[str, Any]:
    """The result of the turn that takes a message, as it is written down. A daemon that goes away is waited for: its
    turns continue when it is back. Raises NoAnswer, with the command that shows the answer later, where it is away for
    longer than `patience`.
    """
    from wakeful.service.serving.daemon_client import NoAnswer, NotNow

    turn: str | None = None
    while True:
        try:
            found = ask(ANSWER, AnswerQuery(message), place)
        except NotNow as gone:
            try:
                await_daemon(place, gone, quiet=quiet, seconds=patience)
            except NotNow:
                later = f"wakeful events {short(turn)} --as transcript" if turn else f"wakeful why {message}"
                raise NoAnswer(
                    f"{gone.message}; it goes on with the turn once it runs again",
                    f"The answer then: {later}{place.flag}",
                ) from None
            continue
        if found.result is not None:
            return found.result
        turn = found.turn_id


def _watch(message: str, place: StoreAddress) -> threading.Thread:
    """Lines about the turn on stderr, while it goes on, and lines of its commands between them."""
    assert place.daemon is not None
    watching = threading.Thread(target=show_progress, args=(place.daemon, message), daemon=True)
    watching.start()
    threading.Thread(target=show_output, args=(place.daemon, message), daemon=True).start()
    return watching


def answer_by_daemon(asked: MessageToAgent, place: StoreAddress, *, json: bool, quiet: bool = False) -> NoReturn:
    """Send a message, print the answer to it as `wakeful run` does, and end the command with its exit code."""
    end_with(turn_of_daemon(asked, place, quiet=quiet or json).result, place, json=json, quiet=quiet)


def end_with(result: RunResult[Any], place: StoreAddress, *, json: bool, quiet: bool = False) -> NoReturn:
    """Print a result as `wakeful run` does, and end the command with its exit code."""
    if json:
        tell_json(result)
    else:
        unknown = ask(LIST_UNKNOWN, NoRequest(), place) if result.unknown else []
        tell(result, unknown, place, quiet=quiet)
    raise typer.Exit(exit_code(result))


def show_progress(address: "DaemonAddress", message: str) -> None:
    """Until the turn that takes the message has ended, or rests. Does not raise."""
    from rich.console import Console
    from rich.text import Text

    from wakeful.service.serving.daemon_client import DaemonClient
    from wakeful.service.serving.remote_operations import stream_daemon
    from wakeful.surfaces.cli.lines import line
    from wakeful.surfaces.cli.shown_values import plain
    from wakeful.views.run_stream_events import StatusEvent, TextEvent, ToolCallEvent

    console = Console(stderr=True, highlight=False)
    client = DaemonClient(address)
    said = ""
    try:
        for each in stream_daemon(client, LIST_LINES, LineQuery(_turn_of(client, message)), away=_waiting(client)):
            event = each.stream
            if isinstance(event, TextEvent):
                said += event.text
                continue
            if isinstance(event, ToolCallEvent) and said.strip():
                console.print(Text(f"  {plain(said).strip()}", "dim"), overflow="ellipsis", no_wrap=True)
            said = ""  # words before a call are progress, the last ones are the answer
            is_over = isinstance(event, StatusEvent) and (event.is_terminal or _rests(event.status, event.reason))
            words = line(event) if event is not None and not is_over else None
            if words is not None:
                console.print(words, overflow="ellipsis", no_wrap=True)
            if is_over:
                return
    except WakefulError:
        return
    finally:
        client.close()


def show_output(address: "DaemonAddress", message: str) -> None:
    """Lines of the turn's commands, until the turn that takes the message has ended, or rests. Does not raise."""
    from rich.console import Console
    from rich.text import Text

    from wakeful.service.serving.daemon_client import DaemonClient
    from wakeful.surfaces.cli.shown_values import plain

    console = Console(stderr=True, highlight=False)
    client = DaemonClient(address)
    try:
        for event in client.follow(f"/messages/{quote(message, safe='')}", away=_waiting(client)):
            if event.event == "turn_terminal":
                return
            if event.event == "turn_suspended" and _rests("suspended", json_lines.loads(event.data)["reason"]):
                return
            if event.event == "tool_output":
                lines = [plain(each) for each in json_lines.loads(event.data)["text"].splitlines()]
                left_out = [f"... {len(lines) - OUTPUT_LINES} lines"] if len(lines) > OUTPUT_LINES else []
                for each in [*left_out, *lines[-OUTPUT_LINES:]]:
                    console.print(Text(f"    | {each}", "dim"), overflow="ellipsis", no_wrap=True)
    except WakefulError:
        return
    finally:
        client.close()


def _rests(status: str, reason: str | None) -> bool:
    """Until somebody acts: a turn that waits for its provider goes on by itself."""
    return status == "suspended" and reason != "provider"


def _turn_of(client: "DaemonClient", message: str) -> str:
    """The turn that takes a message, once one does."""
    from wakeful.service.serving.daemon_client import NotNow
    from wakeful.service.serving.remote_operations import ask_daemon

    wait = _waiting(client)
    while True:
        try:
            turn = ask_daemon(client, SHOW_MESSAGE, MessageName(message)).turn_id
        except NotNow as gone:
            wait(gone)
            continue
        if turn is not None:
            return turn
        time.sleep(LOOK_AGAIN_SECONDS)


def _waiting(client: "DaemonClient") -> "Callable[[NotNow], None]":
    """How lines wait for a daemon that went away: in silence, because whoever waits for the answer says it."""
    return lambda gone: client.until_back(gone, PATIENCE_SECONDS)
