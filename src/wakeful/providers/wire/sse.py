"""Server-sent events from bytes, as they come: a chunk may end anywhere, also within a line end or a character.

Everything stays bytes but the event's name, because the data is JSON and its parser takes bytes. An event that was not
closed by an empty line does not exist: half an event is never handed on. The one exception is the mark `[DONE]` at the
end of a body: no longer event begins with it, so that it is whole without an empty line.
"""

import re
from typing import NamedTuple

MAX_EVENT_BYTES = 64 * 1024 * 1024
BOM = b"\xef\xbb\xbf"
DONE = b"[DONE]"
_MOST_NAMES = 64
_names: dict[bytes, str] = {}
"""Names of events as they come, and as texts: there are few, and they are the same in every stream."""


class SseEvent(NamedTuple):
    """One event. `event` is `message` when the server gave it no name."""

    event: str
    data: bytes


_one_event = re.compile(rb"(?:event: ([^\r\n]*)\n)?data: ([^\r\n]*)\n\n").fullmatch
"""The usual chunk: one event, whole, in its usual spelling."""
_new = tuple.__new__
"""Makes an event without going through its own constructor: half the cost, and there is one for every few words."""


class EventTooLarge(ValueError):
    """A server that never ends its event."""


class SseParser:
    """Feed it what arrives; it returns the events that are whole now."""

    __slots__ = ("_after_cr", "_held", "_pieces", "_started")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        """What is not an event yet; joined only when a line ends, so that a long line is not copied for each chunk."""
        self._held = 0
        self._after_cr = False
        self._started = False

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """The events that this chunk completes, in order."""
        if not self._held and not self._after_cr and (one := _one_event(chunk)) is not None:
            self._started = True
            line, data = one.groups()
            return [_new(SseEvent, ((_names.get(line) or _name(line)) if line else "message", data))]
        if not self._started:
            chunk = self._without_mark(chunk)
        if self._after_cr or b"\r" in chunk:
            chunk = self._with_plain_ends(chunk)
        if not chunk:
            return []
        if b"\n" not in chunk:
            self._hold(chunk)
            return []
        if self._pieces:
            self._pieces.append(chunk)
            chunk = b"".join(self._pieces)
            self._pieces.clear()
            self._held = 0
        whole, end, rest = chunk.rpartition(b"\n\n")
        if rest:
            self._hold(rest)
        if not end:
            return []
        events = []
        for block in whole.split(b"\n\n"):
            event = self._event(block)
            if event is not None:
                events.append(event)
        return events

    def end(self) -> list[SseEvent]:
        """The body has ended: the mark `[DONE]`, when that is what came last and its empty line did not come."""
        rest = b"".join(self._pieces)
        self._pieces.clear()
        self._held = 0
        event = self._event(rest.rstrip(b"\n"))
        return [SseEvent("message", DONE)] if event is not None and event.data.strip() == DONE else []

    def _event(self, block: bytes) -> SseEvent | None:
        """One block of lines. Most have a `data` line and perhaps an `event` line before it; those go the short way."""
        name = "message"
        if block[:7] == b"event: ":
            first, _, block = block.partition(b"\n")
            name = _names.get(first[7:]) or _name(first[7:])
        if block[:6] == b"data: " and b"\n" not in block:
            return _new(SseEvent, (name, block[6:]))
        data: list[bytes] = []
        for line in block.split(b"\n"):
            field, _, value = line.partition(b":")
            if value[:1] == b" ":
                value = value[1:]
            if field == b"data":
                data.append(value)
            elif field == b"event":
                name = _name(value)
            elif field == b"error" and value:  # no field of the format: llama.cpp and GPUStack report errors so
                name = "error"
                data.append(value)
        return SseEvent(name, b"\n".join(data)) if data else None

    def _without_mark(self, chunk: bytes) -> bytes:
        """The byte order mark that may stand before everything else, also when it comes in pieces."""
        if self._pieces:
            chunk = b"".join(self._pieces) + chunk
            self._pieces.clear()
            self._held = 0
        if len(chunk) < len(BOM) and BOM.startswith(chunk):
            if chunk:
                self._hold(chunk)
            return b""
        self._started = True
        return chunk.removeprefix(BOM)

    def _with_plain_ends(self, chunk: bytes) -> bytes:
        """Every line end as LF. A CR at the end of a chunk ends its line now; an LF that follows belongs to it."""
        if self._after_cr and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._after_cr = False
        if chunk.endswith(b"\r"):
            self._after_cr = True
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _hold(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._held += len(piece)
        if self._held > MAX_EVENT_BYTES:
            raise EventTooLarge(f"an event grew past {MAX_EVENT_BYTES} bytes without an end")


def _name(raw: bytes) -> str:
    name = raw.decode("utf-8", "replace") or "message"
    if len(_names) >= _MOST_NAMES:
        _names.clear()
    _names[raw] = name
    return name
