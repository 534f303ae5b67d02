"""Triggers as readers see them, and what became of a delivery. Times are Unix seconds."""

from typing import Literal

from wakeful.contracts.triggers import DeliveryOutcome, Refusal, Signature, TriggerState
from wakeful.contracts.values import Value


class TriggerRecord(Value):
    """A trigger: what it does, how it is guarded, and what came through it. Its address is not in here."""

    external_trigger_id: str
    target_agent_id: str
    name: str
    """Blank: the agent's default trigger."""
    delivery_mode: Literal["wake_hint", "enqueue_message"]
    status: TriggerState
    generation: int
    """How many addresses it has had."""
    say: str = ""
    thread: str = "main"
    signature: Signature | None = None
    signing_env: str | None = None
    """The environment variable that holds the secret of its sender."""
    created_by: str
    created_at: float
    revoked_at: float | None = None
    delivery_count: int
    last_delivered_at: float | None = None
    last_delivery: str | None = None
    """The message or the hint that it became."""
    last_source: str | None = None
    refused: dict[str, int] = {}
    """Deliveries that were refused, and duplicates, by reason."""


class TriggerCapability(Value):
    """The address of a trigger, for whoever is to deliver to it. Whoever has it can wake the agent: keep it secret."""

    external_trigger_id: str
    trigger_url: str
    target_agent_id: str
    delivery_mode: Literal["wake_hint", "enqueue_message"]
    status: TriggerState


class DeliveryReceipt(Value):
    """What became of a delivery. Only an accepted one left anything but a number."""

    outcome: DeliveryOutcome
    reason: Refusal | None = None
    """Why it was refused."""
    message: str = ""
    external_trigger_id: str | None = None
    """None: the address is not one of ours."""
    target_agent_id: str | None = None
    message_id: str | None = None
    hint_id: str | None = None
