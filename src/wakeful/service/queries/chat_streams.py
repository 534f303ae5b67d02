"""The chat of a turn for clients that follow it: from the log, then live, each stored message once.

A stream keeps nothing for its reader but what was committed since it looked last, and of that not much: a reader that
is further behind reads the log, at its own speed. Words that are not stored yet are heard through `LiveWords`, and
dropped where the stored reply is there first. Messages that are there together are handed over together.
"""

from collections.abc import AsyncGenerator, Awaitable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Self

from wakeful.contracts.envelope import StoredFact
from wakeful.contracts.errors import MessageNotFound
from wakeful.contracts.events import MessageAdmitted, RuntimeToolRequested, RuntimeToolResolved, TurnStarted
from wakeful.engine.run_request import Engine
from wakeful.engine.turn_messages import of_turn, read_turn, with_messages
from wakeful.ports import MessageRow, Store, TurnRow, Watch
from wakeful.service.client_tools.store import OwnRequestStore
from wakeful.service.live_words import Heard, LiveWords
from wakeful.service.queries.event_cursors import check_reached
from wakeful.service.queries.runtime_agents import find_message
from wakeful.service.queries.turns import EventReader
from wakeful.service.queries.views import is_cut
from wakeful.views.chat import ChatView
from wakeful.views.chat_messages import ChatMessage, ChatReplay, MessageTaken, ReplayIncomplete
from wakeful.views.runtime_records import SentMessage

LOOK_AGAIN_SECONDS = 30.0
MOST_FOLLOWED = 64
"""Messages to a thread that are remembered while one of them waits for its turn."""
MOST_TOGETHER = 64
"""Messages that are handed over at once."""


class ChatReader:
    """One reader of the chat of a turn. `may_answer`: it gets the real arguments of what a client is to run."""

    def __init__(self, engine: Engine, turn_id: str, keys: Iterable[str], *, may_answer: bool) -> None:
        self._engine = engine
        self.turn_id = turn_id
        self._may_answer = may_answer
        self._events = EventReader(engine.store, keys=keys)
        self.view = ChatView(turn_id, self._events.secrets)
        self.seen = self._first = 0

    async def stored(self, row: TurnRow) -> list[StoredFact]:
        """Everything that the log has so far."""
        return await self._begin(row.first_seq, await read_turn(self._engine.store, row))

    async def begun(self, facts: list[StoredFact]) -> list[StoredFact]:
        """The same, of a turn that was followed from its beginning: the messages that it took, and its own facts."""
        first = next(entry.seq for entry in facts if isinstance(entry.fact.event, TurnStarted))
        return await self._begin(first, facts)

    async def _begin(self, first: int, facts: list[StoredFact]) -> list[StoredFact]:
        self.seen, self._first = first - 1, first
        events = (entry.fact.event for entry in facts)
        self.view.answered = {each.request_id for each in events if isinstance(each, RuntimeToolResolved)}
        return await self._learned(facts)

    async def fresh(self, agent_id: str, found: Sequence[StoredFact] | None) -> list[StoredFact]:
        """What was written since, among facts of the thread that were committed; None: as the log says."""
        store = self._engine.store
        if found is None:
            facts = await store.read(agent_id, after=self.seen, turn_id=self.turn_id)
        else:
            facts = [entry for entry in found if entry.fact.turn_id == self.turn_id and entry.seq > self.seen]
        if self.seen < self._first:
            facts = await with_messages(store, self.turn_id, facts)
        return await self._learned(facts)

    async def _learned(self, facts: list[StoredFact]) -> list[StoredFact]:
        """What is secret in facts is known before any of them is shown."""
        await self._events.learn(facts)
        return facts

    def knows(self, heard: Heard) -> bool:
        """Was the request that is being answered read?"""
        return self.view.wire.knows(heard.step, heard.attempt, heard.level)

    async def messages(self, entry: StoredFact) -> list[ChatMessage]:
        self.seen = max(self.seen, entry.seq)
        event, arguments = entry.fact.event, None
        if isinstance(event, RuntimeToolRequested) and self._may_answer and event.request_id not in self.view.answered:
            arguments = await self._arguments(event.request_id)
        return self.view.feed(entry, self._engine.clock.now(), arguments)

    async def _arguments(self, request_id: str) -> dict[str, Any] | None:
        request = await OwnRequestStore(self._engine).get(request_id)
        return dict(request.parameters) if request is not None else None


