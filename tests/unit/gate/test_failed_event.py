"""How a failed call stands in the log: structured for programs, flattened for people, a string for the model."""

import json

import pytest

from kit.gates.call_records import call_record
from wakeful.contracts.tools import ToolError
from wakeful.gate.outcomes import failed

ERROR = ToolError(kind="quota", message="no\nquota", details={"field": "cents"}, recovery_hint="Wait.", retryable=True)


@pytest.mark.spec("HOL-ERR-06", "HOL-ERR-09")
def test_the_event_keeps_the_error_whole_and_the_model_gets_a_plain_string() -> None:
    event = failed(
        call_record("refund", 0.0),
        ERROR,
        now=1.0,
        status="failed",
        category="execution_failed",
        effects="none",
    )
    assert event.tool_error == ERROR
    assert event.error == "quota: no quota (Wait.)"
    (part,) = event.item.parts
    assert part.type == "text" and isinstance(part.text, str)
    assert json.loads(part.text) == {
        "ok": False,
        "tool_name": "refund",
        "kind": "quota",
        "message": "no\nquota",
        "hint": "Wait.",
        "field": "cents",
        "retryable": True,
        "details": {"field": "cents"},
    }
