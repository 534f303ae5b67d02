"""Dispatches: work that is handed to an executor. The request, its targets, and its result.

Placement is made of hints. Capabilities and kinds are free words, metadata is the host's own. There is no field here
for what an executor does with its hands: that is behind its target.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

from pydantic import ConfigDict, Field, field_validator, model_validator

from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.jsonable import JsonAny, JsonDict
from wakeful.contracts.validation import validated
from wakeful.contracts.values import Value
from wakeful.decisions.dispatch_answers import OVER

INVALID_INPUT = "task_invalid_input"
INVALID_RESULT = "task_invalid_result"
INVALID_TARGET = "execution_target_invalid"
INPUT_SCHEMA: Literal["wakeful/task-input/v1"] = "wakeful/task-input/v1"
PLACEMENT_SCHEMA: Literal["wakeful/execution-placement/v1"] = "wakeful/execution-placement/v1"
TARGET_SCHEMA: Literal["wakeful/executor-target/v1"] = "wakeful/executor-target/v1"
TARGET_LIST_SCHEMA: Literal["wakeful/execution-target-list/v1"] = "wakeful/execution-target-list/v1"
RESULT_SCHEMA: Literal["wakeful/task-result/v1"] = "wakeful/task-result/v1"
METRICS_SCHEMA: Literal["wakeful/execution-metrics/v1"] = "wakeful/execution-metrics/v1"
GENERIC = "generic"
"""The resource class of whoever names none."""
FALLBACKS = ("instructions", "input", "attachments")
"""Fields that may stand beside `task` instead of in it."""

DispatchStatus: TypeAlias = Literal["queued", "running", "cancelling", "cancelled", "succeeded", "failed"]
TERMINAL = frozenset(OVER)


_WORDS = ("environment", "failure_class")
_NUMBERS = (
    "wall_time_ms",
    "startup_time_ms",
    "tool_call_count",
    "payload_bytes_in",
    "payload_bytes_out",
    "artifact_bytes",
)


def _said(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that were given. None is as good as nothing."""
    return {name: value for name, value in raw.items() if value is not None or name == "output"}


def _names(value: Any) -> Any:
    """A list of words, each once, without what is empty or no word. What is no list is left for the check to refuse."""
    if not isinstance(value, list | tuple):
        return value
    return tuple(dict.fromkeys(each for each in value if isinstance(each, str) and each.strip()))


