"""The description of the interface: words about every route and every field, who may call it, and examples.

Bodies are written by hand. Answers are made from their own schemas when the description is asked for: a value for each
field, of the kind that its name promises.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import FastAPI

from wakeful.service.operations.pages import PAGES
from wakeful.service.operations.routes import ROUTES, HttpRoute, field_of_path
from wakeful.surfaces.http.route_words import PATH_FIELDS, WORDS, field_words, short_words

JSON = "application/json"
_AGENT = "/agents/{agent_id}"
_CONTROL = "/control/agents/{agent_id}"
_APPROVAL = "/approvals/{approval_id}"
_TRIGGER = "/control/triggers/{trigger_id}"
BODIES: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("POST", "/control/runtime/shutdown"): {"drain": 300.0},
    ("POST", "/control/runtime/hold"): {"control": "paused", "reason": "the database moves"},
    ("POST", "/agents"): {
        "definition": {"name": "ops", "model": "openai:gpt-5.5", "instructions": "Watch the builds."}
    },
    ("PATCH", _AGENT): {"changes": {"instructions": "Watch the builds and the backups."}},
    ("PUT", f"{_AGENT}/model"): {"model": "anthropic:claude-sonnet-4-5"},
    ("POST", f"{_AGENT}/archive"): {"reason": "the project is over"},
    ("POST", f"{_CONTROL}/pause"): {"reason": "the database moves", "seconds": 3600.0},
    ("POST", f"{_CONTROL}/stop"): {"reason": "it does the wrong thing"},
    ("POST", f"{_AGENT}/messages"): {"text": "Check the backups.", "key": "monday"},
    ("POST", f"{_AGENT}/chat"): {"text": "Check the backups.", "thread": "main"},
    ("POST", f"{_CONTROL}/work-items"): {"objective": "Make last night's backup work again."},
    ("POST", "/control/templates"): {"path": "/srv/templates/reviewer"},
    ("POST", "/control/channels"): {"kind": "ntfy", "channel": "phone"},
    ("POST", "/control/channels/{channel_id}/pair"): {"code": "7F3K-92QD"},
    ("POST", "/tasks/{task_id}/stop"): {"reason": "it hangs"},
    ("PUT", f"{_AGENT}/memory/entry"): {"ref": "episode:12", "text": "Backups run at 03:00."},
    ("POST", f"{_AGENT}/workspaces"): {"path": "/srv/shop"},
    ("PUT", f"{_AGENT}/workspace"): {"path": "/srv/shop", "mode": "isolated", "label": "backup"},
    ("POST", f"{_CONTROL}/triggers"): {"name": "ci", "say": "A build reported in.", "thread": "main"},
    ("POST", f"{_TRIGGER}/rotate"): {"reason": "its address was in a log"},
    ("POST", f"{_TRIGGER}/revoke"): {"reason": "unused"},
    ("POST", f"{_TRIGGER}/url"): {"purpose": "for the build server"},
    ("POST", f"{_APPROVAL}/decision"): {"decision": "approved", "reason": "the amount is right"},
    ("POST", f"{_APPROVAL}/edit"): {"arguments": {"cents": 500}, "reason": "half of it"},
    ("POST", f"{_APPROVAL}/answer"): {"answer": "Tuesday"},
    ("POST", f"{_APPROVAL}/always"): {"scope": "tool", "for_seconds": 86400.0},
    ("POST", "/calls/{call_id}/outcome"): {"happened": True, "result": "the refund is in the books"},
    ("POST", "/requests/{request_id}/result"): {"result": {"chosen": "blue"}},
    ("POST", "/turns/{turn_id}/retry"): {"usd": "1"},
    ("POST", "/turns/{turn_id}/messages"): {"text": "Leave the archive alone."},
    ("POST", "/dispatches"): {
        "agent": "ops",
        "instructions": "Close the books.",
        "task": "books",
        "input": {"month": 5},
    },
    ("POST", "/packages"): {
        "bundle": {
            "package_slug": "books",
            "version": "1.0",
            "agent": {"agent_slug": "bookkeeper", "model": "openai:gpt-5.5", "instructions": "You keep the books."},
        },
        "on_conflict": "error",
    },
    ("POST", "/workflows"): {
        "agent": "ops",
        "graph": {
            "schema": "wakeful.workflow",
            "version": 1,
            "name": "report",
            "nodes": [{"id": "read", "kind": "tool", "ref": "read_file", "inputs": {"path": "report.md"}}],
            "outputs": {"report": {"node": "read"}},
        },
    },
    ("POST", "/workflows/{name}/runs"): {"agent": "ops", "inputs": {"order": "A17"}, "key": "report-monday"},
    ("POST", "/budgets/grant"): {"scope": "agent:ops", "usd": "5.00", "period": "day", "reason": "a large repair"},
}
"""By method and path: of every route that has fields in its body."""
TOKEN: Mapping[str, Any] = {
    "type": "http",
    "scheme": "bearer",
    "description": "A token that `wakeful token create NAME --scope SCOPE` made. Through the socket of the home none "
    "is needed.",
}
NEXT_PAGE: Mapping[str, Any] = {
    "description": 'The next page, where there may be one: `<?limit=100&cursor=...>; rel="next"`, the query to send to '
    "the same address.",
    "schema": {"type": "string"},
}
DEEPEST = 8
NAMED: Mapping[str, Any] = {
    "agent": "ops",
    "agent_id": "ops",
    "agent_name": "ops",
    "target_agent_id": "ops",
    "thread": "main",
    "thread_id": "main",
    "turn_id": "turn_01k9z3",
    "run_id": "turn_01k9z3",
    "message_id": "msg_01k9z3",
    "call_id": "call_1",
    "approval_id": "appr_01k9z3",
    "tool": "refund",
    "tool_name": "refund",
    "model": "openai:gpt-5.5",
    "text": "All backups are there.",
    "reason": "",
    "hint": "",
    "version": "0.1.0",
    "changed_by": "local:1000",
    "decided_by": "token:phone",
    "created_by": "local:1000",
    "timestamp": "2026-11-18T09:30:00.000Z",
    "ts": "2026-11-18T09:30:00.000Z",
    "name": "ops",
    "objective": "Make last night's backup work again.",
    "media_type": "text/plain",
    "cursor": "c_42",
}
"""What fields of these names hold in an example."""
SHAPES = ("ask", "1", "1.00", "sha256:" + 64 * "0", "a.b")
"""One of these fits where a text has a shape."""
MOMENT = 1_795_000_000.0
"""Unix seconds of a time in an example."""


def describe(app: FastAPI) -> None:
    """Let the application describe itself with examples. They are made once, when somebody asks."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = with_examples(with_words(plain()))
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def with_words(document: dict[str, Any]) -> dict[str, Any]:
    """The document, with words about every route and its fields, a short id of each, and the token that opens it."""
    document["components"]["securitySchemes"] = {"token": TOKEN}
    document["security"] = [{"token": []}]
    schemas = document["components"]["schemas"]
    routes: dict[tuple[str, str], HttpRoute] = {(route.method, route.path): route for route in ROUTES}
    names = operation_ids()
    for method, path, operation in _operations(document):
        route = routes.get((method, path))
        needs = f"Scope: `{route.scope}`. " if route is not None else ""
        operation["summary"] = short_words(method, path)
        operation["description"] = needs + WORDS[f"{method} {path}"]
        operation["operationId"] = names[method, path]
        if route is None:
            operation["security"] = []  # open to all: a delivery has its secret in the address
        for each in operation.get("parameters", ()):
            _describe_parameter(each, route)
        body = operation.get("requestBody", {}).get("content", {}).get(JSON, {}).get("schema", {})
        if route is not None and "$ref" in body:
            schema = schemas[body["$ref"].rpartition("/")[2]]
            schema["description"] = short_words(method, path) + "."
            for name, field in schema.get("properties", {}).items():
                field.setdefault("description", field_words(route.operation.request, name))
        if path in PAGES and method == "GET":
            operation["responses"]["200"]["headers"] = {"Link": NEXT_PAGE}
    return document


