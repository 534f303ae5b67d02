"""What the gate of one turn is made of besides its tools, and what a running call needs from the turn."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, TypeAlias

from wakeful.contracts.approvals import DEFAULT_EXPIRY_SECONDS
from wakeful.contracts.authority import Authority
from wakeful.contracts.content import BlobRef
from wakeful.contracts.errors import ToolAsks
from wakeful.contracts.events import AnyEvent, UnknownResolved
from wakeful.contracts.events.gate import RunKind
from wakeful.contracts.tools import Principal
from wakeful.contracts.verdicts import Verdict
from wakeful.decisions.levels import Call
from wakeful.decisions.secret_values import NO_SECRETS, SecretValues
from wakeful.gate.call_at_gate import CallAtGate, Consultation
from wakeful.gate.large_content import Fetch, Keep
from wakeful.gate.locks import LockTable
from wakeful.tools.context import RunContext
from wakeful.tools.proposal import ProposedCall

LOCK_SECONDS = 60.0
"""How long a call waits for its locks."""
MAX_REASON_CHARS = 1_000


async def _no_store(*given: Any) -> Any:
    raise RuntimeError("this gate was made without a store")


Consult: TypeAlias = Callable[[CallAtGate], Awaitable[Consultation]]
"""Somebody who has a say on a call."""
Policy: TypeAlias = Callable[[CallAtGate, tuple[Verdict, ...]], Verdict]
"""The pure verdict on a call, given what predicates and hooks said about it."""
AfterCall: TypeAlias = Callable[[CallAtGate, list[AnyEvent]], Awaitable[list[AnyEvent]]]
"""Heard about an outcome before it is told."""


@dataclass(slots=True)
class GateParts:
    """What the gate of one turn is made of, besides its tools. The empty one lets through whatever is offered."""

    policy: Policy | None = None
    consult: tuple[Consult, ...] = ()
    """Who has a say on a call before it runs; nobody waits for anybody when there is nobody."""
    consult_on_ask: Consult | None = None
    """Heard when a person is to be asked."""
    consult_unfit: Consult | None = None
    """Heard about calls that are refused anyway: what is refused may be told in other words, or get a result."""
    locks: LockTable | None = None
    lock_seconds: float = LOCK_SECONDS
    secret: bytes = b""
    new_id: Callable[[str], str] = field(default=lambda prefix: f"{prefix}_0")
    now: Callable[[], float] = field(default=time.time)
    """Unix seconds."""
    expiry_seconds: float = DEFAULT_EXPIRY_SECONDS
    client_seconds: float = DEFAULT_EXPIRY_SECONDS
    """How long a client may take to run a tool that does not say so itself."""
    keep: Keep = field(default=_no_store)
    """Where what is too large for an event goes."""
    fetch: Fetch = field(default=_no_store)
    has_person: bool = True
    """Is there anybody who could ever answer?"""
    agent: str = ""
    thread: str = ""
    turn_id: str = ""
    run_kind: RunKind = "agent"
    context: Mapping[str, Any] = field(default_factory=dict)
    principal: Principal | None = None
    derived_from: Callable[[], Authority] = field(default=lambda: "operator_instruction")
    """The lowest authority in the chain of causes behind the turn."""
    keys: Callable[[], SecretValues] = field(default=lambda: NO_SECRETS)
    """The runtime's own keys: no result of a tool may hold one. Asked for by the first call that has a result."""
    result_bytes: Callable[[], int | None] = field(default=lambda: None)
    """The turn's limit for what a model is shown of one result; None: what holds for any."""

    def safe_words(self, text: str) -> str:
        """Words of foreign code for the log and the model: without the runtime's own keys, and not too many."""
        return self.keys().hide_keys(text)[:MAX_REASON_CHARS]

    def agent_of(self, call: Call) -> str:
        """Whose call it is: the turn's agent's, or that of another one that works for it."""
        return call.level.config.agent_name if call.level.config is not None else self.agent

    def proposed(self, at: CallAtGate) -> ProposedCall:
        """The call as predicates and hooks see it."""
        return ProposedCall(
            tool=at.declared.name,
            arguments=at.arguments,
            call_id=at.call_id,
            turn_id=self.turn_id,
            agent=self.agent_of(at.call),
            thread=self.thread,
            context=self.context,
            principal=self.principal,
            working_directory=at.directory,
            derived_from=self.derived_from(),
            confinement=at.confinement,
        )


class CallSurroundings(Protocol):
    """What a running call needs from the turn around it."""

    def now(self) -> float:
        """Unix seconds."""
        ...

    def context(self, at: CallAtGate, deadline: datetime | None) -> RunContext[Any]: ...

    async def keep(self, data: bytes, media_type: str) -> BlobRef: ...

    @property
    def keys(self) -> SecretValues:
        """The runtime's own keys, which no outcome may hold."""
        ...

    @property
    def result_bytes(self) -> int | None:
        """The most text of one result that a model is shown; None: as much as of any."""
        ...

    def retries_left(self, tool_name: str, allowed: int) -> int: ...

    def late(self, event: UnknownResolved, step: int) -> None:
        """A late answer, after the call's own outcome was delivered."""
        ...

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]: ...

    def acknowledged(self, at: CallAtGate) -> None:
        """The call has seen that it is to stop. From any thread."""
        ...

    def asks(self, at: CallAtGate, wants: ToolAsks) -> AnyEvent:
        """The record of a question that a running tool has."""
        ...

    @property
    def after_call(self) -> AfterCall | None:
        """Whoever is heard about an outcome before it is told; None: nobody."""
        ...
