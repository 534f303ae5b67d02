"""What leaves a store: bodies of events, whole logs of temporary agents, blobs that nothing refers to."""

from typing import Any

import pytest

from kit.runs.store_facts import AGENT, NOON, THREAD, claimed, ended, message, requested, session, started
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import EventRefused, StoreDamaged
from wakeful.contracts.events import (
    ContextResolved,
    EventExpired,
    HistoryImported,
    LogCheckpointed,
    OutputExpired,
    OutputSpilled,
    SessionStarted,
    ThreadCheckpointed,
    ToolCatalogResolved,
)
from wakeful.ports import Store, TurnRow
from wakeful.ports.retention import FreedSpace
from wakeful.ports.turns import TURNS
from wakeful.testing.crash_rows import find_misfits

LATER = NOON + 1_000_000
DETAILS = frozenset({"tool.catalog.resolved", "context.resolved"})


def temporary(name: str = "calc") -> Fact:
    return Fact(SessionStarted(agent_name=name, temporary=True), NOON)


async def one_turn(store: Store, *, key: str | None = None, begin: Fact | None = None) -> None:
    await store.admit(AGENT, [begin or temporary(), message(key=key)])
    claim = await store.claim("turn_1")
    context = ContextResolved(context_id="ctx_1", tokens_used=8, tokens_are_estimate=True, context_build_ms=0.1)
    facts = [started("turn_1"), Fact(context, NOON, THREAD, "turn_1"), requested(), ended()]
    await store.append(claim, facts, last=True)


async def kinds(store: Store) -> list[str]:
    return [entry.fact.event.kind for entry in await store.read(AGENT)]


async def test_the_body_of_an_event_goes_its_place_and_the_chain_stay(store: Store, other: Store) -> None:
    await one_turn(store)
    before = await store.read(AGENT)
    row = await store.turn("turn_1")
    assert row is not None
    freed = await store.retention.expire_events(row, DETAILS)
    assert (freed.items, freed.more) == (1, None)
    after = await other.read(AGENT)
    place = [entry.fact.event.kind for entry in before].index("context.resolved")
    assert after[place].fact.event == EventExpired(event_type="context.resolved")
    assert (after[place].seq, after[place].fact.at, after[place].fact.turn_id) == (place + 1, NOON, "turn_1")
    assert [*after[:place], *after[place + 1 :]] == [*before[:place], *before[place + 1 :]]
    assert await other.verify() == []
    assert await store.retention.expire_events(row, DETAILS) == FreedSpace()


async def test_rows_are_the_same_when_they_are_made_again_from_a_log_with_expired_events(store: Store) -> None:
    await one_turn(store)
    row = await store.turn("turn_1")
    assert row is not None
    await store.retention.expire_events(row, DETAILS)
    assert await find_misfits(store) == []


async def test_nothing_of_a_turn_that_is_open_expires(store: Store) -> None:
    claim = await claimed(store)
    context = ContextResolved(context_id="ctx_1", tokens_used=8, tokens_are_estimate=True, context_build_ms=0.1)
    await store.append(claim, [started("turn_1"), Fact(context, NOON, THREAD, "turn_1")])
    row = await store.turn("turn_1")
    assert row is not None and row.is_open
    assert await store.retention.expire_events(row, DETAILS) == FreedSpace()
    assert "event.expired" not in await kinds(store)


async def test_a_changed_byte_in_a_row_with_expired_events_is_found(store: Store, backend: Any) -> None:
    await one_turn(store)
    row = await store.turn("turn_1")
    assert row is not None
    await store.retention.expire_events(row, DETAILS)
    await backend.forge(AGENT, 3)
    with pytest.raises(StoreDamaged, match="is not what was written"):
        await store.read(AGENT)


async def test_an_expired_event_cannot_be_written(store: Store) -> None:
    claim = await claimed(store)
    with pytest.raises(EventRefused, match="cannot be written"):
        await store.append(claim, [Fact(EventExpired(event_type="turn.started"), NOON, THREAD, "turn_1")])


