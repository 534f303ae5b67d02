"""The published JSON Schemas of what programs read and write: a run's result, wire messages, an agent's file.

A run's result is described here and made by `RunResult.to_dict`; tests hold the two to each other. An agent's file has
the fields that `AgentOptions` declares.
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
from wakeful.contracts.approvals import Approval
from wakeful.contracts.audit import ToolAudit
from wakeful.contracts.conversation import Item
from wakeful.contracts.failures import FailureArtifact
from wakeful.contracts.models import TokenUsage
from wakeful.contracts.runtime_tools import RuntimeToolRequest
from wakeful.contracts.schema import DIALECT
from wakeful.contracts.transcript import Message
from wakeful.contracts.values import Value
from wakeful.engine.agent import NAME
from wakeful.engine.agent_options import AS_HELD, OPTIONS, AgentOptions
from wakeful.service.run_result import RunStatus, UnknownOutcome
from wakeful.views.conversation_export import ResultEvent, ToolExecution
from wakeful.views.cost import CostSummary
from wakeful.views.tree import ExecutionTreeSnapshot
from wakeful.views.wire_messages import WIRE_MESSAGE


class UsageCounts(Value):
    """The same counts under the names that conversation results use."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class RunResultDocument(Value):
    """What a run came to: the document of `wakeful run --json`."""

    schema_id: Literal["wakeful.run-result"] = Field(alias="schema")
    version: Literal[1]
    turn_id: str
    agent: str
    agent_id: str
    thread: str
    status: RunStatus
    completed: bool
    stop_reason: str
    retryable: bool
    message: str
    """Why the run did not complete, in words."""
    output: Any
    final_content: str
    token_usage: TokenUsage
    usage: UsageCounts
    cost_usd: float | None
    cost_summary: CostSummary
    model_calls: int
    tool_calls: int
    turn_count: int
    duration_ms: float
    unknown: tuple[UnknownOutcome, ...]
    approvals: tuple[Approval, ...]
    """What a person has to decide before it goes on."""
    questions: tuple[Approval, ...]
    runtime_tools: tuple[RuntimeToolRequest, ...]
    """What a client has to run before it goes on."""
    messages: tuple[Message, ...]
    tool_execution_results: tuple[ToolExecution, ...]
    tool_audit_events: tuple[ToolAudit, ...]
    events: tuple[ResultEvent, ...]
    execution_tree: ExecutionTreeSnapshot
    """Every call of the turn, children's included."""
    request_metadata: dict[str, Any]
    warnings: tuple[str, ...] = ()
    """What the run warned of, such as a setting that a model does not take."""
    history: tuple[Item, ...]
    failure_artifact: FailureArtifact | None = None
    """Only when the run ended failed."""


AGENT_FILE = "An agent's file. Tools are named, and found among those that the reader supplies."


def run_result_schema() -> dict[str, Any]:
    """The schema of `RunResult.to_dict`."""
    return _schema(RunResultDocument, "run-result", mode="serialization")


def wire_schema() -> dict[str, Any]:
    """The schema of the messages that a client of a turn is sent."""
    generated = WIRE_MESSAGE.json_schema(mode="serialization")
    return {"$schema": DIALECT, "$id": "urn:wakeful:wire:1", **generated}


def agent_schema() -> dict[str, Any]:
    """The schema of an agent's YAML or JSON file."""
    return _schema(agent_file(), "agent", mode="validation")


@cache
def agent_file() -> type[Value]:
    """The shape of an agent's file: who it is, and every option that a file can have."""
    fields: dict[str, Any] = {
        "name": (str, Field(pattern=NAME)),
        "model": (ModelName, Field(description="`provider:model`.")),
        "instructions": (str, ""),
        "tools": (tuple[str, ...] | None, ()),
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
