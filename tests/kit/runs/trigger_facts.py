"""Facts about triggers, as the store is given them."""

from typing import Any

from kit.runs.store_facts import NOON, created
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import (
    InputRefused,
    TriggerCreated,
    TriggerDelivered,
    TriggerRevised,
    TriggerRevoked,
    TriggerRotated,
)
from wakeful.decisions.waking.trigger_addresses import trigger_id_of
from wakeful.ports import Store

RECEIVER = "agent_10"
CI = trigger_id_of(RECEIVER, "ci")


def trigger_made(name: str = "ci", generation: int = 1, **fields: Any) -> Fact:
    given = {"delivery_mode": "enqueue_message", "created_by": "ada", **fields}
    event = TriggerCreated(trigger_id=trigger_id_of(RECEIVER, name), name=name, generation=generation, **given)
    return Fact(event, NOON + generation)


def delivered(delivery_id: str = "d1", name: str = "ci", at: int = NOON + 5, **fields: Any) -> Fact:
    given = {"delivery_mode": "enqueue_message", "message_id": f"msg of {delivery_id}", "digest": "sha256:1", **fields}
    event = TriggerDelivered(
        trigger_id=trigger_id_of(RECEIVER, name), delivery_id=delivery_id, target_agent_id=RECEIVER, **given
    )
    return Fact(event, at)


def rotated(generation: int = 2, name: str = "ci") -> Fact:
    event = TriggerRotated(
        trigger_id=trigger_id_of(RECEIVER, name), generation=generation, rotated_by="ada", salt="salt_r"
    )
    return Fact(event, NOON + 6)


def revoked(name: str = "ci") -> Fact:
    return Fact(TriggerRevoked(trigger_id=trigger_id_of(RECEIVER, name), revoked_by="ada", reason="unused"), NOON + 7)


def refused(number: int = 1, door: str = "message", reason: str = "agent_stopped", at: int = NOON + 8) -> Fact:
    return Fact(InputRefused(door=door, reason=reason, number=number), at)


TRIGGERED: list[list[Fact]] = [
    [created(RECEIVER)],
    [trigger_made(signature="hub_sha256", signing_env="CI_SECRET", say="Look.")],
    [delivered(source="ci")],
    [delivered("h1", "", delivery_mode="wake_hint", message_id=None, hint_id="hint_1")],
    [Fact(TriggerRevised(trigger_id=CI, say="Look twice.", revised_by="file"), NOON + 5)],
    [rotated()],
    [revoked()],
    [trigger_made(generation=3)],
    [trigger_made("deploy", salt="salt_d")],
    [refused(), refused(4, at=NOON + 9)],
    [refused(door=CI, reason="late")],
]
"""Triggers that are made, deliver, are rotated, revoked and made again; and what was refused."""


async def tell_triggers(store: Store) -> None:
    for facts in TRIGGERED:
        for fact in facts:
            await store.admit(RECEIVER, [fact])