async def many_rows(store: Store, begin: Fact | None = None) -> TurnRow:
    """A turn of 40 rows and more that has ended."""
    await store.admit(AGENT, [begin or session(), message()])
    claim = await store.claim("turn_1")
    context = ContextResolved(context_id="ctx_1", tokens_used=8, tokens_are_estimate=True, context_build_ms=0.1)
    await store.append(claim, [started("turn_1"), Fact(context, NOON, THREAD, "turn_1")])
    for _ in range(40):
        await store.append(claim, [requested()])
    await store.append(claim, [ended()], last=True)
    row = await store.turn("turn_1")
    assert row is not None
    return row


async def test_rows_that_are_stored_together_are_read_as_they_were(store: Store, other: Store) -> None:
    await many_rows(store)
    before, of_turn = await store.read(AGENT), await store.read(AGENT, turn_id="turn_1")
    assert await store.retention.bundle_rows(AGENT, before=NOON) == FreedSpace(), "they are not from before that"
    freed = await store.retention.bundle_rows(AGENT, before=LATER)
    assert (freed.items >= 40, freed.bytes > 0) in ((True, True), (False, False))  # in memory there is nothing to gain
    assert (await store.retention.bundle_rows(AGENT, before=LATER)).items == 0
    for each in (store, other):
        assert await each.read(AGENT) == before
        assert await each.read(AGENT, turn_id="turn_1") == of_turn
        assert await each.verify() == []
        assert await find_misfits(each) == []
    await other.admit(AGENT, [message("turn_2", at=LATER)])
    assert [entry.seq for entry in await store.read(AGENT)] == [*range(1, len(before) + 2)]
    await store.rebuild_views()
    assert await store.verify() == []
    log = await store.transfer.stored_log(AGENT)
    assert log is not None
    assert [bool(row.header) for row in log.rows] == [True] * len(log.rows)


async def test_events_expire_from_rows_that_are_stored_together(store: Store, other: Store) -> None:
    row = await many_rows(store)
    before = await store.read(AGENT)
    await store.retention.bundle_rows(AGENT, before=LATER)
    assert (await store.retention.expire_events(row, DETAILS, dry=True)).items == 1
    assert (await store.retention.expire_events(row, DETAILS)).items == 1
    after = await other.read(AGENT)
    gone = [old.fact.event.kind for old, new in zip(before, after, strict=True) if old != new]
    assert gone == ["context.resolved"]
    assert await other.verify() == []
    await store.retention.bundle_rows(AGENT, before=LATER, anew=True)
    assert await other.read(AGENT) == await store.read(AGENT) == after


async def test_a_log_in_bundles_becomes_one_checkpoint_as_any_other(store: Store, other: Store) -> None:
    await many_rows(store, temporary())
    await store.retention.bundle_rows(AGENT, before=LATER)
    await store.retention.cut_log(AGENT, now=LATER, before=LATER)
    assert await kinds(other) == ["log.checkpointed"]
    assert await other.verify() == []


async def test_the_log_of_a_temporary_agent_becomes_one_checkpoint_and_goes_on_from_there(
    store: Store, other: Store
) -> None:
    await one_turn(store)
    freed = await store.retention.cut_log(AGENT, now=LATER, before=LATER)
    assert freed.items > 0
    (entry,) = await other.read(AGENT)
    assert isinstance(entry.fact.event, LogCheckpointed)
    assert entry.seq == entry.fact.event.upto + 1
    assert await other.turn("turn_1") is None
    assert await other.verify() == []
    await other.admit(AGENT, [message("turn_2", at=LATER)])
    assert await kinds(store) == ["log.checkpointed", "message.admitted"]
    assert await store.verify() == []
    assert await find_misfits(store) == []


async def test_costs_of_a_log_that_is_gone_stay_also_when_rows_are_made_again(store: Store) -> None:
    await one_turn(store)
    before = await store.usage(AGENT)
    await store.retention.cut_log(AGENT, now=LATER, before=LATER)
    assert await store.usage(AGENT) == before
    await store.rebuild_views()
    assert await store.usage(AGENT) == before


