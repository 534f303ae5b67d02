"""A conversation with one agent, and the activity of the turn that its newest message began. Pure.

The conversation is what the operator said and the agent's briefs; a display mode adds lines of activity between them.
An activity belongs to one message. When a newer one is sent, nothing of an earlier turn is shown for it.
"""

from typing import Final, Literal, NamedTuple, TypeAlias

from wakeful.surfaces.tui.screen_text import folded
from wakeful.surfaces.tui.shown_times import ShownTimes
from wakeful.views.presentation.display_modes import DisplayMode, detail_lines, is_shown
from wakeful.views.presentation.feed_entries import FeedEntry

Tone: TypeAlias = Literal["you", "agent", "needs_you", "failed", "quiet", "added", "removed"]
MOST_ENTRIES: Final = 1_000
"""Of one conversation, in memory. The transcript has all of it."""
NAME_WIDTH: Final = 10
AT: Final = 6
"""Columns of a time and a blank."""


class Line(NamedTuple):
    """A line of the screen; who speaks is said in words, and only underlined by a tone."""

    text: str
    tone: Tone = "agent"


class AgentConversation:
    """Entries of one agent, each once, in the order of its log."""

    def __init__(self, agent: str) -> None:
        self.agent = agent
        self._entries: dict[int, FeedEntry] = {}

    def take(self, entry: FeedEntry) -> None:
        self._entries[entry.envelope.event_seq] = entry
        if len(self._entries) > MOST_ENTRIES:
            del self._entries[min(self._entries)]

    def entries(self, mode: DisplayMode) -> list[FeedEntry]:
        """What is shown in a mode, the oldest first."""
        found = [self._entries[number] for number in sorted(self._entries)]
        sent = {entry.envelope.message_id for entry in found if entry.envelope.kind == "message.admitted"}
        found = [entry for entry in found if not _is_said_again(entry, sent)]
        return [entry for entry in found if is_operators(entry) or is_shown(entry.presentation, mode)]

    def lines(self, mode: DisplayMode, width: int, times: ShownTimes) -> list[Line]:
        found: list[Line] = []
        for entry in self.entries(mode):
            found += _lines(entry, mode, width, times.of(entry.envelope.ts))
        return found


class Activity:
    """What the turn of the newest message does."""

    def __init__(self) -> None:
        self.message: str | None = None
        """The message that the activity is of."""
        self.turn: str | None = None
        self.words = ""
        self._held: list[FeedEntry] | None = None
        """What came between sending a message and learning its id."""

    def begin(self, message: str | None) -> None:
        """A message was sent; None: its id is not known yet. Whatever was shown of an earlier turn goes."""
        self.message = message
        self.turn = None
        self.words = "sent"
        self._held = [] if message is None else None

    def name(self, message: str) -> None:
        """The message that was sent is this one."""
        held = self._held or []
        self.message, self._held = message, None
        for entry in held:
            self.take(entry)

    def give_up(self) -> None:
        """It was not sent."""
        self.words, self._held = "", None

    def take(self, entry: FeedEntry) -> None:
        at = entry.envelope
        if self._held is not None:
            self._held.append(entry)
            return
        if at.kind == "message.admitted":
            joins = entry.payload.get("priority") == "interject" and self.words
            if at.message_id != self.message and not joins:
                self.begin(at.message_id)
            return
        if at.message_id is None or at.message_id != self.message:
            return
        self.turn = at.turn_id or self.turn
        if entry.presentation.category == "brief":
            self.words, self.turn = "", None
        elif entry.presentation.visibility == "action_required":
            self.words = f"waits for you: {entry.presentation.summary}"
        elif is_shown(entry.presentation, "verbose"):
            self.words = entry.presentation.summary


def is_operators(entry: FeedEntry) -> bool:
    """Was it said by the operator?"""
    return entry.envelope.kind in ("message.admitted", "turn.interjected") and (
        (entry.envelope.origin or {}).get("kind", "operator") == "operator"
    )


def _is_said_again(entry: FeedEntry, sent: set[str | None]) -> bool:
    """Did a turn take a message in its midst that stands in the conversation already?"""
    return entry.envelope.kind == "turn.interjected" and entry.payload.get("message_id") in sent


def said(entry: FeedEntry) -> str:
    """The words of a message, or of a brief."""
    item = entry.payload.get("item")
    if is_operators(entry) and isinstance(item, dict):
        return "\n".join(str(part["text"]) for part in item.get("parts", ()) if "text" in part)
    return entry.presentation.body or entry.presentation.summary


def _lines(entry: FeedEntry, mode: DisplayMode, width: int, at: str) -> list[Line]:
    presented = entry.presentation
    if is_operators(entry):
        return _spoken(at, "you", said(entry), width, "you")
    if presented.category == "brief":
        asks = presented.visibility == "action_required"
        words = said(entry)
        if presented.title == "Failure":
            return _spoken(at, entry.envelope.agent_id, f"FAILED: {words}", width, "failed")
        tone: Tone = "needs_you" if asks else "agent"
        return _spoken(at, entry.envelope.agent_id, f"NEEDS YOU: {words}" if asks else words, width, tone)
    if presented.visibility == "action_required":
        return _spoken(at, entry.envelope.agent_id, f"NEEDS YOU: {presented.summary}", width, "needs_you")
    is_result = presented.visibility in ("work_done", "turn_result")
    found = (
        _spoken(at, entry.envelope.agent_id, presented.summary, width, "agent")
        if is_result
        else [Line(f"{'':{AT}}  {each}", "quiet") for each in folded(f".. {presented.summary}", width - AT - 2)]
    )
    room = width - AT - 4
    return found + [
        Line(f"{'':{AT}}  | {each}", "quiet") for line in detail_lines(presented, mode) for each in folded(line, room)
    ]


def _spoken(at: str, who: str, words: str, width: int, tone: Tone) -> list[Line]:
    name = f"{folded(who, NAME_WIDTH)[0]:<4} "
    indent = AT + len(name)
    first, *others = folded(words.strip(), width - indent)
    return [Line(f"{at:<{AT}}{name}{first}", tone), *(Line(" " * indent + each, tone) for each in others)]