def _number(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        return None
    return int(value)


class _Schematic(Value):
    """A value that says which schema it has, under the name `schema`."""

    model_config = ConfigDict(serialize_by_alias=True)

    def to_wire(self) -> dict[str, Any]:
        """As JSON data."""
        return self.model_dump(mode="json", by_alias=True)


class DispatchedTask(Value):
    """The task."""

    id: str = Field(min_length=1)
    instructions: str = ""
    input: JsonDict = {}
    attachments: list[JsonAny] = []
    metadata: JsonDict = {}


class ExecutionPlacement(_Schematic):
    """Where a task would like to run. Hints, and nothing else."""

    schema_id: Literal["wakeful/execution-placement/v1"] = Field(PLACEMENT_SCHEMA, alias="schema")
    preferred_target: str | None = None
    allowed_targets: tuple[str, ...] = ()
    """Empty: any."""
    resource_class: str = GENERIC
    required_capabilities: tuple[str, ...] = ()
    metadata: JsonDict = {}

    @model_validator(mode="before")
    @classmethod
    def _without_blanks(cls, raw: Any) -> Any:
        if not isinstance(raw, Mapping):
            return raw
        fields = _said(raw)
        for name in ("preferred_target", "resource_class"):
            if isinstance(fields.get(name), str) and not fields[name].strip():
                del fields[name]
        return fields

    @field_validator("allowed_targets", "required_capabilities", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        return _names(value)

    @classmethod
    def normalise(cls, raw: "ExecutionPlacement | Mapping[str, Any]", at: str = "") -> "ExecutionPlacement":
        """Raises InvalidValue `task_invalid_input`, naming the field."""
        return validated(cls, raw, INVALID_INPUT, at)


class DispatchRequest(_Schematic):
    """A task as every executor gets it."""

    schema_id: Literal["wakeful/task-input/v1"] = Field(INPUT_SCHEMA, alias="schema")
    task: DispatchedTask
    task_id: str
    session_id: str = Field(min_length=1)
    run_id: str = Field(min_length=1)
    placement: ExecutionPlacement = ExecutionPlacement()
    client_context: JsonDict = {}
    metadata: JsonDict = {}

    @model_validator(mode="after")
    def _one_id(self) -> "DispatchRequest":
        if self.task_id != self.task.id:
            raise ValueError(f"task_id {self.task_id!r} is not the id of the task, {self.task.id!r}")
        return self

    @classmethod
    def normalise(cls, raw: "DispatchRequest | Mapping[str, Any]", new_id: Callable[[str], str]) -> "DispatchRequest":
        """Raises InvalidValue `task_invalid_input`. `new_id` makes `task_run_...` and `task_session_...`."""
        if isinstance(raw, DispatchRequest):
            return raw
        if not isinstance(raw, Mapping):
            raise InvalidValue(INVALID_INPUT, "", f"expected an object, not a {type(raw).__name__}")
        fields = _said(raw)
        given = fields.get("task", {})
        if not isinstance(given, Mapping):
            raise InvalidValue(INVALID_INPUT, "task", f"expected an object, not a {type(given).__name__}")
        task = _said(given)
        for name in FALLBACKS:
            beside = fields.pop(name, None)
            if beside is not None and not task.get(name):
                task[name] = beside
        task["id"] = task.get("id") or fields.get("task_id")
        if not isinstance(task["id"], str) or not task["id"].strip():
            raise InvalidValue(INVALID_INPUT, "task.id", "a task needs an id: task.id, or task_id")
        for name, prefix in (("run_id", "task_run"), ("session_id", "task_session")):
            if fields.get(name) in (None, ""):
                fields[name] = new_id(prefix)
        return validated(cls, {**fields, "task": task, "task_id": fields.get("task_id") or task["id"]}, INVALID_INPUT)


class ExecutorTarget(_Schematic):
    """A target that takes tasks."""

    schema_id: Literal["wakeful/executor-target/v1"] = Field(TARGET_SCHEMA, alias="schema")
    id: str = Field(min_length=1)
    label: str
    kind: str = "executor"
    description: str = ""
    capabilities: tuple[str, ...] = ()
    """Free words, such as `tasks.run` or `artifacts.reference`."""
    resource_classes: tuple[str, ...] = ()
    """Empty: any."""
    metadata: JsonDict = {}

    @model_validator(mode="before")
    @classmethod
    def _defaults(cls, raw: Any) -> Any:
        if not isinstance(raw, Mapping):
            return raw
        fields = {name: value for name, value in _said(raw).items() if name not in ("label", "kind") or value != ""}
        return {"label": fields.get("id"), **fields}

    @field_validator("id")
    @classmethod
    def _not_blank(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("must not be empty")
        return value

    @field_validator("capabilities", "resource_classes", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        return _names(value)

    @classmethod
    def normalise(cls, raw: "ExecutorTarget | Mapping[str, Any]", at: str = "") -> "ExecutorTarget":
        """Raises InvalidValue `execution_target_invalid`, naming the field."""
        return validated(cls, raw, INVALID_TARGET, at)


class ExecutionMetrics(_Schematic):
    """The measurements of a run. Values that are not numbers, or negative, are left out."""

    schema_id: Literal["wakeful/execution-metrics/v1"] = Field(METRICS_SCHEMA, alias="schema")
    environment: str | None = None
    executor_id: str | None = None
    wall_time_ms: int | None = None
    startup_time_ms: int | None = None
    tool_call_count: int | None = None
    per_tool_timings_ms: dict[str, int] = {}
    payload_bytes_in: int | None = None
    payload_bytes_out: int | None = None
    artifact_bytes: int | None = None
    failure_class: str | None = None
    quality_signals: JsonDict = {}
    raw_refs: list[JsonDict] = []

    @classmethod
    def normalise(cls, raw: Mapping[str, Any], executor_id: str) -> "ExecutionMetrics":
        """The usable measurements. Bad values are left out; raises InvalidValue if it is not a JSON object."""
        if not isinstance(raw, Mapping):
            raise InvalidValue(INVALID_RESULT, "execution_metrics", f"expected an object, not a {type(raw).__name__}")
        kept: dict[str, Any] = {}
        for name, value in raw.items():
            if name in _NUMBERS:
                kept[name] = _number(value)
            elif name in _WORDS:
                kept[name] = value if isinstance(value, str) and value.strip() else None
            elif name == "per_tool_timings_ms" and isinstance(value, Mapping):
                timings = {tool: _number(each) for tool, each in value.items() if isinstance(tool, str) and tool}
                kept[name] = {tool: each for tool, each in timings.items() if each is not None}
            elif name == "quality_signals" and isinstance(value, Mapping):
                kept[name] = dict(value)
            elif name == "raw_refs" and isinstance(value, list | tuple):
                kept[name] = [dict(each) for each in value if isinstance(each, Mapping)]
        kept["executor_id"] = executor_id
        return validated(cls, kept, INVALID_RESULT, "execution_metrics")


class RunOwner(Value):
    """The owner of the run."""

    type: str = Field(min_length=1)
    key: str = Field(min_length=1)


class DispatchResult(_Schematic):
    """The state and result of a run, finished or not."""

    schema_id: Literal["wakeful/task-result/v1"] = Field(alias="schema")
    run_id: str = Field(min_length=1)
    session_id: str = Field(min_length=1)
    executor_id: str = Field(min_length=1)
    status: DispatchStatus
    artifact_refs: list[JsonDict] = []
    diagnostics: JsonDict = {}
    events: list[JsonDict] = []
    provenance: JsonDict = {}
    output: JsonAny = None
    execution_metrics: ExecutionMetrics | None = None
    owner: RunOwner | None = None
    started_at: str = ""
    updated_at: str = ""
    metadata: JsonDict = {}

    @property
    def is_over(self) -> bool:
        return self.status in TERMINAL

    @classmethod
    def normalise(
        cls, raw: "DispatchResult | Mapping[str, Any]", code: str = INVALID_RESULT, at: str = ""
    ) -> "DispatchResult":
        """Raises InvalidValue with `code`. No status is ever read as another."""
        if isinstance(raw, DispatchResult) or not isinstance(raw, Mapping):
            return validated(cls, raw, code, at)
        fields = _said(raw)
        metrics = fields.pop("execution_metrics", None)
        if metrics and not isinstance(metrics, ExecutionMetrics):
            fields["execution_metrics"] = ExecutionMetrics.normalise(metrics, str(fields.get("executor_id") or ""))
        elif metrics:
            fields["execution_metrics"] = metrics
        return validated(cls, fields, code, at)

    def to_wire(self) -> dict[str, Any]:
        """As JSON data; without metrics, an empty object stands for them."""
        wire = self.model_dump(mode="json", by_alias=True)
        wire["execution_metrics"] = (
            self.execution_metrics.model_dump(mode="json", by_alias=True, exclude_none=True)
            if self.execution_metrics is not None
            else {}
        )
        return wire
