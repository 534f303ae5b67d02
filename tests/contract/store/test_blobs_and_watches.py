"""Content by its hash, and waking whoever follows a stream."""

import asyncio
import hashlib
from typing import Any

import pytest

from kit.runs.store_facts import (
    AGENT,
    admitted,
    completed,
    interrupt,
    message,
    requested,
    said,
    started,
    tool_started,
)
from wakeful.contracts.content import BlobRef
from wakeful.contracts.errors import StoreDamaged
from wakeful.ports import Feed, Store
from wakeful.store.watches import MOST_KEPT


@pytest.mark.parametrize("size", [0, 1, 1_048_576, 1_048_577], ids=["none", "byte", "row", "file"])
async def test_bytes_are_kept_under_the_hash_of_what_they_are(store: Store, other: Store, size: int) -> None:
    data = b"x" * size
    ref = await store.put_blob(data, "text/plain")
    assert ref == BlobRef(digest="sha256:" + hashlib.sha256(data).hexdigest(), size=size, media_type="text/plain")
    assert await store.put_blob(data, "text/plain") == ref
    assert await other.get_blob(ref.digest) == data


async def test_bytes_that_do_not_match_their_name_are_not_handed_out(store: Store, backend: Any) -> None:
    ref = await store.put_blob(b"what was said", "text/plain")
    await backend.forge_blob(ref.digest)
    with pytest.raises(StoreDamaged, match="does not match its name"):
        await store.get_blob(ref.digest)


async def test_a_blob_that_is_not_there_is_named(store: Store) -> None:
    for name in ("sha256:00", "sha256:" + 64 * "0"):
        with pytest.raises(StoreDamaged, match=name):
            await store.get_blob(name)


@pytest.mark.parametrize("name", ["/dev/zero", "../../etc/passwd", "a\0b", "", 64 * "G"])
async def test_what_is_no_name_of_a_blob_is_never_a_path(store: Store, name: str) -> None:
    with pytest.raises(StoreDamaged):
        await store.get_blob(name)


