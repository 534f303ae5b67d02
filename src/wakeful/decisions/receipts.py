"""What the model reads when a call failed: one bounded JSON receipt, the same for every tool.

However large an error is, its receipt is not: long words are cut, and details over their bound become a preview and a
digest of the whole.
"""

import hashlib
import json
from typing import Any

from wakeful.contracts.tools import PREVIEW_CHARS, ToolError
from wakeful.decisions.runtime_answers import DELEGATING

MAX_DETAILS_CHARS = 4_000
MAX_MESSAGE_CHARS = 4_000
MAX_HINT_CHARS = 1_000
MAX_FIELD_CHARS = 512
_SUBTASK_ERRORS = {
    "invalid_arguments": "invalid_input",
    "missing_required_parameters": "invalid_input",
    "invalid_parameters": "invalid_input",
    "skipped": "cancelled",
}
"""A subtask's own words for what the gate turned down."""


def receipt(error: ToolError, tool_name: str | None = None) -> str:
    """The error as the model sees it: a plain string, whatever the tool."""
    shown: dict[str, Any] = {"ok": False}
    if tool_name:
        shown["tool_name"] = tool_name
    shown["kind"] = error.kind
    if tool_name in DELEGATING:  # their errors are read by one word, whoever turned the call down
        shown["error"] = _SUBTASK_ERRORS.get(error.kind, error.kind)
    shown["message"] = _cut(error.message, MAX_MESSAGE_CHARS)
    if error.recovery_hint:
        shown["hint"] = _cut(error.recovery_hint, MAX_HINT_CHARS)
    field = error.details.get("field") if error.details else None
    if isinstance(field, str) and field:
        shown["field"] = _cut(field, MAX_FIELD_CHARS)
    shown["retryable"] = error.retryable
    if error.details:
        shown["details"] = bounded(error.details)
    return _encodable(json.dumps(shown, ensure_ascii=False, separators=(",", ":")))


def flatten(error: ToolError) -> str:
    """The same on one line, for people and for an event's `error`."""
    line = f"{error.kind}: {error.message}"
    if error.recovery_hint:
        line += f" ({error.recovery_hint})"
    return _cut(" ".join(_encodable(line).split()), MAX_MESSAGE_CHARS)


def bounded(details: dict[str, Any]) -> dict[str, Any]:
    """The details, or a preview and a digest of them. What JSON cannot hold is shown in words."""
    try:
        text = _encodable(json.dumps(details, ensure_ascii=False, separators=(",", ":"), default=str))
    except (TypeError, ValueError, RecursionError):  # keys that are no strings, cycles, endless nesting
        text = json.dumps({"unreadable": sorted(str(key) for key in details)})
    if len(text) <= MAX_DETAILS_CHARS:
        shown: dict[str, Any] = json.loads(text)
        return shown
    return {
        "preview": text[:PREVIEW_CHARS],
        "digest": "sha256:" + hashlib.sha256(text.encode()).hexdigest(),
        "size_chars": len(text),
        "truncated": True,
    }


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _encodable(text: str) -> str:
    """Half a surrogate pair cannot be stored; it is replaced rather than allowed to sink the call."""
    return text.encode("utf-8", "replace").decode()
