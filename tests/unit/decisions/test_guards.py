"""Guards: folds over calls that see when nothing new is tried."""

from typing import Any

import pytest

from wakeful.contracts.errors import InvalidValue
from wakeful.decisions.guards import CallSeen, IdenticalFailureTracker, SpinDetector
from wakeful.decisions.redaction import call_envelope, redact, stable_hash


def call(tool: str = "a/b", error_code: str = "", error: str = "", **arguments: Any) -> CallSeen:
    return CallSeen(tool, arguments, redact(arguments), error_code, error)


def test_a_call_that_is_repeated_in_a_row_is_seen_at_the_threshold() -> None:
    guard = SpinDetector()
    for _ in range(2):
        guard = guard.saw(call(q="x"))
        assert guard.repeated is None
    found = guard.saw(call(q="x")).repeated
    assert found is not None
    assert (found.tool_name, found.repeat_count, found.threshold) == ("a/b", 3, 3)
    assert found.parameters_hash == call_envelope({"q": "x"})["parameters_sha256"]
    assert found.signature_hash == stable_hash(["a/b", {"q": "x"}])


@pytest.mark.parametrize("between", [call(q="y"), call("a/c", q="x"), call()])
def test_another_call_in_between_begins_a_new_count(between: CallSeen) -> None:
    guard = SpinDetector(2).saw(call(q="x")).saw(between).saw(call(q="x"))
    assert guard.repeated is None
    assert guard.saw(call(q="x")).repeated is not None


def test_the_order_of_arguments_makes_no_other_call() -> None:
    guard = SpinDetector(2).saw(CallSeen("t", {"a": 1, "b": 2}, {})).saw(CallSeen("t", {"b": 2, "a": 1}, {}))
    assert guard.repeated is not None


def test_calls_that_differ_in_a_secret_differ_and_its_hash_is_not_told() -> None:
    guard = SpinDetector(2).saw(call(token="one")).saw(call(token="two"))
    assert guard.repeated is None, "the real arguments decide, not what is shown of them"
    found = guard.saw(call(token="two")).repeated
    assert found is not None
    assert found.parameters_hash == stable_hash({"token": "[redacted]"}) != stable_hash({"token": "two"})


def test_a_fold_leaves_what_it_began_with_alone() -> None:
    begun = SpinDetector(2).saw(call(q="x"))
    begun.saw(call(q="x"))
    assert begun.repeated is None and begun.count == 1


@pytest.mark.parametrize("kind", [SpinDetector, IdenticalFailureTracker])
@pytest.mark.parametrize("threshold", [1, 0, True, "3"])
def test_a_threshold_is_at_least_two(kind: Any, threshold: Any) -> None:
    with pytest.raises(InvalidValue, match=r"^invalid_guard: threshold: "):
        kind(threshold)


def test_a_failure_that_is_repeated_the_same_way_is_worth_a_word() -> None:
    failed = call(error_code="timeout", error="late", q="x")
    found = IdenticalFailureTracker().saw(failed).saw(failed).repeated
    assert found is not None
    assert (found.tool_name, found.error_code, found.repeat_count, found.threshold) == ("a/b", "timeout", 2, 2)
    assert found.signature_hash == stable_hash(["a/b", {"q": "x"}, "timeout"])
    assert "failed 2 times in the same way (timeout)" in found.message


@pytest.mark.parametrize(
    "other",
    [
        call(q="x"),
        call(error_code="denied", error="late", q="x"),
        call(error_code="timeout", error="later", q="x"),
        call(error_code="timeout", error="late", q="y"),
    ],
)
def test_a_success_or_another_failure_begins_a_new_count(other: CallSeen) -> None:
    failed = call(error_code="timeout", error="late", q="x")
    assert IdenticalFailureTracker().saw(failed).saw(other).saw(failed).repeated is None


def test_the_word_is_said_again_only_after_as_many_failures_more() -> None:
    guard = IdenticalFailureTracker(2)
    said = []
    for _ in range(5):
        guard = guard.saw(call(error_code="timeout", q="x"))
        said.append(guard.repeated is not None)
    assert said == [False, True, False, True, False]
