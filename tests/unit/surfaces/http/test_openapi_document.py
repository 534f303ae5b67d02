"""The description of the HTTP interface: every body and every answer has an example, and each keeps its schema."""

import asyncio
import re
from functools import cache
from typing import Any

import jsonschema
import pytest

from wakeful.bootstrap.engines import new_engine
from wakeful.service.operations.operation import OpenStore
from wakeful.service.operations.routes import ROUTES, field_of_path, fields_of
from wakeful.store.memory import MemoryStore
from wakeful.surfaces.http.application import application
from wakeful.surfaces.http.openapi_document import BODIES
from wakeful.surfaces.http.route_words import WORDS

JSON = "application/json"


@cache
def document() -> dict[str, Any]:
    store = MemoryStore()
    return application(OpenStore(store, lambda _: new_engine(store), frozenset), asyncio.Event()).openapi()


def places() -> list[tuple[str, dict[str, Any]]]:
    """Every body and every answer that is JSON."""
    found = []
    for path, operations in document()["paths"].items():
        for method, operation in operations.items():
            parts = {"body": operation.get("requestBody", {}), **operation["responses"]}
            for name, part in parts.items():
                if JSON in part.get("content", {}) and "schema" in part["content"][JSON]:
                    found.append((f"{method.upper()} {path} {name}", part["content"][JSON]))
    return found


def test_every_body_and_every_answer_has_an_example_that_keeps_its_schema() -> None:
    schemas = {"components": document()["components"]}
    assert len(places()) > 300
    wrong = []
    for name, media in places():
        assert "example" in media, name
        checker = jsonschema.Draft202012Validator({**media["schema"], **schemas})
        wrong += [
            f"{name}: {error.json_path}: {error.message[:120]}" for error in checker.iter_errors(media["example"])
        ]
    assert wrong == []


def test_every_route_with_fields_in_its_body_has_one_that_somebody_would_send() -> None:
    with_body = set()
    for route in ROUTES:
        in_path = {field_of_path(route, name) for name in re.findall(r"{(\w+)}", route.path)}
        if route.method not in ("GET", "DELETE") and {each.name for each in fields_of(route)} - in_path:
            with_body.add((route.method, route.path))
    assert set(BODIES) == with_body


@pytest.mark.parametrize("status", ["4XX", "5XX"])
def test_every_route_says_what_its_errors_are_like(status: str) -> None:
    for path, operations in document()["paths"].items():
        for method, operation in operations.items():
            if path == "/health":
                continue
            error = operation["responses"][status]["content"][JSON]["example"]["error"]
            assert {"code", "message", "hint", "retryable"} <= set(error), f"{method} {path}"


def test_the_summary_of_every_route_says_what_it_does() -> None:
    routes = {
        f"{method.upper()} {path}": each for path, ways in document()["paths"].items() for method, each in ways.items()
    }
    assert set(WORDS) == {f"{route.method} {route.path}" for route in ROUTES}
    assert {name: routes[name]["summary"] for name in WORDS} == WORDS
    assert [name for name, each in routes.items() if "No words are needed" in each.get("description", "")] == []


def test_no_two_routes_say_the_same() -> None:
    assert len(set(WORDS.values())) == len(WORDS)
