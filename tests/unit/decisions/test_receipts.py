"""What the model reads of a failure: bounded, uniform, and enough to act on."""

import hashlib
import json
from typing import Any

import pytest

from wakeful.contracts.tools import ToolError
from wakeful.decisions.receipts import MAX_DETAILS_CHARS, flatten, receipt


def shown(error: ToolError, tool_name: str | None = None) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(receipt(error, tool_name))
    return found


FULL = ToolError(
    kind="invalid_parameters",
    message="cents must be an integer",
    details={"field": "cents", "errors": ["cents: not an integer"]},
    recovery_hint="Send a whole number of cents.",
    retryable=True,
)


@pytest.mark.spec("HOL-ERR-01", "HOL-ERR-10")
def test_an_error_is_one_envelope_to_which_a_tool_adds_its_own_details_and_hint() -> None:
    assert FULL.model_dump() == {
        "kind": "invalid_parameters",
        "message": "cents must be an integer",
        "details": {"field": "cents", "errors": ["cents: not an integer"]},
        "recovery_hint": "Send a whole number of cents.",
        "retryable": True,
    }
    own = ToolError(kind="quota", message="No quota", details={"resets_at": "noon"}, recovery_hint="Wait until noon.")
    assert shown(own)["details"] == {"resets_at": "noon"}
    assert shown(own)["hint"] == "Wait until noon."


@pytest.mark.spec("HOL-ERR-02", "HOL-ERR-03", "HOL-ERR-04")
def test_the_receipt_has_its_fields_with_hint_and_field_taken_from_the_envelope() -> None:
    assert shown(FULL, "refund") == {
        "ok": False,
        "tool_name": "refund",
        "kind": "invalid_parameters",
        "message": "cents must be an integer",
        "hint": "Send a whole number of cents.",
        "field": "cents",
        "retryable": True,
        "details": {"field": "cents", "errors": ["cents: not an integer"]},
    }
    assert shown(ToolError(kind="k", message="m")) == {"ok": False, "kind": "k", "message": "m", "retryable": False}


@pytest.mark.spec("HOL-ERR-05")
def test_details_over_the_bound_become_a_preview_and_a_digest() -> None:
    details = {"field": "log", "lines": ["x" * 100] * 100}
    whole = json.dumps(details, separators=(",", ":"))
    found = shown(ToolError(kind="k", message="m", details=details))
    assert found["details"] == {
        "preview": whole[:500],
        "digest": "sha256:" + hashlib.sha256(whole.encode()).hexdigest(),
        "size_chars": len(whole),
        "truncated": True,
    }
    assert found["field"] == "log"
    just = {"t": "x" * (MAX_DETAILS_CHARS - len('{"t":""}'))}
    assert shown(ToolError(kind="k", message="m", details=just))["details"] == just
    over = {"t": just["t"] + "x"}
    assert "digest" in shown(ToolError(kind="k", message="m", details=over))["details"]


def test_however_large_the_error_its_receipt_is_bounded() -> None:
    huge = ToolError(
        kind="k",
        message="m" * 10_000_000,
        recovery_hint="h" * 100_000,
        details={"field": "f" * 9_000, "x": "y" * 99_999},
    )
    assert len(receipt(huge, "t")) < 12_000
    assert len(flatten(huge)) <= 4_000


@pytest.mark.parametrize("bad", [{"when": object()}, {"set": {1}}, {(1, 2): "key"}, {"half": "\ud800"}])
def test_details_that_json_cannot_hold_do_not_sink_the_receipt(bad: Any) -> None:
    error = ToolError.model_construct(kind="k", message="m \ud800", details=bad, recovery_hint=None, retryable=False)
    text = receipt(error)
    assert json.loads(text)["kind"] == "k"
    assert text.encode() and flatten(error).encode()


def test_a_cycle_in_the_details_does_not_sink_the_receipt() -> None:
    cycle: dict[str, Any] = {}
    cycle["self"] = cycle
    error = ToolError.model_construct(kind="k", message="m", details=cycle, recovery_hint=None, retryable=False)
    assert json.loads(receipt(error))["details"] == {"unreadable": ["self"]}


@pytest.mark.spec("HOL-ERR-07")
def test_every_tool_renders_the_same_error_the_same_way() -> None:
    one, other = receipt(FULL, "refund"), receipt(FULL, "look_up")
    assert one.replace("refund", "look_up") == other
    assert isinstance(one, str)


def test_flattened_it_is_one_line() -> None:
    error = ToolError(kind="timeout", message="took\n  too long", recovery_hint="Ask\nfor less.")
    assert flatten(error) == "timeout: took too long (Ask for less.)"
