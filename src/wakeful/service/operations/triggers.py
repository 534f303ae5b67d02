"""What may be asked about the triggers of agents. None of it needs the process that runs the agents."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from wakeful.contracts.triggers import Signature
from wakeful.service.operations.agents import AgentName
from wakeful.service.operations.operation import OpenStore, Operation, check_no_tool

if TYPE_CHECKING:
    from wakeful.service.commands.trigger_control import CountRefusals
    from wakeful.views.trigger_records import DeliveryReceipt, TriggerCapability, TriggerRecord

_RECORD = "wakeful.views.trigger_records.TriggerRecord"


@dataclass(frozen=True, slots=True)
class NewTrigger:
    """A trigger to be made."""

    agent: str
    name: str = ""
    """Blank: the agent's default trigger."""
    say: str = ""
    thread: str = "main"
    """The conversation that deliveries go to."""
    signature: Signature | None = None
    signing_env: str | None = None
    by: str = ""


@dataclass(frozen=True, slots=True)
class TriggerChange:
    """A trigger to rotate or to revoke."""

    trigger: str
    """Its id or enough of its beginning, AGENT/NAME, or AGENT."""
    by: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class TriggerAddress:
    """Whose address somebody wants to see."""

    trigger: str
    by: str = ""
    purpose: str = ""
    base: str = ""
    """Where the runtime is reached from outside; blank: the address is a path."""


@dataclass(frozen=True, slots=True)
class TriggerDelivery:
    """What came to an address."""

    address: str
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


async def _list(opened: OpenStore, asked: AgentName) -> "list[TriggerRecord]":
    from wakeful.service.commands.trigger_control import list_triggers

    return await list_triggers(opened.store, _refused(opened), asked.agent)


async def _create(opened: OpenStore, asked: NewTrigger) -> "TriggerRecord":
    from wakeful.service.commands.trigger_control import create_trigger

    check_no_tool("triggers")
    return await create_trigger(
        opened.engine,
        _refused(opened),
        asked.agent,
        asked.name,
        say=asked.say,
        thread=asked.thread,
        signature=asked.signature,
        signing_env=asked.signing_env,
        by=asked.by,
    )


async def _rotate(opened: OpenStore, asked: TriggerChange) -> "TriggerRecord":
    from wakeful.service.commands.trigger_control import rotate_trigger

    check_no_tool("triggers")
    return await rotate_trigger(opened.engine, _refused(opened), asked.trigger, by=asked.by, reason=asked.reason)


async def _revoke(opened: OpenStore, asked: TriggerChange) -> "TriggerRecord":
    from wakeful.service.commands.trigger_control import revoke_trigger

    check_no_tool("triggers")
    return await revoke_trigger(opened.engine, _refused(opened), asked.trigger, by=asked.by, reason=asked.reason)


async def _url(opened: OpenStore, asked: TriggerAddress) -> "TriggerCapability":
    from wakeful.service.commands.trigger_control import trigger_url

    check_no_tool("the address of a trigger")
    base = asked.base or (opened.living.public_url if opened.living is not None else "")
    return await trigger_url(opened.engine, asked.trigger, to=asked.by, base=base, purpose=asked.purpose)


async def _deliver(opened: OpenStore, asked: TriggerDelivery) -> "DeliveryReceipt":
    from wakeful.runtime.refusals import RefusalTally
    from wakeful.service.commands.triggers import deliver

    tally = opened.living.refusals if opened.living is not None else RefusalTally(opened.engine)
    return await deliver(opened.engine, asked.address, asked.body, asked.headers, tally=tally)


def _refused(opened: OpenStore) -> "CountRefusals":
    from wakeful.runtime.refusals import stored_refusals

    return opened.living.refusals.refused if opened.living is not None else partial(stored_refusals, opened.store)


LIST_TRIGGERS = Operation("triggers.list", "observe", AgentName, _RECORD, _list, many=True)
CREATE_TRIGGER = Operation("triggers.create", "operate", NewTrigger, _RECORD, _create)
ROTATE_TRIGGER = Operation("triggers.rotate", "operate", TriggerChange, _RECORD, _rotate)
REVOKE_TRIGGER = Operation("triggers.revoke", "operate", TriggerChange, _RECORD, _revoke, repeatable=True)
SHOW_TRIGGER_URL = Operation(
    "triggers.url",
    "operate",
    TriggerAddress,
    "wakeful.views.trigger_records.TriggerCapability",
    _url,
    repeatable=True,
    is_secret=True,
)
DELIVER = Operation(
    "triggers.deliver", "operate", TriggerDelivery, "wakeful.views.trigger_records.DeliveryReceipt", _deliver
)
