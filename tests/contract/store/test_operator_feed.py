"""The feed over all agents: what operators see, in the order of commits, on every backend."""

import asyncio

from contract.store.conftest import Backend
from kit.runs.store_facts import AGENT, NOON, THREAD, claimed, ended, queued, said, started, takes, tool_result
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import AssistantItem, CallPart
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import AgentCreated, AssistantRecorded, BriefCreated, CallAsked, NoticeRequested
from wakeful.ports import Store
from wakeful.ports.operator_feed import FEED, FeedRow
from wakeful.ports.retention import left_upto
from wakeful.testing.crash_rows import find_misfits

TURN = "turn_f"


def created(name: str) -> Fact:
    return Fact(AgentCreated(agent_name=name), NOON)


def asked_for(tool: str = "look", *, level: str | None = None) -> Fact:
    item = AssistantItem(parts=(Text("Looking."), CallPart(call_id="c1", name=tool, arguments={})))
    event = AssistantRecorded(item=item, calls=(CallAsked(call_id="c1", name=tool),), text_preview="Looking.")
    return Fact(event, NOON, THREAD, TURN, 1, level=level)


def told(name: str, at: int = NOON) -> Fact:
    return Fact(NoticeRequested(words=f"{name}?", requested_by="ada"), at, THREAD)


def answered() -> Fact:
    event = AssistantRecorded(item=AssistantItem(parts=(Text("Done."),)), text_preview="Done.")
    return Fact(event, NOON, THREAD, TURN, 2)


def brief() -> Fact:
    return Fact(BriefCreated(brief_id="b1", brief_kind="result", text="Done."), NOON, THREAD, TURN)


async def a_turn(store: Store, agent: str) -> None:
    await store.admit(agent, [created(agent), queued("m1")])
    claim = await store.claim_thread(agent, THREAD, TURN)
    await store.append(claim, [takes(TURN, "m1"), asked_for()])
    await store.append(claim, [tool_result(TURN)])
    await store.append(claim, [answered(), brief(), ended(TURN)], last=True)


async def positions(store: Store) -> list[tuple[int, str, int]]:
    return [(row.position, row.agent_id, row.seq) for row in await store.feed_after(0, limit=100)]


async def test_what_an_operator_sees_has_a_row_and_the_rest_of_a_round_has_none(store: Store, other: Store) -> None:
    await a_turn(store, "ops")
    kinds = {entry.seq: entry.fact.event.kind for entry in await store.read("ops")}
    rows = await other.feed_after(0, limit=100)
    assert [(row.position, kinds[row.seq], row.visibility, row.category, row.is_result) for row in rows] == [
        (1, "message.admitted", "progress", "message", False),
        (2, "assistant.recorded", "progress", "assistant_progress", False),
        (3, "tool.result", "trace", "tool", False),
        (4, "brief.created", "turn_result", "brief", True),
    ], "the reply that ends the turn and its end are told by the brief"
    assert len(kinds) > 6


async def test_runs_of_the_library_are_not_in_it(store: Store) -> None:
    claim = await claimed(store)
    await store.append(claim, [started(), said(), tool_result(), ended()])
    assert await store.feed_after(0, limit=9) == []
    assert await store.newest_of_feed(AGENT, limit=9) == []


async def test_its_order_is_that_of_commits_whatever_the_clocks_say(store: Store, other: Store) -> None:
    for name in ("b", "a"):
        await store.admit(name, [created(name)])
    await store.admit("b", [told("one", at=NOON + 9)])
    await other.admit("a", [told("two", at=NOON + 1)])
    await store.admit("b", [told("three", at=NOON)])
    rows = await store.feed_after(0, limit=9)
    assert [(row.agent_id, row.at - NOON) for row in rows] == [("b", 9), ("a", 1), ("b", 0)]
    assert [row.position for row in rows] == sorted(row.position for row in rows)
    assert await store.feed_after(rows[0].position, limit=1) == rows[1:2]
    assert await store.newest_of_feed(limit=2) == rows[:0:-1]
    assert await store.newest_of_feed("b", limit=1) == rows[2:]


