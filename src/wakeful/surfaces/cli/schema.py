"""`wakeful schema`: the published JSON Schemas."""

from collections.abc import Callable
from typing import Annotated, Any

import typer

from wakeful.bootstrap.models import script_schema
from wakeful.contracts.schema import event_schema
from wakeful.service.queries.schemas import agent_schema, chat_schema, owner_schema, run_result_schema, wire_schema
from wakeful.surfaces.cli.problems import WrongRequest
from wakeful.surfaces.cli.shown_values import json_text, out
from wakeful.views.standard_form import standard_schema

SCHEMAS: dict[str, tuple[Callable[[], dict[str, Any]], str]] = {
    "events": (event_schema, "every event of a log: wakeful events TURN --json"),
    "standard-events": (standard_schema, "the same in the draft standard's form, over HTTP: ?form=standard"),
    "run-result": (run_result_schema, "a result: wakeful run --json"),
    "wire": (wire_schema, "client messages: wakeful events TURN --as wire --json"),
    "chat": (chat_schema, "messages of a chat: POST /agents/{agent_id}/chat"),
    "agent": (agent_schema, "an agent's file: wakeful check, wakeful run --agent FILE"),
    "owner": (owner_schema, "the owner's file, wakeful.toml: wakeful check"),
    "script": (script_schema, "a script: wakeful run --model scripted:FILE"),
}


def command(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help=f"One of {', '.join(SCHEMAS)}.")] = None,
) -> None:
    """Print a JSON Schema (2020-12); without NAME, list them."""
    if name is None:
        out([f"wakeful schema {each:<17}{says}" for each, (_, says) in SCHEMAS.items()])
        return
    if name not in SCHEMAS:
        raise WrongRequest(f"there is no schema {name!r}", f"there are: {', '.join(SCHEMAS)}")
    out(json_text(SCHEMAS[name][0](), indent=2))
