"""The conversation result as a value: what is required, what is refused, what survives a round trip."""

import json
from typing import Any, get_args

import pytest

from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.outcomes import RunOutcome
from wakeful.hosts.loop.conversation_result import ConversationResult, ResultStatus

DONE: dict[str, Any] = {
    "schema": "wakeful.conversation-result",
    "version": 1,
    "messages": [{"role": "user", "content": "hello"}],
    "tool_execution_results": [],
    "tool_audit_events": [],
    "events": [],
    "completed": True,
    "run_outcome": {"status": "completed"},
}
AUDIT = {
    "turn_count": 1,
    "tool_name": "a/b",
    "tool_call_id": "c",
    "parameters_sha256": "sha256:0",
    "success": True,
    "result_status": "success",
    "result_sha256": "sha256:1",
}


def refused(raw: Any) -> InvalidValue:
    with pytest.raises(InvalidValue) as caught:
        ConversationResult.normalise(raw)
    return caught.value


@pytest.mark.spec("API-RES-01")
def test_only_its_own_schema_and_version_are_accepted() -> None:
    wire = ConversationResult.normalise(DONE).to_wire()
    assert (wire["schema"], wire["version"]) == ("wakeful.conversation-result", 1)
    assert refused({**DONE, "schema": "wakeful.message"}).path == "schema"
    assert refused({**DONE, "version": 2}).path == "version"


@pytest.mark.spec("API-RES-02")
def test_required_fields_may_not_be_missing_and_an_empty_run_has_empty_lists() -> None:
    for name in ("schema", "version", "messages", "tool_execution_results", "tool_audit_events", "events"):
        error = refused({key: value for key, value in DONE.items() if key != name})
        assert (error.path, error.reason) == (name, "is missing")
    empty = ConversationResult(completed=True, run_outcome=RunOutcome.of("completed")).to_wire()
    for name in ("messages", "tool_execution_results", "tool_audit_events", "events"):
        assert empty[name] == []


@pytest.mark.spec("API-RES-03")
def test_what_the_loop_always_says_is_always_there() -> None:
    wire = ConversationResult(completed=True, run_outcome=RunOutcome.of("completed")).to_wire()
    assert {name: wire[name] for name in ("turn_count", "final_content", "usage", "request_metadata", "completed")} == {
        "turn_count": 0,
        "final_content": "",
        "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
        "request_metadata": {},
        "completed": True,
    }


@pytest.mark.spec("API-RES-13")
def test_status_is_set_on_every_stop_but_completion_and_absent_there() -> None:
    assert "status" not in ConversationResult.normalise(DONE).to_wire()
    assert "status is absent" in refused({**DONE, "status": "failed"}).reason
    stopped = {**DONE, "completed": False, "run_outcome": {"status": "incomplete"}}
    assert "status is absent" in refused(stopped).reason
    for status in get_args(ResultStatus):
        budget = {"budget": "turns"} if status == "budget_exceeded" else {}
        assert ConversationResult.normalise({**stopped, "status": status, **budget}).status == status
    assert refused({**stopped, "status": "suspended"}).path == "status"


@pytest.mark.spec("API-RES-16")
def test_optional_fields_keep_their_shapes_through_json() -> None:
    raw = {
        **DONE,
        "completed": False,
        "status": "approval_required",
        "run_outcome": {"status": "approval_required"},
        "tool_audit_events": [AUDIT],
        "tool_events": [{"type": "tool_call", "tool_name": "a/b", "tool_call_id": "c", "turn_count": 1}],
        "tool_observability": {
            "version": 1,
            "calls": [
                {
                    "sequence": 1,
                    "turn": 1,
                    "tool_call_id": "c",
                    "tool_name": "a/b",
                    "status": "succeeded",
                    "arguments": {"keys": ["q"], "count": 1, "redacted": True},
                    "result": {"type": "object", "keys": ["n"], "count": 1},
                }
            ],
        },
        "provider_diagnostics": [{"latency_ms": 3}],
        "structured_output": {"answer": [1, None]},
        "structured_output_diagnostics": {"status": "ok", "code": "parsed", "parser": "json", "valid": True},
        "failure": {"type": "t", "message": "m", "code": "c", "turn_count": 1},
        "runtime_tool_pending": {"request_id": "r"},
        "approval_required": {"type": "approval_required", "content": "May I?"},
        "stalled": {"repeat_count": 3},
        "metadata": {"notes": []},
    }
    result = ConversationResult.normalise(raw)
    again = ConversationResult.normalise(json.loads(json.dumps(result.to_wire())))
    assert again == result
    assert again.structured_output == {"answer": [1, None]}
    assert again.approval_required is not None and again.approval_required.role == "tool"
    for name, wrong in {
        "tool_observability": {"version": 2},
        "failure": {"message": "m"},
        "structured_output_diagnostics": {"status": "ok"},
        "tool_events": [{"type": "x"}],
        "provider_diagnostics": ["text"],
    }.items():
        assert refused({**raw, name: wrong}).path.startswith(name)


@pytest.mark.spec("API-RES-18")
def test_errors_carry_the_prefix_and_the_path() -> None:
    messages = [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}, {"role": "", "content": "c"}]
    error = refused({**DONE, "messages": messages})
    assert str(error).startswith("invalid_conversation_result: messages[2].role: ")
    error = refused({**DONE, "tool_audit_events": [AUDIT, {**AUDIT, "success": "perhaps"}]})
    assert error.path == "tool_audit_events[1].success"
    assert refused("text").code == "invalid_conversation_result"


def test_completion_budget_and_outcome_cannot_contradict_each_other() -> None:
    assert "run_outcome" in refused({**DONE, "run_outcome": {"status": "failed"}}).reason
    assert "budget" in refused({**DONE, "budget": "turns"}).reason


@pytest.mark.spec("API-BND-04")
def test_a_value_that_json_cannot_hold_is_refused() -> None:
    assert refused({**DONE, "structured_output": {"x": object()}}).path == "structured_output"
    assert refused({**DONE, "metadata": {"x": {1, 2}}}).path == "metadata"
