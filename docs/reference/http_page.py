"""The page of routes: generated from the table of operations, so that no route is missing here."""

import json

from wakeful.service.operations.routes import ROUTES, WITHOUT_ROUTE, HttpRoute, fields_of
from wakeful.surfaces.http.openapi_document import BODIES
from wakeful.surfaces.http.route_words import WORDS

INTRO = """\
# HTTP

Every route of `wakeful serve`. The models of requests and answers are in `/openapi.json` of a running daemon;
[the guide](../guides/daemon.md) is about tokens, errors and streams. This page is generated.

Names in a path are ids; of most things the beginning of an id will do, and of a turn its key. Other fields are the
query of a GET or DELETE, and the JSON body of everything else; a field that is not known is refused. Lists take `limit`
and `cursor`, and name their next page in the `Link` header. Requests that change something take `Idempotency-Key`: the
same request with the same key is carried out once.

| method | path | scope | operation: what it does | fields |
|---|---|---|---|---|
"""
REST = """
Besides: `GET /health` (open to all), `POST /callbacks/wake/{token}` and `POST /callbacks/enqueue/{token}` (the address
of a trigger, as `wakeful trigger url` shows it). `GET /agents/{agent_id}/events`, `GET /turns/{turn_id}/events`,
`GET /feed`, `GET /turns/{turn_id}/chat` and `GET /messages/{message_id}` are streams for readers that accept
`text/event-stream`; `POST /agents/{agent_id}/chat` always is one ([Chat over HTTP](../guides/http-chat.md)).
Events of a turn and a chat take `form=standard`.

## Bodies

Of each route that has one, as somebody would send it; `/openapi.json` has an example of every answer as well.

BODIES
## Not over HTTP

| operation | why |
|---|---|
"""


def http_page() -> str:
    lines = [_line(route) for route in ROUTES]
    without = [f"| `{name}` | {why} |" for name, why in sorted(WITHOUT_ROUTE.items())]
    bodies = [f"| {method} | `{path}` | `{json.dumps(body)}` |" for (method, path), body in BODIES.items()]
    table = "\n".join(["| method | path | body |", "|---|---|---|", *bodies]) + "\n"
    return INTRO + "\n".join(lines) + "\n" + REST.replace("BODIES", table) + "\n".join(without) + "\n"


def _line(route: HttpRoute) -> str:
    shown = ", ".join(f"`{each.name}`" for each in fields_of(route) if f"{{{each.name}" not in route.path)
    words = WORDS[f"{route.method} {route.path}"]
    return f"| {route.method} | `{route.path}` | {route.scope} | {route.operation.name}: {words} | {shown} |"
