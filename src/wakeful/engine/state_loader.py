"""From the log to a state: what a turn knows when it is taken up, here or anywhere else.

The conversation begins at the turn's window (the first event it rests on) and holds the thread's earlier turns. Turns
of a thread never overlap, so they are folded one after another, each handing its conversation to the next.

Once a summary stands in the place of the thread's beginning, nobody has to read that beginning again: the window of
later turns begins with the oldest turn of which something is shown word for word. Until the fold comes to the summary,
what lies before is there by its length alone (`UNREAD`), so that places and counts in the facts hold.

A thread without a summary is not read from its beginning either: every few turns its conversation is put into pages
at a turn's end (`thread.checkpointed`), and the fold of later turns begins with those. In older logs a turn did that at
its beginning.
"""

import json
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.conversation import ITEM, AssistantItem, ToolItem, UserItem
from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.errors import StoreDamaged, TurnUnreadable
from wakeful.contracts.events import (
    AssistantRecorded,
    CompactionCompleted,
    HistoryImported,
    MessageAdmitted,
    SubagentStarted,
    ThreadCheckpointed,
    TurnConfigChanged,
    TurnStarted,
)
from wakeful.contracts.events.context import WindowStart
from wakeful.contracts.history import upcast
from wakeful.decisions.evolve.facts import evolve
from wakeful.decisions.level_conversation import LevelConversation
from wakeful.decisions.state import ThreadSoFar, TurnState, after, left_by
from wakeful.decisions.thread_pages import (
    CallIds,
    LimitNote,
    NextTurn,
    PageMark,
    StoredPage,
    marks_of,
    read_page,
    restored,
    told_by,
)
from wakeful.engine.turn_facts import MOST_LIMITS, call_ids_of, note_limit
from wakeful.engine.turn_messages import with_messages
from wakeful.ports import Blobs, Store, TurnRow

ReadT = TypeVar("ReadT")
UNREAD = UserItem(parts=(), origin="runtime")
"""An item that is not read any more: a summary will take its place before anybody looks at it."""


@dataclass(slots=True)
class Thread:
    """A conversation as its turns have left it: what the thread's next turn begins with."""

    so_far: ThreadSoFar = field(default_factory=ThreadSoFar)
    """What its newest turn has left."""
    call_ids: CallIds = field(default_factory=CallIds)
    """Every call id the conversation has seen."""
    config: TurnConfig | None = None
    """Of the newest turn that began."""
    limits: list[StoredFact] = field(default_factory=list)
    """What providers said lately about their limits."""
    facts: int = 0
    """How many facts were folded, beside what stands in pages."""
    sealed: tuple[PageMark, ...] = ()
    """How far it stands in pages, up to each of them."""


class FoldedTurn(NamedTuple):
    """A turn as the log knows it."""

    state: TurnState
    started: TurnStarted | None
    last_seq: int
    """The newest event that was read."""
    thread: Thread
    """The conversation, as it was before this turn but for its call ids."""


MOST_CONFIGS = 256
_configs: "WeakKeyDictionary[Blobs, OrderedDict[str, TurnConfig]]" = WeakKeyDictionary()
"""Of each store, those that were read last: turns of an agent share one, and a digest never comes to mean another."""


async def load_config(store: Blobs, digest: str) -> TurnConfig:
    """Raises TurnUnreadable."""
    kept = _configs.setdefault(store, OrderedDict())
    config = kept.pop(digest, None)
    if config is None:
        config = await loaded(store, digest, TurnConfig.model_validate_json)
    kept[digest] = config
    while len(kept) > MOST_CONFIGS:
        kept.popitem(last=False)
    return config


async def loaded(store: Blobs, digest: str, read: Callable[[bytes], ReadT]) -> ReadT:
    """What a turn rests on beside the log. Raises TurnUnreadable when it is gone, not when the store fails just now."""
    try:
        return read(await store.get_blob(digest))
    except StoreDamaged as gone:
        raise TurnUnreadable(gone.message, gone.hint) from gone
    except ValueError as strange:
        words = str(strange).splitlines()[0]
        raise TurnUnreadable(f"blob {digest} is not what a turn can be read from: {words}") from strange


async def hydrated(store: Blobs, fact: Fact) -> Fact:
    """A fact with what it brings along from a blob."""
    event = fact.event
    if isinstance(event, HistoryImported) and event.items_ref is not None:
        items = await loaded(store, event.items_ref.digest, _items)
        return replace(fact, event=event.model_copy(update={"items": items}))
    return fact


def _items(data: bytes) -> tuple[UserItem | AssistantItem | ToolItem, ...]:
    return tuple(ITEM.validate_python(item) for item in json.loads(data))


def _turns(recorded: Iterable[StoredFact]) -> dict[str, list[StoredFact]]:
    """A thread's facts by turn. The next message may be admitted while a turn still runs; in the conversation it comes
    after that turn's end all the same. A turn that began before the window is no part of it."""
    turns: dict[str, list[StoredFact]] = {}
    for entry in recorded:
        turn_id = entry.fact.turn_id
        if turn_id in turns:
            turns[turn_id].append(entry)
        elif turn_id is not None and _opens_turn(entry):
            turns[turn_id] = [entry]
    return turns