async def test_results_are_found_without_the_rest(store: Store) -> None:
    await a_turn(store, "ops")
    (result,) = await store.feed_after(0, limit=9, results=True)
    assert result.visibility == "turn_result"
    assert await store.newest_of_feed(limit=9, results=True) == [result]
    assert await store.newest_of_feed("ops", limit=9, results=True) == [result]
    assert await store.feed_after(result.position, limit=9, results=True) == []


async def test_a_row_keeps_its_number_when_rows_are_made_again(store: Store, backend: Backend) -> None:
    await a_turn(store, "b")
    await store.admit("a", [created("a"), told("x")])
    await store.admit("b", [told("y")])
    before = await positions(store)
    await store.rebuild_views()
    assert await positions(store) == before
    await store.admit("a", [told("z")])
    assert await positions(store) == [*before, (before[-1][0] + 1, "a", 3)]
    assert await find_misfits(store) == []


async def test_the_oldest_rows_leave_by_age_and_no_number_is_given_twice(store: Store, other: Store) -> None:
    await store.admit("a", [created("a")])
    for place in range(5):
        await store.admit("a", [told(f"n{place}", at=NOON + place)])
    would = await store.retention.expire_rows(FEED, before=NOON + 3, dry=True)
    assert would.items == 3 and len(await positions(store)) == 5
    assert (await store.retention.expire_rows(FEED, before=NOON + 3)).items == 3
    assert [at for at, *_ in await positions(other)] == [4, 5]
    assert left_upto(await other.retention.retention_mark("feed")) == 3
    await store.rebuild_views()
    assert [at for at, *_ in await positions(other)] == [4, 5], "a rebuild brings none of them back"
    assert await find_misfits(store) == []
    assert (await store.retention.expire_rows(FEED, before=NOON + 99)).items == 1
    assert [at for at, *_ in await positions(store)] == [5], "the newest stays"
    await store.admit("a", [told("new", at=NOON + 100)])
    assert [at for at, *_ in await positions(store)] == [5, 6]
    assert (await store.retention.expire_rows(FEED, before=NOON)).items == 0


async def test_a_watch_of_the_feed_is_woken_by_new_rows_and_by_no_other_commit(store: Store, other: Store) -> None:
    await store.admit("ops", [created("ops"), queued("m1")])
    watch = store.watch_feed()
    try:
        claim = await store.claim_thread("ops", THREAD, TURN)
        await store.append(claim, [takes(TURN, "m1")])
        waiting = asyncio.ensure_future(watch.wait())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not waiting.done(), "no row was added"
        await store.append(claim, [asked_for()])
        await waiting
        await other.admit("ops", [told("elsewhere")])
        await watch.wait()
        newest = await store.newest_of_feed(limit=1)
        assert [row.category for row in newest] == ["operator_notification"]
    finally:
        watch.close()


async def test_a_log_that_is_taken_in_is_told_behind_what_was_there(store: Store) -> None:
    from wakeful.store.memory import MemoryStore

    elsewhere = MemoryStore()
    await a_turn(elsewhere, "ops")
    log = await elsewhere.transfer.stored_log("ops")
    assert log is not None
    await store.admit("a", [created("a"), told("here")])
    watch = store.watch_feed()
    try:
        await store.transfer.take_in(log)
        await watch.wait()
        there = [seq for _, agent, seq in await positions(elsewhere)]
        assert await positions(store) == [(1, "a", 2), *((at, "ops", seq) for at, seq in enumerate(there, 2))]
        assert await find_misfits(store) == []
    finally:
        watch.close()
        await elsewhere.close()


async def test_inversion_rows_out_of_order_are_found() -> None:
    from wakeful.testing.crash_rows import _are_in_order

    rows = [FeedRow(at, "a", seq, "progress", "message", False, NOON) for seq, at in ((1, 2), (2, 1))]
    assert not _are_in_order(FEED, rows)
    assert _are_in_order(FEED, rows[::-1][:1])