@pytest.mark.parametrize("why", ["an agent's", "open", "key", "young"])
async def test_a_log_stays_that_is_open_has_a_key_belongs_to_an_agent_or_is_young(store: Store, why: str) -> None:
    if why == "open":
        await store.admit(AGENT, [temporary(), message()])
    else:
        await one_turn(
            store, key="ticket-9" if why == "key" else None, begin=session() if why == "an agent's" else None
        )
    before = await store.read(AGENT)
    if why == "young":
        assert await store.retention.cut_log(AGENT, now=LATER, before=NOON) == FreedSpace()
    else:
        with pytest.raises(EventRefused, match="stays"):
            await store.retention.cut_log(AGENT, now=LATER, before=LATER)
    assert await store.read(AGENT) == before


async def test_a_log_of_more_rows_than_a_step_is_removed_in_steps(store: Store) -> None:
    await store.admit(AGENT, [temporary(), message()])
    claim = await store.claim("turn_1")
    await store.append(claim, [started("turn_1")])
    for _ in range(1_050):
        await store.append(claim, [requested()])
    await store.append(claim, [ended()], last=True)
    freed = await store.retention.cut_log(AGENT, now=LATER, before=LATER)
    assert await kinds(store) == ["log.checkpointed"]  # though rows of it may still be there
    while freed.more is not None:
        freed = await store.retention.finish_cuts()
    assert await kinds(store) == ["log.checkpointed"]
    assert await store.verify() == []


async def test_a_blob_that_nothing_refers_to_goes_after_its_grace(store: Store) -> None:
    referred = await store.put_blob(b"what was said", "text/plain")
    alone = await store.put_blob(b"nobody names this", "text/plain")
    inside = await store.put_blob(f'{{"before": "{referred.digest}"}}'.encode(), "application/json")
    catalog = ToolCatalogResolved(reason="turn_started", catalog_ref=inside, offered=1, withheld=0)
    claim = await claimed(store)
    await store.append(claim, [started("turn_1"), Fact(catalog, NOON, THREAD, "turn_1")])
    assert (await store.retention.sweep_blobs(now=NOON, grace=10)).items == 0
    assert (await store.retention.sweep_blobs(now=NOON + 9, grace=10)).items == 0
    assert (await store.retention.sweep_blobs(now=NOON + 10, grace=10)).items == 1
    with pytest.raises(StoreDamaged):
        await store.get_blob(alone.digest)
    assert await store.get_blob(referred.digest) == b"what was said"
    assert await store.get_blob(inside.digest)


async def unnamed(store: Store, *, anew: bool = False) -> int:
    """How many blobs nothing refers to, by what was noted of the log, or by reading all of it."""
    return (await store.retention.sweep_blobs(now=NOON, grace=10, dry=True, anew=anew)).items


async def test_what_only_an_expired_event_named_is_named_no_more(store: Store) -> None:
    """Every row is read once for names, and what leaves it is forgotten: the same as reading everything again."""
    only, stays, kept = [await store.put_blob(data, "text/plain") for data in (b"one", b"two", b"three")]
    claim = await claimed(store)
    named = [
        ToolCatalogResolved(reason="turn_started", catalog_ref=only, offered=1, withheld=0),
        ThreadCheckpointed(conversation_ref=stays, items=1),
        ToolCatalogResolved(reason="turn_started", catalog_ref=kept, offered=1, withheld=0),
        HistoryImported(items_ref=kept, count=1),
    ]
    facts = [Fact(event, NOON, THREAD, "turn_1") for event in named]
    await store.append(claim, [started("turn_1"), *facts, ended()], last=True)
    await store.retention.sweep_blobs(now=NOON, grace=10)
    row = await store.turn("turn_1")
    assert row is not None
    assert (await unnamed(store), await unnamed(store, anew=True)) == (0, 0)
    await store.retention.expire_events(row, DETAILS)
    assert (await unnamed(store), await unnamed(store, anew=True)) == (1, 1)
    assert (await store.retention.sweep_blobs(now=NOON + 20, grace=10)).items == 0, "it is in doubt from now on"
    assert (await store.retention.sweep_blobs(now=NOON + 30, grace=10)).items == 1
    with pytest.raises(StoreDamaged):
        await store.get_blob(only.digest)
    assert [await store.get_blob(ref.digest) for ref in (stays, kept)] == [b"two", b"three"]
    await store.retention.expire_events(row, DETAILS | {"thread.checkpointed"})
    assert (await unnamed(store), await unnamed(store, anew=True)) == (1, 1)
    await store.put_blob(b"one", "text/plain")
    assert (await unnamed(store), await unnamed(store, anew=True)) == (2, 2), "it is there again"


