"""Dispatches: claimed once and changed one by one; and agents that came in bundles."""

import asyncio
from typing import Any

from wakeful.ports import DispatchEvent, DispatchRow, ImportedAgent, Store

NOON = 1_800_000_000_000_000


async def claim(store: Store, run_id: str = "run_1", kind: Any = "target", record: str = "{}") -> bool:
    return await store.dispatches.claim(
        run_id, kind, "session_1", "running", record, at=NOON, event="run.started", payload='{"n": 1}'
    )


async def change(store: Store, revision: int, status: str, run_id: str = "run_1") -> bool:
    return await store.dispatches.change(
        run_id, revision, status, '{"a": 2}', at=NOON + 5, event="run.changed", payload="{}"
    )


async def test_a_run_is_claimed_once_and_a_second_claim_changes_nothing(store: Store) -> None:
    assert await claim(store, record='{"a": 1}')
    assert not await claim(store, record='{"a": 9}')
    assert not await claim(store, kind="package")
    row = DispatchRow("run_1", "target", "session_1", "running", '{"a": 1}', 1, NOON, NOON)
    assert await store.dispatches.get("run_1") == row
    assert await store.dispatches.get("run_2") is None
    assert await store.dispatches.events("run_1") == [DispatchEvent(1, NOON, "run.started", '{"n": 1}')]


async def test_of_all_who_claim_at_once_one_wins(store: Store, other: Store) -> None:
    stores = [store, other]
    won = await asyncio.gather(*(claim(stores[at % 2], record=str(at)) for at in range(10)))
    assert sorted(won) == [False] * 9 + [True]
    row = await other.dispatches.get("run_1")
    assert row is not None and row.record == str(won.index(True))


async def test_a_change_names_the_revision_it_is_based_on(store: Store, other: Store) -> None:
    await claim(store)
    won = await asyncio.gather(*(change(each, 1, "cancelling") for each in (store, other, store, other)))
    assert sorted(won) == [False, False, False, True]
    assert await change(store, 2, "cancelled")
    assert not await change(store, 2, "succeeded")
    assert not await change(store, 1, "succeeded", run_id="run_2")
    row = await other.dispatches.get("run_1")
    assert row == DispatchRow("run_1", "target", "session_1", "cancelled", '{"a": 2}', 3, NOON, NOON + 5)
    assert [event.seq for event in await store.dispatches.events("run_1")] == [1, 2, 3]


async def test_events_are_noted_and_read_page_by_page(store: Store) -> None:
    await claim(store)
    for at in range(5):
        assert await store.dispatches.note("run_1", at=NOON + at, event="told", payload=str(at))
    assert not await store.dispatches.note("run_2", at=NOON, event="told", payload="0")
    page = await store.dispatches.events("run_1", after=2, limit=2)
    assert [(event.seq, event.payload) for event in page] == [(3, "1"), (4, "2")]
    assert [event.seq for event in await store.dispatches.events("run_1", after=4)] == [5, 6]
    row = await store.dispatches.get("run_1")
    assert row is not None and row.revision == 1


async def test_runs_are_listed_newest_first_by_kind(store: Store) -> None:
    for name in ("b", "a", "c"):
        await claim(store, name)
    await claim(store, "p", "package")
    assert [row.run_id for row in await store.dispatches.all("target")] == ["c", "a", "b"]
    assert [row.run_id for row in await store.dispatches.all("target", limit=2)] == ["c", "a"]
    assert [row.run_id for row in await store.dispatches.all("package")] == ["p"]


async def test_imported_agents_are_kept_and_replaced_only_when_that_is_said(store: Store, other: Store) -> None:
    assert await store.imported_agents.put("writer", "1", at=NOON, replace=False)
    assert not await other.imported_agents.put("writer", "2", at=NOON, replace=False)
    assert await other.imported_agents.get("writer") == ImportedAgent("writer", "1", NOON)
    assert await other.imported_agents.put("writer", "3", at=NOON + 1, replace=True)
    assert await other.imported_agents.put("editor", "4", at=NOON + 1, replace=True)
    assert await store.imported_agents.get("nobody") is None
    assert await store.imported_agents.all() == [
        ImportedAgent("editor", "4", NOON + 1),
        ImportedAgent("writer", "3", NOON + 1),
    ]


async def test_they_outlive_their_owner_and_a_rebuilding_of_the_rows(backend: Any) -> None:
    store: Store = await backend.open()
    await claim(store)
    await store.imported_agents.put("writer", "1", at=NOON, replace=False)
    await store.rebuild_views()
    await store.close()
    again: Store = await backend.open()
    row = await again.dispatches.get("run_1")
    assert row is not None and row.status == "running"
    assert [event.name for event in await again.dispatches.events("run_1")] == ["run.started"]
    assert [agent.slug for agent in await again.imported_agents.all()] == ["writer"]
    await again.close()
