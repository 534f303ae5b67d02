"""Routes made from the table of operations: each has a model for its query or its body, and one for its answer."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import MISSING
from functools import cache
from inspect import Parameter, Signature, getdoc
from typing import Annotated, Any, TypeAlias, get_origin

from fastapi import APIRouter, Body, Depends, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, create_model

from wakeful.contracts.errors import InvalidValue
from wakeful.service.operations.operation import OpenStore
from wakeful.service.operations.pages import PAGES, READ_MOST, ByKey, ByPlace, cut, place_of
from wakeful.service.operations.routes import ROUTES, HttpRoute, RequestField, field_of_path, fields_of, request_of
from wakeful.surfaces.http.body_routes import (
    LONGEST_NAME,
    SEE,
    BodyRoute,
    JsonAnswer,
    RequestParts,
    refuse_unknown_query,
    require,
)
from wakeful.surfaces.http.cursors import LONGEST, link_next, place_in
from wakeful.surfaces.http.error_answers import ErrorAnswer
from wakeful.surfaces.http.guard import SLASH, caller_of
from wakeful.surfaces.http.request_keys import KeyHeader, as_key_of_message, once

Perform: TypeAlias = Callable[[Request], OpenStore]
"""From a request to the store that it is about."""
PAGE = 100
MOST = 1_000
LONGEST_WORDS = 4_000
"""Characters of a name, a key or a reason."""
LONG = frozenset(("text", "objective", "instructions", "prompt", "result", "error", "say"))
"""Fields with words that may be longer."""
LARGEST = 2**63 - 1
"""The largest whole number that a store holds."""
ELSEWHERE = (
    "/agents/{agent_id}/events",
    "/turns/{turn_id}/events",
    "/turns/{turn_id}/lines",
    "/feed",
    "/artifacts/{artifact_id}",
    "/metrics",
    "/agents/{agent_id}/chat",
    "/turns/{turn_id}/chat",
    "/messages/{message_id}",
    "/tasks/{task_id}/output",
)
"""Answered by `event_routes`, `chat_routes` and `task_routes`, as pages or as a stream to readers that accept one, and
by `application`, as text."""
_NAME = re.compile(r"{(\w+)}")
_IN_QUERY = ("GET", "DELETE")
ERRORS: Mapping[int | str, dict[str, Any]] = {
    "4XX": {"model": ErrorAnswer, "description": "The request has to be changed, or nothing of that name is there."},
    "5XX": {"model": ErrorAnswer, "description": "The runtime cannot do it now."},
}


class PageQuery(BaseModel):
    """Which part of a list."""

    model_config = ConfigDict(extra="forbid")
    limit: int = Field(PAGE, ge=1, le=MOST, description="How many items at most.")
    cursor: str | None = Field(None, max_length=LONGEST, description="From the `next` link of the page before.")


def operation_router(opened: Perform) -> APIRouter:
    """All routes of the table."""
    router = APIRouter()
    for route in sorted(ROUTES, key=lambda each: each.path.count("{")):  # a fixed word comes before a name
        if route.path not in ELSEWHERE:
            add_route(router, route, opened)
    return router


def add_route(router: APIRouter, route: HttpRoute, opened: Perform) -> None:
    operation = route.operation
    endpoint, parts = _endpoint(route, opened)
    record: Any = route.operation.answer_type()
    router.add_api_route(
        route.path,
        endpoint,
        methods=[route.method],
        name=operation.name,
        response_model=list[record] if operation.many else record,
        responses=dict(ERRORS),
        tags=[route.path.removeprefix("/control").split("/")[1]],
        dependencies=[Depends(needs_scope(route.scope))],
        route_class_override=BodyRoute if parts is not None else None,
    )
    made = router.routes[-1]
    if isinstance(made, BodyRoute) and parts is not None:
        made.prepare(parts, route.scope)


def needs_scope(scope: str) -> Callable[[Request], Awaitable[None]]:
    """Refuses a caller without a scope, before a handler sees anything. It waits for nothing; one that is no coroutine
    would be run in a thread, for every request."""

    async def check(request: Request) -> None:
        require(request, scope)

    return check


def _endpoint(route: HttpRoute, opened: Perform) -> tuple[Callable[..., Awaitable[Response]], RequestParts | None]:
    """What answers a route, with a signature for OpenAPI, and the parts of its requests where they have a body."""
    fields = {each.name: each for each in fields_of(route)}
    in_path = {name: field_of_path(route, name) for name in _NAME.findall(route.path)}
    left = [each for name, each in fields.items() if name not in in_path.values()]
    pages = PAGES.get(route.path) if route.operation.many else None
    model = _model(route, left, is_paged=pages is not None) if left or pages is not None else None
    is_in_query = route.method in _IN_QUERY
    in_query = frozenset(model.model_fields) if model is not None and is_in_query else frozenset()
    record: Any = route.operation.answer_type()
    has_key = "key" in fields

    async def endpoint(request: Request, **given: Any) -> Response:
        asked: BaseModel | None = given.pop("asked", None)
        if is_in_query:
            await _refuse_unknown(request, in_query)
        values = {field: given[name].replace(SLASH, "/") for name, field in in_path.items()}
        if asked is not None:
            said = asked.__dict__
            values |= said if pages is None else {name: value for name, value in said.items() if name in fields}
        limit, place = getattr(asked, "limit", MOST) if pages is not None else MOST, None
        if pages is not None:
            place = place_in(request, getattr(asked, "cursor", None))
        if isinstance(pages, ByPlace) and place is not None:
            values[pages.field] = place
        elif isinstance(pages, ByKey) and "limit" in fields:
            values["limit"] = READ_MOST
        key: str | None = given.pop("idempotency_key", None)
        if has_key and key is not None:
            as_key_of_message(key, values)
        if values.get("reveal"):
            require(request, "reveal")
        made = request_of(route, values, caller_of(request.scope).name)

        if key is not None and not has_key:

            async def act() -> bytes:
                return _json_of(record)(await route.operation.handler(opened(request), made))

            return await once(request, route, opened(request), key, given, act)
        if not route.operation.many:
            return JsonAnswer(_json_of(record)(await route.operation.handler(opened(request), made)))
        items = await route.operation.handler(opened(request), made)
        if isinstance(pages, ByKey):
            items = cut(items, pages, place, limit + 1)
        shown = items if pages is None else items[:limit]
        answer = Response(_json_of(list[record])(shown), media_type="application/json")
        is_more = len(items) > limit or (isinstance(pages, ByPlace) and len(items) == limit)
        if pages is not None and is_more:
            edge = 0 if isinstance(pages, ByPlace) and pages.first else min(limit, len(items)) - 1
            link_next(answer, request, place_of(items[edge], pages))
        return answer

    needed = any(each.default is MISSING for each in left)
    parameters = [Parameter("request", Parameter.POSITIONAL_OR_KEYWORD, annotation=Request)]
    for name in in_path:
        hint = Annotated[str, Path(min_length=1, max_length=LONGEST_NAME)]
        parameters.append(Parameter(name, Parameter.KEYWORD_ONLY, annotation=hint))
    if model is not None:
        place = Query() if is_in_query else Body()
        default = Parameter.empty if needed or is_in_query else model()
        parameters.append(
            Parameter("asked", Parameter.KEYWORD_ONLY, annotation=Annotated[model, place], default=default)
        )
    if route.method != "GET":
        parameters.append(Parameter("idempotency_key", Parameter.KEYWORD_ONLY, annotation=KeyHeader, default=None))
    endpoint.__signature__ = Signature(parameters, return_annotation=Response)  # type: ignore[attr-defined]
    endpoint.__name__ = re.sub(r"\W+", "_", f"{route.operation.name}_{route.method.lower()}_{route.path}").strip("_")
    return endpoint, None if is_in_query else RequestParts(tuple(in_path), model, needed)


@cache
def _json_of(answer: Any) -> Callable[[Any], bytes]:
    """Writes answers of a kind. Made for the first of them: to make all is a seventh of the daemon's start."""
    return TypeAdapter(answer).serializer.to_json


