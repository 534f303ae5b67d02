"""Writes the generated pages of this folder: `python docs/reference/generate.py`. A test holds them to the code."""

import ast
import inspect
import json
import textwrap
from pathlib import Path
from typing import Any

from wakeful.contracts import conversation_result as results
from wakeful.contracts.audit import ToolAudit
from wakeful.contracts.declarations import RuntimeToolDeclaration
from wakeful.contracts.events import EVENTS, Event
from wakeful.contracts.outcomes import RunFailure, RunOutcome
from wakeful.contracts.principals import ExecutionPrincipal
from wakeful.contracts.requests import ConversationRequest, RuntimeOverrides, Workspace
from wakeful.contracts.schema import event_schema
from wakeful.contracts.tool_calls import ToolCall, ToolCallMetadata
from wakeful.contracts.transcript import Message
from wakeful.contracts.values import Value

HERE = Path(__file__).parent
MAX_DEFAULT = 80
"""A longer default says more about its own type than about the field."""
EVENTS_INTRO = """\
# Events

Every event that can stand in an agent's log, by type. The payload's fields are listed here; the envelope around it
(ids, sequence, time) and every nested shape are in [events.schema.json](events.schema.json).
A field in **bold** is required.
"Also called" are other names for the same fact; filters accept them. "Needs" are the ids that its envelope must carry.
This page is generated.
"""
CONVERSATION: tuple[type[Value], ...] = (
    Message,
    ConversationRequest,
    RuntimeToolDeclaration,
    ExecutionPrincipal,
    RuntimeOverrides,
    Workspace,
    results.ConversationResult,
    RunOutcome,
    RunFailure,
    results.ResultEvent,
    results.ToolExecution,
    results.ToolEvent,
    ToolAudit,
    results.ToolObservability,
    results.ObservedCall,
    results.ArgumentsSeen,
    results.ResultShape,
    results.StructuredOutputDiagnostics,
    ToolCall,
    ToolCallMetadata,
)
CONVERSATION_INTRO = """\
# Conversation values

What goes into `ConversationLoop.run`, what comes out of it, and what an executor gets, field by field.
A field in **bold** is required. A value with a `schema` carries it with its integer `version`; another schema or
another version is refused. Every value is immutable, and what JSON cannot hold is refused where it stands.
This page is generated.
"""


def pages() -> dict[str, str]:
    """File name to content."""
    return {
        "events.schema.json": json.dumps(event_schema(), indent=2) + "\n",
        "events.md": EVENTS_INTRO + "".join(section(event) for event in EVENTS),
        "conversation.md": CONVERSATION_INTRO + "".join(value_section(value) for value in CONVERSATION),
    }


def section(event: type[Event]) -> str:
    """One event's part of the page."""
    lines = [f"\n## `{event.kind}`\n", inspect.cleandoc(event.__doc__ or "").replace("\n", " "), ""]
    if event.aliases:
        lines.append("Also called: " + ", ".join(f"`{alias}`" for alias in event.aliases) + ".")
    lines.append("Needs: " + (", ".join(f"`{need}`" for need in event.needs) or "nothing") + ".")
    if event.outsider:
        lines.append("May be appended by somebody who does not own the agent.")
    if event.model_fields:
        lines += ["", "| field | type | meaning |", "|---|---|---|"]
    shapes = event_schema()["$defs"][event.__name__]["properties"]
    meanings = meanings_of(event)
    for name, field in event.model_fields.items():
        shown = f"**`{name}`**" if field.is_required() else f"`{name}`"
        lines.append(f"| {shown} | {type_of(shapes[name])} | {meanings.get(name, '')} |")
    return "\n".join(lines) + "\n"


def value_section(value: type[Value]) -> str:
    """One value's part of the page."""
    lines = [f"\n## {value.__name__}\n", inspect.cleandoc(value.__doc__ or "").replace("\n", " ")]
    lines += ["", "| field | type | default | meaning |", "|---|---|---|---|"]
    shapes = value.model_json_schema(mode="validation")["properties"]
    meanings = meanings_of(value)
    for name, field in value.model_fields.items():
        wire = field.alias or name
        shown = f"**`{wire}`**" if field.is_required() else f"`{wire}`"
        default = "" if field.is_required() else json.dumps(shapes[wire].get("default"))
        told = f"`{default}`" if 0 < len(default) < MAX_DEFAULT else ""
        lines.append(f"| {shown} | {type_of(shapes[wire])} | {told} | {meanings.get(name, '')} |")
    return "\n".join(lines) + "\n"


def type_of(shape: dict[str, Any]) -> str:
    """A JSON Schema as a person would say it."""
    if "anyOf" in shape or "oneOf" in shape:
        return " or ".join(type_of(one) for one in shape.get("anyOf") or shape["oneOf"])
    if "$ref" in shape:
        return str(shape["$ref"]).rsplit("/", 1)[1]
    if "enum" in shape:
        return ", ".join(f"`{value}`" for value in shape["enum"])
    if "const" in shape:
        return f"`{shape['const']}`"
    if shape.get("type") == "array":
        return f"list of {type_of(shape.get('items', {}))}"
    return str(shape.get("type", "any value"))


def meanings_of(value: type[Value]) -> dict[str, str]:
    """Field to the line that stands under it in the source."""
    found: dict[str, str] = {}
    for owner in reversed(value.__mro__):
        if not issubclass(owner, Value) or owner in (Value, Event):
            continue
        tree = ast.parse(textwrap.dedent(inspect.getsource(owner))).body[0]
        assert isinstance(tree, ast.ClassDef)
        for field, below in zip(tree.body, tree.body[1:], strict=False):
            match field, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))):
                    found[name] = inspect.cleandoc(words).replace("\n", " ").replace("|", "\\|")
    return found


if __name__ == "__main__":
    for name, content in pages().items():
        (HERE / name).write_text(content)
