"""One call on its way through the gate (`gate.passage`): a record that is made when the call comes, and that each step
completes and the later ones read.

What a step has not filled in yet is not there: reading it too early is an error, not an empty value. What its outcome
repeats stands apart, in a `CallRecord`: a call that ends without having come to the gate (a turn that is over, a crash)
has that alone.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from wakeful.contracts.content import BlobRef
from wakeful.contracts.events import AnyEvent
from wakeful.contracts.events.tools import HookOutcome, Opinion
from wakeful.contracts.tools import Confinement, ToolDeclaration, ToolError
from wakeful.contracts.verdicts import Verdict
from wakeful.decisions.levels import Call
from wakeful.tools.tool import Tool

Scheduling: TypeAlias = Literal["parallel", "serial"]


@dataclass(frozen=True, slots=True)
class Consultation:
    """What predicates, hooks and mediators said, together."""

    said: tuple[Opinion, ...] = ()
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

    @property
    def denies(self) -> tuple[Opinion, ...]:
        return tuple(said for said in self.said if said.decision == "deny")

    @property
    def is_rewritten(self) -> bool:
        """Has anybody written other arguments?"""
        return any(said.arguments is not None for said in self.said)


NOBODY_SAID = Consultation()


@dataclass(frozen=True, slots=True)
class OutsideResult:
    """A result that no tool of this process produced."""

    value: Any = None
    ref: BlobRef | None = None
    """Where the value is, as JSON, when it was too large for its event."""


@dataclass(frozen=True, slots=True)
class OutsideAnswer:
    """What a person or a client said about the call, read (`gate.outside_answers`)."""

    action_id: str
    reason: str = ""
    binding: str = ""
    """What was decided about; of an edit, what was written instead."""
    seen: str = ""
    """What the person was shown."""
    directory: str | None = None
    """Where it would have worked then."""
    held: str | None = None
    """What would have held it there."""
    is_edited: bool = False
    is_refused: bool = False
    """Nobody let it through."""
    is_failure: bool = False
    """The call ends without a result."""
    result: OutsideResult | None = None
    """The call ends with this one. Neither: the call is to run."""


@dataclass(slots=True, eq=False, repr=False)
class CallRecord:
    """What the outcome of a call repeats."""

    call: Call
    taken_up_at: float
    """Unix seconds: when the runtime took the call up."""
    injected_args: dict[str, Any] | None = None
    approval_status: Literal["not_required", "approved", "rejected", "timed_out"] = "not_required"
    approval_id: str | None = None
    execution_ms: float = 0.0
    """Inside the tool alone; 0 for a call that was not executed."""
    permission_ref: str | None = None
    sandbox_ref: str | None = None
    hook_outcomes: tuple[HookOutcome, ...] = ()

    @property
    def call_id(self) -> str:
        return self.call.call_id

    @property
    def tool_name(self) -> str:
        return self.call.part.name


@dataclass(slots=True, eq=False, repr=False)
class CallAtGate:
    """One call, and all that is known about it so far."""

    record: CallRecord
    batch_id: str = ""
    scheduling: Scheduling = "parallel"
    call: Call = field(init=False)
    call_id: str = field(init=False)

    # steps 1 to 4: what is called, with what
    declared: ToolDeclaration = field(init=False)
    """What the turn's configuration says of the tool: what an approval is bound to."""
    declaration: ToolDeclaration = field(init=False)
    """What holds for this call; it may be stricter than what the tool declares."""
    tool: Tool[Any] = field(init=False)
    """Only the gate fills it in: what has none cannot be run."""
    written: dict[str, Any] = field(default_factory=dict)
    """The model's own arguments, without injected fields."""
    arguments: dict[str, Any] = field(default_factory=dict)
    """What the tool would be run with: the model's, or what a hook or a person wrote in their place."""
    is_rewritten: bool = False
    directory: str | None = None
    """Where it would work."""
    confinement: Confinement | None = None
    """What would hold it."""
    error: ToolError | None = None
    """Why the call cannot be made."""

    # steps 5 to 8: what everybody says
    heard: Consultation = NOBODY_SAID
    verdict: Verdict = field(init=False)
    answer: OutsideAnswer | None = None

    # steps 9 to 12: its run
    lock_owner: str | None = None
    """Under which name it holds its locks."""
    idempotency_key: str = ""
    attempt: int = 1
    taints_since: int | None = None
    """When it began to write files, in a turn with untrusted input; it is on record with its intent."""

    def __post_init__(self) -> None:
        self.call = self.record.call
        self.call_id = self.call.call_id

    @property
    def tool_name(self) -> str:
        return self.call.part.name

    @property
    def step(self) -> int:
        return self.call.step


@dataclass(slots=True)
class Admission:
    """What the gate says: what is to be written, and what may begin once it is."""

    events: list[AnyEvent]
    dispatch: CallAtGate | None = None
    """The call, when it may run."""
    later: "Callable[[], Awaitable[Callable[[], Admission]]] | None" = None
    """Nothing is decided yet: somebody has to be waited for first. What comes then judges the call as things stand."""
    permission_at: int | None = None
    """Which of the events is the verdict."""
    sandbox_at: int | None = None
