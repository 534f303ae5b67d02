"""Triggers on every backend: provisioned with the agent, an address once, a delivery once, refusals counted."""

import pytest

from kit.runs.store_facts import NOON, created, queued
from kit.runs.trigger_facts import CI, RECEIVER, delivered, refused, revoked, rotated, trigger_made
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import AgentStopped, EventRefused
from wakeful.contracts.events import AgentStateChanged, WakeHintStored
from wakeful.decisions.waking.trigger_addresses import trigger_id_of
from wakeful.ports import Store
from wakeful.ports.triggers import DeliveryRow, RefusedInputRow


async def test_an_agent_has_its_default_trigger_with_its_creation(store: Store) -> None:
    await store.admit(RECEIVER, [created(RECEIVER)])
    (row,) = await store.triggers(RECEIVER)
    assert (row.trigger_id, row.mode, row.state, row.generation, row.created_by) == (
        trigger_id_of(RECEIVER),
        "wake_hint",
        "active",
        1,
        "runtime",
    )
    assert await store.trigger(row.trigger_id) == row and await store.triggers() == [row]


async def test_the_same_delivery_again_is_refused_with_what_came_with_it(store: Store, other: Store) -> None:
    await store.admit(RECEIVER, [created(RECEIVER), trigger_made()])
    await store.admit(RECEIVER, [delivered(source="ci"), queued("msg of d1", at=NOON + 5)])
    before = await store.read(RECEIVER)
    with pytest.raises(EventRefused, match=r"delivery d1 of trigger .* came before"):
        await other.admit(RECEIVER, [delivered(message_id="another"), queued("another", at=NOON + 6)])
    assert await store.read(RECEIVER) == before
    assert await store.message("another") is None
    found = DeliveryRow(CI, "d1", RECEIVER, "sha256:1", "msg of d1", NOON + 5)
    assert await store.delivery(CI, "d1") == found
    row = await store.trigger(CI)
    assert row is not None and (row.deliveries, row.last_delivery, row.last_source) == (1, "msg of d1", "ci")


async def test_a_revoked_trigger_takes_nothing_and_comes_back_with_a_later_generation_only(store: Store) -> None:
    await store.admit(RECEIVER, [created(RECEIVER), trigger_made()])
    with pytest.raises(EventRefused, match="is there, active, with generation 1"):
        await store.admit(RECEIVER, [trigger_made(generation=2)])
    await store.admit(RECEIVER, [rotated(2)])
    with pytest.raises(EventRefused, match="names generation 2 of trigger"):
        await store.admit(RECEIVER, [rotated(2)])
    await store.admit(RECEIVER, [revoked()])
    for fact in (delivered(), rotated(3), revoked()):
        with pytest.raises(EventRefused, match="it is revoked"):
            await store.admit(RECEIVER, [fact])
    with pytest.raises(EventRefused, match="is there, revoked, with generation 2"):
        await store.admit(RECEIVER, [trigger_made(generation=2)])
    await store.admit(RECEIVER, [trigger_made(generation=3)])
    row = await store.trigger(CI)
    assert row is not None and (row.state, row.generation) == ("active", 3)


async def test_a_delivery_to_a_stopped_agent_leaves_nothing(store: Store) -> None:
    await store.admit(RECEIVER, [created(RECEIVER), trigger_made()])
    await store.admit(RECEIVER, [Fact(AgentStateChanged(control="stopped", changed_by="ada"), NOON)])
    hint = Fact(WakeHintStored(hint_id="h1", target_agent_id=RECEIVER), NOON, "main")
    with pytest.raises(AgentStopped):
        await store.admit(RECEIVER, [delivered("h1", "", hint_id="h1", message_id=None), hint])
    assert await store.delivery(trigger_id_of(RECEIVER), "h1") is None
    (row, _) = await store.triggers(RECEIVER)
    assert row.deliveries == 0


async def test_refused_input_is_a_number_for_each_door_and_reason(store: Store) -> None:
    await store.admit(RECEIVER, [created(RECEIVER)])
    for fact in (refused(), refused(4, at=NOON + 9), refused(2, door=CI, reason="late")):
        await store.admit(RECEIVER, [fact])
    assert await store.refused_input(RECEIVER) == [
        RefusedInputRow(RECEIVER, "message", "agent_stopped", 5, NOON + 9),
        RefusedInputRow(RECEIVER, CI, "late", 2, NOON + 8),
    ]
