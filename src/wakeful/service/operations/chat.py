"""What may be asked about a chat with an agent of a runtime: say something, and follow the turn that answers it.

`begin_chat`, `follow_chat` and `follow_message_chat` are the same with what comes: surfaces make streams of them.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wakeful.contracts.messages import Priority
from wakeful.service.operations.operation import OpenStore, Operation
from wakeful.service.operations.turns import EventQuery, read_events, told_turn

if TYPE_CHECKING:
    from wakeful.contracts.envelope import RuntimeEvent
    from wakeful.service.queries.chat_streams import ChatFollower, ChatStream
    from wakeful.views.chat_messages import ChatReplay
    from wakeful.views.runtime_records import SentMessage


@dataclass(frozen=True, slots=True)
class ChatWords:
    """Something to say to an agent in one of its threads."""

    agent: str
    text: str
    thread: str = "main"
    key: str | None = None
    """The same key again is the same message: nothing is said twice, and no second turn is begun."""
    priority: Priority = "normal"
    supersede: bool = False
    """Stop the turns of the thread that began before: their answers are not wanted any more."""
    sender: str = ""


@dataclass(frozen=True, slots=True)
class MessageName:
    """A message by its id."""

    message: str


@dataclass(frozen=True, slots=True)
class ChatQuery:
    """The chat of a turn after the last of its events that is known."""

    turn: str | None = None
    after: int = 0


async def _say(opened: OpenStore, asked: ChatWords) -> "SentMessage":
    from wakeful.service.operations.runtime import SEND, MessageToAgent

    message = MessageToAgent(
        asked.agent, asked.text, asked.thread, asked.key, asked.priority, asked.sender, True, asked.supersede
    )
    return await SEND.handler(opened, message)


async def _message(opened: OpenStore, asked: MessageName) -> "SentMessage":
    from wakeful.service.queries.runtime_agents import find_message, sent_message

    return sent_message(await find_message(opened.store, asked.message))


async def _chat(opened: OpenStore, asked: ChatQuery) -> "ChatReplay":
    from wakeful.service.queries.chat_streams import chat_replay

    row = await told_turn(opened, asked.turn)
    return await chat_replay(opened.engine, row, asked.after, keys=opened.keys())


async def check_place(opened: OpenStore, asked: ChatWords, after: int) -> None:
    """Before anything is said: raises CursorGone where the agent's log does not reach the place to go on from."""
    from wakeful.service.queries.event_cursors import check_reached

    if after:
        await check_reached(opened.store, asked.agent, after)


async def begin_chat(opened: OpenStore, asked: ChatWords, after: int = 0) -> "tuple[SentMessage, ChatStream]":
    """Say something, and follow the turn that takes it, until that turn is over.

    Its thread is followed from before the message on: what is committed here need not be read again.
    """
    follower = _follower(opened, after, may_answer=True)
    watch = follower.watch(asked.agent, asked.thread)
    try:
        sent = await SAY.handler(opened, asked)
    except BaseException:
        watch.close()
        raise
    if (sent.agent, sent.thread, sent.turn_id) == (asked.agent, asked.thread, None):
        return sent, follower.message(sent, watch)
    watch.close()
    return sent, follower.message(sent)


async def follow_chat(opened: OpenStore, asked: ChatQuery, *, may_answer: bool) -> "ChatStream":
    """The chat of a turn, then what comes, until the turn is over. Raises TurnNotFound."""
    return _follower(opened, asked.after, may_answer=may_answer).turn(await told_turn(opened, asked.turn))


async def follow_message_chat(
    opened: OpenStore, asked: MessageName, after: int = 0, *, may_answer: bool
) -> "ChatStream":
    """The chat of the turn that takes a message, until that turn is over. Raises MessageNotFound."""
    return _follower(opened, after, may_answer=may_answer).message(await SHOW_MESSAGE.handler(opened, asked))


def _follower(opened: OpenStore, after: int, *, may_answer: bool) -> "ChatFollower":
    from wakeful.service.live_words import LiveWords
    from wakeful.service.queries.chat_streams import ChatFollower

    words = opened.living.words if opened.living is not None else LiveWords()
    return ChatFollower(opened.engine, after, words, opened.keys(), may_answer)


async def follow_message_events(
    opened: OpenStore, asked: MessageName, after: int = 0
) -> "AsyncGenerator[RuntimeEvent, None]":
    """The events of the turn that takes a message, until that turn is over. Raises MessageNotFound."""
    from wakeful.service.queries.chat_streams import turn_of_message
    from wakeful.service.queries.runtime_agents import find_message

    turn = await turn_of_message(opened.engine, await find_message(opened.store, asked.message))
    events = read_events(opened, EventQuery(turn.turn_id, after), follow_it=True)
    async with aclosing(events):
        async for event in events:
            yield event


async def cancel_answer(opened: OpenStore, asked: MessageName, *, by: str) -> None:
    """Have the turn of a message stopped, as soon as there is one."""
    from wakeful.service.commands.interruption import cancel_turn
    from wakeful.service.queries.chat_streams import turn_of_message
    from wakeful.service.queries.runtime_agents import find_message

    turn = await turn_of_message(opened.engine, await find_message(opened.store, asked.message))
    await cancel_turn(opened.engine, turn.turn_id, requested_by=by)


_SENT = "wakeful.views.runtime_records.SentMessage"
SAY = Operation("runtime.say", "operate", ChatWords, _SENT, _say)
SHOW_MESSAGE = Operation("runtime.message", "observe", MessageName, _SENT, _message)
SHOW_CHAT = Operation("runtime.chat", "observe", ChatQuery, "wakeful.views.chat_messages.ChatReplay", _chat)
