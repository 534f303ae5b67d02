"""The chat of a turn for clients that follow it: from the log, then live, each stored message once.

A stream keeps nothing for its reader. Facts are read from the log at the reader's speed; words that are not stored yet
are heard through `LiveWords`, and dropped where the stored reply is there first.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing, suppress
from typing import Any, Self

from wakeful.contracts.envelope import StoredFact
from wakeful.contracts.errors import MessageNotFound
from wakeful.contracts.events import RuntimeToolRequested, RuntimeToolResolved
from wakeful.engine.run_request import Engine
from wakeful.engine.turn_messages import read_turn, with_messages
from wakeful.ports import MessageRow, TurnRow, Watch
from wakeful.service.client_tools.store import OwnRequestStore
from wakeful.service.live_words import Heard, HeardOutput, Listener, LiveWords
from wakeful.service.queries.event_cursors import check_reached
from wakeful.service.queries.turns import EventReader
from wakeful.service.queries.views import is_cut
from wakeful.views.chat import ChatView
from wakeful.views.chat_messages import ChatMessage, ChatReplay, MessageTaken, ReplayIncomplete

LOOK_AGAIN_SECONDS = 30.0


class ChatReader:
    """One reader of the chat of a turn. `may_answer`: it gets the real arguments of what a client is to run."""

    def __init__(self, engine: Engine, row: TurnRow, keys: Iterable[str], *, may_answer: bool) -> None:
        self._engine = engine
        self._row = row
        self._may_answer = may_answer
        self._events = EventReader(engine.store, keys=keys)
        self.view = ChatView(row.turn_id, self._events.secrets)
        self.seen = row.first_seq - 1

    async def stored(self) -> list[StoredFact]:
        """Everything there is so far. What is secret in it is known before any of it is shown."""
        facts = await read_turn(self._engine.store, self._row)
        await self._events.learn(facts)
        events = (entry.fact.event for entry in facts)
        self.view.answered = {each.request_id for each in events if isinstance(each, RuntimeToolResolved)}
        return facts

    async def fresh(self) -> list[StoredFact]:
        """What was written since."""
        store, row = self._engine.store, self._row
        found = await store.read(row.agent_id, after=self.seen, turn_id=row.turn_id)
        if self.seen < row.first_seq:
            found = await with_messages(store, row.turn_id, found)
        await self._events.learn(found)
        return found

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
    reader = ChatReader(engine, row, keys, may_answer=may_answer)
    facts = await reader.stored()
    found = [(entry.seq, await reader.messages(entry)) for entry in facts]
    return ChatReplay(
        messages=tuple(message for seq, messages in found if seq > after for message in messages),
        replay_incomplete=is_cut(row, facts, after),
        last_event_seq=max(after, facts[-1].seq if facts else 0),
        ended=reader.view.ended or not row.is_open,
    )


async def follow_turn(
    engine: Engine,
    row: TurnRow,
    after: int = 0,
    *,
    words: LiveWords | None = None,
    keys: Iterable[str] = (),
    may_answer: bool = False,
) -> AsyncGenerator[ChatMessage, None]:
    """The chat of a turn after an event, then what comes, until the turn is over.

    Raises CursorGone where the log does not reach that event."""
    await check_reached(engine.store, row.agent_id, after)
    store, reader = engine.store, ChatReader(engine, row, keys, may_answer=may_answer)
    words = words if words is not None else LiveWords()
    with words.listening(row.agent_id, row.thread_id) as listener:
        async with _Doorbell(store.watch(row.agent_id, thread_id=row.thread_id), listener) as doorbell:
            facts, heard, lines = await reader.stored(), list[Heard](), list[HeardOutput]()
            if is_cut(row, facts, after):
                yield ReplayIncomplete(thread_id=row.thread_id, turn_id=row.turn_id)
            while True:
                for entry in facts:
                    for message in await reader.messages(entry):
                        if entry.seq > after:
                            yield message
                if reader.view.ended:
                    return
                for each in [each for each in heard if reader.knows(each)]:
                    heard.remove(each)
                    for message in reader.view.words(each.step, each.attempt, each.text, each.level):
                        yield message
                for said in lines:  # of a call whose beginning was read, or is shown to nobody
                    for message in reader.view.output(said.call_id, engine.keys().hide(said.text), said.offset):
                        yield message
                await listener.news.wait()
                heard += listener.heard(row.turn_id)  # words may be heard before their request can be read
                lines = listener.heard_output(row.turn_id)
                facts = []
                is_new = not all(map(reader.knows, heard)) or not all(reader.view.runs(said.call_id) for said in lines)
                if doorbell.rang() or is_new:
                    facts = await reader.fresh()
                    now = await store.turn(row.turn_id) if not facts else row
                    if now is None or (not now.is_open and reader.seen >= now.last_seq):
                        return


async def follow_message(
    engine: Engine,
    row: MessageRow,
    after: int = 0,
    *,
    words: LiveWords | None = None,
    keys: Iterable[str] = (),
    may_answer: bool = False,
) -> AsyncGenerator[ChatMessage, None]:
    """The chat of the turn that takes a message, from the message on, also while no turn has taken it yet.

    Raises MessageNotFound for one that no turn will ever take.
    """
    if row.admitted_seq > after:
        yield MessageTaken(
            message_id=row.message_id,
            agent=row.agent_id,
            thread_id=row.thread_id,
            event_seq=row.admitted_seq,
            state=row.state,
            turn_id=row.turn_id or None,
        )
    turn = await turn_of_message(engine, row)
    async with aclosing(follow_turn(engine, turn, after, words=words, keys=keys, may_answer=may_answer)) as messages:
        async for message in messages:
            yield message


async def turn_of_message(engine: Engine, row: MessageRow) -> TurnRow:
    """The turn that takes a message, once there is one."""
    store = engine.store
    watch = store.watch(row.agent_id, thread_id=row.thread_id)
    try:
        while True:
            row = await store.message(row.message_id) or row
            turn = await store.turn(row.turn_id) if row.turn_id else None
            if turn is not None:
                return turn
            if row.state in ("expired", "processed"):
                how = "expired before a turn took it" if row.state == "expired" else "needed no turn"
                raise MessageNotFound(f"message {row.message_id} {how}: there is no chat about it", "Send it again.")
            await watch.wait(timeout=LOOK_AGAIN_SECONDS)
    finally:
        watch.close()


class _Doorbell:
    """Rings with a listener's news whenever the log of its thread has grown, and now and then without a reason."""

    def __init__(self, watch: Watch, listener: Listener) -> None:
        self._watch = watch
        self._listener = listener
        self._has_rung = False
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._ring())
        return self

    async def __aexit__(self, *problem: object) -> None:
        assert self._task is not None
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        self._watch.close()

    def rang(self) -> bool:
        """Has it, since somebody asked last?"""
        rung, self._has_rung = self._has_rung, False
        return rung

    async def _ring(self) -> None:
        while True:
            await self._watch.wait(timeout=LOOK_AGAIN_SECONDS)
            self._has_rung = True
            self._listener.news.set()
