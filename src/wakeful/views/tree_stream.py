"""Facts of a turn to the stream of all its levels: the run stream, and beside it what each subtask does.

Each event says by `path` which level it is about: the ids of the levels from the root's child down, empty for the
turn's own conversation. The events of one level keep the order of `views/rounds`; levels that run side by side are
mixed as their facts are stored. Planners and summaries of subtasks are not shown.
"""

from collections.abc import Sequence

from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.events import SubagentCompleted, SubagentFailed, SubagentStarted, TurnRetried
from wakeful.contracts.models import ModelGlimpse
from wakeful.views.rounds import Rounds
from wakeful.views.run_stream import RunStream
from wakeful.views.run_stream_events import OutputEvent, StreamEvent, SubtaskEvent, SubtaskStatus

Path = tuple[str, ...]


class TreeStream:
    """The stream of one turn. Feed it the turn's facts from the first, and glimpses as they come.

    Nothing follows a terminal status. With `reveal` nothing is hidden.
    """

    def __init__(self, turn_id: str, *, reveal: bool = False) -> None:
        self._root = RunStream(turn_id, reveal=reveal)
        self._seen = 0
        self._children: dict[str, _Child] = {}

    @property
    def ended(self) -> bool:
        return self._root.ended

    def feed(self, recorded: StoredFact) -> list[StreamEvent]:
        """What a stored fact adds to the stream."""
        fact = recorded.fact
        if (
            (self.ended and not isinstance(fact.event, TurnRetried))
            or fact.turn_id != self._root.turn_id
            or recorded.seq <= self._seen
        ):
            return []
        self._seen = recorded.seq
        shown: list[StreamEvent] = [*self._root.feed(recorded)]
        child = self._children.get(fact.level) if fact.level is not None else None
        if child is not None:
            shown += _at(child.path, child.rounds.feed(recorded.seq, fact))
        match fact.event:
            case SubagentStarted():
                shown.append(self._started(recorded.seq, fact, fact.event))
            case SubagentCompleted() | SubagentFailed():
                shown += self._over(recorded.seq, fact.event)
        return shown

    def glimpse(self, step: int, glimpse: ModelGlimpse, level: str | None = None) -> list[StreamEvent]:
        """What a glimpse of a running attempt adds. One that comes too late is dropped."""
        child = self._children.get(level) if level is not None else None
        if child is None:
            return [*self._root.glimpse(step, glimpse, level)]
        return [] if self.ended else _at(child.path, child.rounds.glimpse(step, glimpse))

    def output(self, step: int, call_id: str, tool: str, text: str, level: str | None = None) -> list[StreamEvent]:
        """A piece of what a running call shows."""
        if self.ended or not text:
            return []
        child = self._children.get(level) if level is not None else None
        words = self._root.hide(text)
        path = child.path if child is not None else ()
        return [OutputEvent(step=step, tool_call_id=call_id, tool_name=tool, text=words, path=path)]

    def _started(self, seq: int, fact: Fact, event: SubagentStarted) -> SubtaskEvent:
        above = self._children.get(fact.level) if fact.level is not None else None
        path = (*(above.path if above is not None else ()), event.level_id)
        title = event.tool if event.title in ("", fact.call_id) else event.title  # an agent that is a tool has no title
        child = self._children[event.level_id] = _Child(
            path, Rounds(self._root.hide), self._root.hide(title), event.tool, fact.call_id or ""
        )
        child.rounds.agent_name = event.tool if event.config_ref is not None else self._root.agent_name
        return child.event("started", seq)

    def _over(self, seq: int, event: SubagentCompleted | SubagentFailed) -> list[StreamEvent]:
        child = self._children.get(event.level_id)
        if child is None:
            return []
        held = _at(child.path, child.rounds.release(waiting=False))
        return [*held, child.event("completed" if isinstance(event, SubagentCompleted) else "failed", seq)]


class _Child:
    """One level below the root."""

    __slots__ = ("_call_id", "_title", "_tool", "path", "rounds")

    def __init__(self, path: Path, rounds: Rounds, title: str, tool: str, call_id: str) -> None:
        self.path = path
        self.rounds = rounds
        self._title = title
        self._tool = tool
        self._call_id = call_id

    def event(self, status: SubtaskStatus, seq: int) -> SubtaskEvent:
        return SubtaskEvent(
            status=status,
            title=self._title,
            tool_name=self._tool,
            tool_call_id=self._call_id,
            path=self.path,
            event_seq=seq,
        )


def _at(path: Path, events: Sequence[StreamEvent]) -> list[StreamEvent]:
    return [event.model_copy(update={"path": path}) for event in events]
