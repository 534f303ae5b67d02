"""Tasks as values: what is filled in, what is dropped, and what is refused with which code."""

from itertools import count
from typing import Any

import pytest

from wakeful.contracts.errors import InvalidValue
from wakeful.hosts.dispatch.dispatch_request import (
    RESULT_SCHEMA,
    TERMINAL,
    DispatchRequest,
    DispatchResult,
    ExecutionMetrics,
    ExecutionPlacement,
    ExecutorTarget,
)

RESULT = {"schema": RESULT_SCHEMA, "run_id": "r", "session_id": "s", "executor_id": "x", "status": "running"}


def normalised(raw: Any) -> DispatchRequest:
    number = count(1)
    return DispatchRequest.normalise(raw, lambda prefix: f"{prefix}_{next(number)}")


@pytest.mark.spec("API-TSK-02")
def test_an_input_is_normalised_into_one_shape() -> None:
    given = {
        "task": {
            "id": "report",
            "instructions": "Write it.",
            "input": {"month": 5},
            "attachments": [{"ref": "a1"}],
            "metadata": {"agent": "writer"},
        },
        "session_id": "s1",
        "run_id": "r1",
        "placement": {"preferred_target": "box"},
        "client_context": {"locale": "de"},
        "metadata": {"why": "monthly"},
    }
    wire = normalised(given).to_wire()
    assert wire == {
        "schema": "wakeful/task-input/v1",
        **given,
        "task_id": "report",
        "placement": {
            "schema": "wakeful/execution-placement/v1",
            "preferred_target": "box",
            "allowed_targets": [],
            "resource_class": "generic",
            "required_capabilities": [],
            "metadata": {},
        },
    }
    assert normalised(wire).to_wire() == wire
    least = normalised({"task_id": "report"})
    assert least.task.model_dump() == {
        "id": "report", "instructions": "", "input": {}, "attachments": [], "metadata": {},
    }  # fmt: skip
    assert (least.client_context, least.metadata, least.placement) == ({}, {}, ExecutionPlacement())


@pytest.mark.spec("API-TSK-03")
@pytest.mark.parametrize("raw", [{}, {"task": {}}, {"task": {"id": ""}}, {"task_id": "  "}, {"task": {"id": 7}}])
def test_a_task_needs_an_id(raw: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue) as refused:
        normalised(raw)
    assert refused.value.code == "task_invalid_input"
    beside = normalised({"task_id": "t", "instructions": "Go.", "input": {"n": 1}, "attachments": [1]})
    assert (beside.task.id, beside.task_id) == ("t", "t")
    assert (beside.task.instructions, beside.task.input, beside.task.attachments) == ("Go.", {"n": 1}, [1])
    inside = normalised({"task": {"id": "t", "instructions": "In.", "input": {"n": 2}}, "instructions": "Beside."})
    assert (inside.task.instructions, inside.task.input) == ("In.", {"n": 2})


@pytest.mark.spec("API-TSK-04")
def test_missing_ids_are_made() -> None:
    made = normalised({"task_id": "t"})
    assert (made.run_id, made.session_id) == ("task_run_1", "task_session_2")
    kept = normalised({"task_id": "t", "run_id": "r", "session_id": "s"})
    assert (kept.run_id, kept.session_id) == ("r", "s")


@pytest.mark.parametrize(
    "raw",
    [
        "do it",
        {"task": "do it"},
        {"task_id": "t", "task": {"id": "u"}},
        {"task_id": "t", "owner": {"type": "user", "key": "u1"}},
        {"task_id": "t", "input": {"when": object()}},
        {"task_id": "t", "placement": "box"},
    ],
)
def test_what_is_no_task_is_refused_and_nothing_is_bent(raw: Any) -> None:
    with pytest.raises(InvalidValue) as refused:
        normalised(raw)
    assert refused.value.code == "task_invalid_input"


@pytest.mark.spec("API-TSK-05")
def test_a_placement_is_made_of_hints_without_blanks_and_repeats() -> None:
    placement = ExecutionPlacement.normalise(
        {
            "allowed_targets": ["box", "", "  ", 7, None, "box", "lab"],
            "required_capabilities": ["tasks.run", "tasks.run", {"a": 1}],
            "resource_class": "",
            "metadata": {"region": "eu"},
        }
    )
    assert placement.to_wire() == {
        "schema": "wakeful/execution-placement/v1",
        "preferred_target": None,
        "allowed_targets": ["box", "lab"],
        "resource_class": "generic",
        "required_capabilities": ["tasks.run"],
        "metadata": {"region": "eu"},
    }
    assert set(ExecutionPlacement.model_fields) == {
        "schema_id", "preferred_target", "allowed_targets", "resource_class", "required_capabilities", "metadata",
    }  # fmt: skip


