"""The published JSON Schemas of what programs read and write: a run's result, wire messages, the files of a home.

Their fields are declared where they are used: a result's in `RunResult`, a file's in `AgentOptions`.
"""

import ast
import inspect
import textwrap
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from typing import Any, Literal

from pydantic import Field, create_model

from wakeful.contracts.agent_file import ModelName
from wakeful.contracts.owner_settings import OwnerSettings
from wakeful.contracts.schema import DIALECT
from wakeful.contracts.values import Value
from wakeful.engine.agent import NAME
from wakeful.engine.agent_file import WORDS_FIELD
from wakeful.engine.agent_options import AS_HELD, OPTIONS, AgentOptions
from wakeful.service.run_result import run_result_document
from wakeful.views.chat_messages import CHAT_MESSAGE
from wakeful.views.wire_messages import WIRE_MESSAGE

TOOLS = "Tools by name, a profile (`coding`, `shell_first`, `chat`), and `mcp.NAME/*` for all tools of a server."
AGENT_FILE = "An agent's file. Tools are named, and found among those that the reader supplies."


def run_result_schema() -> dict[str, Any]:
    """The schema of `RunResult.to_dict`."""
    return _schema(run_result_document(), "run-result", mode="serialization")


def wire_schema() -> dict[str, Any]:
    """The schema of the messages that a client of a turn is sent."""
    generated = WIRE_MESSAGE.json_schema(mode="serialization")
    return {"$schema": DIALECT, "$id": "urn:wakeful:wire:1", **generated}


def chat_schema() -> dict[str, Any]:
    """The schema of the messages of a chat over HTTP."""
    generated = CHAT_MESSAGE.json_schema(mode="serialization")
    return {"$schema": DIALECT, "$id": "urn:wakeful:chat:1", **generated}


def agent_schema() -> dict[str, Any]:
    """The schema of an agent's YAML or JSON file."""
    return _schema(agent_file(), "agent", mode="validation")


def owner_schema() -> dict[str, Any]:
    """The schema of the owner's file, `wakeful.toml`."""
    return _schema(OwnerSettings, "owner", mode="validation")


@cache
def agent_file() -> type[Value]:
    """The shape of an agent's file: who it is, and every option that a file can have."""
    fields: dict[str, Any] = {
        "name": (str, Field(pattern=NAME)),
        "model": (ModelName, Field(description="`provider:model`.")),
        "instructions": (str, Field("", description="Words that it is told in every turn.")),
        WORDS_FIELD: (str | None, Field(None, description="A file beside this one with the instructions, instead.")),
        "tools": (tuple[str, ...] | None, Field((), description=TOOLS)),
    }
    held = inspect.get_annotations(AgentOptions)
    words = words_under_fields(AgentOptions)
    for name, each in OPTIONS.items():
        if not each.is_written:
            continue
        if name == "settings":  # two of them may stand at the top
            fields |= {"temperature": (float | None, None), "max_tokens": (int | None, Field(None, ge=1))}
        kind = held[name] if each.file is AS_HELD else each.file
        default = dict(each.default) if isinstance(each.default, Mapping) else each.default
        fields[name] = (kind, Field(default, description=words.get(name)))
    return create_model("AgentFile", __base__=Value, __doc__=AGENT_FILE, **fields)


def words_under_fields(owner: type) -> dict[str, str]:
    """Field to the line that stands under it in the source."""
    (declared,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
    assert isinstance(declared, ast.ClassDef)
    found: dict[str, str] = {}
    for field, under in pairwise(declared.body):
        match field, under:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = inspect.cleandoc(text)
    return found


def _schema(model: type[Value], name: str, mode: Literal["validation", "serialization"]) -> dict[str, Any]:
    generated = model.model_json_schema(by_alias=True, mode=mode)
    return {"$schema": DIALECT, "$id": f"urn:wakeful:{name}:1", **generated}
