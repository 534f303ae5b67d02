"""A turn that the daemon runs: a message for an agent, and the answer to it, as `wakeful run` would print it."""

import sys
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import typer

from wakeful.contracts.errors import WakefulError
from wakeful.service.operations.answers import ANSWER, AnswerQuery
from wakeful.service.operations.calls import LIST_UNKNOWN
from wakeful.service.operations.chat import SHOW_MESSAGE, MessageName
from wakeful.service.operations.operation import NoRequest
from wakeful.service.operations.runtime import SEND, MessageToAgent
from wakeful.service.operations.turn_reports import LIST_LINES, LineQuery
from wakeful.service.run_result import RunResult
from wakeful.surfaces.cli.outcomes import INTERRUPTED, exit_code, tell, tell_json
from wakeful.surfaces.cli.places import StoreAddress, ask
from wakeful.surfaces.cli.problems import note
from wakeful.views.runtime_records import SentMessage

if TYPE_CHECKING:
    from wakeful.service.serving.daemon_client import DaemonAddress, DaemonClient

LOOK_AGAIN_SECONDS = 0.1
LAST_LINES_SECONDS = 5.0
"""How long the answer is held back for lines that say how it came about."""


class DaemonTurn(NamedTuple):
    """A message that was answered."""

    sent: SentMessage
    result: RunResult[Any]


def turn_of_daemon(asked: MessageToAgent, place: StoreAddress, *, quiet: bool = False) -> DaemonTurn:
    """Send a message and wait until its turn has ended, or rests until somebody acts. Ctrl-C ends the waiting alone."""
    sent = ask(SEND, asked, place)
    watching = _watch(sent.message_id, place) if sys.stderr.isatty() and not quiet else None
    try:
        while (found := ask(ANSWER, AnswerQuery(sent.message_id), place)).result is None:
            pass
        if watching is not None:
            watching.join(LAST_LINES_SECONDS)
    except KeyboardInterrupt:
        note(f"\nThe daemon goes on with it: wakeful transcript {sent.agent}{place.flag}")
        raise typer.Exit(INTERRUPTED) from None
    return DaemonTurn(sent, RunResult.from_dict(found.result))


def _watch(message: str, place: StoreAddress) -> threading.Thread:
    """Lines about the turn on stderr, while it goes on."""
    assert place.daemon is not None
    watching = threading.Thread(target=show_progress, args=(place.daemon, message), daemon=True)
    watching.start()
    return watching


def answer_by_daemon(asked: MessageToAgent, place: StoreAddress, *, json: bool, quiet: bool = False) -> NoReturn:
    """Send a message, print the answer to it as `wakeful run` does, and end the command with its exit code."""
    result = turn_of_daemon(asked, place, quiet=quiet or json).result
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
        for each in stream_daemon(client, LIST_LINES, LineQuery(_turn_of(client, message))):
            event = each.stream
            if isinstance(event, TextEvent):
                said += event.text
                continue
            if isinstance(event, ToolCallEvent) and said.strip():
                console.print(Text(f"  {plain(said).strip()}", "dim"), overflow="ellipsis", no_wrap=True)
            said = ""  # words before a call are progress, the last ones are the answer
            is_over = isinstance(event, StatusEvent) and (event.is_terminal or event.status == "suspended")
            words = line(event) if event is not None and not is_over else None
            if words is not None:
                console.print(words, overflow="ellipsis", no_wrap=True)
            if is_over:
                return
    except WakefulError:
        return
    finally:
        client.close()


def _turn_of(client: "DaemonClient", message: str) -> str:
    """The turn that takes a message, once one does."""
    from wakeful.service.serving.remote_operations import ask_daemon

    while (turn := ask_daemon(client, SHOW_MESSAGE, MessageName(message)).turn_id) is None:
        time.sleep(LOOK_AGAIN_SECONDS)
    return turn
