"""Context management of the Messages API, for those who ask for it: the provider may forget old tool results.

    settings={"anthropic": {"context_management": True}}                       its own rule, with its own numbers
    settings={"anthropic": {"context_management": {"edits": [{...}, ...]}}}    rules of one's own, in its words

Rule: the request stays whole. What the provider leaves out it leaves out on its side; the history, its bytes and the
log are the same with and without it. What is noted about it is numbers, never content.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from wakeful.contracts.content import Text
from wakeful.contracts.conversation import AssistantItem, History, ToolItem, UserItem
from wakeful.contracts.errors import ModelFailure

SETTING = "context_management"
CAPABILITY = "context_management"
BETA = "context-management-2025-06-27"
CLEAR_TOOL_USES = "clear_tool_uses_20250919"
KEPT_BY_DEFAULT = 3
"""The provider's own number: the newest tool uses, which are not cleared."""
_TOTALS = "anthropic/tool_result_totals"


class ClearableResults(NamedTuple):
    """Old tool results that the provider may clear."""

    results: int
    size: int
    """Bytes of what they say."""


def edits_of(fields: Mapping[str, Any]) -> dict[str, Any] | None:
    """The request's `context_management`; None when nobody asked for it. Raises ModelFailure for what is none."""
    wanted = fields.get(SETTING)
    if wanted is None or wanted is False:
        return None
    if wanted is True:
        return {"edits": [{"type": CLEAR_TOOL_USES}]}
    edits = wanted.get("edits") if isinstance(wanted, Mapping) else None
    if not isinstance(edits, list) or not all(isinstance(edit, Mapping) and edit.get("type") for edit in edits):
        raise ModelFailure(
            f"settings.anthropic.{SETTING} is neither True nor an object with a list of `edits`, each with its `type`",
            kind="contract_error",
            stage="send",
            retryable=False,
        )
    return dict(wanted)


def with_beta(headers: dict[str, str]) -> None:
    """Add the header without which the field is refused, beside what is there."""
    given = [name.strip() for name in headers.get("anthropic-beta", "").split(",") if name.strip()]
    if BETA not in given:
        headers["anthropic-beta"] = ",".join([*given, BETA])


def diagnostics(edits: dict[str, Any], history: History) -> dict[str, Any]:
    """What was asked for, and how much it could clear: numbers and the names of rules."""
    noted: dict[str, Any] = {"edits": [str(edit["type"])[:64] for edit in edits["edits"]]}
    clearing = next((edit for edit in edits["edits"] if edit["type"] == CLEAR_TOOL_USES), None)
    if clearing is not None:
        old = eligible(history, _kept(clearing), frozenset(map(str, clearing.get("exclude_tools") or ())))
        noted |= {"eligible_tool_results": old.results, "eligible_tool_result_bytes": old.size}
    return noted


def eligible(history: History, keep: int, excluded: frozenset[str] = frozenset()) -> ClearableResults:
    """Results older than the newest `keep`, without those of excluded tools. Each item is looked at once."""
    totals = history.encoded(f"{_TOTALS}/{sorted(excluded)}", _Running(history, excluded))
    place = len(history)
    while keep > 0 and place > 0:
        place -= 1
        keep -= isinstance(history[place], ToolItem)
    return _read(totals[place - 1]) if place else ClearableResults(0, 0)


class _Running:
    """Totals up to each item, made from those of the item before it."""

    def __init__(self, history: History, excluded: frozenset[str]) -> None:
        done = history.encoded_so_far(f"{_TOTALS}/{sorted(excluded)}")
        self._excluded = excluded
        self._total = _read(done[-1]) if done else ClearableResults(0, 0)

    def __call__(self, item: UserItem | AssistantItem | ToolItem) -> bytes:
        if isinstance(item, ToolItem) and item.name not in self._excluded:
            size = sum(len(part.text.encode()) if isinstance(part, Text) else _bytes(part.data) for part in item.parts)
            self._total = ClearableResults(self._total.results + 1, self._total.size + size)
        return self._total.results.to_bytes(8) + self._total.size.to_bytes(8)


def _read(total: bytes) -> ClearableResults:
    return ClearableResults(int.from_bytes(total[:8]), int.from_bytes(total[8:]))


def _bytes(data: bytes | None) -> int:
    return len(data) if data is not None else 0


def _kept(edit: Mapping[str, Any]) -> int:
    keep = edit.get("keep")
    value = keep.get("value") if isinstance(keep, Mapping) else None
    return value if isinstance(value, int) and value >= 0 else KEPT_BY_DEFAULT
