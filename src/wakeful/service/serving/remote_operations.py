"""An operation of the table, done by the process that serves a store: the request becomes a route of it, and the answer
the same record that the operation gives here.

A name in a path is a field of the request; of the other fields, those of a GET or a DELETE are its query and those of
everything else its body. Lists are read to their end, page by page. Who acts is not sent: that process knows.
"""

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast
from urllib.parse import parse_qsl, quote, urlsplit

from wakeful._version import __version__
from wakeful.contracts import errors as known
from wakeful.contracts.errors import AlreadyDecided, TurnNotFound, WakefulError
from wakeful.service.operations.operation import IDENTITY, Operation
from wakeful.service.operations.pages import PAGES
from wakeful.service.operations.routes import ROUTES, HttpRoute, field_of_path
from wakeful.service.operations.tasks import SHOW_OUTPUT, TaskName
from wakeful.service.operations.turn_reports import LIST_LINES
from wakeful.service.operations.turns import LIST_TURNS, TurnQuery
from wakeful.service.serving.daemon_client import ControlRefused, DaemonAnswer, DaemonClient, NoAnswer, NotNow

if TYPE_CHECKING:
    from wakeful.views.task_records import OutputChunk, TaskOutput

Q = TypeVar("Q")
A = TypeVar("A")
PAGE = 1_000
"""The most that one page may have."""
_NAME = re.compile(r"{(\w+)}")
_NEXT = re.compile(r'<([^>]*)>;\s*rel="next"')
_STORE = re.compile(r" --store (?:'[^']*'|\S+)")
_CAPITALS = re.compile(r"(?<=[a-z])(?=[A-Z])")
_IN_QUERY = ("GET", "DELETE")


class HttpQuestion(NamedTuple):
    """A request to a route."""

    method: str
    path: str
    body: dict[str, Any] | None = None
    query: dict[str, Any] | None = None


def is_routed(operation: Operation[Any, Any], asked: Any) -> bool:
    """Can a daemon be asked this?"""
    return bool(_fitting(operation, asked))


def ask_daemon(client: DaemonClient, operation: Operation[Q, A], asked: Q, *, page: int = PAGE) -> A:
    """The answer; a list is read to its end, so many lines at once.

    Raises what the operation raises, NoAnswer, or an error of the door: a token, a scope.
    """
    try:
        asked = _with_turn(client, operation, asked)
        route = _route(operation, asked)
        sent = question(route, asked, page)
        answer = client.ask(*sent)
        found: Any = _decoded(client, route, answer)
        if not operation.many:
            return cast(A, found)
        most: int | None = getattr(asked, "limit", None)
        while (most is None or len(found) < most) and (link := _NEXT.search(answer.headers.get("link", ""))):
            where = urlsplit(link[1])
            answer = client.ask(route.method, sent.path, None, dict(parse_qsl(where.query)))
            found += _decoded(client, route, answer)
        return cast(A, found[:most])
    except ControlRefused as refused:
        raise told(refused, client) from None


def stream_daemon(
    client: DaemonClient,
    operation: Operation[Q, list[A]],
    asked: Q,
    *,
    away: Callable[[NotNow], None],
    last: str | None = None,
) -> Iterator[A]:
    """What a list holds and what comes to it, as it comes, each item once, until nothing is left to come.

    `away` is called when the daemon went away, and returns when it is back, or raises.
    """
    try:
        asked = _with_turn(client, operation, asked)
        route = _route(operation, asked)
        sent = question(route, asked)
        adapter = _adapter(operation, many=False)
        query = {name: value for name, value in (sent.query or {}).items() if name != "limit"}
        shares = operation.name == LIST_LINES.name  # an event may be several lines
        for event in client.follow(sent.path, query, away=away, last=last, shares=shares):
            yield adapter.validate_json(event.data)
    except ControlRefused as refused:
        raise told(refused, client) from None


def stream_output(
    client: DaemonClient, asked: TaskName, *, away: Callable[[NotNow], None]
) -> "Iterator[OutputChunk | TaskOutput]":
    """What a task says, as it says it, and last its output in short. `away` as above."""
    from wakeful.views.task_records import OutputChunk, TaskOutput

    try:
        for event in client.follow(question(_route(SHOW_OUTPUT, asked), asked).path, away=away):
            kind = TaskOutput if event.event == "ended" else OutputChunk
            yield kind.model_validate_json(event.data)
    except ControlRefused as refused:
        raise told(refused, client) from None


