"""A turn that the daemon runs: a message for an agent, and the answer to it, as `wakeful run` would print it."""

import sys
import threading
from typing import Any, NamedTuple, NoReturn

import typer

from wakeful.service.operations.answers import ANSWER, AnswerQuery
from wakeful.service.operations.calls import LIST_UNKNOWN
from wakeful.service.operations.operation import NoRequest
from wakeful.service.operations.runtime import SEND, MessageToAgent
from wakeful.service.run_result import RunResult
from wakeful.surfaces.cli.outcomes import INTERRUPTED, exit_code, tell, tell_json
from wakeful.surfaces.cli.places import StoreAddress, ask
from wakeful.surfaces.cli.problems import note
from wakeful.views.runtime_records import SentMessage

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
    from wakeful.surfaces.cli.turn_progress import show_progress

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
