"""What is told of agents: added up over their threads and their single runs."""

from typing import Any

import pytest

from kit.runs.store_facts import claimed, message, queued, session, started
from wakeful import Agent, run
from wakeful.ports.turns import TURNS, TURNS_BY_AGE
from wakeful.service.queries.status import agents_status
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted
from wakeful.testing.wrapped_store import WrappedStore


def said(tokens: int) -> Any:
    usage = {"input_tokens": tokens, "output_tokens": 0, "total_tokens": tokens}
    return {"text": "done", "usage": usage} if tokens else "done"


async def test_the_last_turn_is_the_newest_that_reported_in_whichever_conversation() -> None:
    store = MemoryStore()
    assert await agents_status(store) == []
    for thread, tokens in (("t", 1), (None, 2), ("t", 0)):
        await run(Agent("any", scripted([said(tokens)])), "go", store=store, thread=thread)
    (status,) = await agents_status(store)
    used = status.token_usage
    assert used.last_turn is not None
    assert (used.total.total_tokens, used.total_model_rounds, used.last_turn.total_tokens) == (3, 3, 2)
    await run(Agent("any", scripted([said(4)])), "go", store=store, thread="t")
    await run(Agent("other", scripted([said(9)])), "go", store=store)
    one, other = await agents_status(store)
    assert one.token_usage.last_turn is not None and other.token_usage.last_turn is not None
    assert (one.token_usage.last_turn.total_tokens, other.token_usage.last_turn.total_tokens) == (4, 9)
    assert [each.agent for each in await agents_status(store, "other")] == ["other"]


async def test_messages_that_no_turn_has_taken_are_counted() -> None:
    store = MemoryStore()
    claim = await claimed(store, "t1")
    assert [(each.open_turns, each.queued_messages) for each in await agents_status(store)] == [(1, 1)]
    await store.append(claim, [started("t1")])
    await store.admit(claim.agent_id, [message("t2")])
    await store.admit(claim.agent_id, [message("t3", thread="side")])
    assert [(each.open_turns, each.queued_messages) for each in await agents_status(store)] == [(3, 2)]
    await store.admit("quiet", [session("quiet"), queued("q1")])
    await store.admit("quiet", [queued("q2", thread="side")])
    told = {each.agent: (each.open_turns, each.queued_messages) for each in await agents_status(store)}
    assert told["quiet"] == (0, 2), "a message counts for its agent before any turn is opened for it"


class Page(WrappedStore):
    """Refuses to list what grows."""

    async def list_rows(self, table: Any, query: Any, *equal: Any, limit: int | None = None, **place: Any) -> Any:
        assert table is not TURNS or limit is not None, "every turn of the store"
        return await super().list_rows(table, query, *equal, limit=limit, **place)


async def test_no_list_of_all_turns_is_asked_for_and_the_last_is_found_behind_a_page_that_told_nothing() -> None:
    store = MemoryStore()
    for thread in ("t", None):
        await run(Agent("any", scripted([said(7)])), "go", store=store, thread=thread)
    for _ in range(25):
        await run(Agent("any", scripted([said(0)])), "go", store=store, thread="t")
    (status,) = await agents_status(Page(store))
    assert status.token_usage.last_turn is not None
    assert (status.token_usage.last_turn.total_tokens, status.token_usage.total_model_rounds) == (7, 27)
    with pytest.raises(AssertionError, match="every turn"):
        await Page(store).list_rows(TURNS, TURNS_BY_AGE)
