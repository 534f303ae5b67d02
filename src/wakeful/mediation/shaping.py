"""What a tool returned, as the facts it ends with: cut for the model, whole in an artifact."""

import asyncio
from typing import Any

from wakeful.contracts.events import AnyEvent
from wakeful.decisions.secret_values import SecretValues
from wakeful.mediation.offloading import Keep, offload
from wakeful.mediation.outcomes import CallRecord, spills, succeeded
from wakeful.tools.results import Shown, ToolOutput, show

TEXT = "text/plain; charset=utf-8"


class Hide:
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


async def shaped(record: CallRecord, value: Any, keep: Keep, now: float, keys: SecretValues) -> list[AnyEvent]:
    """The facts of a result, `tool.result` last. Raises ResultRefused for what no model can be shown."""
    hide = Hide(keys)
    extra = value if isinstance(value, ToolOutput) else None
    if extra is not None:
        value = extra.content
    # A large result is turned to JSON and measured off the loop: other turns go on meanwhile.
    shown: Shown = show(value, hide) if _light(value) else await asyncio.to_thread(show, value, hide)
    whole = await keep(shown.whole, TEXT) if shown.whole is not None else None
    event = succeeded(
        record, now=now, parts=shown.parts, size_bytes=shown.size, whole=whole, extra=extra, redacted=hide.found
    )
    if event.details:
        event = event.model_copy(update={"details": keys.hide_keys_in(event.details)})
    item = await offload(event.item, keep)
    if item is not event.item:
        event = event.model_copy(update={"item": item})
    spilled = spills(record.call_id, shown, whole, redacted=hide.found) if whole is not None else ()
    return [*spilled, event]


def _light(value: Any) -> bool:
    """Cheap to turn into text?"""
    return (
        value is None
        or isinstance(value, (int, float, bool))
        or (isinstance(value, (str, bytes, list, tuple, dict)) and len(value) < 1_000)
    )
