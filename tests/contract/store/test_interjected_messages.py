"""A message of the queue that is said to a turn under way, on every backend: it enters the turn, or stays first."""

from kit.runs.store_facts import AGENT, NOON, THREAD, created, ended, queued, takes
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import TurnInterjected
from wakeful.ports import BusyThread, Store


def said_to(turn: str, name: str) -> list[Fact]:
    """A message that is admitted and interjected in one."""
    event = TurnInterjected(message_id=name, item=UserItem(parts=(Text("also"),)), said_by="ada")
    return [queued(name, priority="interject"), Fact(event, NOON, THREAD, turn)]


async def test_it_enters_the_turn_and_ends_with_it(store: Store) -> None:
    await store.admit(AGENT, [created(), queued("m1")])
    claim = await store.claim_thread(AGENT, THREAD, "turn_i")
    await store.append(claim, [takes("turn_i", "m1")])
    await store.admit(AGENT, said_to("turn_i", "m2"))
    row = await store.message("m2")
    assert row is not None and (row.state, row.turn_id, row.band) == ("interjected", "turn_i", 0)
    assert await store.queued(AGENT, THREAD) == []
    assert await store.busy_threads(AGENT) == [BusyThread(AGENT, THREAD, 1, 0)]
    seen = await store.append(claim, [])
    assert [entry.fact.event.kind for entry in seen] == ["turn.interjected"], "its owner hears of it"
    await store.append(claim, [ended("turn_i")])
    await store.release(claim)
    row = await store.message("m2")
    assert row is not None and row.state == "processed"
    assert await store.busy_threads(AGENT) == []


async def test_where_the_turn_was_over_first_it_is_the_next_of_the_queue(store: Store) -> None:
    await store.admit(AGENT, [created(), queued("m1")])
    claim = await store.claim_thread(AGENT, THREAD, "turn_i")
    await store.append(claim, [takes("turn_i", "m1")])
    await store.append(claim, [ended("turn_i")])
    await store.release(claim)
    await store.admit(AGENT, [queued("m0")])
    await store.admit(AGENT, said_to("turn_i", "m2"))
    assert [row.message_id for row in await store.queued(AGENT, THREAD)] == ["m2", "m0"]
    assert await store.busy_threads(AGENT) == [BusyThread(AGENT, THREAD, 0, 2)]
    assert [wake.cause for wake in await store.due_wakes(NOON + 1, limit=9)] == ["message"], "and it is due"
