"""The two ways a call can end, as events: with a result, or with a failure that says what may have happened."""

from typing import Any

from pydantic_core import to_jsonable_python

from wakeful.contracts.citations import cited_sources
from wakeful.contracts.content import BlobRef, File, Image, Text
from wakeful.contracts.conversation import ToolItem
from wakeful.contracts.envelope import before
from wakeful.contracts.events import (
    ErrorCategory,
    OutputRedacted,
    OutputSpilled,
    OutputTruncated,
    ToolFailed,
    ToolResult,
)
from wakeful.contracts.events.tools import AbortReason
from wakeful.contracts.tools import PREVIEW_CHARS, Effects, FailedStatus, ToolError, ToolResultMetadata
from wakeful.contracts.values import unchecked
from wakeful.decisions.receipts import MAX_HINT_CHARS, MAX_MESSAGE_CHARS, bounded, flatten, receipt
from wakeful.decisions.secret_values import SecretValues
from wakeful.gate.call_at_gate import CallRecord
from wakeful.tools.results import ShownResult, ToolOutput, clean
from wakeful.views.mapping import METADATA_STATUS, MetadataStatus

PREVIOUS_EVENT, ONE_BEFORE = before(1), before(2)
"""References to the event just before, and the one before that: the number is known only to the store. `published`
spells them out."""

_tool_result, _tool_item, _metadata = unchecked(ToolResult), unchecked(ToolItem), unchecked(ToolResultMetadata)


def _metadata_of(
    record: CallRecord, status: MetadataStatus, now: float, artifact: str | None = None
) -> ToolResultMetadata:
    """The canonical record of the call. What is not given is not written down either."""
    more: dict[str, Any] = {}
    if record.approval_id is not None:
        more = {"approval_status": record.approval_status, "approval_id": record.approval_id}
    if record.injected_args:
        more["injected_args"] = record.injected_args
    if artifact is not None:
        more["offloaded_artifact_id"] = artifact
    return _metadata(
        status=status,
        started_at=record.taken_up_at,
        completed_at=now,
        execution_time_ms=record.execution_ms,
        **more,
    )


def _references(record: CallRecord) -> dict[str, Any]:
    """The facts that let the call through, for its outcome to repeat."""
    more: dict[str, Any] = {"permission_ref": record.permission_ref}
    if record.approval_id is not None:
        more["approval_ref"] = record.approval_id
    if record.sandbox_ref is not None:
        more["sandbox_ref"] = record.sandbox_ref
    if record.hook_outcomes:
        more["hook_outcomes"] = record.hook_outcomes
    return more


def succeeded(
    record: CallRecord,
    *,
    now: float,
    parts: tuple[Text | Image | File, ...],
    size_bytes: int,
    whole: BlobRef | None,
    extra: ToolOutput | None = None,
    redacted: bool = False,
) -> ToolResult:
    """The call returned. `redacted`: a key of the runtime's own stood in it, and was taken out."""
    # What is not given is not written down either: the common result, a short text, stays a small row.
    more: dict[str, Any] = {}
    if whole is not None:
        more = {"result_ref": whole, "artifact_refs": (whole.digest,), "truncated": True}
    if extra is not None:
        more.update(_extra(extra, whole))
    if redacted:
        more["redacted"] = True
    pictures = [part.ref.digest for part in parts if part.type == "image" and part.ref is not None]
    if pictures:
        more["images"] = tuple(pictures)
    return _tool_result(
        tool_name=record.tool_name,
        item=_tool_item(call_id=record.call_id, name=record.tool_name, parts=parts),
        preview=next((part.text for part in parts if part.type == "text"), "")[:PREVIEW_CHARS],
        size_bytes=size_bytes,
        duration_ms=record.execution_ms,
        metadata=_metadata_of(record, "success", now, whole.digest if whole is not None else None),
        **_references(record),
        **more,
    )


