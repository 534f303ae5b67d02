"""The messages that due times, waits and hints cause. Each has an id that follows from its cause: it is sent once."""

import hashlib
from dataclasses import dataclass, field

from wakeful.contracts.authority import Authority
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import MessageAdmitted
from wakeful.contracts.messages import DeliverySurface, MessageKind, Origin
from wakeful.contracts.tools import PREVIEW_CHARS
from wakeful.engine.admission import fingerprint_of, storable


@dataclass(frozen=True, slots=True)
class WakeMessage:
    """What an agent is woken with."""

    message_id: str
    words: str
    kind: MessageKind
    origin: Origin
    authority: Authority = "runtime_instruction"
    derived_from: Authority | None = None
    surface: DeliverySurface = "runtime_system"
    source_refs: dict[str, str] = field(default_factory=dict)
    correlation_id: str | None = None
    causation_id: str | None = None
    work_item_id: str | None = None

    def fact(self, agent_id: str, thread_id: str, at: int) -> Fact:
        """The message as it is admitted, in the transaction of what causes it."""
        said = UserItem(parts=storable((Text(self.words),) if self.words else ()))
        event = MessageAdmitted(
            message_id=self.message_id,
            item=said,
            message_kind=self.kind,
            origin=self.origin,
            authority_class=self.authority,
            derived_from=self.derived_from,
            delivery_surface=self.surface,
            admission_context="runtime_owned",
            source_refs=self.source_refs,
            correlation_id=self.correlation_id,
            causation_id=self.causation_id,
            work_item_id=self.work_item_id,
            fingerprint=fingerprint_of(agent_id, said),
            prompt_preview=said.text[:PREVIEW_CHARS],
        )
        return Fact(event, at, thread_id)


def message_id_of(*cause: object) -> str:
    """One id for one cause, for ever."""
    named = "\0".join(map(str, cause))
    return "msg_" + hashlib.sha256(named.encode("utf-8", "surrogatepass")).hexdigest()[:32]
