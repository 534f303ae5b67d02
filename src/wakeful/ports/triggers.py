"""Triggers of agents, what they delivered, and how much input was refused."""

from typing import NamedTuple, Protocol

from wakeful.contracts.events.waking import DeliveryMode
from wakeful.contracts.triggers import Signature, TriggerState
from wakeful.ports.tables import RowQuery, Rows, Table, TableIndex


class TriggerRow(NamedTuple):
    """A trigger. Its address follows from its id, its generation, its salt and the secret of the runtime."""

    trigger_id: str
    agent_id: str
    name: str
    """Blank: the trigger that every agent has."""
    state: TriggerState
    mode: DeliveryMode
    generation: int
    say: str
    thread: str
    """Where its messages go; `fresh`: each has a thread of its own."""
    signature: Signature | None
    signing_env: str | None
    created_by: str
    created_at: int
    revoked_at: int | None
    deliveries: int
    last_delivered_at: int | None
    last_delivery: str | None
    """The message or the hint that it became."""
    last_source: str | None
    salt: str | None
    """Drawn for its address; None: that is from before there were salts."""


class DeliveryRow(NamedTuple):
    """A delivery that was taken in: the same one again is a duplicate."""

    trigger_id: str
    delivery_id: str
    agent_id: str
    digest: str
    became: str
    """The message or the hint."""
    delivered_at: int


class RefusedInputRow(NamedTuple):
    """How often input of an agent was refused for one reason."""

    agent_id: str
    door: str
    """`message`, or the id of a trigger."""
    reason: str
    number: int
    last_at: int


ALL_TRIGGERS = RowQuery(("agent_id", "name"), served_by="triggers_of_agent")
TRIGGERS_OF_AGENT = RowQuery(("name",), equal=("agent_id",), served_by="triggers_of_agent")
TRIGGERS = Table(
    "triggers",
    TriggerRow,
    key=("trigger_id",),
    indexes=(TableIndex("triggers_of_agent", ("agent_id", "name"), unique=True),),
    queries=(ALL_TRIGGERS, TRIGGERS_OF_AGENT),
)
TRIGGER_DELIVERIES = Table("trigger_deliveries", DeliveryRow, key=("trigger_id", "delivery_id"))
REFUSED_OF_AGENT = RowQuery(("door", "reason"), equal=("agent_id",), served_by="key")
ALL_REFUSED = RowQuery(("agent_id", "door", "reason"), served_by="key")
REFUSED_INPUT = Table(
    "refused_input", RefusedInputRow, key=("agent_id", "door", "reason"), queries=(REFUSED_OF_AGENT, ALL_REFUSED)
)


class Triggers(Rows, Protocol):
    """Reads triggers."""

    async def trigger(self, trigger_id: str) -> TriggerRow | None:
        return await self.get_row(TRIGGERS, trigger_id)

    async def triggers(self, agent_id: str | None = None) -> list[TriggerRow]:
        """Of an agent or of all, by name: the default one first."""
        if agent_id is None:
            return await self.list_rows(TRIGGERS, ALL_TRIGGERS)
        return await self.list_rows(TRIGGERS, TRIGGERS_OF_AGENT, agent_id)

    async def delivery(self, trigger_id: str, delivery_id: str) -> DeliveryRow | None:
        return await self.get_row(TRIGGER_DELIVERIES, trigger_id, delivery_id)

    async def refused_input(self, agent_id: str | None = None) -> list[RefusedInputRow]:
        """Of an agent, or of all."""
        if agent_id is None:
            return await self.list_rows(REFUSED_INPUT, ALL_REFUSED)
        return await self.list_rows(REFUSED_INPUT, REFUSED_OF_AGENT, agent_id)
