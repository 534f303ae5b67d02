"""Workflows in a store: revisions that never change, under a name that means one of them."""

import asyncio
from typing import Any

import pytest

from wakeful.contracts.errors import WorkflowNameTaken, WorkflowNotFound
from wakeful.ports import Store, WorkflowRow

NOON = 1_800_000_000_000_000


async def save(
    store: Store, name: str = "digest", graph: str = "{}", *, new_id: str = "wf_1", workflow_id: str | None = None
) -> WorkflowRow:
    return await store.save_workflow(name, graph, new_id=new_id, created_at=NOON, workflow_id=workflow_id)


async def test_saving_makes_a_new_revision_and_keeps_the_old_one(store: Store) -> None:
    first = await save(store, graph='{"a": 1}')
    second = await save(store, graph='{"a": 2}', new_id="wf_2")
    assert first == WorkflowRow("wf_1", 1, "digest", '{"a": 1}', NOON)
    assert second == WorkflowRow("wf_1", 2, "digest", '{"a": 2}', NOON)
    assert await store.workflow("wf_1") == second
    assert await store.workflow("wf_1", 1) == first
    assert await store.workflow("wf_1", 3) is None
    assert await store.workflow("wf_2") is None


async def test_the_newest_revision_of_each_is_listed_by_name(store: Store) -> None:
    await save(store, "digest", new_id="wf_1")
    await save(store, "archive", new_id="wf_2")
    await save(store, "digest", "[]", new_id="wf_3")
    assert [(row.name, row.workflow_id, row.revision) for row in await store.workflows()] == [
        ("archive", "wf_2", 1),
        ("digest", "wf_1", 2),
    ]


async def test_a_workflow_named_by_its_id_may_get_another_name(store: Store) -> None:
    await save(store, "digest")
    renamed = await save(store, "weekly", new_id="wf_2", workflow_id="wf_1")
    assert (renamed.workflow_id, renamed.revision, renamed.name) == ("wf_1", 2, "weekly")
    # The old name is free: it means no workflow now.
    assert (await save(store, "digest", new_id="wf_3")).workflow_id == "wf_3"


async def test_an_id_that_is_not_there_and_a_name_that_is_taken_save_nothing(store: Store) -> None:
    await save(store, "digest", new_id="wf_1")
    await save(store, "archive", new_id="wf_2")
    before = await store.workflows()
    with pytest.raises(WorkflowNotFound, match="wf_9"):
        await save(store, "other", workflow_id="wf_9")
    with pytest.raises(WorkflowNameTaken, match="wf_1 is called 'digest'"):
        await save(store, "digest", workflow_id="wf_2")
    assert await store.workflows() == before


async def test_a_key_saves_once(store: Store) -> None:
    """A program that was killed after it saved, and saves again, gets what it saved."""
    first = await store.save_workflow("digest", "1", new_id="wf_1", created_at=NOON, key="call_1")
    again = await store.save_workflow("digest", "2", new_id="wf_2", created_at=NOON + 1, key="call_1")
    assert again == first
    assert await store.workflows() == [first]
    other = await store.save_workflow("digest", "2", new_id="wf_2", created_at=NOON, key="call_2")
    assert other.revision == 2
    await store.delete_workflow("wf_1")
    assert (await store.save_workflow("digest", "1", new_id="wf_3", created_at=NOON, key="call_1")).revision == 1


async def test_deleting_forgets_every_revision(store: Store) -> None:
    await save(store)
    await save(store)
    assert await store.delete_workflow("wf_1") is True
    assert await store.delete_workflow("wf_1") is False
    assert await store.workflow("wf_1") is None
    assert await store.workflows() == []


async def test_all_who_save_at_once_get_a_revision_of_their_own(store: Store, other: Store) -> None:
    stores = [store, other]
    saved = await asyncio.gather(*(save(stores[at % 2], graph=str(at), new_id=f"wf_{at}") for at in range(10)))
    assert {row.workflow_id for row in saved} == {saved[0].workflow_id}
    assert sorted(row.revision for row in saved) == list(range(1, 11))
    for row in saved:
        assert await stores[0].workflow(row.workflow_id, row.revision) == row


async def test_they_outlive_their_owner_and_a_rebuilding_of_the_rows(backend: Any) -> None:
    store: Store = await backend.open()
    row = await save(store)
    await store.rebuild_views()
    assert await store.workflows() == [row]
    await store.close()
    again = await backend.open()
    assert await again.workflows() == [row]
    await again.close()
