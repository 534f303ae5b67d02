"""The store that holds facts to the published schema."""

import pytest

from kit.runs.event_samples import AGENT, TURN, fact, message, requested, turn_started
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import EventRefused
from wakeful.contracts.events import ModelRequested
from wakeful.ports import Store
from wakeful.store.memory import MemoryStore
from wakeful.testing.validating_store import ValidatingStore


async def test_what_fits_the_schema_goes_on_to_the_store_inside() -> None:
    inner = MemoryStore()
    store: Store = ValidatingStore(inner)
    await store.admit(AGENT, [fact(message(), step=None)])
    claim = await store.claim(TURN)
    await store.append(claim, [fact(turn_started(), step=None), fact(requested())])
    assert await store.read(AGENT) == await inner.read(AGENT)
    assert [recorded.fact.event.kind for recorded in await inner.read(AGENT)] == [
        "message.admitted",
        "turn.started",
        "model.requested",
    ]


async def test_a_payload_that_skipped_validation_is_refused_naming_event_and_path_and_nothing_is_written() -> None:
    inner = MemoryStore()
    store = ValidatingStore(inner)
    await store.admit(AGENT, [fact(message(), step=None)])
    claim = await store.claim(TURN)
    wrong = ModelRequested.model_construct(model_ref="scripted:list")
    with pytest.raises(EventRefused, match=r"model\.requested does not fit .*payload: 'items' is a required property"):
        await store.append(claim, [fact(turn_started(), step=None), fact(wrong)])
    assert len(await inner.read(AGENT)) == 1
    # Without the check it is written: the store inside trusts its typed events.
    await inner.append(claim, [fact(wrong)])


async def test_a_fact_without_an_id_its_family_needs_is_refused() -> None:
    store = ValidatingStore(MemoryStore())
    with pytest.raises(EventRefused, match=r"message\.admitted does not fit .*'thread_id' is a required property"):
        await store.admit(AGENT, [Fact(event=message(), at=1, turn_id=TURN)])
    assert store.validated == 0
