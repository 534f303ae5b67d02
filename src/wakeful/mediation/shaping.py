"""What a tool, a person or a client gave, as the result of a call: cut to what a model is shown, and kept whole.

Every result goes this way, whoever produced it.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from wakeful.contracts.events import AnyEvent, ToolResult
from wakeful.mediation.offloading import INLINE_BYTES, Keep, offload
from wakeful.mediation.outcomes import CallRecord, spills, succeeded
from wakeful.tools.results import Shown, ToolOutput, show

MEDIA = "text/plain; charset=utf-8"


def makes_short_text(value: Any) -> bool:
    """One short text, whatever is done to it: nothing to walk over, nothing to keep apart, nothing that can fail."""
    kind = type(value)
    if kind is str:
        return len(value) * 6 < INLINE_BYTES
    return kind is bool or kind is float or value is None or (kind is int and value.bit_length() <= 64)


def at_once(record: CallRecord, value: Any, now: float) -> ToolResult:
    """The result of a value that makes a short text: nothing has to be waited for."""
    parts, _, size = show(value)
    return succeeded(record, now=now, parts=parts, size_bytes=size, whole=None)


async def shaped(record: CallRecord, value: Any, *, now: Callable[[], float], keep: Keep) -> list[AnyEvent]:
    """The facts of a call that succeeded. Raises ResultRefused for a value that has no form a model could read."""
    extra = value if isinstance(value, ToolOutput) else None
    if extra is not None:
        value = extra.content
    # A large result is turned to JSON and measured off the loop: other turns go on meanwhile.
    shown: Shown = show(value) if _light(value) else await asyncio.to_thread(show, value)
    whole = await keep(shown.whole, MEDIA) if shown.whole is not None else None
    event = succeeded(record, now=now(), parts=shown.parts, size_bytes=shown.size, whole=whole, extra=extra)
    item = await offload(event.item, keep)
    if item is not event.item:
        event = event.model_copy(update={"item": item})
    spilled = spills(record.call_id, shown, whole) if whole is not None else ()
    return [*spilled, event]


def _light(value: Any) -> bool:
    """Cheap to turn into text?"""
    return (
        value is None
        or isinstance(value, (int, float, bool))
        or (isinstance(value, (str, bytes, list, tuple, dict)) and len(value) < 1_000)
    )
