"""Which route answers a request: found by the words of its path, so that a hundred are not tried one after the other.

A route that takes a body is answered from here; all others go through the framework, which finds its route again by
what is noted here. A request that the index does not know goes the framework's way, which says what is wrong with it:
unless its path has other methods, which are all named then. HEAD is a GET whose body the server keeps to itself.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeAlias

from fastapi import APIRouter, FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from wakeful.surfaces.http.body_routes import BodyRoute

Told: TypeAlias = Callable[[Request, Exception], Awaitable[Response]]
"""What a client is told about something that was raised."""
_Place: TypeAlias = tuple[str, int, str, str]
"""First word, number of words, method, last word; no last word where it is a name."""
_FOUND = "wakeful.route"


class RouteIndex:
    """The routes of an application."""

    def __init__(self, routes: Iterable[BaseRoute], told: Told, rest: ASGIApp) -> None:
        self._told, self._rest = told, rest
        self._methods: set[str] = set()
        places: dict[tuple[str, int, str], list[Route]] = defaultdict(list)
        for route in routes:
            if isinstance(route, Route) and not route.path.startswith("/{"):
                words = route.path.split("/")
                for method in route.methods or ():
                    places[words[1], len(words), method].append(route)
                    self._methods.add(method)
        self._routes: dict[_Place, list[Route]] = {}
        for (first, many, method), found in places.items():
            for last in {"", *map(_last_word, found)}:
                fitting = [each for each in found if _last_word(each) in ("", last)]
                self._routes[first, many, method, last] = fitting

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            if scope["method"] == "HEAD":
                scope = _as_get(scope)
            route = self._find(scope)
            if isinstance(route, BodyRoute):
                request = Request(scope, receive)
                try:
                    answer = await route.respond(request)
                except Exception as error:
                    answer = await self._told(request, error)
                await answer(scope, receive, send)
                return
            if route is None and (others := self._others(scope)):
                missing = HTTPException(405, headers={"Allow": ", ".join(others)})
                answer = await self._told(Request(scope, receive), missing)
                await answer(scope, receive, send)
                return
            scope[_FOUND] = route
        await self._rest(scope, receive, send)

    def _others(self, scope: Scope) -> list[str]:
        """The methods that the path of a request has."""
        found = {method for method in self._methods if self._find({**scope, "method": method}) is not None}
        return sorted(found | {"HEAD"} if "GET" in found else found)

    def _find(self, scope: Scope) -> Route | None:
        words = scope["path"].split("/")
        if len(words) < 2:
            return None
        first, many, method = words[1], len(words), scope["method"]
        known = self._routes.get((first, many, method, words[-1])) or self._routes.get((first, many, method, ""))
        for route in known or ():
            if isinstance(route, BodyRoute):
                names = route.names_in(words)
                if names is not None:
                    scope["path_params"] = names
                    return route
            else:
                match, found = route.matches(scope)
                if match == Match.FULL:
                    scope.update(found)
                    return route
        return None


def _as_get(scope: Scope) -> Scope:
    """The GET that a HEAD asks about: as a page, for a stream would have no end."""
    headers = [(name, value) for name, value in scope["headers"] if name != b"accept"]
    return {**scope, "method": "GET", "headers": headers}


def _last_word(route: Route) -> str:
    last = route.path.rpartition("/")[2]
    return "" if last.startswith("{") else last


def add_routes(app: FastAPI, routers: Sequence[APIRouter]) -> None:
    """All routes of the routers, flat. Nothing is added afterwards."""
    app.router.routes.extend(route for router in routers for route in router.routes)
    app.router.middleware_stack = _FoundRoute(app.router)


class _FoundRoute:
    """The routes of the framework, from the one that the index found."""

    def __init__(self, router: APIRouter) -> None:
        self._router = router

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = scope.pop(_FOUND, None)
        if route is None:
            await self._router.app(scope, receive, send)
            return
        scope.setdefault("router", self._router)
        await route.handle(scope, receive, send)