def _extra(extra: ToolOutput, whole: BlobRef | None) -> dict[str, Any]:
    """What a tool says about its result besides what the model reads."""
    more: dict[str, Any] = {}
    kept = [ref.digest for ref in extra.artifacts]
    if kept:
        more["artifact_refs"] = (*((whole.digest,) if whole is not None else ()), *kept)
    if extra.truncated:
        more["truncated"] = True
    if extra.partial:
        more["status"] = "partial"
    if extra.untrusted:
        more["untrusted"] = extra.untrusted
    if extra.metadata:
        more["details"] = _plain(dict(extra.metadata))
        evidence = cited_sources(extra.metadata)
        if evidence:
            more["evidence_refs"] = evidence
    return more


def spills(
    call_id: str, shown: ShownResult, whole: BlobRef, *, redacted: bool = False
) -> tuple[OutputSpilled | OutputTruncated | OutputRedacted, ...]:
    """The facts about a result that is longer than what the model is shown."""
    kept = sum(len(part.text.encode()) for part in shown.parts if part.type == "text")
    first = next((part.text for part in shown.parts if part.type == "text"), "")
    spilled = OutputSpilled(
        output_ref=whole.digest,
        owner=call_id,
        media_type=whole.media_type,
        size_bytes=whole.size,
        sha256=whole.digest.removeprefix("sha256:"),
        preview=first[:PREVIEW_CHARS],
        redacted=redacted,
    )
    cut = OutputTruncated(output_ref=whole.digest, original_bytes=whole.size, kept_bytes=kept)
    return (spilled, cut, OutputRedacted(output_ref=whole.digest)) if redacted else (spilled, cut)


def failed(
    record: CallRecord,
    error: ToolError,
    *,
    now: float,
    status: FailedStatus,
    category: ErrorCategory,
    effects: Effects,
    abort_reason: AbortReason | None = None,
    asked_retry: bool = False,
    traceback: str | None = None,
) -> ToolFailed:
    """The call did not return; what the model reads is the same receipt for every tool."""
    error = _storable(error)
    words = receipt(error, record.tool_name)
    return ToolFailed(
        status=status,
        tool_name=record.tool_name,
        item=ToolItem(call_id=record.call_id, name=record.tool_name, parts=(Text(words),), is_error=True),
        error_category=category,
        message=error.message,
        retryable=error.retryable,
        recovery_advice=error.recovery_hint,
        abort_reason=abort_reason,
        effects=effects,
        duration_ms=record.execution_ms,
        error=flatten(error),
        tool_error=error,
        metadata=_metadata_of(record, METADATA_STATUS[status], now),
        asked_retry=asked_retry,
        traceback=traceback,
        **_references(record),
    )


def without_keys(event: ToolFailed, keys: SecretValues) -> ToolFailed:
    """A failure in whose words a key of the runtime's own stood."""
    whole = event.model_dump()
    safe = keys.hide_keys_in(whole)
    return event if safe == whole else ToolFailed.model_validate(safe)


def _storable(error: ToolError) -> ToolError:
    """The error as it can be logged: whatever a tool raised, its failure is one call's and no more."""
    message, hint, details = error.message, error.recovery_hint, error.details
    if (
        details is None
        and message.isascii()
        and len(message) <= MAX_MESSAGE_CHARS
        and "\x00" not in message
        and not hint
    ):
        return error
    return error.model_copy(
        update={
            "message": clean(message)[:MAX_MESSAGE_CHARS],
            "recovery_hint": clean(hint)[:MAX_HINT_CHARS] if hint else None,
            "details": bounded(_plain(details)) if details else details,
        }
    )


def _plain(details: dict[str, Any]) -> dict[str, Any]:
    """Details as JSON; what has no such form is shown in words, or by its name alone."""
    try:
        plain = to_jsonable_python(details, inf_nan_mode="strings", fallback=str)
    except Exception:  # a value's own `__str__` may raise anything
        return {"unreadable": sorted(str(key) for key in details)}
    return plain if isinstance(plain, dict) else {"unreadable": []}


UNKNOWN_HINT = (
    "Do not assume either way and do not repeat the call: check by other means whether it happened, "
    "or ask the person in charge."
)


def unknown_error(tool_name: str, why: str) -> ToolError:
    """The plain words for an outcome nobody knows."""
    return ToolError(
        kind="outcome_unknown",
        message=f"{why} It is unknown whether {tool_name} took effect.",
        recovery_hint=UNKNOWN_HINT,
    )