async def refuse_unknown_fields(request: Request) -> None:
    """For routes with parameters of their own: a field of the query that is none of them is refused, as it is by the
    routes of the table. Raises InvalidValue."""
    route = request.scope["route"]
    refuse_unknown_query(request.query_params, frozenset(each.alias for each in route.dependant.query_params))


async def _refuse_unknown(request: Request, names: frozenset[str]) -> None:
    """A field that the route does not know is refused, also where it knows none, and a body. Raises InvalidValue."""
    refuse_unknown_query(request.query_params, names)
    if (await request.body()).strip() not in (b"", b"{}", b"null"):
        raise InvalidValue("invalid_request", "", "this route takes no body", SEE)


def _model(route: HttpRoute, fields: list[RequestField], *, is_paged: bool) -> type[BaseModel]:
    """The fields of a query or a body; one that is not among them is refused."""
    given: dict[str, Any] = {
        each.name: (
            _bounded(each),
            Field(... if each.default is MISSING else each.default, strict=_strictness(each.hint)),
        )
        for each in fields
    }
    if "limit" in given:
        given["limit"] = (int, Field(PAGE, ge=1, le=MOST, description="How many items at most."))
    if is_paged:
        given |= {name: (field.annotation, field) for name, field in PageQuery.model_fields.items()}
    name = "".join(part.title() for part in re.split(r"\W+|_", route.operation.name)) + "Request"
    strict = route.method not in _IN_QUERY  # in a body a number is a number; in a query everything is text
    made: type[BaseModel] = create_model(name, __config__=ConfigDict(extra="forbid", strict=strict), **given)
    made.__doc__ = getdoc(route.operation.request)
    return made


def _bounded(each: RequestField) -> Any:
    """A whole number is one that a store can hold, and no request reads everything. Names and reasons stand in events,
    which are short; other words have bounds of their own."""
    if each.hint in (str, str | None) and each.name not in LONG:
        return Annotated[each.hint, Field(max_length=LONGEST_WORDS)]
    if each.hint not in (int, int | None):
        return each.hint
    return Annotated[each.hint, Field(ge=-LARGEST, le=MOST if each.name == "turns" else LARGEST)]


def _strictness(hint: Any) -> bool | None:
    """None: as the whole body is. JSON has lists and no tuples, which a strict reader would take for something else."""
    return False if get_origin(hint) is tuple else None