def _opens_turn(entry: StoredFact) -> bool:
    event = entry.fact.event
    return isinstance(event, MessageAdmitted) or (isinstance(event, TurnStarted) and event.opens_turn)


def start_of_window(row: TurnRow, recorded: Sequence[StoredFact]) -> int:
    """The first event that a turn which has not begun rests on, given what its predecessor rested on."""
    firsts = _firsts(recorded)
    starts: list[int] = []
    for entry in recorded:
        if entry.fact.turn_id == row.turn_id:
            continue
        turn_id = entry.fact.turn_id
        if is_seal(entry):
            began = firsts.get(turn_id, 0)
            if began < row.first_seq:
                is_queued = any(began < first < entry.seq for first in firsts.values())
                starts.append(began if is_queued else entry.seq)
        elif isinstance(entry.fact.event, ThreadCheckpointed):
            starts.append(firsts.get(turn_id, 0))
        elif (window := _window(entry)) is not None:
            starts.append(firsts.get(window.from_turn, 0))
    return max(filter(None, starts), default=recorded[0].seq if recorded else row.first_seq)


def _firsts(recorded: Iterable[StoredFact]) -> dict[str | None, int]:
    """Where the turns begin that begin among these facts."""
    firsts: dict[str | None, int] = {}
    for entry in recorded:
        if _opens_turn(entry):
            firsts.setdefault(entry.fact.turn_id, entry.seq)
    return firsts


def newest_seal(row: TurnRow, recorded: Sequence[StoredFact]) -> StoredFact | None:
    """Where the newest of the earlier turns put the conversation into pages at its end, with all that follows it."""
    firsts = _firsts(recorded)
    for place, entry in reversed(list(enumerate(recorded))):
        turn_id = entry.fact.turn_id
        # A window that begins within a turn, before its pages, may begin after turns that waited for it.
        is_whole = turn_id in firsts or place == 0
        if is_seal(entry) and is_whole and turn_id != row.turn_id and firsts.get(turn_id, 0) < row.first_seq:
            return entry
    return None


def is_seal(entry: StoredFact) -> bool:
    """Does it name pages that a turn made at its end?"""
    return isinstance(entry.fact.event, ThreadCheckpointed) and entry.fact.event.with_turn


def predecessor(row: TurnRow, thread: Sequence[TurnRow]) -> TurnRow | None:
    """The turn of the thread before this one that has begun."""
    earlier = [turn for turn in thread if turn.first_seq < row.first_seq and turn.turn_index]
    return max(earlier, key=lambda turn: turn.first_seq, default=None)


def empty_thread(unread: int = 0) -> Thread:
    """A conversation of which nothing is known, but how many items lie before."""
    return Thread(ThreadSoFar(LevelConversation([UNREAD] * unread)))


class FoldStart(NamedTuple):
    """What a thread's fold begins with."""

    thread: Thread
    facts: list[StoredFact]
    """What it takes in from there on, each turn's together."""


async def beginning(store: Store, row: TurnRow, recorded: Sequence[StoredFact], *, lost: bool = False) -> FoldStart:
    """Nothing, the newest pages, or so many items as lie before the window. Raises TurnUnreadable when a page is gone;
    with `lost` its items are taken as unread."""
    turns = {name: await with_messages(store, name, facts) for name, facts in _turns(recorded).items()}
    sealed = newest_seal(row, recorded)
    if sealed is not None:
        assert isinstance(sealed.fact.event, ThreadCheckpointed)
        names = list(turns)
        later = names[names.index(sealed.fact.turn_id) + 1 :] if sealed.fact.turn_id in turns else names
        thread = await _from_pages(store, row.agent_id, sealed.fact.event, lost=lost)
        return FoldStart(thread, [entry for name in later for entry in turns[name]])
    ordered = [entry for entries in turns.values() for entry in entries]
    first = ordered[0].fact.turn_id if ordered else None
    windows = (window for entry in ordered if (window := _window(entry)) is not None)
    unread = next((window.items for window in windows if window.from_turn == first), 0)
    for entry in ordered:
        if entry.fact.turn_id != first:
            break
        event = entry.fact.event
        if isinstance(event, ThreadCheckpointed) and not event.with_turn:
            return FoldStart(await _from_pages(store, row.agent_id, event, lost=lost), ordered)
    return FoldStart(empty_thread(unread), ordered)


async def _from_pages(store: Blobs, agent_id: str, event: ThreadCheckpointed, *, lost: bool) -> Thread:
    try:
        pages = await load_pages(store, event.conversation_ref.digest)
        told = told_by(pages[-1][1])
        config = await load_config(store, told.config) if told.config is not None else None
    except TurnUnreadable:
        if not lost:
            raise
        return empty_thread(event.items)
    so_far, call_ids = restored([page for _, page in pages])
    if told.config is not None and config is not None:
        so_far.configs = {told.config: config}
    limits = [
        StoredFact(agent_id, 0, Fact(upcast(each.kind, each.version, each.event), each.at)) for each in told.limits
    ]
    return Thread(so_far, call_ids, config, limits, sealed=marks_of(pages))