async def chat_replay(
    engine: Engine, row: TurnRow, after: int = 0, *, keys: Iterable[str] = (), may_answer: bool = False
) -> ChatReplay:
    """The chat of a turn so far, after an event. Raises CursorGone where the log does not reach that event."""
    await check_reached(engine.store, row.agent_id, after)
    reader = ChatReader(engine, row.turn_id, keys, may_answer=may_answer)
    facts = await reader.stored(row)
    found = [(entry.seq, await reader.messages(entry)) for entry in facts]
    return ChatReplay(
        messages=tuple(message for seq, messages in found if seq > after for message in messages),
        replay_incomplete=is_cut(row, facts, after),
        last_event_seq=max(after, facts[-1].seq if facts else 0),
        ended=reader.view.ended or not row.is_open,
    )


class ChatStream:
    """A chat for one reader: messages that are there together, one list after the other.

    What was opened for it is closed by `aclose`, also where nothing was read of it.
    """

    def __init__(
        self, batches: AsyncGenerator[list[ChatMessage], None], watch: Watch, first: MessageTaken | None = None
    ) -> None:
        self._batches, self._watch = batches, watch
        self.first = first
        """What comes before all others, where that is known already."""

    def __aiter__(self) -> Self:
        return self

    def __anext__(self) -> Awaitable[list[ChatMessage]]:
        return self._batches.__anext__()

    async def aclose(self) -> None:
        await self._batches.aclose()
        self._watch.close()


@dataclass(frozen=True, slots=True)
class ChatFollower:
    """Follows chats after an event, until their turn is over."""

    engine: Engine
    after: int = 0
    words: LiveWords = field(default_factory=LiveWords)
    keys: Iterable[str] = ()
    may_answer: bool = False

    def turn(self, row: TurnRow) -> ChatStream:
        """The chat of a turn. Raises CursorGone, when it is read, where the log does not reach the event."""
        watch = self.watch(row.agent_id, row.thread_id)
        return ChatStream(self._turn(row, watch), watch)

    def message(self, sent: SentMessage, watch: Watch | None = None) -> ChatStream:
        """The chat of the turn that takes a message, also while none has taken it yet. `watch`: of its thread, opened
        before anything became of the message.

        Raises MessageNotFound, when it is read, for one that no turn will ever take.
        """
        first = None
        if sent.position > self.after:
            first = MessageTaken(
                message_id=sent.message_id,
                agent=sent.agent,
                thread_id=sent.thread,
                event_seq=sent.position,
                state=sent.state,
                turn_id=sent.turn_id,
            )
        followed = watch if watch is not None else self.watch(sent.agent, sent.thread)
        is_new = watch is not None and first is not None
        return ChatStream(self._message(sent, followed, is_new=is_new), followed, first)

    def watch(self, agent_id: str, thread_id: str) -> Watch:
        """What is committed in a thread from now on."""
        return self.engine.store.watch(agent_id, thread_id=thread_id, keeps=True)

    async def _message(
        self, sent: SentMessage, watch: Watch, *, is_new: bool
    ) -> AsyncGenerator[list[ChatMessage], None]:
        waiting: list[StoredFact] = []
        while True:
            found = watch.facts()
            is_new = is_new and found is not None and len(waiting) < MOST_FOLLOWED
            messages = [entry for entry in found or () if isinstance(entry.fact.event, MessageAdmitted)]
            waiting = [*waiting, *messages] if is_new else []
            begun = _beginning(sent.message_id, waiting, found or ())
            if begun:
                reader = self._reader(begun[-1].fact.turn_id or "")
                batches = self._follow(reader, watch, sent.agent, sent.thread, reader.begun(begun))
                break
            if not is_new or not found or len(messages) < len(found):
                row = await taking_turn(self.engine.store, sent.message_id)
                if row is not None:
                    batches = self._turn(row, watch)
                    break
            await watch.wait(timeout=LOOK_AGAIN_SECONDS)
        async with aclosing(batches):
            async for batch in batches:
                yield batch

    async def _turn(self, row: TurnRow, watch: Watch) -> AsyncGenerator[list[ChatMessage], None]:
        await check_reached(self.engine.store, row.agent_id, self.after)
        reader = self._reader(row.turn_id)
        batches = self._follow(reader, watch, row.agent_id, row.thread_id, reader.stored(row), row)
        async with aclosing(batches):
            async for batch in batches:
                yield batch

    async def _follow(
        self,
        reader: ChatReader,
        watch: Watch,
        agent_id: str,
        thread_id: str,
        beginning: Awaitable[list[StoredFact]],
        row: TurnRow | None = None,
    ) -> AsyncGenerator[list[ChatMessage], None]:
        """From what there is on. `row`: of a turn whose beginning may be gone from the log."""
        shown: list[ChatMessage] = []
        with self.words.listening(agent_id, thread_id, watch.wake) as listener:
            heard, lines = listener.heard(reader.turn_id), listener.heard_output(reader.turn_id)
            facts = await beginning  # of what was heard before, it has the requests and the calls
            if row is not None and is_cut(row, facts, self.after):
                shown.append(ReplayIncomplete(thread_id=thread_id, turn_id=row.turn_id))
            while True:
                for entry in facts:
                    shown += [message for message in await reader.messages(entry) if entry.seq > self.after]
                    if len(shown) >= MOST_TOGETHER:
                        yield shown
                        shown = []
                if not reader.view.ended:
                    for each in [each for each in heard if reader.knows(each)]:
                        heard.remove(each)
                        shown += reader.view.words(each.step, each.attempt, each.text, each.level)
                    for said in lines:  # of a call whose beginning was read, or is shown to nobody
                        shown += reader.view.output(said.call_id, self.engine.keys().hide(said.text), said.offset)
                if shown:
                    yield shown
                    shown = []
                if reader.view.ended:
                    return
                await watch.wait(timeout=LOOK_AGAIN_SECONDS)
                words = listener.heard(reader.turn_id)
                heard += words
                lines = listener.heard_output(reader.turn_id)
                found = watch.facts()
                is_told = found is not None and bool(found or words or lines)
                facts = await reader.fresh(agent_id, found if is_told else None)
                if not is_told and not facts:
                    now = await self.engine.store.turn(reader.turn_id)
                    if now is None or (not now.is_open and reader.seen >= now.last_seq):
                        return

    def _reader(self, turn_id: str) -> ChatReader:
        return ChatReader(self.engine, turn_id, self.keys, may_answer=self.may_answer)


