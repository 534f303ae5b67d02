"""Requests that somebody outside answers, and their answers."""

import hashlib
from typing import Any

import pytest

from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.runtime_tools import RuntimeToolRequest, RuntimeToolResult, request_id, timed_out

CALL: dict[str, Any] = {"tool_name": "client/pick", "tool_call_id": "c1", "run_id": "r1"}


@pytest.mark.spec("API-RTL-03")
def test_a_request_is_completed_and_its_id_follows_from_run_tool_and_call() -> None:
    request = RuntimeToolRequest.normalise({**CALL, "parameters": {"q": 1}, "metadata": {"turn_count": 2}})
    digest = hashlib.sha256(b"2:r1\x0011:client/pick\x002:c1").hexdigest()
    assert request.model_dump() == {
        "status": "runtime_tool_pending",
        "request_id": f"runtime-tool-{digest}",
        "tool_name": "client/pick",
        "tool_call_id": "c1",
        "parameters": {"q": 1},
        "run_id": "r1",
        "timeout_at": "",
        "runtime": {},
        "metadata": {"turn_count": 2},
    }
    again = RuntimeToolRequest.normalise({**CALL, "parameters": {"q": 2}})
    assert again.request_id == request.request_id
    for other in ({"run_id": "r2"}, {"tool_name": "client/x"}, {"tool_call_id": "c2"}):
        assert RuntimeToolRequest.normalise({**CALL, **other}).request_id != request.request_id
    assert request_id("r", "1t", "c") != request_id("r1", "t", "c")
    assert RuntimeToolRequest.normalise({**CALL, "request_id": "own"}).request_id == "own"
    for missing in ("tool_name", "tool_call_id"):
        for more in ({}, {"request_id": "own"}):
            with pytest.raises(InvalidValue, match=rf"^invalid_runtime_tool_request: {missing}"):
                RuntimeToolRequest.normalise({**CALL, missing: "", **more})


def test_a_request_keeps_its_identity_to_its_end() -> None:
    request = RuntimeToolRequest.normalise(CALL)
    ended = request.settled("runtime_tool_timeout")
    assert ended.model_dump(exclude={"status"}) == request.model_dump(exclude={"status"})
    assert (request.status, request.settled("runtime_tool_completed").status, ended.status) == (
        "runtime_tool_pending",
        "runtime_tool_completed",
        "runtime_tool_timeout",
    )
    with pytest.raises(InvalidValue, match="status"):
        RuntimeToolRequest.normalise({**CALL, "status": "runtime_tool_cancelled"})
    cancelled = timed_out(request, cancelled=True)
    assert (cancelled.metadata["status"], cancelled.metadata["cancelled"]) == ("runtime_tool_timeout", True)
    assert "cancelled" not in timed_out(request).metadata


@pytest.mark.spec("API-RTL-05")
def test_an_answer_is_filled_in_from_its_request() -> None:
    request = RuntimeToolRequest.normalise(CALL)

    def answer(**fields: Any) -> dict[str, Any]:
        return RuntimeToolResult.normalise(fields, request).model_dump(exclude_none=True)

    named = {"status": "runtime_tool_submitted", "request_id": request.request_id, "tool_name": "client/pick"}
    assert answer(result={"file": "a"}) == {**named, "success": True, "metadata": {}, "result": {"file": "a"}}
    for scalar in ("x", 3, True, None, [1]):
        assert answer(result=scalar)["result"] == {"value": scalar}
    assert answer()["result"] == {}
    failed = answer(success=False, error="no")
    assert failed == {**named, "success": False, "metadata": {}, "error": "no"}
    for blank in ("", "  ", None):
        assert answer(success=False, error=blank)["error"] == "The runtime tool failed and did not say why."
    assert answer(result=1, metadata={"citations": [{"source": " w "}]})["metadata"] == {"citations": [{"source": "w"}]}
    with pytest.raises(InvalidValue, match=r"^invalid_runtime_tool_result: "):
        RuntimeToolResult.normalise({"result": 1})
    with pytest.raises(InvalidValue, match=r"^invalid_runtime_tool_result: success"):
        answer(success="yes")


@pytest.mark.spec("API-RTL-06")
@pytest.mark.parametrize("field", ["request_id", "tool_name"])
def test_an_answer_to_something_else_is_refused(field: str) -> None:
    request = RuntimeToolRequest.normalise(CALL)
    with pytest.raises(InvalidValue, match=rf"^invalid_runtime_tool_result: {field}: 'other' is not"):
        RuntimeToolResult.normalise({"result": 1, field: "other"}, request)
    # Taken out: without the request to hold it to, the same answer passes for another's.
    fields = {"request_id": "r", "tool_name": "t", "result": 1, field: "other"}
    assert getattr(RuntimeToolResult.normalise(fields), field) == "other"
