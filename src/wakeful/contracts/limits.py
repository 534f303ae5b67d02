"""The limits of what is shown and written, as they are published: beside the events' schema, and in its document."""

from typing import Final

from wakeful.contracts.budgets import MAX_PARALLEL_PER_TURN, MAX_TOOL_RESULT_BYTES
from wakeful.contracts.tools import MAX_RESULT_TOKENS, PREVIEW_CHARS

LIMITS: Final[dict[str, int]] = {
    "preview_chars": PREVIEW_CHARS,
    "tool_result_bytes": MAX_TOOL_RESULT_BYTES,
    "tool_result_tokens": MAX_RESULT_TOKENS,
    "parallel_calls_per_turn": MAX_PARALLEL_PER_TURN,
}
"""`preview_chars`: the most of a text in a field that only shows it. `tool_result_bytes`: the most text of one result
that a model is shown, whatever a tool's budget says. `tool_result_tokens`: the most where nobody set a budget."""