async def test_a_watch_wakes_for_a_commit_also_for_one_made_before_it_waited(store: Store) -> None:
    watch = store.watch(AGENT)
    await admitted(store)
    await watch.wait()
    waiting = asyncio.ensure_future(watch.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    await store.admit(AGENT, [interrupt()])
    await waiting
    claim = await store.claim("turn_1")
    await store.append(claim, [requested()])
    await watch.wait()
    watch.close()


async def test_a_watch_gives_up_when_its_time_is_over(store: Store) -> None:
    watch = store.watch(AGENT)
    await watch.wait(0.001)
    watch.close()
    watch.close()


async def test_a_watch_wakes_for_what_another_owner_commits(store: Store, other: Store) -> None:
    watch = store.watch(AGENT)
    await other.admit(AGENT, [message()])
    await watch.wait(30)
    assert len(await store.read(AGENT)) == 1
    watch.close()


async def test_a_watch_calls_at_each_commit_until_it_is_closed(store: Store) -> None:
    watch, told = store.watch(AGENT), list[str]()
    watch.call_on_commit(lambda: told.append("news"))
    await admitted(store)
    assert told
    told.clear()
    await store.admit(AGENT, [interrupt()])
    assert told
    watch.close()
    told.clear()
    await store.admit(AGENT, [interrupt()])
    assert told == []


async def test_what_happens_elsewhere_does_not_wake_a_watch(store: Store) -> None:
    watch = store.watch(AGENT)
    await admitted(store, "turn_2", "agent_2")
    waiting = asyncio.ensure_future(watch.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    waiting.cancel()
    watch.close()


async def test_a_watch_wakes_for_its_own_feed_alone(store: Store, other: Store) -> None:
    await admitted(store)
    await store.admit(AGENT, [message("turn_2", thread="side")])
    claim = await store.claim("turn_1")
    feeds: list[tuple[str | None, Feed]] = [
        (None, "all"),
        ("main", "all"),
        ("side", "all"),
        ("main", "outsiders"),
        ("side", "outsiders"),
        ("main", "lease"),
        ("side", "lease"),
    ]
    watches = {feed: store.watch(AGENT, thread_id=feed[0], feed=feed[1]) for feed in feeds}

    async def woken() -> set[tuple[str | None, Feed]]:
        waiting = {feed: asyncio.ensure_future(watch.wait()) for feed, watch in watches.items()}
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        done = {feed for feed, each in waiting.items() if each.done()}
        for each in waiting.values():
            each.cancel()
        return done

    assert await woken() == set()
    await store.append(claim, [requested()])
    assert await woken() == {(None, "all"), ("main", "all")}
    await store.admit(AGENT, [interrupt()])
    assert await woken() == {(None, "all"), ("main", "all"), ("main", "outsiders")}
    await store.release(claim)
    assert await woken() == {("main", "lease")}
    for watch in watches.values():
        watch.close()


async def test_a_thread_that_another_owner_lets_go_wakes_who_waits_for_it(store: Store, other: Store) -> None:
    await admitted(store)
    claim = await other.claim("turn_1")
    watch = store.watch(AGENT, thread_id="main", feed="lease")
    await other.release(claim)
    await watch.wait(30)
    await store.claim("turn_1")
    watch.close()


async def test_closing_the_store_wakes_whoever_waits(store: Store) -> None:
    waiting = asyncio.ensure_future(store.watch(AGENT).wait())
    await asyncio.sleep(0)
    await store.close()
    await waiting


async def test_a_watch_that_keeps_facts_has_what_its_own_store_commits_as_it_is_read(store: Store) -> None:
    everything, thread = store.watch(AGENT, keeps=True), store.watch(AGENT, thread_id="main", keeps=True)
    plain = store.watch(AGENT, thread_id="main")
    await admitted(store)
    await store.admit(AGENT, [message("turn_2", thread="side")])
    claim = await store.claim("turn_1")
    await store.append(claim, [started(), requested()])
    read = await store.read(AGENT)
    assert everything.facts() in (read, None), "a store that others share may have to look"
    await store.append(claim, [completed(), said()])
    await store.admit(AGENT, [interrupt()])
    await store.append(claim, [tool_started()])
    rest = (await store.read(AGENT))[len(read) :]
    assert everything.facts() == rest
    assert thread.facts() in ([each for each in (*read, *rest) if each.fact.thread_id == "main"], None)
    assert (everything.facts(), thread.facts(), plain.facts()) == ([], [], None)
    waiting = asyncio.ensure_future(everything.wait())
    await asyncio.sleep(0)
    assert not waiting.done(), "it was woken for what was taken"
    await store.admit(AGENT, [interrupt()])
    await waiting
    for watch in (everything, thread, plain):
        watch.close()


async def test_a_watch_that_keeps_facts_has_no_gap_where_another_owner_wrote_between(
    store: Store, other: Store
) -> None:
    await admitted(store)
    watch, seen = store.watch(AGENT, thread_id="main", keeps=True), (await store.read(AGENT))[-1].seq
    for who in (store, other, store):
        await who.admit(AGENT, [interrupt()])
    assert watch.facts() in (await store.read(AGENT, after=seen), None)
    await other.admit(AGENT, [interrupt()])
    await watch.wait(30)
    assert watch.facts() in ((await store.read(AGENT))[-1:], None)
    watch.close()


async def test_a_watch_keeps_no_more_than_a_reader_soon_takes(store: Store) -> None:
    await admitted(store)
    watch = store.watch(AGENT, keeps=True)
    for _ in range(MOST_KEPT + 1):
        await store.admit(AGENT, [interrupt()])
    assert watch.facts() is None
    await store.admit(AGENT, [interrupt()])
    assert watch.facts() == (await store.read(AGENT))[-1:], "and begins again"
    watch.close()
