"""A conversation as `messages`, in chunks that never change once they were sent.

Each item becomes one chunk, made once (`wire/call_order`). A chunk begins with what closes the one before it (same
speaker: the next block; another: the next message) and leaves its own last block open, so that a cache mark can be put
in between without touching a chunk.
"""

from collections.abc import Iterable
from typing import Literal, TypeAlias

from wakeful.contracts.conversation import AssistantItem, History
from wakeful.providers.anthropic.block_writer import BlockWriter
from wakeful.providers.wire.call_order import CallOrder, Speaker, ends_as, last_speaker
from wakeful.providers.wire.text import dump

Role: TypeAlias = Literal["user", "assistant"]
_ROLES: dict[Speaker, Role] = {"user": "user", "results": "user", "assistant": "assistant"}
_OPENING: dict[Role, bytes] = {
    "user": b'{"role":"user","content":[',
    "assistant": b'{"role":"assistant","content":[',
}


def messages(history: History, wire: str, writer: BlockWriter, *, mark: dict[str, str] | None) -> list[bytes]:
    """The elements of `messages`; with a cache mark, it is on the newest block that takes one."""
    glue = _Glue(last_speaker(history, wire, writer))
    order = CallOrder(history, wire, writer, glue)
    chunks = list(history.encoded(wire, order))
    if glue.role is None:
        return []
    unanswered = order.unanswered()
    if mark is not None:
        for at in range(len(chunks) - 1, -1, -1):
            if chunks[at] and _takes_mark(history, at, writer):
                chunks.insert(at + 1, b',"cache_control":' + dump(mark))
                break
    return [*chunks, *unanswered, b"}]}"]


class _Glue:
    """Puts blocks behind blocks."""

    __slots__ = ("role",)

    def __init__(self, speaker: Speaker | None) -> None:
        self.role = None if speaker is None else _ROLES[speaker]

    def add(self, speaker: Speaker, pieces: Iterable[bytes]) -> list[bytes]:
        role, glued = _ROLES[speaker], list[bytes]()
        for block in pieces:
            if self.role is None:
                glued.append(_OPENING[role])
            elif self.role == role:
                glued.append(b"},")
            else:
                glued += (b"}]},", _OPENING[role])
            glued.append(block[:-1])
            self.role = role
        return glued


def _takes_mark(history: History, at: int, writer: BlockWriter) -> bool:
    item = history[at]
    if ends_as(history, at, writer) != "assistant":
        return True
    return isinstance(item, AssistantItem) and writer.takes_mark(item)
