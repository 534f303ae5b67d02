"""A conversation as `messages`, in chunks that never change once they were sent.

Each item becomes one chunk, made once. A chunk begins with what closes the one before it (same speaker: the next
block; another: the next message) and leaves its own last block open, so that a cache mark can be put in between
without touching a chunk. Rule: every call is followed by exactly its answers, whatever order the history has.
"""

from collections.abc import Iterable
from typing import Literal, TypeAlias

from wakeful.contracts.conversation import AssistantItem, History, ToolItem, UserItem
from wakeful.providers.anthropic.block_writer import BlockWriter, dump

AnyItem: TypeAlias = UserItem | AssistantItem | ToolItem
Role: TypeAlias = Literal["user", "assistant"]
_OPENING: dict[Role, bytes] = {
    "user": b'{"role":"user","content":[',
    "assistant": b'{"role":"assistant","content":[',
}


def messages(history: History, wire: str, writer: BlockWriter, *, mark: dict[str, str] | None) -> list[bytes]:
    """The elements of `messages`; with a cache mark, it is on the newest block that takes one."""
    joiner = _Joiner(history, wire, writer)
    chunks = list(history.encoded(wire, joiner))
    if joiner.glue.role is None:
        return []
    unanswered = joiner.glue.add("user", map(writer.no_result, joiner.open))
    if mark is not None:
        for at in range(len(chunks) - 1, -1, -1):
            if chunks[at] and _takes_mark(history[at], writer):
                chunks.insert(at + 1, b',"cache_control":' + dump(mark))
                break
    return [*chunks, *unanswered, b"}]}"]


class _Glue:
    """Puts blocks behind blocks."""

    __slots__ = ("role",)

    def __init__(self, role: Role | None) -> None:
        self.role = role

    def add(self, role: Role, blocks: Iterable[bytes]) -> list[bytes]:
        pieces: list[bytes] = []
        for block in blocks:
            if self.role is None:
                pieces.append(_OPENING[role])
            elif self.role == role:
                pieces.append(b"},")
            else:
                pieces += (b"}]},", _OPENING[role])
            pieces.append(block[:-1])
            self.role = role
        return pieces


class _Joiner:
    """Makes chunks of the items that are new; called with them in order."""

    __slots__ = ("_at", "_history", "_moved", "_writer", "glue", "open")

    def __init__(self, history: History, wire: str, writer: BlockWriter) -> None:
        done = history.encoded_so_far(wire)
        self._history = history
        self._writer = writer
        self._at = len(done)
        self._moved: set[int] = set()
        """Answers that were sent before their place in the history, right after their call."""
        last = next((at for at in range(len(done) - 1, -1, -1) if done[at]), None)
        self.glue = _Glue(None if last is None else _ends_as(history[last], writer))
        self.open = _open_calls(history, self._at)
        """Calls that wait for their answer at this point."""

    def __call__(self, item: AnyItem) -> bytes:
        at, self._at = self._at, self._at + 1
        writer = self._writer
        if isinstance(item, ToolItem):
            if at in self._moved:
                return b""
            if item.call_id in self.open:
                self.open.remove(item.call_id)
                return b"".join(self.glue.add("user", (writer.result(item),)))
            return b"".join([*self._answers(at), *self.glue.add("user", writer.late_result(item))])
        pieces = self._answers(at) if self.open else []
        if isinstance(item, UserItem):
            return b"".join([*pieces, *self.glue.add("user", writer.said(item.parts))])
        pieces += self.glue.add("assistant", writer.reply(item))
        self.open = [call.call_id for call in item.calls]
        return b"".join(pieces)

    def _answers(self, at: int) -> list[bytes]:
        """Close what is open before something else is said: with an answer from further on, or with none."""
        pieces: list[bytes] = []
        for call_id in self.open:
            found = self._later(call_id, at + 1)
            if found is None:
                block = self._writer.no_result(call_id)
            else:
                answer = self._history[found]
                assert isinstance(answer, ToolItem)
                self._moved.add(found)
                block = self._writer.result(answer)
            pieces += self.glue.add("user", (block,))
        self.open = []
        return pieces

    def _later(self, call_id: str, start: int) -> int | None:
        """Where this call is answered; a call of the same name further on has its own answers."""
        for at in range(start, len(self._history)):
            item = self._history[at]
            if isinstance(item, ToolItem) and item.call_id == call_id and at not in self._moved:
                return at
            if isinstance(item, AssistantItem) and any(call.call_id == call_id for call in item.calls):
                return None
        return None


def _ends_as(item: AnyItem, writer: BlockWriter) -> Role:
    """Who speaks at the end of an item's chunk. A reply that says nothing may still have answers before it."""
    return "assistant" if isinstance(item, AssistantItem) and writer.reply(item) else "user"


def _takes_mark(item: AnyItem, writer: BlockWriter) -> bool:
    return _ends_as(item, writer) == "user" or (isinstance(item, AssistantItem) and writer.takes_mark(item))


def _open_calls(history: History, end: int) -> list[str]:
    """Calls that are unanswered here: those of the last reply, as long as nothing but their answers followed it."""
    answered: list[str] = []
    for at in range(end - 1, -1, -1):
        item = history[at]
        if isinstance(item, AssistantItem):
            asked = [call.call_id for call in item.calls]
            others = len(set(answered)) < len(answered) or not set(answered) <= set(asked)
            return [] if others else [call_id for call_id in asked if call_id not in answered]
        if isinstance(item, UserItem):
            return []
        answered.append(item.call_id)
    return []
