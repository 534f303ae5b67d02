"""`runtime` of tool declarations and results: product-neutral execution policy data, as JSON and without secrets.

The core records it and passes it on. Which tools may run where is for the host to decide, and `decisions.
runtime_tool_policy` gives it the words to do so. These keys have a meaning; other keys and values are the caller's.

    duplicate_policy                  `repeatable`: the same call may be made again
    completion_signal                 `progress`: success is progress and may feed the completion policy
    capability_scope, environment     `runtime_local` or `control_plane`
"""

import math
from collections.abc import Mapping
from typing import Any

from wakeful.contracts.jsonable import MAX_DEPTH
from wakeful.contracts.sensitive_names import hide_by_name

RUNTIME_LOCAL = "runtime_local"
CONTROL_PLANE = "control_plane"

_DROP = object()


def normalise_runtime(raw: Any) -> dict[str, Any]:
    """Scalars, objects and lists with string keys stay; what JSON cannot hold is dropped; secrets are redacted."""
    kept = _kept(raw, 0) if isinstance(raw, Mapping) else {}
    safe: dict[str, Any] = hide_by_name(kept) if isinstance(kept, dict) else {}
    return safe


def merged_runtime(declared: Mapping[str, Any], own: Any) -> dict[str, Any]:
    """What a declaration says, and over it what the executor said about one result. Neither is changed."""
    return {**declared, **normalise_runtime(own)}


def is_repeatable(runtime: Mapping[str, Any]) -> bool:
    """May the same call be made again without counting as a repeat?"""
    return runtime.get("duplicate_policy") == "repeatable"


def _kept(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else _DROP
    if depth >= MAX_DEPTH:
        return _DROP
    if isinstance(value, Mapping):
        inner = {key: _kept(each, depth + 1) for key, each in value.items() if isinstance(key, str)}
        return {key: each for key, each in inner.items() if each is not _DROP}
    if isinstance(value, list | tuple):
        return [each for each in (_kept(item, depth + 1) for item in value) if each is not _DROP]
    return _DROP
