"""The structured answer of a run while it comes: the JSON that its words hold so far, not validated.

An attempt that is lost takes its words with it, and so does the next round: each begins anew.
"""

from pydantic_core import from_json

from wakeful.contracts.values import JsonValue
from wakeful.views.run_stream_events import ErrorEvent, StepEvent, StreamEvent, TextEvent


class PartialAnswer:
    """Give it the events of a stream in order."""

    __slots__ = ("_read", "_value", "_words")

    def __init__(self) -> None:
        self._words: list[str] = []
        self._read = 0
        self._value: JsonValue = None

    def take(self, event: StreamEvent) -> None:
        """Words of the run itself count; those of subtasks and of the planner do not."""
        if event.path or event.phase != "executor":
            return
        if isinstance(event, TextEvent):
            self._words.append(event.text)
        elif isinstance(event, ErrorEvent) or (isinstance(event, StepEvent) and event.status == "started"):
            self._words.clear()
            self._read, self._value = 0, None

    @property
    def value(self) -> JsonValue:
        """As far as it has come; None while there is nothing that could be one."""
        if self._read != len(self._words):
            self._read = len(self._words)
            self._value = _read("".join(self._words))
        return self._value


def _read(words: str) -> JsonValue:
    """The JSON in a text that may stop anywhere, or stand in a code fence."""
    starts = [place for mark in "{[" if (place := words.find(mark)) >= 0]
    text = words[min(starts) :] if starts else words.strip()
    if starts and (fence := text.find("\n```")) >= 0:
        text = text[:fence]
    try:
        value: JsonValue = from_json(text, allow_partial="trailing-strings")
    except ValueError:
        return None
    return value
