"""The published JSON Schema of events, generated from the typed payloads, and a check against it.

One schema (2020-12) describes the envelope and the payload of every event. Each known type is a branch of its own that
names the payload and the ids its family must carry; a last branch takes types that this version does not know, because
a reader keeps what it does not know. `x-limits` are the published limits. `docs/reference/events.schema.json` is this
schema, word for word.
"""

from collections.abc import Mapping
from copy import deepcopy
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from wakeful.contracts.envelope import SCHEMA_VERSION, RuntimeEvent
from wakeful.contracts.events import BY_KIND, EVENTS

if TYPE_CHECKING:
    from jsonschema.protocols import Validator
from typing import Final

from wakeful.contracts.budgets import MAX_PARALLEL_PER_TURN, MAX_TOOL_RESULT_BYTES
from wakeful.contracts.tools import MAX_RESULT_TOKENS, PREVIEW_CHARS

LIMITS: Final[dict[str, int]] = {
    "preview_chars": PREVIEW_CHARS,
    "tool_result_bytes": MAX_TOOL_RESULT_BYTES,
    "tool_result_tokens": MAX_RESULT_TOKENS,
    "parallel_calls_per_turn": MAX_PARALLEL_PER_TURN,
}
"""`preview_chars`: the most of a text in a field that only shows it. `tool_result_bytes`: the most text of one result
that a model is shown, whatever a tool's budget says. `tool_result_tokens`: the most where nobody set a budget."""


DIALECT = "https://json-schema.org/draft/2020-12/schema"
REFS = "#/$defs/{model}"
UNKNOWN_TYPE = "unknown_type"
"""The branch for types that are not in the list."""
DOTTED = r"^[a-z][a-z0-9_]*(\.[a-z0-9_]+)+$"


class Problem(NamedTuple):
    """One thing that is wrong with an event, and where."""

    path: str
    """As one would write it in code: `payload.metadata.status`."""
    message: str


class _Untitled(GenerateJsonSchema):
    """Without a title on each field that only repeats its name."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


@cache
def _schema() -> dict[str, Any]:
    names, generated = models_json_schema(
        [(RuntimeEvent, "serialization"), *((event, "serialization") for event in EVENTS)],
        ref_template=REFS,
        schema_generator=_Untitled,
    )
    definitions: dict[str, Any] = generated["$defs"]
    envelope = definitions.pop(names[RuntimeEvent, "serialization"]["$ref"].rsplit("/", 1)[1])
    # The version has a default for whoever writes an event; a reader can rely on it being there.
    envelope["required"] = [*envelope["required"], "schema_version"]
    envelope["properties"]["sequence"]["minimum"] = 1
    branches: dict[str, Any] = {}
    for event in EVENTS:
        branches[event.kind] = {
            "title": event.kind,
            "properties": {
                "type": {"const": event.kind},
                "payload": names[event, "serialization"],
                **{need: {"type": "string", "minLength": 1} for need in event.needs},
            },
            "required": list(event.needs),
        }
    branches[UNKNOWN_TYPE] = {
        "title": "a type this version does not know",
        "properties": {"type": {"pattern": DOTTED, "not": {"enum": list(BY_KIND)}}},
    }
    return {
        "$schema": DIALECT,
        "$id": f"urn:wakeful:events:{SCHEMA_VERSION}",
        **envelope,
        "title": "wakeful event",
        "description": "The envelope and the payload of every event in an agent's log.",
        "x-limits": LIMITS,
        "oneOf": [{"$ref": REFS.format(model=name)} for name in branches],
        "$defs": {**branches, **definitions},
    }


def event_schema() -> dict[str, Any]:
    """The schema, a copy for each caller."""
    return deepcopy(_schema())


@cache
def _validator(branch: str) -> "Validator":
    # Importing jsonschema takes longer than importing wakeful; only who validates pays for it.
    from jsonschema import Draft202012Validator

    schema = {key: value for key, value in _schema().items() if key != "oneOf"}
    return Draft202012Validator({**schema, "allOf": [{"$ref": REFS.format(model=branch)}]})


def validate_event(event: Mapping[str, Any]) -> list[Problem]:
    """What is wrong with an event in its published form; an empty list when nothing is.

    Checks against the branch that the event's type names, the only one of the schema's `oneOf` that could hold. What is
    found then says what is wrong with this event, not that none of forty shapes fits.
    """
    kind = event.get("type")
    validator = _validator(kind if isinstance(kind, str) and kind in BY_KIND else UNKNOWN_TYPE)
    found = [Problem(_path(error.absolute_path), error.message) for error in validator.iter_errors(dict(event))]
    return sorted(found)


def _path(steps: Any) -> str:
    path = ""
    for step in steps:
        path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else str(step)
    return path