async def taking_turn(store: Store, message_id: str) -> TurnRow | None:
    """The turn that takes a message; None: there is none yet. Raises MessageNotFound for one that none will take."""
    row = await find_message(store, message_id)
    turn = await store.turn(row.turn_id) if row.turn_id else None
    if turn is None and row.state in ("expired", "processed"):
        how = "expired before a turn took it" if row.state == "expired" else "needed no turn"
        raise MessageNotFound(f"message {message_id} {how}: there is no chat about it", "Send it again.")
    return turn


async def turn_of_message(engine: Engine, row: MessageRow) -> TurnRow:
    """The same, once there is one."""
    watch = engine.store.watch(row.agent_id, thread_id=row.thread_id)
    try:
        while (turn := await taking_turn(engine.store, row.message_id)) is None:
            await watch.wait(timeout=LOOK_AGAIN_SECONDS)
        return turn
    finally:
        watch.close()


def _beginning(message_id: str, messages: Sequence[StoredFact], found: Sequence[StoredFact]) -> list[StoredFact]:
    """What the turn that takes a message has from its start on, with all messages that it takes; nothing where some of
    that is not among what was followed: the log has it."""
    for place, entry in enumerate(found):
        started, turn_id = entry.fact.event, entry.fact.turn_id or ""
        if isinstance(started, TurnStarted) and message_id in started.message_ids:
            queued = {
                event.message_id: each
                for each in messages
                if isinstance(event := each.fact.event, MessageAdmitted) and each.fact.turn_id is None
            }
            if not queued.keys() >= {*started.message_ids}:
                return []
            taken = of_turn(turn_id, [queued[name] for name in started.message_ids])
            return [*taken, *(each for each in found[place:] if each.fact.turn_id == turn_id)]
    return []
