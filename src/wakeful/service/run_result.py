"""What a run came to, for the program that asked for it.

`status` is always set. `output` is the answer, and raises unless the run completed; `final_content` never raises. The
longer lists (messages, calls, events) are made from the turn's facts when they are asked for.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Generic, Literal, TypeAlias

from pydantic_core import to_jsonable_python
from typing_extensions import TypeVar

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.approvals import Approval
from wakeful.contracts.audit import ToolAudit
from wakeful.contracts.conversation import ITEM, AssistantItem, ToolItem, UserItem
from wakeful.contracts.envelope import Recorded
from wakeful.contracts.errors import NotCompleted
from wakeful.contracts.events import WarningIssued
from wakeful.contracts.failures import FailureArtifact
from wakeful.contracts.models import TokenUsage
from wakeful.contracts.runtime_tools import RuntimeToolRequest
from wakeful.contracts.tools import ToolDeclaration
from wakeful.contracts.transcript import Message
from wakeful.contracts.values import Value
from wakeful.decisions.redaction import redact_payload
from wakeful.decisions.run_secrets import RunSecrets
from wakeful.decisions.secret_shapes import hide_shapes_in
from wakeful.views.conversation_export import Export, ResultEvent, ToolExecution, export
from wakeful.views.cost import CostSummary, cost_summary
from wakeful.views.tree import ExecutionTreeSnapshot, execution_tree

Out_co = TypeVar("Out_co", covariant=True, default=str)
RunStatus: TypeAlias = Literal[
    "completed", "incomplete", "failed", "cancelled", "approval_required", "runtime_tool_pending"
]
SCHEMA = "wakeful.run-result"
VERSION = 1


class UnknownOutcome(Value):
    """A call that may or may not have taken effect."""

    call_id: str
    tool: str
    arguments: dict[str, Any] = {}
    """Redacted."""
    reason: str = ""


class CallView(Value):
    """One tool call of the run."""

    call_id: str
    tool: str
    arguments: dict[str, Any] = {}
    """Redacted."""
    status: str
    """`success`, `error`, `rejected`, `timed_out` or `cancelled`."""
    result: str = ""
    """What the model was shown of a success; a failure has its words in `error`."""
    error: str | None = None
    effects: str | None = None
    step: int = 0


class RunResult(Generic[Out_co]):
    """The outcome of one turn. Round-trips through `to_dict` / `from_dict` and their JSON forms."""

    def __init__(
        self,
        *,
        turn_id: str,
        agent: str,
        agent_id: str,
        thread: str,
        status: RunStatus,
        stop_reason: str,
        retryable: bool,
        final_content: str,
        output: Any,
        usage: TokenUsage,
        model_calls: int = 0,
        tool_calls: int = 0,
        turn_count: int = 0,
        duration_ms: float = 0.0,
        message: str = "",
        unknown: Sequence[UnknownOutcome] = (),
        approvals: Sequence[Approval] = (),
        questions: Sequence[Approval] = (),
        runtime_tools: Sequence[RuntimeToolRequest] = (),
        failure_artifact: FailureArtifact | None = None,
        cost_usd: float | None = None,
        cost_summary: CostSummary | None = None,
        items: Sequence[UserItem | AssistantItem | ToolItem] = (),
        facts: Callable[[], Sequence[Recorded]] = tuple,
        config: TurnConfig | None = None,
        exported: Export | None = None,
        execution_tree: ExecutionTreeSnapshot | None = None,
        location: str = "",
        warnings: Sequence[str] | None = None,
    ) -> None:
        self.turn_id = turn_id
        self.agent = agent
        self.agent_id = agent_id
        self.thread = thread
        self.status: RunStatus = status
        self.stop_reason = stop_reason
        self.retryable = retryable
        self.final_content = final_content
        self.usage = usage
        self.model_calls = model_calls
        self.tool_calls = tool_calls
        self.turn_count = turn_count
        """Rounds that were run."""
        self.duration_ms = duration_ms
        self.message = message
        """Why the run did not complete, in words."""
        self.unknown = tuple(unknown)
        """Calls whose outcome nobody knows yet: `wakeful unknown` lists them, `wakeful resolve` closes them."""
        self.approvals = tuple(approvals)
        """What a person has to decide before the run goes on: `wakeful approvals` lists and decides them."""
        self.questions = tuple(questions)
        """What the agent wants to know from a person."""
        self.runtime_tools = tuple(runtime_tools)
        """What a client has to run before the run goes on, with its real parameters; answer with `submit_result`."""
        self.failure_artifact = failure_artifact
        self.cost_usd = cost_usd
        """None: the price is unknown, which is not the same as nothing."""
        self._cost_summary = cost_summary
        self._output = output
        self._items = items
        self._facts = facts
        self._config = config
        self._exported = exported
        self._tree = execution_tree
        self._location = location
        self._warnings = tuple(warnings) if warnings is not None else None

    @property
    def completed(self) -> bool:
        """The loop drained by itself; nothing else is called completion."""
        return self.status == "completed"

    @property
    def output(self) -> Out_co:
        """The answer. Raises NotCompleted unless the run completed."""
        self.raise_for_status()
        answer: Out_co = self._output
        return answer

    def raise_for_status(self) -> None:
        """Raise NotCompleted unless the run completed."""
        if self.status == "completed":
            return
        why = f": {self.message}" if self.message else ""
        look = f"wakeful events {self.turn_id} --store {self._location}" if self._location else "result.calls()"
        raise NotCompleted(
            f"turn {self.turn_id} of agent {self.agent!r} is {self.status} ({self.stop_reason}){why}",
            f"what happened: {look}",
        )

    def history(self) -> list[UserItem | AssistantItem | ToolItem]:
        """The conversation so far, to be given to another run as `history=`."""
        return list(self._items)

    def facts(self) -> Sequence[Recorded]:
        """The turn's stored facts."""
        return self._facts()

    def calls(self, name: str | None = None) -> list[CallView]:
        """The run's tool calls in model order, or those of one tool, by its name or the last part of it."""
        views = []
        for execution in self.tool_execution_results:
            if name is not None and name not in (execution.tool_name, execution.tool_name.rpartition("/")[2]):
                continue
            result = execution.result
            metadata = result.get("metadata", {})
            views.append(
                CallView(
                    call_id=execution.tool_call_id,
                    tool=execution.tool_name,
                    arguments=execution.parameters,
                    status=metadata.get("status", "error"),
                    result=str(result.get("result", "")),
                    error=result.get("error"),
                    effects=metadata.get("effects"),
                    step=execution.turn_count,
                )
            )
        return views

    @property
    def cost_summary(self) -> CostSummary:
        """What the run cost, by model and by depth; what nobody knows is counted and not guessed."""
        if self._cost_summary is None:
            self._cost_summary = cost_summary(self.turn_id, self._facts())
        return self._cost_summary

    # --- from the log, when asked for ------------------------------------------------------------------------------

    @cached_property
    def _export(self) -> Export:
        if self._exported is not None:
            return self._exported
        return export(self._facts(), self._config, self._secrets)

    @cached_property
    def _secrets(self) -> RunSecrets:
        """What this conversation gave to its tools as secrets: it is hidden in whatever they returned."""
        secrets = RunSecrets()
        secrets.declarations = self._declarations
        secrets.said(self._items)
        return secrets

    @property
    def _declarations(self) -> dict[str, ToolDeclaration]:
        return {tool.name: tool for tool in self._config.tools} if self._config is not None else {}

    @property
    def messages(self) -> tuple[Message, ...]:
        """The transcript as `wakeful.message` envelopes, parameters redacted."""
        return self._export.messages

    @property
    def tool_execution_results(self) -> tuple[ToolExecution, ...]:
        return self._export.tool_execution_results

    @property
    def tool_audit_events(self) -> tuple[ToolAudit, ...]:
        """The safe trace: hashes and statuses, no parameters and no results."""
        return self._export.tool_audit_events

    @property
    def events(self) -> tuple[ResultEvent, ...]:
        return self._export.events

    @cached_property
    def execution_tree(self) -> ExecutionTreeSnapshot:
        """Every call of the turn, children's included, as the turn's facts tell it: bounded, secrets hidden."""
        return self._tree if self._tree is not None else execution_tree(self._facts(), self.turn_id, self._secrets)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What the run warned of, in its order: a setting that a model does not take, a hook that failed."""
        if self._warnings is not None:
            return self._warnings
        events = (entry.fact.event for entry in self._facts())
        return tuple(event.message for event in events if isinstance(event, WarningIssued))

    @property
    def request_metadata(self) -> dict[str, Any]:
        return self._export.request_metadata

    # --- as JSON -----------------------------------------------------------------------------------------------------

    def to_dict(self, *, reveal: bool = False) -> dict[str, Any]:
        """Everything, as JSON data, with secrets hidden: what is written down may be read by anybody.

        With `reveal`, words and history stay as they are: for a program that goes on with it.
        """
        words: Callable[[Any], Any] = (lambda value: value) if reveal else self._secrets.hide_in
        history = [item.model_dump(mode="json", exclude_none=True) for item in self._items]
        data: dict[str, Any] = {
            "schema": SCHEMA,
            "version": VERSION,
            "turn_id": self.turn_id,
            "agent": self.agent,
            "agent_id": self.agent_id,
            "thread": self.thread,
            "status": self.status,
            "completed": self.completed,
            "stop_reason": self.stop_reason,
            "retryable": self.retryable,
            "message": words(self.message),
            "output": words(to_jsonable_python(self._output)) if self.completed else None,
            "final_content": words(self.final_content),
            "token_usage": self.usage.model_dump(),
            "usage": {
                "prompt_tokens": self.usage.input_tokens,
                "completion_tokens": self.usage.output_tokens,
                "total_tokens": self.usage.total_tokens,
            },
            "cost_usd": self.cost_usd,
            "cost_summary": self.cost_summary.model_dump(mode="json"),
            "model_calls": self.model_calls,
            "tool_calls": self.tool_calls,
            "turn_count": self.turn_count,
            "duration_ms": self.duration_ms,
            "unknown": [unknown.model_dump() for unknown in self.unknown],
            "approvals": [record.model_dump(mode="json") for record in self.approvals],
            "questions": [record.model_dump(mode="json") for record in self.questions],
            "runtime_tools": [request.model_dump(mode="json") for request in self.runtime_tools],
            "messages": [message.to_wire() for message in self.messages],
            "tool_execution_results": [
                execution.model_dump(mode="json", exclude_none=True) for execution in self.tool_execution_results
            ],
            "tool_audit_events": [audit.model_dump(mode="json", exclude_none=True) for audit in self.tool_audit_events],
            "events": [event.model_dump(mode="json", exclude_none=True) for event in self.events],
            "execution_tree": self.execution_tree.model_dump(mode="json"),
            "request_metadata": self.request_metadata,
            "warnings": [words(warning) for warning in self.warnings],
            "history": history if reveal else redact_payload(history, self._declarations, self._secrets),
        }
        if self.failure_artifact is not None:
            data["failure_artifact"] = words(self.failure_artifact.model_dump(mode="json", exclude_none=True))
        return data if reveal else hide_shapes_in(data)

    def to_json(self, *, indent: int | None = None, reveal: bool = False) -> str:
        return json.dumps(self.to_dict(reveal=reveal), indent=indent, ensure_ascii=False)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "RunResult[Any]":
        """A result that was written down. Its output is plain JSON data."""
        if data.get("schema") != SCHEMA or data.get("version") != VERSION:
            raise ValueError(
                f"not a run result: schema {data.get('schema')!r} version {data.get('version')!r}; "
                f"{SCHEMA!r} version {VERSION} is needed"
            )
        artifact = data.get("failure_artifact")
        return RunResult(
            turn_id=data["turn_id"],
            agent=data["agent"],
            agent_id=data["agent_id"],
            thread=data["thread"],
            status=data["status"],
            stop_reason=data["stop_reason"],
            retryable=data["retryable"],
            final_content=data["final_content"],
            output=data["output"],
            usage=TokenUsage.model_validate(data["token_usage"]),
            model_calls=data["model_calls"],
            tool_calls=data["tool_calls"],
            turn_count=data["turn_count"],
            duration_ms=data["duration_ms"],
            message=data["message"],
            unknown=[UnknownOutcome.model_validate(unknown) for unknown in data["unknown"]],
            approvals=[Approval.model_validate(record) for record in data["approvals"]],
            questions=[Approval.model_validate(record) for record in data["questions"]],
            runtime_tools=[RuntimeToolRequest.normalise(request) for request in data["runtime_tools"]],
            failure_artifact=FailureArtifact.model_validate(artifact) if artifact else None,
            cost_usd=data["cost_usd"],
            cost_summary=CostSummary.model_validate(data["cost_summary"]),
            items=[ITEM.validate_python(item) for item in data["history"]],
            exported=Export(
                tuple(Message.model_validate(message) for message in data["messages"]),
                tuple(ToolExecution.model_validate(execution) for execution in data["tool_execution_results"]),
                tuple(ToolAudit.model_validate(audit) for audit in data["tool_audit_events"]),
                tuple(ResultEvent.model_validate(event) for event in data["events"]),
                dict(data["request_metadata"]),
            ),
            execution_tree=ExecutionTreeSnapshot.model_validate(data["execution_tree"]),
            warnings=data.get("warnings", ()),
        )

    @classmethod
    def from_json(cls, text: str) -> "RunResult[Any]":
        return cls.from_dict(json.loads(text))

    def __repr__(self) -> str:
        return f"RunResult(status={self.status!r}, stop_reason={self.stop_reason!r}, turn_id={self.turn_id!r})"
