"""`wakeful requests`, `show`, `submit`, `timeout`, `cancel`: calls that a client has to run, and how each ends, once.

A client needs the real parameters, so they are shown. Ending a request ends with 0 when this word ended it. With 1 when
it had ended before: what it ended with is shown, nothing is changed.
"""

import sys
from json import loads
from typing import Annotated, Any, TypeVar

import typer

from wakeful.contracts.errors import AlreadyDecided
from wakeful.service.operations.client_requests import (
    END_REQUEST,
    LIST_REQUESTS,
    SHOW_REQUEST,
    SUBMIT_RESULT,
    ClientResult,
    RequestEnd,
    RequestName,
)
from wakeful.service.operations.operation import Operation
from wakeful.service.operations.turns import TurnName
from wakeful.surfaces.cli.last_list import remember
from wakeful.surfaces.cli.options import JsonOption, RequestArgument, StoreOption
from wakeful.surfaces.cli.outcomes import resume_line
from wakeful.surfaces.cli.places import StoreAddress, ask, place_to_ask
from wakeful.surfaces.cli.problems import Failure, WrongRequest
from wakeful.surfaces.cli.request_words import how_to_end, line, short
from wakeful.surfaces.cli.screen import prose
from wakeful.surfaces.cli.shown_values import json_text, one_line, out, plain
from wakeful.views.client_requests import EndedRequest

Q = TypeVar("Q")


def listed(
    turn: Annotated[
        str | None, typer.Option("--turn", metavar="TURN", help="Only this turn: id, beginning of the id, or key.")
    ] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """List the calls that a client has to run. Requests that have timed out are ended on the way."""
    place = place_to_ask(store)
    found = ask(LIST_REQUESTS, TurnName(turn), place)
    remember("requests", [request.request_id for request in found], place)
    if json:
        out(json_text([request.named() for request in found], indent=2))
    elif found:
        for request in found:
            out(line(request))
        out(["", *how_to_end(found[0], place)])
    else:
        out("no pending requests")


def show(request: RequestArgument, store: StoreOption = None, json: JsonOption = False) -> None:
    """Show one request in full. A client needs the real arguments, so nothing is redacted."""
    place = place_to_ask(store)
    found = ask(SHOW_REQUEST, RequestName(request), place)
    if json:
        out(json_text(found.named(), indent=2))
        return
    out(
        [
            found.request_id,
            f"status      {found.status}",
            f"tool        {plain(found.tool)}",
            f"arguments   {json_text(found.arguments)}",
            f"turn        {plain(found.turn_id)}, call {plain(found.call_id)}",
            f"expires     {plain(found.timeout_at) or 'with the run'}",
        ]
    )
    if found.is_pending:
        out(["", *how_to_end(found, place)])


def submit(
    request: RequestArgument,
    result: Annotated[
        str | None, typer.Argument(metavar="JSON", help="The client's result as JSON; - reads stdin.")
    ] = None,
    error: Annotated[
        str | None, typer.Option("--error", metavar="TEXT", help="The client failed, for this reason.")
    ] = None,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Submit a client's result. The turn uses it when it continues."""
    if (result is None) == (error is None):
        raise WrongRequest(
            "submit needs a result as JSON or --error TEXT, and not both",
            f'wakeful requests submit {request} \'{{"file": "a.txt"}}\'\n'
            f'wakeful requests submit {request} --error "the person closed the window"',
        )
    value = _read(result) if result is not None else None
    _end(SUBMIT_RESULT, ClientResult(request, value, error), place_to_ask(store), json=json)


def timeout(request: RequestArgument, json: JsonOption = False, store: StoreOption = None) -> None:
    """End a request as timed out: its call fails, and the model is told."""
    _end(END_REQUEST, RequestEnd(request), place_to_ask(store), json=json)


def cancel(request: RequestArgument, json: JsonOption = False, store: StoreOption = None) -> None:
    """End a request as cancelled: its result is no longer needed."""
    _end(END_REQUEST, RequestEnd(request, cancelled=True), place_to_ask(store), json=json)


def _read(given: str) -> Any:
    text = sys.stdin.read() if given == "-" else given
    try:
        return loads(text)
    except ValueError as error:
        raise WrongRequest(
            f"the result is not JSON ({error}): {one_line(text, 60)}", "quote a text: '\"a.txt\"'"
        ) from error


def _end(operation: Operation[Q, EndedRequest], asked: Q, place: StoreAddress, *, json: bool) -> None:
    try:
        ended = ask(operation, asked, place)
    except AlreadyDecided as refused:
        words = _words(EndedRequest.model_validate(refused.ended_with)) if refused.ended_with else refused.message
        raise Failure(f"the request had ended before: {words}", "nothing was changed") from None
    if json:
        out(json_text(ended.model_dump(mode="json"), indent=2))
        return
    prose(_words(ended))
    if ended.ahead is not None:
        out(f"continue: {resume_line(ended.ahead, place)}")


def _words(ended: EndedRequest) -> str:
    what = json_text(ended.result) if ended.success else str(ended.error)
    return f"{short(ended.request_id)} ({plain(ended.tool)}) {ended.status}: {one_line(what, 200)}"
