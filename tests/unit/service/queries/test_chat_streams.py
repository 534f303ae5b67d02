"""Chats while they come: shown as they are committed, and the same as the log has it for whoever comes later."""

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from wakeful import Agent, Runtime, tool
from wakeful.contracts.envelope import StoredFact
from wakeful.errors import AgentNotFound, CursorGone
from wakeful.ports import Store
from wakeful.service.operations.chat import (
    SHOW_CHAT,
    ChatQuery,
    ChatWords,
    MessageName,
    begin_chat,
    follow_chat,
    follow_message_chat,
)
from wakeful.service.operations.operation import OpenStore
from wakeful.service.queries.chat_streams import ChatStream
from wakeful.store.sqlite import SqliteStore
from wakeful.store.watches import MOST_KEPT
from wakeful.testing import scripted
from wakeful.testing.wrapped_store import WrappedStore
from wakeful.views.chat_messages import ChatMessage


class CountedReads(WrappedStore):
    """Counts how often its log is read."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.reads = 0

    async def read(self, agent_id: str, **which: Any) -> list[StoredFact]:
        self.reads += 1
        return await self.inner.read(agent_id, **which)


@tool(effect="pure")
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


ROUNDS = 30


@asynccontextmanager
async def at_home(folder: Path) -> AsyncIterator[tuple[Runtime, OpenStore, CountedReads]]:
    """A runtime, and what its surfaces ask, through a store whose reads are counted."""
    adding = [{"calls": [{"name": "add", "arguments": {"a": number, "b": 1}}]} for number in range(ROUNDS)]
    clerk, adder = (
        Agent("clerk", scripted(lambda _: "All is well.")),
        Agent("adder", scripted([*adding, "Done."]), tools=[add]),
    )
    async with Runtime(folder / "home", agents=[clerk, adder]) as rt:
        store = CountedReads(rt._here.engine.store)
        engine = replace(rt._here.engine, store=store)
        yield rt, OpenStore(store, lambda _: engine, frozenset, rt._here), store


async def whole(chat: ChatStream) -> list[ChatMessage]:
    async with aclosing(chat):
        rest = [message async for messages in chat for message in messages]
    return [*([] if chat.first is None else [chat.first]), *rest]


def stored(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Those that stand for a fact. Of a reply, what was not shown yet when it was stored depends on who listened."""
    found = [each for each in messages if getattr(each, "event_seq", None) is not None]
    return [each.model_copy(update={"content": ""}) if each.type == "chunk" else each for each in found]


def words(messages: Sequence[ChatMessage]) -> str:
    return "".join(each.content for each in messages if each.type == "chunk")


async def test_a_chat_is_shown_as_it_is_committed_and_nothing_of_it_is_read_back(tmp_path: Path) -> None:
    async with at_home(tmp_path) as (_, opened, store):
        sent, chat = await begin_chat(opened, ChatWords("clerk", "How is it?", sender="ops"))
        seen = await whole(chat)
        assert store.reads == 0
        assert seen[0].type == "message_taken" and words(seen) == "All is well."
        turn = next(each.turn_id for each in seen if each.type == "turn_terminal")
        again = await SHOW_CHAT.handler(opened, ChatQuery(turn))
        assert stored(seen[1:]) == stored(again.messages)
        later = await whole(await follow_message_chat(opened, MessageName(sent.message_id), may_answer=False))
        assert (later[0].type, stored(later[1:])) == ("message_taken", stored(again.messages))
        assert store.reads > 0


async def test_a_reader_that_stopped_reads_on_in_the_log_and_misses_nothing(tmp_path: Path) -> None:
    async with at_home(tmp_path) as (rt, opened, store):
        sent, chat = await begin_chat(opened, ChatWords("adder", "Add.", sender="ops"))
        slow = await anext(chat)
        await rt.answer(sent.message_id)
        head = await store.head("adder")
        assert head > 2 * MOST_KEPT, "more than is kept for anybody"
        seen = [*slow, *(await whole(chat))[1:]]
        turn = next(each.turn_id for each in seen if each.type == "turn_terminal")
        again = await SHOW_CHAT.handler(opened, ChatQuery(turn))
        assert stored(seen) == stored(again.messages)
        assert len([each for each in seen if each.type == "tool_call_update" and each.status == "end"]) == ROUNDS
        assert store.reads > 0
        after = next(each.event_seq for each in seen if each.type == "tool_call_update" and each.event_seq is not None)
        rest = await whole(await follow_chat(opened, ChatQuery(turn, after), may_answer=True))
        assert stored(rest) == [each for each in stored(seen) if (each.event_seq or 0) > after]
        with pytest.raises(CursorGone):
            await whole(await follow_chat(opened, ChatQuery(turn, head + 1), may_answer=True))


async def test_a_chat_that_nobody_reads_leaves_nothing_behind(tmp_path: Path) -> None:
    async with at_home(tmp_path) as (_, opened, store):
        assert isinstance(store.inner, SqliteStore)
        _, chat = await begin_chat(opened, ChatWords("clerk", "How is it?", sender="ops"))
        assert len(store.inner._watches._keeping) == 1
        await chat.aclose()
        with pytest.raises(AgentNotFound):
            await begin_chat(opened, ChatWords("nobody", "How is it?", sender="ops"))
        assert not store.inner._watches._keeping and "nobody" not in store.inner._heads
