"""What a tool returned, as the facts it ends with: cut for the model, whole in an artifact."""

import asyncio
from typing import Any

from wakeful.contracts.events import AnyEvent
from wakeful.mediation.offloading import Keep, offload
from wakeful.mediation.outcomes import CallRecord, spills, succeeded
from wakeful.tools.results import Shown, ToolOutput, show

TEXT = "text/plain; charset=utf-8"


async def shaped(record: CallRecord, value: Any, keep: Keep, now: float) -> list[AnyEvent]:
    """The facts of a result, `tool.result` last. Raises ResultRefused for what no model can be shown."""
    extra = value if isinstance(value, ToolOutput) else None
    if extra is not None:
        value = extra.content
    # A large result is turned to JSON and measured off the loop: other turns go on meanwhile.
    shown: Shown = show(value) if _light(value) else await asyncio.to_thread(show, value)
    whole = await keep(shown.whole, TEXT) if shown.whole is not None else None
    event = succeeded(record, now=now, parts=shown.parts, size_bytes=shown.size, whole=whole, extra=extra)
    item = await offload(event.item, keep)
    if item is not event.item:
        event = event.model_copy(update={"item": item})
    return [*(spills(record.call_id, shown, whole) if whole is not None else ()), event]


def _light(value: Any) -> bool:
    """Cheap to turn into text?"""
    return (
        value is None
        or isinstance(value, (int, float, bool))
        or (isinstance(value, (str, bytes, list, tuple, dict)) and len(value) < 1_000)
    )