async def test_what_only_a_log_that_was_cut_named_is_named_no_more(store: Store) -> None:
    only, both = [await store.put_blob(data, "text/plain") for data in (b"one", b"two")]
    for agent, turn, begin, named in (
        (AGENT, "turn_1", temporary(), (only, both)),
        ("agent_2", "turn_2", session(), (both,)),
    ):
        await store.admit(agent, [begin, message(turn)])
        imports = [Fact(HistoryImported(items_ref=ref, count=1), NOON, THREAD, turn) for ref in named]
        claim = await store.claim(turn)
        await store.append(claim, [started(turn), *imports, ended(turn)], last=True)
    assert (await store.retention.sweep_blobs(now=NOON, grace=10)).items == 0
    assert await unnamed(store) == 0
    assert (await store.retention.cut_log(AGENT, now=LATER, before=LATER)).items > 0
    assert (await unnamed(store), await unnamed(store, anew=True)) == (1, 1)
    await store.retention.sweep_blobs(now=NOON, grace=10, anew=True)
    assert await unnamed(store) == 1, "what is noted anew is the same"


async def test_a_blob_that_is_put_again_is_not_swept(store: Store, other: Store) -> None:
    for data in (b"nobody names this", b"nor this" * 200_000):
        ref = await store.put_blob(data, "text/plain")
        await store.retention.sweep_blobs(now=NOON, grace=10)
        await other.put_blob(data, "text/plain")  # somebody is about to refer to it
        assert (await store.retention.sweep_blobs(now=NOON + 20, grace=10)).items == 0
        assert await store.get_blob(ref.digest) == data


async def test_a_result_kept_in_full_goes_only_where_nothing_else_uses_its_bytes(store: Store, other: Store) -> None:
    alone, used, again = [await store.put_blob(data, "text/plain") for data in (b"a" * 99, b"b" * 99, b"c" * 99)]
    spilled = [
        Fact(
            OutputSpilled(
                output_ref=ref.digest,
                owner="call_1",
                media_type="text/plain",
                size_bytes=99,
                sha256=ref.digest.removeprefix("sha256:"),
                preview="",
            ),
            NOON,
            THREAD,
            "turn_1",
            step=1,
            call_id="call_1",
        )
        for ref in (alone, used, again)
    ]
    catalog = ToolCatalogResolved(reason="turn_started", catalog_ref=used, offered=1, withheld=0)
    claim = await claimed(store)
    await store.append(claim, [started("turn_1"), *spilled, Fact(catalog, NOON, THREAD, "turn_1")])
    digests = [alone.digest, used.digest, again.digest]
    assert await store.retention.doubt_outputs(digests, now=NOON, dry=True) == {alone.digest, again.digest}
    assert (await store.retention.remove_blob(alone.digest)).items == 0, "nobody has looked yet"
    assert await store.retention.doubt_outputs(digests, now=NOON) == {alone.digest, again.digest}
    await other.put_blob(b"c" * 99, "text/plain")  # somebody is about to refer to it
    assert [(await store.retention.remove_blob(ref.digest)).items for ref in (alone, again)] == [1, 0]
    with pytest.raises(StoreDamaged):
        await store.get_blob(alone.digest)
    assert await store.get_blob(again.digest) == b"c" * 99


async def test_an_artifact_whose_bytes_are_gone_is_known_as_expired(store: Store) -> None:
    await store.admit(AGENT, [session(), Fact(OutputExpired(output_ref="sha256:1", of_turn="turn_1"), NOON)])
    assert await store.turns_of_artifact("sha256:1", limit=1) == []
    assert await store.get_row(TURNS, "turn_1") is None


async def test_marks_and_sizes(store: Store, other: Store) -> None:
    assert await store.retention.retention_mark("turns") is None
    await store.retention.set_retention_mark("turns", "here")
    assert await other.retention.retention_mark("turns") == "here"
    await one_turn(store)
    size = await store.retention.size()
    assert size.agents[AGENT] > 0
    assert size.total_bytes >= size.agents[AGENT]
    assert await store.retention.release_space(10) == 0