@pytest.mark.spec("API-TSK-06")
def test_a_target_needs_an_id_and_fills_in_the_rest() -> None:
    assert ExecutorTarget.normalise({"id": "box"}).to_wire() == {
        "schema": "wakeful/executor-target/v1",
        "id": "box",
        "label": "box",
        "kind": "executor",
        "description": "",
        "capabilities": [],
        "resource_classes": [],
        "metadata": {},
    }
    said = ExecutorTarget.normalise(
        {
            "id": "box",
            "label": "The box",
            "kind": "machine",
            "capabilities": ["tasks.run", "artifacts.reference", "anything at all"],
            "metadata": {"deep": [{"anything": None}]},
        }
    )
    assert (said.label, said.kind, said.capabilities[2]) == ("The box", "machine", "anything at all")
    assert said.metadata == {"deep": [{"anything": None}]}
    for raw in ({}, {"id": ""}, {"id": " "}, {"label": "nameless"}):
        with pytest.raises(InvalidValue) as refused:
            ExecutorTarget.normalise(raw)
        assert refused.value.code == "execution_target_invalid"


@pytest.mark.spec("API-TSK-07")
@pytest.mark.parametrize("name", ["schema", "run_id", "session_id", "status", "executor_id"])
def test_a_result_has_its_shape_and_misses_nothing(name: str) -> None:
    assert DispatchResult.normalise(RESULT).to_wire() == {
        **RESULT,
        "artifact_refs": [],
        "diagnostics": {},
        "events": [],
        "provenance": {},
        "output": None,
        "execution_metrics": {},
        "owner": None,
        "started_at": "",
        "updated_at": "",
        "metadata": {},
    }
    for raw in ({key: value for key, value in RESULT.items() if key != name}, {**RESULT, name: ""}):
        with pytest.raises(InvalidValue) as refused:
            DispatchResult.normalise(raw)
        assert refused.value.code == "task_invalid_result"
        assert refused.value.path == name


@pytest.mark.spec("API-TSK-08")
def test_there_are_six_statuses_and_three_of_them_are_ends() -> None:
    every = ("queued", "running", "cancelling", "cancelled", "succeeded", "failed")
    over = [status for status in every if DispatchResult.normalise({**RESULT, "status": status}).is_over]
    assert over == ["cancelled", "succeeded", "failed"]
    assert set(over) == TERMINAL
    for other in ("done", "Running", "pending", "completed"):
        with pytest.raises(InvalidValue):
            DispatchResult.normalise({**RESULT, "status": other})


@pytest.mark.spec("API-TSK-10")
def test_metrics_keep_what_was_measured_and_drop_the_rest() -> None:
    measured = {
        "environment": "box",
        "executor_id": "somebody else",
        "wall_time_ms": 12,
        "startup_time_ms": -1,
        "tool_call_count": "three",
        "per_tool_timings_ms": {"search": 4, "broken": -2, "worse": "x", "odd": None},
        "payload_bytes_in": float("nan"),
        "payload_bytes_out": 0,
        "artifact_bytes": True,
        "failure_class": "",
        "quality_signals": {"score": 0.5},
        "raw_refs": [{"ref": "r1"}, "no object"],
    }
    result = DispatchResult.normalise({**RESULT, "execution_metrics": measured})
    assert result.to_wire()["execution_metrics"] == {
        "schema": "wakeful/execution-metrics/v1",
        "environment": "box",
        "executor_id": "x",
        "wall_time_ms": 12,
        "per_tool_timings_ms": {"search": 4},
        "payload_bytes_out": 0,
        "quality_signals": {"score": 0.5},
        "raw_refs": [{"ref": "r1"}],
    }
    assert set(ExecutionMetrics.model_fields) == {"schema_id", *measured}
    with pytest.raises(InvalidValue, match="execution_metrics"):
        DispatchResult.normalise({**RESULT, "execution_metrics": "fast"})
