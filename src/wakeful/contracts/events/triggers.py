"""Facts about external triggers, and about input that was refused.

That an agent has its default trigger follows from `agent.created`, and has no fact of its own. A delivery stands in one
transaction with the hint or the message that it brought: the same delivery again is refused by its row.
"""

from typing import ClassVar

from wakeful.contracts.authority import Authority
from wakeful.contracts.events.base import RuntimeFact
from wakeful.contracts.events.waking import DeliveryMode
from wakeful.contracts.triggers import Signature


class _TriggerFact(RuntimeFact):
    trigger_id: str


class TriggerCreated(_TriggerFact):
    """An agent has another trigger; or a revoked one is there again, with another address."""

    kind: ClassVar[str] = "trigger.created"
    aliases: ClassVar[tuple[str, ...]] = ("external_trigger_created",)

    name: str = ""
    """Blank: the agent's default trigger."""
    delivery_mode: DeliveryMode
    generation: int = 1
    """Which of its addresses holds."""
    say: str = ""
    """What the agent is told at a delivery. It is the owner's word."""
    thread: str = "main"
    """Where it is told; `fresh`: each delivery has a thread of its own."""
    signature: Signature | None = None
    signing_env: str | None = None
    """The environment variable that holds the secret of its sender."""
    created_by: str
    salt: str | None = None
    """Drawn for this address: no older copy of the store has it."""


class TriggerRevised(_TriggerFact):
    """The agent's definition, or a person, says something else about a trigger. Its address stays what it was."""

    kind: ClassVar[str] = "trigger.revised"

    say: str = ""
    thread: str = "main"
    signature: Signature | None = None
    signing_env: str | None = None
    revised_by: str


class TriggerRotated(_TriggerFact):
    """A trigger has another address. The one before is refused from here on."""

    kind: ClassVar[str] = "trigger.rotated"

    generation: int
    rotated_by: str
    reason: str = ""
    salt: str | None = None
    """Drawn for this address: no older copy of the store has it."""


class TriggerRevoked(_TriggerFact):
    """A trigger takes nothing any more. What it brought stays on record."""

    kind: ClassVar[str] = "trigger.revoked"
    aliases: ClassVar[tuple[str, ...]] = ("external_trigger_revoked",)

    revoked_by: str
    reason: str = ""


class TriggerDelivered(_TriggerFact):
    """Something came through a trigger, and is in the mailbox or among the hints."""

    kind: ClassVar[str] = "trigger.delivered"

    delivery_id: str
    """By which the same delivery is recognised when it comes again."""
    digest: str
    """Of its body, raw."""
    target_agent_id: str
    delivery_mode: DeliveryMode
    message_id: str | None = None
    """The message that it became; None: a hint."""
    hint_id: str | None = None
    source: str | None = None
    resource: str | None = None
    content_type: str | None = None
    body_bytes: int = 0
    is_verified: bool = False
    """Its signature was checked."""
    authority_class: Authority = "integration_signal"
    derived_from: Authority | None = None
    wait_ids: tuple[str, ...] = ()
    """Open waits that it may be about. It ends none of them."""
    work_item_ids: tuple[str, ...] = ()
    """The work items of those waits."""


class TriggerUrlGiven(_TriggerFact):
    """The address of a trigger was given to somebody who asked for it. The address itself is not here."""

    kind: ClassVar[str] = "trigger.url_given"

    generation: int
    given_to: str
    """`agent`, or a person's name."""
    turn_id: str | None = None
    """The turn whose model asked."""
    purpose: str = ""


class InputRefused(RuntimeFact):
    """Messages or deliveries were refused, and nothing of them is kept but their number.

    One fact stands for many: it is written at the first, and each time their number has doubled.
    """

    kind: ClassVar[str] = "input.refused"

    door: str
    """`message`, or the id of a trigger."""
    reason: str
    number: int
    """How many more there were."""
