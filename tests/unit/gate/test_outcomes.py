"""Whatever an error holds, the failure made of it can be stored, and says the same to the model and to the log."""

import json
from typing import Any

import pytest

from kit.gates.call_records import call_record
from wakeful.contracts.envelope import MAX_PAYLOAD_BYTES
from wakeful.contracts.tools import ToolError
from wakeful.gate.outcomes import failed, unknown_error


def made(error: ToolError) -> Any:
    return failed(
        call_record("act", 1.0),
        error,
        now=2.0,
        status="failed",
        category="execution_failed",
        effects="none",
    )


class Unspeakable:
    def __str__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    "details",
    [
        {"a": object()},
        {"a": Unspeakable()},
        {"a": float("nan"), "b": b"\xff", "c": {1, 2}},
        {"a": "\ud800"},
        {"a": "x" * 1_000_000},
        {(1, 2): 3},
    ],
    ids=["an object", "one that cannot speak", "odd values", "no text", "too much", "a key that is no text"],
)
def test_details_of_any_kind_can_be_stored(details: Any) -> None:
    event = made(ToolError.model_construct(kind="k", message="m", details=details, recovery_hint=None, retryable=False))
    stored = event.model_dump_json().encode()
    assert len(stored) < MAX_PAYLOAD_BYTES
    assert json.loads(event.item.text)["kind"] == "k"


def test_words_are_cut_and_mended() -> None:
    event = made(ToolError(kind="k", message="\ud800" + "x" * 1_000_000, recovery_hint="y" * 1_000_000))
    assert event.message.startswith("\ufffdx") and len(event.message) == 4_000
    assert len(event.model_dump_json()) < MAX_PAYLOAD_BYTES


def test_what_needs_no_mending_is_the_error_itself() -> None:
    error = ToolError(kind="k", message="plain words")
    assert made(error).tool_error is error


def test_an_unknown_outcome_is_said_in_plain_words() -> None:
    error = unknown_error("send", "The process ended while send ran.")
    assert error.kind == "outcome_unknown" and "unknown whether send took effect" in error.message
    assert error.recovery_hint is not None and "do not repeat the call" in error.recovery_hint
