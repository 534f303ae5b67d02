"""Content by its hash, and waking whoever follows a stream."""

import asyncio
import hashlib
from typing import Any

import pytest

from store_facts import AGENT, admitted, interrupt, message, requested
from wakeful.contracts.content import BlobRef
from wakeful.contracts.errors import StoreDamaged
from wakeful.ports import Store


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
    with pytest.raises(StoreDamaged, match="sha256:00"):
        await store.get_blob("sha256:00")


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


async def test_what_happens_elsewhere_does_not_wake_a_watch(store: Store) -> None:
    watch = store.watch(AGENT)
    await admitted(store, "turn_2", "agent_2")
    waiting = asyncio.ensure_future(watch.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    waiting.cancel()
    watch.close()


async def test_closing_the_store_wakes_whoever_waits(store: Store) -> None:
    waiting = asyncio.ensure_future(store.watch(AGENT).wait())
    await asyncio.sleep(0)
    await store.close()
    await waiting
