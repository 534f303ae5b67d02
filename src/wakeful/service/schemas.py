"""The published JSON Schemas of what programs read and write: a run's result, wire messages, an agent's file.

The shapes here describe documents that are made elsewhere (`RunResult.to_dict`, `agents.config`); tests hold the two to
each other.
"""

from typing import Any, Literal

from pydantic import ConfigDict, Field

from wakeful.contracts.approvals import DEFAULT_EXPIRY_SECONDS, Approval
from wakeful.contracts.audit import ToolAudit
from wakeful.contracts.conversation import Item
from wakeful.contracts.conversation_result import ResultEvent, ToolExecution
from wakeful.contracts.costs import CostSummary
from wakeful.contracts.execution_tree import ExecutionTreeSnapshot
from wakeful.contracts.failures import FailureArtifact
from wakeful.contracts.models import TokenUsage
from wakeful.contracts.policies import GatePolicy
from wakeful.contracts.runtime_tools import RuntimeToolRequest
from wakeful.contracts.schema import DIALECT
from wakeful.contracts.transcript import Message
from wakeful.contracts.values import Value
from wakeful.contracts.wire import WIRE_MESSAGE
from wakeful.service.results import RunStatus, UnknownOutcome
from wakeful.tools.local.names import Profile


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
    history: tuple[Item, ...]
    failure_artifact: FailureArtifact | None = None
    """Only when the run ended failed."""


class BudgetSection(Value):
    """What a run may use."""

    model_calls: int | None = Field(None, ge=1)
    seconds: float | None = Field(None, gt=0)
    profile: Literal["autonomous", "unlimited"] = "autonomous"


class AgentFile(Value):
    """An agent's file. Tools are named, and found among those that the reader supplies."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    name: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,127}$")
    model: str
    """`provider:model`."""
    instructions: str = ""
    tools: tuple[str, ...] | None = ()
    max_steps: int | None = Field(None, ge=1)
    temperature: float | None = None
    max_tokens: int | None = Field(None, ge=1)
    settings: dict[str, Any] | None = None
    """Further settings for the model."""
    fallbacks: tuple[str, ...] | None = ()
    budget: BudgetSection | None = None
    profile: Profile | None = None
    """Which built-in tools there are; all but `chat` need a workspace."""
    workspace: str | None = None
    """The folder that file tools and commands work in."""
    sandbox: dict[str, Any] | None = None
    """What commands are held to: `network: full` grants the network, `confinement: required` refuses to run bare."""
    policy: GatePolicy | None = None
    """Who may call what."""
    approval_expiry: float = Field(DEFAULT_EXPIRY_SECONDS, gt=0)
    """Seconds until nobody having decided is a decision."""
    hitl_tools: tuple[str, ...] = ()
    """Tools that never run without a person."""
    injected_tool_args: dict[str, str] = {}
    """Fields that every tool is shown with: name to description. The model fills them, no tool gets them."""
    emit_mcp_progress: bool = True


def run_result_schema() -> dict[str, Any]:
    """The schema of `RunResult.to_dict`."""
    return _schema(RunResultDocument, "run-result", mode="serialization")


def wire_schema() -> dict[str, Any]:
    """The schema of the messages that a client of a turn is sent."""
    generated = WIRE_MESSAGE.json_schema(mode="serialization")
    return {"$schema": DIALECT, "$id": "urn:wakeful:wire:1", **generated}


def agent_schema() -> dict[str, Any]:
    """The schema of an agent's YAML or JSON file."""
    return _schema(AgentFile, "agent", mode="validation")


def _schema(model: type[Value], name: str, mode: Literal["validation", "serialization"]) -> dict[str, Any]:
    generated = model.model_json_schema(by_alias=True, mode=mode)
    return {"$schema": DIALECT, "$id": f"urn:wakeful:{name}:1", **generated}
