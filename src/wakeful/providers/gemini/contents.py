"""A conversation as `contents`, in chunks that never change once they were sent.

Each item becomes one chunk, made once (`wire/call_order`). A chunk begins with what closes the one before it: the same
speaker goes on with the next part, another one opens the next content. Answers of tools have a content of their own,
because Gemini counts them against the calls before.
"""

from collections.abc import Iterable

from wakeful.contracts.conversation import History
from wakeful.providers.gemini.part_writer import PartWriter
from wakeful.providers.wire.call_order import CallOrder, Speaker, last_speaker

_OPENING: dict[Speaker, bytes] = {
    "user": b'{"role":"user","parts":[',
    "results": b'{"role":"user","parts":[',
    "assistant": b'{"role":"model","parts":[',
}
NOTHING_SAID = b'{"role":"user","parts":[{"text":""}]}'
"""The API takes no request without a content."""


def contents(history: History, wire: str, writer: PartWriter) -> list[bytes]:
    """The elements of `contents`."""
    glue = _Glue(last_speaker(history, wire, writer))
    order = CallOrder(history, wire, writer, glue)
    chunks = history.encoded(wire, order)
    if glue.speaker is None:
        return [NOTHING_SAID]
    return [*chunks, *order.unanswered(), b"]}"]


class _Glue:
    """Puts parts behind parts."""

    __slots__ = ("speaker",)

    def __init__(self, speaker: Speaker | None) -> None:
        self.speaker = speaker

    def add(self, speaker: Speaker, pieces: Iterable[bytes]) -> list[bytes]:
        glued: list[bytes] = []
        for part in pieces:
            if self.speaker is None:
                glued.append(_OPENING[speaker])
            elif self.speaker == speaker:
                glued.append(b",")
            else:
                glued += (b"]},", _OPENING[speaker])
            glued.append(part)
            self.speaker = speaker
        return glued
