"""What passes through the gate, and what the gate of one turn is made of."""

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from wakeful.contracts.approvals import DEFAULT_EXPIRY_SECONDS
from wakeful.contracts.events import AnyEvent, PermissionEvaluated
from wakeful.contracts.events.gate import RunKind
from wakeful.contracts.events.tools import Said
from wakeful.contracts.tools import Confinement, Principal, ToolDeclaration, ToolError
from wakeful.contracts.verdicts import Verdict
from wakeful.decisions.levels import Call
from wakeful.decisions.secret_values import NO_SECRETS, SecretValues
from wakeful.gate.large_content import Fetch, Keep
from wakeful.gate.locks import LockTable
from wakeful.gate.outcomes import CallRecord
from wakeful.tools.function import Tool
from wakeful.tools.proposal import ProposedCall

ALLOWED = PermissionEvaluated(
    decision="allow", decision_reason="the tool is offered in this turn and no rule forbids it"
)
LOCK_SECONDS = 60.0
"""How long a call waits for its locks."""


async def _no_store(*given: Any) -> Any:
    raise RuntimeError("this gate was made without a store")


@dataclass(slots=True)
class Proposal:
    """A call that has its declaration and its arguments: what the gate judges."""

    call: Call
    tool: Tool[Any]
    declaration: ToolDeclaration
    """What holds for this call; it may be stricter than what the tool declares."""
    declared: ToolDeclaration
    """What the turn's configuration says of the tool: what an approval is bound to."""
    arguments: dict[str, Any]
    record: CallRecord
    batch_id: str
    scheduling: Literal["parallel", "serial"]
    directory: str | None = None
    confinement: Confinement | None = None
    is_rewritten: bool = False
    """The arguments are not what the model wrote: a person or a hook changed them."""


@dataclass(slots=True)
class Dispatch:
    """A call that passed the gate."""

    call_id: str
    tool: Tool[Any]
    declaration: ToolDeclaration
    arguments: dict[str, Any]
    idempotency_key: str
    attempt: int
    step: int
    record: CallRecord
    lock_owner: str | None = None
    """Under which name it holds its locks."""
    agent: str = ""
    """Whose call it is: at a level of another agent's, that one's."""
    taints_since: int | None = None
    """When it began to write files, in a turn with untrusted input; it is on record with its intent."""


@dataclass(slots=True)
class Admission:
    """What is to be written, and what may begin once it is."""

    events: list[AnyEvent]
    dispatch: Dispatch | None = None
    later: "Callable[[], Awaitable[Callable[[], Admission]]] | None" = None
    """Nothing is decided yet: somebody has to be waited for first. What comes then judges the call as things stand."""
    permission_at: int | None = None
    """Which of the events is the verdict."""
    sandbox_at: int | None = None


@dataclass(frozen=True, slots=True)
class Consultation:
    """What predicates, hooks and mediators said, together."""

    said: tuple[Said, ...] = ()
    events: tuple[AnyEvent, ...] = ()
    """`hook.*` facts, in order."""
    arguments: dict[str, Any] | None = None
    """What a hook wrote in the place of the arguments."""
    result: Any = None
    """What stands in the tool's place; only a mediator may say so."""

    def and_then(self, other: "Consultation") -> "Consultation":
        return replace(
            self,
            said=(*self.said, *other.said),
            events=(*self.events, *other.events),
            arguments=other.arguments if other.arguments is not None else self.arguments,
            result=other.result if other.result is not None else self.result,
        )


@dataclass(frozen=True, slots=True)
class Unfit:
    """A call that did not come as far as a proposal: its tool is not there, or its arguments are not fit."""

    call: Call
    declaration: ToolDeclaration | None
    arguments: dict[str, Any]
    error: ToolError


Consult: TypeAlias = Callable[[Proposal], Awaitable[Consultation]]
ConsultOnAsk: TypeAlias = Callable[[Proposal, Verdict], Awaitable[Consultation]]
ConsultUnfit: TypeAlias = Callable[[Unfit], Awaitable[Consultation]]
Policy: TypeAlias = Callable[[Proposal, tuple[Verdict, ...]], Verdict]
"""The pure verdict on a call, given what predicates and hooks said about it."""


@dataclass(slots=True)
class GateParts:
    """What the gate of one turn is made of, besides its tools. The empty one lets through whatever is offered."""

    policy: Policy | None = None
    consult: tuple[Consult, ...] = ()
    """Who has a say on a call before it runs; nobody waits for anybody when there is nobody."""
    consult_on_ask: ConsultOnAsk | None = None
    """Heard when a person is to be asked."""
    consult_unfit: ConsultUnfit | None = None
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
    keys: Callable[[], SecretValues] = field(default=lambda: NO_SECRETS)
    """The runtime's own keys: no result of a tool may hold one. Asked for by the first call that has a result."""
    result_bytes: Callable[[], int | None] = field(default=lambda: None)
    """The turn's limit for what a model is shown of one result; None: what holds for any."""

    def agent_of(self, call: Call) -> str:
        """Whose call it is: the turn's agent's, or that of another one that works for it."""
        return call.level.config.agent_name if call.level.config is not None else self.agent

    def proposed(self, proposal: Proposal) -> ProposedCall:
        """The call as predicates and hooks see it."""
        return ProposedCall(
            tool=proposal.declared.name,
            arguments=proposal.arguments,
            call_id=proposal.call.call_id,
            turn_id=self.turn_id,
            agent=self.agent_of(proposal.call),
            thread=self.thread,
            context=self.context,
            principal=self.principal,
            working_directory=proposal.directory,
        )
