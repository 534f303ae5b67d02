"""A conversation in the order that providers demand: every call is followed by exactly its answers.

Each item becomes one chunk, made once. Whichever order the history has, an answer is sent right after its call, one
that is missing is said to be missing, and one whose call is not right before it becomes words. How chunks are glued
together is the format's own matter.
"""

from collections.abc import Iterable
from typing import Literal, NamedTuple, Protocol, TypeAlias

from wakeful.contracts.content import File, Image, Text
from wakeful.contracts.conversation import AssistantItem, History, ToolItem, UserItem

AnyItem: TypeAlias = UserItem | AssistantItem | ToolItem
Speaker: TypeAlias = Literal["user", "results", "assistant"]
"""Who says a piece: a person or the runtime, tools, or the model."""


class ItemWriter(Protocol):
    """Writes items as pieces of a format."""

    def said(self, parts: Iterable[Text | Image | File]) -> list[bytes]: ...
    def results(self, item: ToolItem) -> list[bytes]: ...
    def no_result(self, call_id: str, name: str) -> bytes: ...
    def late_result(self, item: ToolItem) -> list[bytes]: ...
    def reply(self, item: AssistantItem) -> list[bytes]: ...


class Glue(Protocol):
    """Puts pieces behind pieces."""

    def add(self, speaker: Speaker, pieces: Iterable[bytes]) -> list[bytes]: ...


class WaitingCall(NamedTuple):
    """A call that waits for its answer."""

    call_id: str
    name: str


class CallOrder:
    """Makes chunks of the items that are new; called with them in order."""

    __slots__ = ("_at", "_glue", "_history", "_moved", "_writer", "open")

    def __init__(self, history: History, wire: str, writer: ItemWriter, glue: Glue) -> None:
        self._history = history
        self._writer = writer
        self._glue = glue
        self._at = len(history.encoded_so_far(wire))
        self._moved: set[int] = set()
        """Answers that were sent before their place in the history, right after their call."""
        self.open = _open_calls(history, self._at)
        """Calls that wait for their answer at this point."""

    def __call__(self, item: AnyItem) -> bytes:
        at, self._at = self._at, self._at + 1
        writer, glue = self._writer, self._glue
        if isinstance(item, ToolItem):
            if at in self._moved:
                return b""
            waiting = next((call for call in self.open if call.call_id == item.call_id), None)
            if waiting is not None:
                self.open.remove(waiting)
                return b"".join(glue.add("results", writer.results(item)))
            return b"".join([*self._answers(at), *glue.add("user", writer.late_result(item))])
        pieces = self._answers(at) if self.open else []
        if isinstance(item, UserItem):
            return b"".join([*pieces, *glue.add("user", writer.said(item.parts))])
        pieces += glue.add("assistant", writer.reply(item))
        self.open = [WaitingCall(call.call_id, call.name) for call in item.calls]
        return b"".join(pieces)

    def unanswered(self) -> list[bytes]:
        """What closes the calls that nothing answers yet: not kept, because their answers may still come."""
        return self._glue.add("results", [self._writer.no_result(*call) for call in self.open])

    def _answers(self, at: int) -> list[bytes]:
        """Close what is open before something else is said: with an answer from further on, or with none."""
        pieces: list[bytes] = []
        for call_id, name in self.open:
            found = self._later(call_id, at + 1)
            if found is None:
                written = [self._writer.no_result(call_id, name)]
            else:
                answer = self._history[found]
                assert isinstance(answer, ToolItem)
                self._moved.add(found)
                written = self._writer.results(answer)
            pieces += self._glue.add("results", written)
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


def last_speaker(history: History, wire: str, writer: ItemWriter) -> Speaker | None:
    """Who spoke last in what was made so far. A reply that says nothing may still have answers before it."""
    done = history.encoded_so_far(wire)
    last = next((at for at in range(len(done) - 1, -1, -1) if done[at]), None)
    return None if last is None else ends_as(history, last, writer)


def ends_as(history: History, at: int, writer: ItemWriter) -> Speaker:
    """Who speaks at the end of an item's chunk."""
    item = history[at]
    if isinstance(item, AssistantItem):
        return "assistant" if writer.reply(item) else "results"
    if isinstance(item, UserItem):
        return "user" if item.parts else "results"
    answers = any(call.call_id == item.call_id for call in _open_calls(history, at))
    return "results" if answers else "user"


def _open_calls(history: History, end: int) -> list[WaitingCall]:
    """Calls that are unanswered here: those of the last reply, as long as nothing but their answers followed it."""
    answered: list[str] = []
    for at in range(end - 1, -1, -1):
        item = history[at]
        if isinstance(item, AssistantItem):
            asked = [WaitingCall(call.call_id, call.name) for call in item.calls]
            others = len(set(answered)) < len(answered) or not set(answered) <= {call.call_id for call in asked}
            return [] if others else [call for call in asked if call.call_id not in answered]
        if isinstance(item, UserItem):
            return []
        answered.append(item.call_id)
    return []
