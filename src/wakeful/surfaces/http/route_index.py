"""Finding a route among a hundred without trying all of them: by its first word and its number of words.

A request that the index does not know goes the framework's way, which says what is wrong with it.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import TypeAlias

from fastapi import APIRouter, FastAPI
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Receive, Scope, Send

_Place: TypeAlias = tuple[str, int, str]
"""First word, number of words, method."""


class RouteIndex:
    """The routes of an application by where they can be, in the order in which they were added."""

    def __init__(self, router: APIRouter) -> None:
        self._router = router
        self._routes: dict[_Place, list[Route]] = defaultdict(list)
        for route in router.routes:
            if isinstance(route, Route) and not route.path.startswith("/{"):
                for method in route.methods or ():
                    self._routes[_place(route.path, method)].append(route)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope.setdefault("router", self._router)
            for route in self._routes.get(_place(scope["path"], scope["method"]), ()):
                match, found = route.matches(scope)
                if match == Match.FULL:
                    scope.update(found)
                    await route.handle(scope, receive, send)
                    return
        await self._router.app(scope, receive, send)


def add_routes(app: FastAPI, routers: Sequence[APIRouter]) -> None:
    """All routes of the routers, to be found by an index. Nothing is added afterwards."""
    flat: list[BaseRoute] = [route for router in routers for route in router.routes]
    app.router.routes.extend(flat)
    app.router.middleware_stack = RouteIndex(app.router)


def _place(path: str, method: str) -> _Place:
    first, _, rest = path[1:].partition("/")
    return first, rest.count("/") + bool(rest), method
