"""`metadata.error_type` of failed tool results: what hosts tell failures apart by. Spellings are a contract."""

from typing import Literal, TypeAlias, get_args

ErrorType: TypeAlias = Literal[
    "tool_not_found",
    "missing_required_parameters",
    "executor_exception",
    "executor_target_unavailable",
    "invalid_prepared_tool_call",
    "capability_denied",
    "ability_name_missing",
    "pre_tool_mediation_rejected",
    "tool_call_gate_rejected",
    "pre_tool_mediation_error",
    "invalid_tool_call",
    "invalid_parameters",
    "invalid_tool_result",
    "sibling_skipped",
    "tool_mediation_disabled",
    "action_forbidden",
    "budget_exceeded",
]
ERROR_TYPES: frozenset[str] = frozenset(get_args(ErrorType))
"""Those of the core; a host's own are kept as they are."""
