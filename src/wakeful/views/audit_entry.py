"""The audit entry of a call, made from what is known when the call has ended.

Secrets are gone before anything is hashed. A host's hook may change what is hashed of the parameters, and cannot bring
a hidden value back, neither in its own place nor in another.
"""

from collections.abc import Mapping
from typing import Any

from wakeful.contracts.audit import ToolAudit
from wakeful.contracts.tools import ToolDeclaration
from wakeful.decisions.redaction import REDACTED, declared_by, redact, stable_hash
from wakeful.decisions.secret_values import hidden_texts


def audit_entry(
    *,
    turn_count: int,
    tool_name: str,
    tool_call_id: str,
    parameters: Mapping[str, Any] | None,
    result: Mapping[str, Any],
    declaration: ToolDeclaration | None = None,
    tool_source: str | None = None,
    adjusted: Any = None,
) -> ToolAudit:
    """One entry. `result` is the normalised tool result: success, result or error, metadata, status.

    `adjusted` is what the `tool_audit_parameters` hook returned; anything but an object is as if it had said nothing.
    """
    success = result.get("success") is True
    metadata = result.get("metadata")
    error_type = metadata.get("error_type") if isinstance(metadata, Mapping) else None
    return ToolAudit(
        turn_count=turn_count,
        tool_name=tool_name,
        tool_call_id=tool_call_id,
        tool_source=tool_source,
        parameters_sha256=stable_hash(audited_parameters(parameters, declaration, adjusted)),
        success=success,
        result_status="success" if success else "error",
        result_sha256=stable_hash(redact(dict(result))),
        error_type=error_type if isinstance(error_type, str) and not success else None,
    )


def audited_parameters(
    parameters: Mapping[str, Any] | None, declaration: ToolDeclaration | None, adjusted: Any = None
) -> dict[str, Any]:
    """What is hashed of the parameters: the redacted form, or the hook's version of it with the secrets still out."""
    raw = dict(parameters or {})
    declared = declared_by(declaration)
    safe: dict[str, Any] = redact(raw, declared)
    if not isinstance(adjusted, dict):
        return safe
    hidden = frozenset(hidden_texts(raw, safe))
    kept: dict[str, Any] = _hide(redact(adjusted, declared), hidden)
    return kept


def _hide(value: Any, hidden: frozenset[str]) -> Any:
    if isinstance(value, dict):
        return {key: _hide(inner, hidden) for key, inner in value.items()}
    if isinstance(value, list):
        return [_hide(inner, hidden) for inner in value]
    if value is None or isinstance(value, bool):
        return value
    return REDACTED if any(secret in str(value) for secret in hidden) else value
