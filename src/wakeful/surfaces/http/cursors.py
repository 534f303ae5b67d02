"""Cursors of lists: opaque, good for the list that gave them and for no other.

A cursor is a place in a list, with a mark of the list: its path and what it was asked for. Nothing of it is kept here,
so that it holds over a restart and for as long as the place does.
"""

import base64
import hashlib
import json
from typing import Any
from urllib.parse import urlencode

from fastapi import Request, Response

from wakeful.contracts.errors import InvalidValue
from wakeful.service.operations.pages import AGAIN

LONGEST = 2_000


def place_in(request: Request, cursor: str | None) -> Any:
    """The place that a cursor names. Raises InvalidValue for one of another list, or of nobody."""
    if cursor is None:
        return None
    try:
        mark, place = json.loads(base64.urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4)))
    except (ValueError, TypeError):
        raise InvalidValue("invalid_cursor", "cursor", "this server did not issue it", AGAIN) from None
    if mark != _mark(request):
        raise InvalidValue("invalid_cursor", "cursor", "it belongs to another list, or to another question", AGAIN)
    return place


def link_next(answer: Response, request: Request, place: Any) -> None:
    """Say where the next page is."""
    text = json.dumps([_mark(request), place], separators=(",", ":"))
    cursor = base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()
    link_to(answer, request, cursor=cursor)


def link_to(answer: Response, request: Request, **changed: str) -> None:
    """A query alone, which belongs to the address that the client called: a proxy may have the API below a path."""
    asked = [(name, value) for name, value in request.query_params.multi_items() if name not in changed]
    answer.headers["link"] = f'<?{urlencode([*asked, *changed.items()])}>; rel="next"'


def _mark(request: Request) -> str:
    asked = sorted(item for item in request.query_params.multi_items() if item[0] not in ("cursor", "limit"))
    return hashlib.sha256(json.dumps([request.url.path, asked]).encode()).hexdigest()[:12]
