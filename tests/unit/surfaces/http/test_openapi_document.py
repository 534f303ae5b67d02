"""The description of the HTTP interface: every body and every answer has an example, and each keeps its schema."""

import asyncio
import re
from functools import cache
from typing import Any

import jsonschema
import pytest

from wakeful.bootstrap.engines import new_engine
from wakeful.service.operations.operation import OpenStore
from wakeful.service.operations.pages import PAGES
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


def operations() -> list[tuple[str, str, dict[str, Any]]]:
    paths = document()["paths"]
    return [(method.upper(), path, said) for path, item in paths.items() for method, said in item.items()]


def test_every_route_says_what_it_does_and_what_each_of_its_fields_means() -> None:
    assert {f"{method} {path}" for method, path, _ in operations()} == set(WORDS)
    schemas, silent = document()["components"]["schemas"], []
    for method, path, said in operations():
        assert said["summary"] and WORDS[f"{method} {path}"] in said["description"], path
        fields = {each["name"]: each for each in said.get("parameters", ())}
        body = said.get("requestBody", {}).get("content", {}).get(JSON, {}).get("schema", {})
        if "$ref" in body:
            fields |= schemas[body["$ref"].rpartition("/")[2]].get("properties", {})
        silent += [f"{method} {path} {name}" for name, field in fields.items() if not field.get("description")]
    assert silent == []


def test_every_route_has_a_short_id_that_a_program_can_have_as_a_name() -> None:
    ids = [said["operationId"] for _, _, said in operations()]
    assert len(ids) == len(set(ids))
    assert [each for each in ids if not each.isidentifier() or len(each) > 40] == []


def test_every_route_says_that_it_needs_a_token_but_those_that_need_none() -> None:
    (name,) = document()["security"][0]
    assert document()["components"]["securitySchemes"][name]["scheme"] == "bearer"
    free = {f"{method} {path}" for method, path, said in operations() if said.get("security") == []}
    assert free == {"GET /health", "POST /callbacks/{mode}/{token}"}
    scopes = {(route.method, route.path): f"Scope: `{route.scope}`." for route in ROUTES}
    assert [
        path for method, path, said in operations() if scopes.get((method, path), "") not in said["description"]
    ] == []


def test_a_list_says_where_its_next_page_is() -> None:
    for path in PAGES:
        assert "Link" in document()["paths"][path]["get"]["responses"]["200"]["headers"], path


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
