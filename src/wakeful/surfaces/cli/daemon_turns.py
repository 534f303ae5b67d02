"""A turn that the daemon runs: a message for an agent, and the answer to it, as `wakeful run` would print it."""

import sys
from typing import Any, NamedTuple

import typer

from wakeful.service.operations.answers import ANSWER, AnswerQuery
from wakeful.service.operations.runtime import SEND, MessageToAgent
from wakeful.service.run_result import RunResult
from wakeful.surfaces.cli.outcomes import INTERRUPTED
from wakeful.surfaces.cli.places import StoreAddress, ask
from wakeful.surfaces.cli.problems import note
from wakeful.surfaces.cli.screen import short
from wakeful.views.runtime_records import SentMessage


class DaemonTurn(NamedTuple):
    """A message that was answered."""

    sent: SentMessage
    result: RunResult[Any]


def turn_of_daemon(asked: MessageToAgent, place: StoreAddress, *, quiet: bool = False) -> DaemonTurn:
    """Send a message and wait until its turn has ended, or rests until somebody acts. Ctrl-C ends the waiting alone."""
    sent = ask(SEND, asked, place)
    if sys.stderr.isatty() and not quiet:
        note(f"{short(sent.message_id)} is stored; the daemon answers it")
    try:
        while (found := ask(ANSWER, AnswerQuery(sent.message_id), place)).result is None:
            pass
    except KeyboardInterrupt:
        note(f"\nThe daemon goes on with it: wakeful transcript {sent.agent}{place.flag}")
        raise typer.Exit(INTERRUPTED) from None
    return DaemonTurn(sent, RunResult.from_dict(found.result))
