"""What a tool, a person or a client gave, as the result of a call: cut to what a model is shown, and kept whole.

Every result goes this way, whoever produced it.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from wakeful.contracts.budgets import MAX_TOOL_RESULT_BYTES
from wakeful.contracts.events import AnyEvent, ToolResult
from wakeful.decisions.secret_values import SecretValues
from wakeful.gate.call_at_gate import CallRecord
from wakeful.gate.large_content import INLINE_BYTES, Keep, offload
from wakeful.gate.outcomes import spills, succeeded
from wakeful.tools.results import MAX_SHOWN_BYTES, ShownResult, ToolOutput, show

MEDIA = "text/plain; charset=utf-8"


def makes_short_text(value: Any, most: int | None = None) -> bool:
    """One short text, whatever is done to it: nothing to walk over, nothing to keep apart, nothing that can fail.

    `most` is the turn's own limit for what a model is shown of one result, in bytes.
    """
    kind = type(value)
    if kind is str:
        return len(value) * 6 < (INLINE_BYTES if most is None else min(INLINE_BYTES, most))
    return kind is bool or kind is float or value is None or (kind is int and value.bit_length() <= 64)


def at_once(record: CallRecord, value: Any, now: float, keys: SecretValues, most: int | None = None) -> ToolResult:
    """The result of a value that makes a short text: nothing has to be waited for.

    Of one that is kept elsewhere anyway it may be given more: then it is cut, and nothing is kept here.
    """
    hide = _Hide(keys)
    parts, _, size = show(hide(value) if type(value) is str else value, most=_shown(most))
    return succeeded(record, now=now, parts=parts, size_bytes=size, whole=None, redacted=hide.found)


async def shaped(
    record: CallRecord,
    value: Any,
    *,
    now: Callable[[], float],
    keep: Keep,
    keys: SecretValues,
    verdict_before: int | None = None,
    most: int | None = None,
) -> list[AnyEvent]:
    """The facts of a call that succeeded. Raises ResultRefused for a value that has no form a model could read.

    `verdict_before` is how many events before these its verdict is written, in the same append. `most` is the turn's
    own limit for what a model is shown, in bytes.
    """
    extra = value if isinstance(value, ToolOutput) else None
    shown_bytes = _shown(most)
    if extra is not None:
        value = extra.content
        if extra.most_bytes is not None:
            shown_bytes = min(extra.most_bytes, MAX_TOOL_RESULT_BYTES if most is None else most)
    hide = _Hide(keys)
    # A large result is turned to JSON and measured off the loop: other turns go on meanwhile.
    light = _light(value)
    shown: ShownResult = (
        show(value, hide, shown_bytes, kept=True)
        if light
        else await asyncio.to_thread(show, value, hide, shown_bytes, kept=True)
    )
    whole = await keep(shown.whole, MEDIA) if shown.whole is not None else None
    spilled = spills(record.call_id, shown, whole, redacted=hide.found) if whole is not None else ()
    if verdict_before is not None:
        record.permission_ref = f"@-{verdict_before + len(spilled)}"
    event = succeeded(
        record,
        now=now(),
        parts=shown.parts,
        size_bytes=shown.size,
        whole=whole,
        extra=extra,
        redacted=hide.found,
    )
    if event.details:
        event = event.model_copy(update={"details": keys.hide_keys_in(event.details)})
    item = await offload(event.item, keep)
    if item is not event.item:
        event = event.model_copy(update={"item": item})
    return [*spilled, event]


def _shown(most: int | None) -> int:
    return MAX_SHOWN_BYTES if most is None else min(most, MAX_SHOWN_BYTES)


class _Hide:
    """Takes keys out of texts, and knows whether there were any."""

    __slots__ = ("found", "keys")

    def __init__(self, keys: SecretValues) -> None:
        self.keys = keys
        self.found = False

    def __call__(self, text: str) -> str:
        safe = self.keys.hide_keys(text)
        if safe != text:
            self.found = True
        return safe


def _light(value: Any) -> bool:
    """Cheap to turn into text?"""
    return (
        value is None
        or isinstance(value, (int, float, bool))
        or (isinstance(value, (str, bytes, list, tuple, dict)) and len(value) < 1_000)
    )
