"""The published JSON Schemas of what programs read and write: a run's result, wire messages, an agent's file.

The shapes here describe documents that are made elsewhere (`RunResult.to_dict`, `engine.agent_data`); tests hold the
two to each other.
"""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import ConfigDict, Field

from wakeful.contracts.approvals import DEFAULT_EXPIRY_SECONDS, Approval
from wakeful.contracts.audit import ToolAudit
from wakeful.contracts.budgets import BudgetProfile
from wakeful.contracts.conversation import Item
from wakeful.contracts.failures import FailureArtifact
from wakeful.contracts.model_settings import ModelSettings
from wakeful.contracts.models import TokenUsage
from wakeful.contracts.policies import GatePolicy
from wakeful.contracts.runtime_tools import RuntimeToolRequest
from wakeful.contracts.schema import DIALECT
from wakeful.contracts.transcript import Message
from wakeful.contracts.values import Value
from wakeful.service.run_result import RunStatus, UnknownOutcome
from wakeful.tools.local.names import Profile
from wakeful.views.conversation_export import ResultEvent, ToolExecution
from wakeful.views.cost import CostSummary
from wakeful.views.tree import ExecutionTreeSnapshot
from wakeful.views.wire_messages import WIRE_MESSAGE

REFERENCE = r"^[A-Za-z][A-Za-z0-9_-]*[:/]\S"


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


Dollars: TypeAlias = Annotated[float, Field(ge=0)] | Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)?$")]


class RunBudgetSection(Value):
    """What a run may use."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    usd: Dollars | None = None
    tokens: int | None = Field(None, ge=1)
    input_tokens: int | None = Field(None, ge=1)
    output_tokens: int | None = Field(None, ge=1)
    model_calls: int | None = Field(None, ge=1)
    tool_calls: int | None = Field(None, ge=0)
    seconds: float | None = Field(None, gt=0)
    """Of work; instead of minutes."""
    minutes: float | None = Field(None, gt=0)
    depth: int | None = Field(None, ge=0)
    """How deep children may go."""
    subtasks: int | None = Field(None, ge=0)
    per_tool: dict[str, Annotated[int, Field(ge=0)]] | None = None
    """Calls of single tools, by name."""
    profile: BudgetProfile = "autonomous"
    """Where the limits that are not named come from."""
    unpriced_token_ceiling: int | None = Field(None, ge=1)
    """Where money is limited: tokens that models without a known price may use."""
    final_answer_reserve: bool = True
    """Keep the last model call for an answer."""


class WindowSection(Value):
    """What all runs of an agent together may spend in a period."""

    usd: Dollars


class BudgetSection(RunBudgetSection):
    """What a run may use, or that under `per_run` and beside it what all runs may spend in an hour, a day, a month."""

    per_run: RunBudgetSection | None = None
    per_hour: WindowSection | None = None
    per_day: WindowSection | None = None
    per_month: WindowSection | None = None


class CompactionSection(Value):
    """When a conversation that grows too long for its model is folded into a summary."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    enabled: bool = True
    threshold: float = Field(0.8, gt=0, le=1)
    """The share of the model's window from which on it is folded."""
    keep_user_turns: int = Field(4, ge=1)
    """The newest messages of the user that stay word for word."""
    model: str | None = Field(None, pattern=REFERENCE)
    """Who writes the summary; null: the agent's own model."""


class AgentFile(Value):
    """An agent's file. Tools are named, and found among those that the reader supplies."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    name: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,127}$")
    model: str = Field(pattern=REFERENCE)
    """`provider:model`."""
    instructions: str = ""
    tools: tuple[str, ...] | None = ()
    max_steps: int | None = Field(None, ge=1)
    temperature: float | None = None
    max_tokens: int | None = Field(None, ge=1)
    settings: ModelSettings | None = None
    """Settings for the model; `temperature` and `max_tokens` may stand here or at the top."""
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
    skills: tuple[str, ...] = ()
    """Folders in which skills are looked for besides the usual ones."""
    subtasks: bool = False
    """It may split its work into children."""
    collections: tuple[str, ...] = ()
    """Sets of texts that it may search, by name."""
    compaction: CompactionSection | None = None
    planning_enabled: bool = False
    """A planner looks at the task before the agent begins."""
    planning_model: str | None = Field(None, pattern=REFERENCE)
    """`provider:model`; null: the agent's own model."""
    planning_instructions: str = ""
    """Empty: the built-in words."""
    budget_awareness: str | None = Field(None, pattern=r"^(per-message|limit:(0|[1-9][0-9]?|100))$")
    """`per-message`, or `limit:<n>` with n from 0 to 100."""
    hitl_tools: tuple[str, ...] = ()
    """Tools that never run without a person."""
    emit_mcp_progress: bool = True
    injected_tool_args: dict[str, str] = {}
    """Fields that every tool is shown with: name to description. The model fills them, no tool gets them."""
    allow_parallel_subagents: bool = False
    max_parallel_subagents: int = Field(3, ge=1, le=7)
    """Children that one call may start."""


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
