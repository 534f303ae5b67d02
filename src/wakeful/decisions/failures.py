"""Failures in the one shape an operator sees: from a lost attempt, a failed call, a failed turn or an exception.

The summary is for people and short; what a transport knew stays in the events. Metadata is a handful of known fields,
never a log.
"""

from wakeful.contracts.errors import ModelFailure, WakefulError
from wakeful.contracts.events import ModelFailed, Terminal, ToolFailed, TurnFailed
from wakeful.contracts.failures import MAX_METADATA_CHARS, FailureArtifact, FailureCategory
from wakeful.contracts.models import FailureKind
from wakeful.contracts.tools import PREVIEW_CHARS

PROTOCOL: frozenset[FailureKind] = frozenset(
    {"contract_error", "invalid_response", "unsupported_transport", "context_length_exceeded", "content_filtered"}
)
"""The other side answered, and not with what the contract says."""
MAX_CHAIN = 8


def model_failure(event: ModelFailed) -> FailureArtifact:
    """A provider's attempt that was lost for good."""
    metadata = {"stage": event.stage, "attempt": str(event.attempt), "disposition": event.disposition}
    diagnostics = event.transport_diagnostics
    return FailureArtifact(
        category=_category(event.failure_kind),
        kind=event.failure_kind,
        summary=_summary(event.message, event.failure_kind),
        provider=event.model_ref.partition(":")[0],
        model_ref=event.model_ref,
        status=event.status,
        source_chain=diagnostics.source_chain if diagnostics else None,
        metadata=metadata,
    )


def tool_failure(event: ToolFailed) -> FailureArtifact:
    """A call that failed for good."""
    return FailureArtifact(
        category="runtime",
        kind=event.tool_error.kind,
        summary=_summary(f"{event.tool_name}: {event.message}", event.tool_error.kind),
        metadata={
            "tool_name": event.tool_name,
            "status": event.status,
            "error_category": event.error_category,
            "effects": event.effects,
        },
    )


def turn_failure(event: Terminal) -> FailureArtifact | None:
    """A turn's failure: what stands in its last event, or what that comes to. None for a turn that did not fail."""
    if not isinstance(event, TurnFailed):
        return None
    if event.failure_artifact is not None or event.status != "failed":
        return event.failure_artifact
    return FailureArtifact(
        category="runtime", kind=event.stop_reason, summary=_summary(event.message, event.stop_reason)
    )


def exception_failure(error: BaseException, category: FailureCategory | None = None) -> FailureArtifact:
    """Something raised. Without a word from the caller, what nobody classified is `unknown`."""
    chain = _chain(error)
    if isinstance(error, ModelFailure):
        diagnostics = error.diagnostics
        return FailureArtifact(
            category=_category(error.kind),
            kind=error.kind,
            summary=_summary(error.message, error.kind),
            model_ref=diagnostics.model_ref if diagnostics else None,
            provider=diagnostics.provider if diagnostics else None,
            status=error.status,
            source_chain=(diagnostics.source_chain if diagnostics else None) or chain,
            metadata={"stage": error.stage},
        )
    found: FailureCategory = category or ("runtime" if isinstance(error, WakefulError) else "unknown")
    message = error.message if isinstance(error, WakefulError) else str(error)
    kind = type(error).__name__
    return FailureArtifact(category=found, kind=kind, summary=_summary(message, kind), source_chain=chain)


def _category(kind: FailureKind) -> FailureCategory:
    if kind in PROTOCOL:
        return "protocol"
    if kind == "unknown":
        return "unknown"
    return "runtime" if kind == "cancelled" else "transport"


def _summary(message: str, kind: str) -> str:
    """One line, short enough to stand in a list."""
    line = " ".join(message.split()) or kind
    return line if len(line) <= PREVIEW_CHARS else f"{line[: PREVIEW_CHARS - 1]}…"


def _chain(error: BaseException) -> tuple[str, ...] | None:
    """What caused it, outermost first; without the error itself."""
    chain: list[str] = []
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    while cause is not None and len(chain) < MAX_CHAIN:
        chain.append(f"{type(cause).__name__}: {cause}"[:MAX_METADATA_CHARS])
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return tuple(chain) or None
