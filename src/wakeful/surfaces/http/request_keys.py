"""`Idempotency-Key`: a request that changes something may be sent again with the same one, and is carried out once.

A message has a key of its own, which every surface knows: there the header is that key. Everywhere else the answer is
kept under the caller's name and the key (`service.commands.keyed_requests`).
"""

import hashlib
import json
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeAlias

from fastapi import Header, Request, Response

from wakeful.contracts.errors import InvalidValue
from wakeful.service.commands.keyed_requests import GivenAnswer, KeyedRequest
from wakeful.service.operations.operation import OpenStore
from wakeful.service.operations.routes import HttpRoute
from wakeful.surfaces.http.guard import caller_of

IDEMPOTENCY = "Idempotency-Key"
KEY_PATTERN = r"^[!-~]{1,200}$"
REPLAYED = "idempotency-replayed"
"""A header of an answer that was given before."""
KeyHeader: TypeAlias = Annotated[
    str | None,
    Header(
        alias=IDEMPOTENCY,
        pattern=KEY_PATTERN,
        description="The same request with the same key is carried out once, and gets the same answer again.",
        examples=["grant-2026-11-18"],
    ),
]


def as_key_of_message(key: str | None, values: dict[str, Any]) -> None:
    """The header is the field `key` of the request. Raises InvalidValue where both are given and differ."""
    if key is None:
        return
    if values.get("key") not in (None, key):
        raise InvalidValue("invalid_key", "key", f"the header says {key!r}", "Give one of them.")
    values["key"] = key


async def once(
    request: Request,
    route: HttpRoute,
    opened: OpenStore,
    key: str,
    names: dict[str, str],
    act: Callable[[], Awaitable[bytes]],
) -> Response:
    """The answer of a request with a key. `names` are those in its path; `act` carries it out and gives its answer as
    JSON."""

    async def given() -> GivenAnswer:
        return GivenAnswer(200, (await act()).decode())

    asked = KeyedRequest(
        caller=caller_of(request.scope).name,
        key=key,
        route=f"{route.method} {request.url.path}",
        digest=await _digest(request),
        repeatable=route.operation.repeatable,
        is_secret=route.operation.is_secret,
        look=f"GET {route.look.format(**names)}",
    )
    found = await opened.once_per_key.carry_out(asked, given)
    answer = Response(found.body, found.status, media_type="application/json")
    if found.is_again:
        answer.headers[REPLAYED] = "true"
    return answer


async def _digest(request: Request) -> str:
    """Of method, path, query and body. Spaces and the order of fields in a body make no difference."""
    body = await request.body()
    said = json.loads(body) if body.strip() else None
    query = sorted(request.query_params.multi_items())
    whole = json.dumps([request.method, request.url.path, query, said], sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(whole.encode()).hexdigest()}"