def operation_ids() -> dict[tuple[str, str], str]:
    """The id of each route: the name of its operation; where an operation has several routes, with their words."""
    many = Counter(route.operation.name for route in ROUTES)
    found = {("GET", "/health"): "health", ("POST", "/callbacks/{mode}/{token}"): "triggers_deliver"}
    for route in ROUTES:
        words = re.findall(r"/(\w[\w-]*)", route.path) if many[route.operation.name] > 1 else []
        found[route.method, route.path] = re.sub(r"\W+", "_", "_".join((route.operation.name, *words)))
    return found


def _operations(document: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield method.upper(), path, operation


def _describe_parameter(parameter: dict[str, Any], route: HttpRoute | None) -> None:
    name = parameter["name"]
    parameter["schema"].pop("description", None)  # it stands beside it
    if parameter["in"] == "path":
        parameter["description"] = PATH_FIELDS[name]
    elif not parameter.get("description") and route is not None:
        parameter["description"] = field_words(route.operation.request, field_of_path(route, name))


def with_examples(document: dict[str, Any]) -> dict[str, Any]:
    """The document, with an example beside each schema of a body or an answer."""
    maker = ExampleMaker(document.get("components", {}).get("schemas", {}))
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            body = operation.get("requestBody", {}).get("content", {}).get(JSON)
            if body is not None:
                body["example"] = dict(BODIES.get((method.upper(), path), {})) or maker.make(body["schema"])
            for answer in operation.get("responses", {}).values():
                media = answer.get("content", {}).get(JSON)
                if media is not None and "schema" in media:
                    media["example"] = maker.make(media["schema"])
    return document


class ExampleMaker:
    """Makes a value of a schema."""

    def __init__(self, schemas: Mapping[str, Any]) -> None:
        self._schemas = schemas

    def make(self, schema: Mapping[str, Any], name: str = "", depth: int = 0) -> Any:
        if "$ref" in schema:
            return self.make(self._schemas[schema["$ref"].rpartition("/")[2]], name, depth + 1)
        for said in ("examples", "enum"):
            if schema.get(said):
                return schema[said][0]
        for said in ("example", "const"):
            if said in schema:
                return schema[said]
        for several in ("anyOf", "oneOf"):
            if several in schema:
                kinds = [each for each in schema[several] if each.get("type") != "null"]
                may_be_nothing = len(kinds) < len(schema[several])
                return None if may_be_nothing and depth > DEEPEST else self.make(kinds[0], name, depth)
        if schema.get("allOf"):
            return self.make(schema["allOf"][0], name, depth)
        return self._of_type(schema, name, depth)

    def _of_type(self, schema: Mapping[str, Any], name: str, depth: int) -> Any:
        match schema.get("type"):
            case "object":
                fields = schema.get("properties", {})
                needed = schema.get("required", ())
                return {
                    each: self.make(fields[each], each, depth + 1)
                    for each in fields
                    if depth <= DEEPEST or each in needed
                }
            case "array":
                few = schema.get("minItems", 0)
                if "prefixItems" in schema:
                    return [self.make(each, name, depth + 1) for each in schema["prefixItems"]]
                is_deep = depth > DEEPEST // 2 and not few
                return [] if is_deep or "items" not in schema else [self.make(schema["items"], name, depth + 1)]
            case "string":
                return self._text(schema, name)
            case "integer":
                return max(int(schema.get("minimum", 1)), 1)
            case "number":
                return MOMENT if name.endswith("_at") or name == "at" else float(max(schema.get("minimum", 1), 1))
            case "boolean":
                return bool(schema.get("default", False))
        return NAMED.get(name, {})

    def _text(self, schema: Mapping[str, Any], name: str) -> str:
        if isinstance(schema.get("default"), str) and name not in NAMED:
            return str(schema["default"])
        found = NAMED.get(name)
        if "pattern" in schema:
            return next((each for each in (str(found), *SHAPES) if re.search(schema["pattern"], each)), "")
        if isinstance(found, str) and len(found) >= schema.get("minLength", 0):
            return found
        return name.replace("_", " ") or "text"