async def load_pages(store: Blobs, newest: str) -> list[tuple[str, StoredPage]]:
    """A row of pages, oldest first, each with its digest. Raises TurnUnreadable."""
    pages: list[tuple[str, StoredPage]] = []
    digest: str | None = newest
    while digest is not None:
        page = await loaded(store, digest, read_page)
        pages.append((digest, page))
        digest = page.before
    return pages[::-1]


def told_after(state: TurnState, limits: Sequence[StoredFact]) -> NextTurn:
    """What the next turn has to know beside the conversation."""
    config = next((digest for digest, config in state.configs.items() if config == state.config), None)
    facts = [entry.fact for entry in limits[-MOST_LIMITS:]]
    told = (
        LimitNote(fact.at, fact.event.kind, fact.event.version, fact.event.model_dump(mode="json")) for fact in facts
    )
    return NextTurn(config, tuple(told))


def _window(entry: StoredFact) -> WindowStart | None:
    event = entry.fact.event
    return event.window if isinstance(event, CompactionCompleted) else None


class ThreadFolder:
    """Folds a thread's facts, each turn's after the turn before it. `before` is shown each with the state before."""

    def __init__(
        self,
        store: Blobs,
        row: TurnRow,
        thread: Thread,
        before: Callable[[StoredFact, TurnState], None] | None = None,
        *,
        lost: bool = False,
    ) -> None:
        self.thread = thread
        self.store = store
        self._row = row
        self._before = before
        self._lost = lost
        self.configs: dict[str, TurnConfig] = dict(thread.so_far.configs)
        self._states: dict[str, TurnState] = {}
        self._newest: TurnState | None = None
        """Of the earlier turns that were folded here."""
        self._started: TurnStarted | None = None

    async def take(self, ordered: Sequence[StoredFact]) -> None:
        """Take in facts turn by turn."""
        row, states, thread = self._row, self._states, self.thread
        call_ids = thread.call_ids
        for entry in ordered:
            fact = entry.fact
            assert fact.turn_id is not None
            state = states.get(fact.turn_id)
            if state is None:
                if row.turn_id in states:
                    continue  # a later turn of the thread: no part of what this one knew
                self._note_newest()
                state = states[fact.turn_id] = after(thread.so_far, self.configs)
                if fact.turn_id != row.turn_id:
                    self._newest = state
            event = fact.event
            if isinstance(event, TurnStarted | TurnConfigChanged):
                # Of earlier turns, too: what their tools do is what the conversation has seen. Most share one.
                await self.learn(event.config_ref.digest)
                if fact.turn_id != row.turn_id:
                    thread.config = self.configs[event.config_ref.digest]
                elif isinstance(event, TurnStarted):
                    self._started = event
            elif isinstance(event, SubagentStarted) and event.config_ref is not None:
                await self.learn(event.config_ref.digest)
            elif isinstance(event, AssistantRecorded):
                call_ids.update(call_ids_of(event))  # of rounds that a summary stands for, too
            elif isinstance(event, HistoryImported):
                fact = await self._whole(fact)
                assert isinstance(fact.event, HistoryImported)
                call_ids.update(call_ids_of(fact.event))
            if fact.turn_id != row.turn_id:
                thread.facts += 1
                note_limit(thread.limits, entry)
            if self._before is not None:
                self._before(entry, state)
            evolve(state, fact)
        self._note_newest()

    def _note_newest(self) -> None:
        """What the newest of the earlier turns has left is what the next one begins with."""
        if self._newest is not None:
            self.thread.so_far = left_by(self._newest)

    def folded(self, last_seq: int) -> FoldedTurn:
        state = self._states.get(self._row.turn_id) or self._newest or after(self.thread.so_far, self.configs)
        return FoldedTurn(state, self._started, last_seq, self.thread)

    async def learn(self, digest: str) -> None:
        if digest in self.configs:
            return
        try:
            self.configs[digest] = await load_config(self.store, digest)
        except TurnUnreadable:
            if not self._lost:
                raise
            self.configs[digest] = TurnConfig(agent_name=self._row.agent_name, model_ref="")

    async def _whole(self, fact: Fact) -> Fact:
        try:
            return await hydrated(self.store, fact)
        except TurnUnreadable:
            if not self._lost:
                raise
            return fact


async def fold(
    store: Store,
    row: TurnRow,
    recorded: Sequence[StoredFact],
    before: Callable[[StoredFact, TurnState], None] | None = None,
    *,
    lost: bool = False,
) -> FoldedTurn:
    """Fold a thread's events up to and including this turn's. `before` is shown each of them with the state before.

    Raises TurnUnreadable when something that the events refer to is gone. With `lost` it is done without: enough to
    show a turn or to end it, and never to run it.
    """
    thread, facts = await beginning(store, row, recorded, lost=lost)
    folding = ThreadFolder(store, row, thread, before, lost=lost)
    await folding.take(facts)
    return folding.folded(recorded[-1].seq if recorded else 0)