def question(route: HttpRoute, asked: Any, page: int = PAGE) -> HttpQuestion:
    """The request as the route takes it: fields that say nothing are left out."""
    from pydantic_core import to_jsonable_python

    given: dict[str, Any] = {}
    for each in dataclasses.fields(asked):
        value = getattr(asked, each.name)
        default = each.default_factory() if each.default_factory is not dataclasses.MISSING else each.default
        is_unsaid = value is None and (default is None or route.method in _IN_QUERY)
        if each.name in route.fixed or (each.name in IDENTITY and not value) or is_unsaid:
            continue
        if value != default or each.name == "limit":  # a route has a page of its own where nothing is said
            given[each.name] = to_jsonable_python(value)
    in_path = {name: str(given.pop(field_of_path(route, name))) for name in _NAME.findall(route.path)}
    path = _NAME.sub(lambda found: quote(in_path[found[1]], safe=""), route.path)
    if route.method not in _IN_QUERY:
        return HttpQuestion(route.method, path, given or None)
    if route.path in PAGES:
        given["limit"] = min(getattr(asked, "limit", None) or page, page)
    shown = {name: str(value).lower() if isinstance(value, bool) else value for name, value in given.items()}
    return HttpQuestion(route.method, path, query=shown)


def told(refused: ControlRefused, client: DaemonClient) -> WakefulError:
    """The error that the operation would have raised here, as far as its code says which."""
    hint = _STORE.sub("", refused.hint)
    if refused.code == "not_found" and client.version != __version__:
        return NoAnswer(
            f"the daemon is wakeful {client.version} and does not know this; the command is wakeful {__version__}",
            "Use one version for both; after an upgrade here: wakeful daemon restart",
        )
    kind = _errors().get(refused.code)
    if kind is None:
        return ControlRefused(refused.status, refused.code, refused.message, hint)
    error = kind.__new__(kind)
    WakefulError.__init__(error, refused.message, hint)
    if isinstance(error, AlreadyDecided):
        error.ended_with = refused.details
    return error


@cache
def _errors() -> Mapping[str, type[WakefulError]]:
    """Classes of errors by the code that the wire has for them."""
    return {
        getattr(each, "code", None) or _CAPITALS.sub("_", each.__name__).lower(): each
        for each in vars(known).values()
        if isinstance(each, type) and issubclass(each, WakefulError)
    }


@cache
def _routes() -> Mapping[str, list[HttpRoute]]:
    found: dict[str, list[HttpRoute]] = {}
    for route in ROUTES:
        found.setdefault(route.operation.name, []).append(route)
    return found


def _route(operation: Operation[Any, Any], asked: Any) -> HttpRoute:
    """The route whose path says the most of what was asked."""
    return max(_fitting(operation, asked), key=lambda route: route.path.count("{"))


def _fitting(operation: Operation[Any, Any], asked: Any) -> list[HttpRoute]:
    """Routes whose path can be written; a turn that is not named is the newest one."""
    return [
        route
        for route in _routes().get(operation.name, ())
        if all(
            name == "turn_id" or getattr(asked, field_of_path(route, name)) is not None
            for name in _NAME.findall(route.path)
        )
    ]


def _with_turn(client: DaemonClient, operation: Operation[Any, Any], asked: Any) -> Any:
    """The newest turn by its id where none is named: a path has to name one."""
    needs_one = all("{turn_id}" in route.path for route in _routes()[operation.name])
    if not needs_one or getattr(asked, "turn", "") is not None:
        return asked
    newest = ask_daemon(client, LIST_TURNS, TurnQuery(limit=1))
    if not newest:
        raise TurnNotFound("there is no turn yet", 'Begin one: wakeful run "hello"')
    return dataclasses.replace(asked, turn=newest[0].turn_id)


def _decoded(client: DaemonClient, route: HttpRoute, answer: DaemonAnswer) -> Any:
    from pydantic import ValidationError

    try:
        return _adapter(route.operation, many=route.operation.many).validate_json(answer.body)
    except ValidationError as error:
        raise NoAnswer(
            f"the daemon is wakeful {client.version} and answers in another shape; the command is wakeful "
            f"{__version__} ({route.method} {route.path}: {error.errors()[0]['msg']})",
            "Use one version for both; after an upgrade here: wakeful daemon restart",
        ) from None


@cache
def _adapter(operation: Operation[Any, Any], *, many: bool) -> Any:
    from pydantic import TypeAdapter

    item: Any = operation.answer_type()
    return TypeAdapter(list[item] if many else item)
