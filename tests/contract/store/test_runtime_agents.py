"""Agents of a runtime on every backend: created once, paused, stopped and let run, and what is due meanwhile."""

import asyncio
from dataclasses import replace

import pytest

from kit.runs.store_facts import AGENT, NOON, THREAD, created, deferred, queued, session
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import EventRefused
from wakeful.contracts.events import AgentRevised, AgentStateChanged
from wakeful.ports import Store


def changed(control: str, *, at: int = NOON + 5, **fields: object) -> Fact:
    return Fact(AgentStateChanged(control=control, changed_by="ada", **fields), at)  # type: ignore[arg-type]


async def due(store: Store, now: int = NOON + 1_000) -> list[tuple[str, str]]:
    return [(row.thread_id, row.subject) for row in await store.due_wakes(now, limit=99)]


async def test_an_agent_is_created_once(store: Store) -> None:
    await store.admit(AGENT, [created(agent_kind="default", created_by="ada")])
    row = await store.runtime_agent(AGENT)
    assert row is not None and (row.kind, row.control, row.changed_by, row.created_at) == (
        "default",
        "running",
        "ada",
        NOON,
    )
    with pytest.raises(EventRefused, match=f"there is an agent {AGENT} already"):
        await store.admit(AGENT, [created()])
    assert len(await store.read(AGENT)) == 1


async def test_a_stream_of_the_library_is_no_agent_of_a_runtime_and_nothing_of_it_is_due(store: Store) -> None:
    await store.admit(AGENT, [session(), queued("m1")])
    assert (await store.runtime_agent(AGENT), await due(store)) == (None, [])
    with pytest.raises(EventRefused, match="is not an agent of a runtime"):
        await store.admit(AGENT, [changed("paused")])


async def test_a_stream_that_becomes_an_agent_of_a_runtime_has_its_messages_due(store: Store) -> None:
    await store.admit(AGENT, [session(), queued("m1")])
    await store.admit(AGENT, [created()])
    assert await due(store) == [(THREAD, "")]


async def test_nothing_of_a_paused_agent_is_due_until_it_runs_again(store: Store) -> None:
    await store.admit(AGENT, [created()])
    for fact in (queued("m1"), queued("m2"), deferred("m2", NOON + 20), queued("m3", thread="side")):
        await store.admit(AGENT, [fact])
    assert len(await due(store)) == 3
    await store.admit(AGENT, [changed("paused")])
    await store.admit(AGENT, [queued("m4", thread="third")])
    assert await due(store) == []
    assert await store.next_wake() is None
    await store.admit(AGENT, [changed("running", at=NOON + 9)])
    assert sorted(await due(store)) == [(THREAD, ""), (THREAD, "m2"), ("side", ""), ("third", "")]
    assert await due(store, NOON) == [(THREAD, ""), ("side", ""), ("third", "")], "each at the time it had before"


async def test_a_pause_with_an_end_is_the_only_thing_of_its_agent_that_is_due(store: Store) -> None:
    await store.admit(AGENT, [created(), queued("m1")])
    await store.admit(AGENT, [changed("paused", resumes_at=NOON + 60)])
    assert await due(store, NOON + 59) == []
    assert await due(store, NOON + 60) == [("main", "agent")]
    row = await store.runtime_agent(AGENT)
    assert row is not None
    back = changed("running", cause="runtime", instead_of=row.changed_at, at=NOON + 60)
    await store.admit(AGENT, [back])
    assert await due(store) == [(THREAD, "")]


async def test_a_change_that_takes_back_an_older_one_is_refused(store: Store) -> None:
    await store.admit(AGENT, [created()])
    await store.admit(AGENT, [changed("paused", cause="budget", resumes_at=NOON + 60)])
    paused = await store.runtime_agent(AGENT)
    assert paused is not None
    await store.admit(AGENT, [changed("stopped")])  # in the same microsecond: still another change
    with pytest.raises(EventRefused, match=f"agent {AGENT} was stopped by ada meanwhile"):
        await store.admit(AGENT, [changed("running", cause="runtime", instead_of=paused.changed_at)])
    row = await store.runtime_agent(AGENT)
    assert row is not None and (row.control, row.resumes_at) == ("stopped", None)
    assert await due(store) == []


async def test_agents_are_listed_by_age_and_those_that_are_held_by_how_long(store: Store) -> None:
    for place, name in enumerate(("b", "a", "c")):
        await store.admit(name, [replace(created(name), at=NOON + place)])
    await store.admit("c", [changed("paused", at=NOON + 7)])
    await store.admit("a", [changed("stopped", at=NOON + 8)])
    first = await store.runtime_agents(limit=2)
    assert [row.agent_id for row in first] == ["b", "a"]
    assert [row.agent_id for row in await store.runtime_agents(after=first[-1])] == ["c"]
    assert [row.agent_id for row in await store.held_agents()] == ["c", "a"]


async def test_a_revision_is_told_by_its_hash(store: Store) -> None:
    await store.admit(AGENT, [created()])
    await store.admit(AGENT, [Fact(AgentRevised(revision="sha256:2", source="file", place="a.yaml"), NOON + 3)])
    row = await store.runtime_agent(AGENT)
    assert row is not None and (row.revision, row.source, row.revised_at) == ("sha256:2", "file", NOON + 3)


async def test_a_watch_of_wakes_hears_of_every_agent(store: Store) -> None:
    watch = store.watch_wakes()
    try:
        await store.admit(AGENT, [created(), queued("m1")])
        await asyncio.wait_for(watch.wait(), 30)
        await store.admit("another", [created("another")])
        await asyncio.wait_for(watch.wait(), 30)
    finally:
        watch.close()
