"""Failures in the operator's shape: where they come from, in short, without a log."""

from typing import Any

import pytest

from wakeful.contracts.content import Text
from wakeful.contracts.conversation import ToolItem
from wakeful.contracts.errors import InvalidConfig, ModelFailure
from wakeful.contracts.events import ModelFailed, ToolFailed, TurnCompleted, TurnFailed
from wakeful.contracts.failures import FailureArtifact
from wakeful.contracts.models import HttpClientDiagnostics, TransportDiagnostics
from wakeful.contracts.tools import ToolError, ToolResultMetadata
from wakeful.decisions.failures import exception_failure, model_failure, tool_failure, turn_failure

DIAGNOSTICS = TransportDiagnostics(
    stage="body",
    provider="acme",
    model_ref="acme:big",
    url="https://api.example/v1",
    http_client=HttpClientDiagnostics(is_body=True),
    source_chain=("ReadError", "OSError"),
)


def lost(kind: Any, **fields: Any) -> ModelFailed:
    return ModelFailed(
        **{
            "model_ref": "acme:big",
            "attempt": 3,
            "failure_kind": kind,
            "stage": "body",
            "disposition": "abort",
            "message": "the stream broke",
            **fields,
        }
    )


def failed_call() -> ToolFailed:
    error = ToolError(kind="executor_exception", message="boom")
    return ToolFailed(
        status="failed",
        tool_name="refund",
        item=ToolItem(call_id="c", name="refund", parts=(Text("{}"),), is_error=True),
        error_category="execution_failed",
        message="boom",
        retryable=False,
        effects="possible",
        duration_ms=1.0,
        error="executor_exception: boom",
        tool_error=error,
        metadata=ToolResultMetadata(status="error", started_at=0, completed_at=1, execution_time_ms=1),
    )


def ended(cls: Any, **fields: Any) -> Any:
    return cls(
        **{"turn_index": 1, "stop_reason": "natural", "retryable": False, "duration_ms": 1, "active_ms": 1, **fields}
    )


@pytest.mark.spec("HOL-FAIL-01")
def test_every_kind_of_failure_becomes_the_one_artifact() -> None:
    assert model_failure(lost("stream_interrupted", status=502, transport_diagnostics=DIAGNOSTICS)) == FailureArtifact(
        category="transport",
        kind="stream_interrupted",
        summary="the stream broke",
        provider="acme",
        model_ref="acme:big",
        status=502,
        source_chain=("ReadError", "OSError"),
        metadata={"stage": "body", "attempt": "3", "disposition": "abort"},
    )
    assert tool_failure(failed_call()) == FailureArtifact(
        category="runtime",
        kind="executor_exception",
        summary="refund: boom",
        metadata={
            "tool_name": "refund",
            "status": "failed",
            "error_category": "execution_failed",
            "effects": "possible",
        },
    )
    broken = ended(TurnFailed, status="failed", stop_reason="runtime_error", message="no\nway")
    assert turn_failure(broken) == FailureArtifact(category="runtime", kind="runtime_error", summary="no way")
    try:
        try:
            raise OSError("disk gone")
        except OSError as error:
            raise RuntimeError("cannot write") from error
    except RuntimeError as error:
        assert exception_failure(error) == FailureArtifact(
            category="unknown", kind="RuntimeError", summary="cannot write", source_chain=("OSError: disk gone",)
        )


@pytest.mark.spec("HOL-FAIL-02")
@pytest.mark.parametrize(
    ("kind", "category"),
    [
        ("timeout", "transport"),
        ("connection", "transport"),
        ("rate_limited", "transport"),
        ("auth_error", "transport"),
        ("contract_error", "protocol"),
        ("invalid_response", "protocol"),
        ("unsupported_transport", "protocol"),
        ("unknown", "unknown"),
    ],
)
def test_category_says_where_a_providers_failure_comes_from(kind: Any, category: str) -> None:
    assert model_failure(lost(kind)).category == category
    raised = ModelFailure("m", kind=kind, stage="send", status=500, diagnostics=DIAGNOSTICS)
    artifact = exception_failure(raised)
    assert (artifact.category, artifact.kind, artifact.status, artifact.provider) == (category, kind, 500, "acme")


@pytest.mark.spec("HOL-FAIL-02")
def test_category_of_what_is_no_providers_failure() -> None:
    assert tool_failure(failed_call()).category == "runtime"
    assert exception_failure(InvalidConfig("bad", "fix it")).category == "runtime"
    assert exception_failure(ValueError("?")).category == "unknown"
    assert exception_failure(ValueError("?"), "task").category == "task"


@pytest.mark.spec("HOL-FAIL-03")
def test_a_turn_that_did_not_fail_has_no_artifact() -> None:
    assert turn_failure(ended(TurnCompleted)) is None
    assert turn_failure(ended(TurnFailed, status="incomplete", stop_reason="max_steps")) is None
    assert turn_failure(ended(TurnFailed, status="cancelled", stop_reason="cancelled")) is None
    own = FailureArtifact(category="transport", kind="timeout", summary="late")
    assert turn_failure(ended(TurnFailed, status="failed", stop_reason="provider_error", failure_artifact=own)) is own
    limited = ended(TurnFailed, status="incomplete", stop_reason="cost", failure_artifact=own)
    assert turn_failure(limited) is own, "the reason that a turn has on record is shown, whatever the turn came to"


@pytest.mark.spec("HOL-FAIL-08")
def test_metadata_is_bounded_and_no_raw_log_is_in_it() -> None:
    noisy = lost("server_error", message="line\n" * 10_000)
    artifact = model_failure(noisy)
    assert len(artifact.summary) <= 500 and "\n" not in artifact.summary
    assert artifact.metadata is not None and set(artifact.metadata) == {"stage", "attempt", "disposition"}
    many = FailureArtifact(category="task", kind="k", summary="s", metadata={f"key{n}": "v" * 9_000 for n in range(40)})
    assert many.metadata is not None
    assert len(many.metadata) == 16 and {len(value) for value in many.metadata.values()} == {512}
