"""`wakeful requests`, `show`, `submit`, `timeout`, `cancel`: calls that a client has to run, and how each ends, once.

A client needs the real parameters, so they are shown. Ending a request ends with 0 when this word ended it. With 1 when
it had ended before: what it ended with is shown, nothing is changed.
"""

import json
import sys
from typing import Annotated, Any

import typer

from wakeful.service.operations import (
    END_REQUEST,
    LIST_REQUESTS,
    SHOW_REQUEST,
    SUBMIT_RESULT,
    ClientResult,
    RequestEnd,
    RequestName,
    RequestReceipt,
    TurnName,
)
from wakeful.surfaces.cli.options import JsonOption, RequestArgument, StoreOption
from wakeful.surfaces.cli.outcomes import FAILED, resume_line
from wakeful.surfaces.cli.places import StoreAddress, ask, store_to_read
from wakeful.surfaces.cli.problems import WrongRequest, complain
from wakeful.surfaces.cli.request_words import how_to_end, line, short
from wakeful.surfaces.cli.shown_values import json_text, one_line, out, plain


def listed(
    turn: Annotated[str | None, typer.Option("--turn", metavar="TURN", help="Only those of one turn.")] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """List what clients are asked to run and have not answered. What is past its time is ended on the way."""
    place = store_to_read(store)
    found = ask(LIST_REQUESTS, TurnName(turn), place)
    if json:
        out(json_text([request.named() for request in found], indent=2))
    elif found:
        for request in found:
            out(line(request))
        out(["", *how_to_end(found[0], place)])
    else:
        out("no client is asked for anything")


def show(request: RequestArgument, store: StoreOption = None, json: JsonOption = False) -> None:
    """Show one request, with everything a client needs to run it."""
    place = store_to_read(store)
    found = ask(SHOW_REQUEST, RequestName(request), place)
    if json:
        out(json_text(found.named(), indent=2))
        return
    out(
        [
            f"{found.request_id}  {found.status}",
            f"tool        {plain(found.tool)}",
            f"arguments   {json_text(found.arguments)}",
            f"turn        {plain(found.turn_id)}, call {plain(found.call_id)}",
            f"until       {plain(found.timeout_at) or 'the run ends'}",
        ]
    )
    if found.is_pending:
        out(["", *how_to_end(found, place)])


def submit(
    request: RequestArgument,
    result: Annotated[
        str | None, typer.Argument(metavar="JSON", help="What the client gave, as JSON; - reads it from stdin.")
    ] = None,
    error: Annotated[str | None, typer.Option("--error", metavar="TEXT", help="The client could not: why.")] = None,
    store: StoreOption = None,
) -> None:
    """Give a client's answer. The turn takes it in when it goes on."""
    if (result is None) == (error is None):
        raise WrongRequest(
            "say one of the two: what the client gave, or why it could not",
            f'wakeful requests submit {request} \'{{"file": "a.txt"}}\'\n'
            f'wakeful requests submit {request} --error "the person closed the window"',
        )
    value = _read(result) if result is not None else None
    place = store_to_read(store)
    _tell(ask(SUBMIT_RESULT, ClientResult(request, value, error), place), place)


def timeout(request: RequestArgument, store: StoreOption = None) -> None:
    """End a request that no client will answer: its call fails, and the model is told."""
    place = store_to_read(store)
    _tell(ask(END_REQUEST, RequestEnd(request), place), place)


def cancel(request: RequestArgument, store: StoreOption = None) -> None:
    """End a request whose answer nobody wants any more."""
    place = store_to_read(store)
    _tell(ask(END_REQUEST, RequestEnd(request, cancelled=True), place), place)


def _read(given: str) -> Any:
    text = sys.stdin.read() if given == "-" else given
    try:
        return json.loads(text)
    except ValueError as error:
        raise WrongRequest(
            f"the result is no JSON ({error}): {one_line(text, 60)}", "a text has to be quoted: '\"a.txt\"'"
        ) from error


def _tell(receipt: RequestReceipt, place: StoreAddress) -> None:
    ended = receipt.ended
    request, result = ended.request, ended.result
    what = json_text(result.result) if result.success else str(result.error)
    words = f"{short(request.request_id)} ({plain(request.tool_name)}) {request.status}: {one_line(what, 200)}"
    if ended.duplicate:
        complain(f"it had ended before, and nothing was changed: {words}")
        raise typer.Exit(FAILED)
    out(words)
    if receipt.ahead is not None:
        out(f"go on: {resume_line(receipt.ahead, place)}")
