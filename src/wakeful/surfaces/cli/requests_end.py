"""`wakeful requests submit`, `timeout`, `cancel`: end a request to a client, once.

Ends with 0 when this word ended it. With 1 when it had ended before: what it ended with is shown, nothing is changed.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from wakeful.bootstrap import opened_store, runtime
from wakeful.service.client_requests import Ended, end_unanswered, submit_result
from wakeful.service.requests import Runtime
from wakeful.surfaces.cli.options import RequestArgument, StoreOption
from wakeful.surfaces.cli.outcomes import FAILED
from wakeful.surfaces.cli.places import Place, store_to_read
from wakeful.surfaces.cli.problems import WrongRequest, complain
from wakeful.surfaces.cli.request_words import short
from wakeful.surfaces.cli.resuming import resume_line
from wakeful.surfaces.cli.shown import json_text, one_line, out, plain

End = Callable[[Runtime], Awaitable[Ended]]


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
    _end(lambda system: submit_result(system, request, value, error=error, by="operator"), store)


def timeout(request: RequestArgument, store: StoreOption = None) -> None:
    """End a request that no client will answer: its call fails, and the model is told."""
    _end(lambda system: end_unanswered(system, request, by="operator"), store)


def cancel(request: RequestArgument, store: StoreOption = None) -> None:
    """End a request whose answer nobody wants any more."""
    _end(lambda system: end_unanswered(system, request, cancelled=True, by="operator"), store)


def _read(given: str) -> Any:
    text = sys.stdin.read() if given == "-" else given
    try:
        return json.loads(text)
    except ValueError as error:
        raise WrongRequest(
            f"the result is no JSON ({error}): {one_line(text, 60)}", "a text has to be quoted: '\"a.txt\"'"
        ) from error


def _end(end: End, store: Path | None) -> None:
    place = store_to_read(store)
    ended, line = asyncio.run(_ended(place, end))
    request, result = ended.request, ended.result
    what = json_text(result.result) if result.success else str(result.error)
    words = f"{short(request.request_id)} ({plain(request.tool_name)}) {request.status}: {one_line(what, 200)}"
    if ended.duplicate:
        complain(f"it had ended before, and nothing was changed: {words}")
        raise typer.Exit(FAILED)
    out(words)
    if line:
        out(f"go on: {line}")


async def _ended(place: Place, end: End) -> tuple[Ended, str]:
    async with opened_store(place.path) as opened:
        ended = await end(runtime(opened))
        turn = await opened.turn(ended.turn_id)
        return ended, await resume_line(opened, turn, place) if turn is not None and turn.is_open else ""
