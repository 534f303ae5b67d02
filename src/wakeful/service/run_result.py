"""The result of a run, for the program that asked for it.

`status` is always set. `output` is the answer, and raises unless the run completed; `final_content` never raises. The
longer lists (messages, calls, events) are made from the turn's facts when they are asked for.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, Generic, Literal, TypeAlias

from pydantic import Field
from pydantic_core import to_jsonable_python
from typing_extensions import TypeVar

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.approvals import Approval
from wakeful.contracts.audit import ToolAudit
from wakeful.contracts.conversation import Item
from wakeful.contracts.envelope import StoredFact
from wakeful.contracts.errors import NotCompleted
from wakeful.contracts.events import AssistantRecorded, ModelCompleted, TurnFailed, WarningIssued, WorkItemCompleted
from wakeful.contracts.failures import FailureArtifact
from wakeful.contracts.models import ProviderAttemptTimeline, TokenUsage
from wakeful.contracts.runtime_tools import RuntimeToolRequest
from wakeful.contracts.tools import ToolDeclaration
from wakeful.contracts.transcript import Message
from wakeful.contracts.values import Value
from wakeful.decisions.answer_ends import CUT_CAUSES
from wakeful.decisions.redaction import redact_payload
from wakeful.decisions.run_secrets import RunSecrets
from wakeful.decisions.secret_shapes import hide_shapes_in
from wakeful.service.result_parts import Parts, derive, document, part
from wakeful.views.citations import citations_in
from wakeful.views.conversation_export import Export, ResultEvent, ToolExecution, export
from wakeful.views.cost import CostSummary, cost_summary
from wakeful.views.tree import ExecutionTreeSnapshot, execution_tree
from wakeful.views.turn_record import TurnTerminalRecord, terminal_record

Out_co = TypeVar("Out_co", covariant=True, default=str)
RunStatus: TypeAlias = Literal[
    "completed", "incomplete", "failed", "cancelled", "waiting", "approval_required", "runtime_tool_pending"
]
WaitingFor: TypeAlias = Literal["provider", "money", "pause", "code"]
"""What a turn at rest waits for: a model that answers, a spend window that turns, somebody who lets it go on, the agent
or a tool of it."""
SCHEMA = "wakeful.run-result"
VERSION = 1
DOCUMENT = "The result of a run: the document of `wakeful run --json`."


MAX_SAID = 300
"""How much of an unfinished answer stands in an error."""


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
    """The result as the model saw it; a failure has its words in `error`."""
    error: str | None = None
    effects: str | None = None
    step: int = 0


class UsageCounts(Value):
    """The same counts under the names that conversation results use."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class RunResult(Parts, Generic[Out_co]):
    """The outcome of one turn. Round-trips through `to_dict` / `from_dict` and their JSON forms.

    Each part stands here once; the document has those with a name there, in this order.
    """

    turn_id: str = part()
    agent: str = part()
    agent_id: str = part()
    thread: str = part()
    status: RunStatus = part()

    @derive()
    def completed(self) -> bool:
        """The loop drained by itself; nothing else is called completion."""
        return self.status == "completed"

    stop_reason: str = part()
    waiting_for: WaitingFor | None = part(default=None, absent=None, if_any=True)
    """Of a run with status `waiting`. It can be continued: by the same line with its `key`, by `resume`."""
    next_try: str | None = part(default=None, absent=None, if_any=True)
    """When it can go on by itself, in ISO-8601, where that is known."""
    retryable: bool = part()
    message: str = part(default="", words=True)
    """Why the run did not complete, in words."""
    finish_reason: str | None = part(default=None)
    """Why the newest reply ended, in its provider's own word; None where there is none."""
    _output: Any = part(alias="output")

    @derive(json="output", words=True)
    def _answer(self) -> Any:
        return to_jsonable_python(self._output) if self.completed else None

    final_content: str = part(words=True)
    usage: TokenUsage = part(json="token_usage")

    @derive(json="usage")
    def _counts(self) -> UsageCounts:
        return UsageCounts(
            prompt_tokens=self.usage.input_tokens,
            completion_tokens=self.usage.output_tokens,
            total_tokens=self.usage.total_tokens,
        )

    cost_usd: float | None = part(default=None)
    """None: the price is unknown, which is not the same as nothing."""

    @derive()
    def cost_summary(self) -> CostSummary:
        """The cost of the run, by model and by depth. Requests without a known price are counted, not guessed."""
        return cost_summary(self.turn_id, self._facts())

    model_calls: int = part(default=0)
    tool_calls: int = part(default=0)
    turn_count: int = part(default=0)
    """Rounds that were run."""
    duration_ms: float = part(default=0.0)
    unknown: tuple[UnknownOutcome, ...] = part(default=())
    """Calls whose outcome nobody knows yet: `wakeful unknown` lists them, `wakeful resolve` closes them."""
    approvals: tuple[Approval, ...] = part(default=())
    """Pending approvals: a person decides them before the run continues (`wakeful approvals`)."""
    questions: tuple[Approval, ...] = part(default=())
    """Pending questions of the agent to a person."""
    runtime_tools: tuple[RuntimeToolRequest, ...] = part(default=())
    """Pending calls that a client has to run, with their real parameters; answer with `submit_result`."""

    @derive(sparse=True)
    def messages(self) -> tuple[Message, ...]:
        """The transcript as `wakeful.message` envelopes, parameters redacted."""
        return self._export.messages

    @derive(sparse=True)
    def tool_execution_results(self) -> tuple[ToolExecution, ...]:
        return self._export.tool_execution_results

    @derive(sparse=True)
    def tool_audit_events(self) -> tuple[ToolAudit, ...]:
        """The safe trace: hashes and statuses, no parameters and no results."""
        return self._export.tool_audit_events

    @derive(sparse=True)
    def events(self) -> tuple[ResultEvent, ...]:
        return self._export.events

    @derive()
    def execution_tree(self) -> ExecutionTreeSnapshot:
        """Every call of the turn, children's included, as the turn's facts tell it: bounded, secrets hidden."""
        return execution_tree(self._facts(), self.turn_id, self._secrets)

    @derive()
    def request_metadata(self) -> dict[str, Any]:
        return self._export.request_metadata

    @derive(words=True, absent=())
    def citations(self) -> tuple[dict[str, Any], ...]:
        """The sources of the answer: from tools' results and from searches that a provider made, in their order."""
        return citations_in(entry.fact.event for entry in self._facts())

    @derive(words=True, absent=())
    def warnings(self) -> tuple[str, ...]:
        """Warnings of the run, in order: a setting that a model does not take, a hook that failed."""
        events = (entry.fact.event for entry in self._facts())
        return tuple(event.message for event in events if isinstance(event, WarningIssued))

    @derive(words=True, absent=())
    def provider_attempt_timeline(self) -> tuple[ProviderAttemptTimeline, ...]:
        """How each request to a model was answered, in order: attempts, waits and fallbacks. Of a run that failed, the
        last one is of the attempts that were all lost."""
        found = []
        for event in (entry.fact.event for entry in self._facts()):
            if isinstance(event, ModelCompleted):
                found.append(event.whole_timeline())
            elif isinstance(event, TurnFailed) and event.timeline is not None:
                found.append(event.timeline)
        return tuple(found)

    _items: Sequence[Item] = part(alias="items", json="history", sparse=True, default=())
    failure_artifact: FailureArtifact | None = part(default=None, words=True, sparse=True, absent=None, if_any=True)

    _facts: Callable[[], Sequence[StoredFact]] = part(alias="facts", default=tuple)
    _config: TurnConfig | None = part(alias="config", default=None)
    _location: str = part(alias="location", default="")
    _mends_by_itself: bool = part(alias="mends_by_itself", default=False)

    @property
    def output(self) -> Out_co:
        """The answer. Raises NotCompleted unless the run completed."""
        self.raise_for_status()
        answer: Out_co = self._output
        return answer

    @property
    def is_cut(self) -> bool:
        """There is an answer, and it is not whole: it was cut off, filtered or refused."""
        return self.stop_reason in CUT_CAUSES

    @property
    def final_text(self) -> str:
        """The report of the newest work item that the turn completed; without one, the model's last words."""
        facts = self._facts()
        reports = [
            event.text_ref
            for entry in facts
            if isinstance(event := entry.fact.event, WorkItemCompleted) and event.text_ref is not None
        ]
        for entry in facts if reports else ():
            if entry.event_id == reports[-1] and isinstance(entry.fact.event, AssistantRecorded):
                return entry.fact.event.item.text
        return self.final_content

    @property
    def raw_final_text(self) -> str:
        """The model's last words, whatever the turn completed."""
        return self.final_content

    def raise_for_status(self) -> None:
        """Raise NotCompleted unless the run completed."""
        if self.status == "completed":
            return
        why = f": {self.message}" if self.message else ""
        place = f"{self.turn_id} --store {self._location}"
        hint = f"see the log: wakeful events {place}" if self._location else "see the log: result.calls()"
        said = _short(self.final_content) if self.is_cut else ""
        if said:
            hint = f"result.final_content is what there is of the answer; {hint}"
        if self.waiting_for is not None and self._location:
            code = " --tools MODULE:NAME" if self.waiting_for == "code" else ""
            hint = f"to continue: run the same line with its key again, or: wakeful resume {place}{code}"
        elif self.retryable and self._location:
            hint += f"\nto try it again: wakeful.retry(store, {self.turn_id!r}, agents=[...])"
        raise NotCompleted(
            f"turn {self.turn_id} of agent {self.agent!r} did not complete: {self.status} ({self.stop_reason}){why}"
            + (f". It said: {said!r}" if said else ""),
            hint,
        )

    @property
    def mends_by_itself(self) -> bool:
        """Does it wait for a provider that may answer again without anybody changing something?"""
        return self._mends_by_itself

    def history(self) -> list[Item]:
        """The conversation so far, to be given to another run as `history=`."""
        return list(self._items)

    def facts(self) -> Sequence[StoredFact]:
        """The turn's stored facts."""
        return self._facts()

    def turn_record(self) -> TurnTerminalRecord | None:
        """How the turn was settled: completed or aborted, its last words, when, and after how long; None while open."""
        return terminal_record(self.turn_id, self._facts())

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

    @cached_property
    def _export(self) -> Export:
        return export(self._facts(), self._config, self._secrets)

    @cached_property
    def _secrets(self) -> RunSecrets:
        """The secrets that this conversation gave to its tools; they are hidden in results."""
        secrets = RunSecrets()
        secrets.declarations = self._declarations
        secrets.said(self._items)
        return secrets

    @property
    def _declarations(self) -> dict[str, ToolDeclaration]:
        return {tool.name: tool for tool in self._config.tools} if self._config is not None else {}

    # --- as JSON -----------------------------------------------------------------------------------------------------

    def to_dict(self, *, reveal: bool = False) -> dict[str, Any]:
        """The whole result as JSON data, with secrets hidden.

        With `reveal`, words and history stay as they are: for a program that goes on with it.
        """
        data: dict[str, Any] = {"schema": SCHEMA, "version": VERSION}
        for name, each in self._parts.items():
            value = getattr(self, name)
            if each.json is None or (each.if_any and value is None):
                continue
            encoded = each.encoded(value)
            data[each.json] = self._secrets.hide_in(encoded) if each.words and not reveal else encoded
        if reveal:
            return data
        data["history"] = redact_payload(data["history"], self._declarations, self._secrets)
        hidden: dict[str, Any] = hide_shapes_in(data)
        return hidden

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
        shape = run_result_document()
        fields = {name: value for name, value in data.items() if name in {"schema", *shape.model_fields}}
        read = shape.model_validate(fields)  # what a later version says besides is left aside
        known = {name: getattr(read, each.json) for name, each in cls._parts.items() if each.json is not None}
        given = {each.keyword: known.pop(name) for name, each in cls._parts.items() if name in known and not each.fget}
        result: RunResult[Any] = RunResult(**given, output=known.pop("_answer"))
        vars(result).update(known)
        return result

    @classmethod
    def from_json(cls, text: str) -> "RunResult[Any]":
        return cls.from_dict(json.loads(text))

    def __repr__(self) -> str:
        return f"RunResult(status={self.status!r}, stop_reason={self.stop_reason!r}, turn_id={self.turn_id!r})"


@cache
def run_result_document() -> type[Value]:
    """The shape of a result as JSON data."""
    header = {"schema_id": (Literal["wakeful.run-result"], Field(alias="schema")), "version": (Literal[1], ...)}
    return document(RunResult, "RunResultDocument", DOCUMENT, **header)


def _short(text: str) -> str:
    return text if len(text) <= MAX_SAID else f"{text[: MAX_SAID - 1]}…"
