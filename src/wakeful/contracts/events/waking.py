"""Facts about waiting and waking: timers, waits, wake hints, and what a message meant to its agent.

Each of them is compared with the row that it changes, and refused when that row is settled already: a due time fires
once, a wait ends once, a hint is turned into one tick. So a second scheduler does no harm.
"""

from typing import Any, ClassVar, Literal, TypeAlias

from wakeful.contracts.authority import Authority
from wakeful.contracts.content import BlobRef
from wakeful.contracts.events.base import CALL, THREAD, Event, Need, RuntimeFact
from wakeful.contracts.messages import MessageKind
from wakeful.contracts.waking import CatchUp, ContinuationResolution, WaitWake

FRESH_THREAD = "fresh"
"""A thread of its own for each due time."""

MissedBecause: TypeAlias = Literal["late", "too_many"]
"""late: nothing ran at that time, and nobody wants to be told later. too_many: there are newer ones to be told of."""
Treatment: TypeAlias = Literal["turn", "deferred", "settled"]
"""turn: one is opened for the message. deferred: it says something, and waits for the next turn. settled: it says
nothing beyond that something happened, and no model is asked."""
DeliveryMode: TypeAlias = Literal["wake_hint", "enqueue_message"]


class _TimerFact(RuntimeFact):
    needs: ClassVar[tuple[Need, ...]] = THREAD

    timer_id: str


class TimerArmed(_TimerFact):
    """A due time was set: one, or those of a schedule."""

    kind: ClassVar[str] = "timer.armed"

    due_at: int
    """Unix microseconds: the first one."""
    name: str = ""
    cron: str | None = None
    """None: it is due once."""
    timezone: str = "UTC"
    say: str = ""
    """The words that the agent is woken with. They are the owner's."""
    thread: str = FRESH_THREAD
    """Where it is said: a thread, or a new one for each due time."""
    catch_up: CatchUp = "one"
    armed_by: str
    """Who set it: `file`, `code`, `operator`, `agent`."""
    derived_from: Authority | None = None
    """The lowest authority in the chain of causes behind it; None: the owner's own."""
    check: str | None = None
    """A command that is run at each due time: only when it has something to say, the agent is woken."""


class TimerFired(_TimerFact):
    """A due time came, and its message is in the mailbox."""

    kind: ClassVar[str] = "timer.fired"

    due_at: int
    message_id: str
    failures: int = 0
    """Turns in a row that began with its messages before this one, and failed."""
    check_turn: str = ""
    """The turn that ran its check; blank: it has none."""
    next_at: int | None = None
    """None: it was the last one."""


class TimerFolded(_TimerFact):
    """Due times are told of in the message of another one: they passed together, or that one is not dealt with yet."""

    kind: ClassVar[str] = "timer.folded"

    due_at: int
    """The first of them."""
    last: int
    number: int
    """At most 10,000 are counted."""
    into: str
    """That message."""
    next_at: int | None = None


class TimerSkipped(_TimerFact):
    """Due times came, and the timer's check had nothing to say. No model was asked."""

    kind: ClassVar[str] = "timer.skipped"

    due_at: int
    """The first of them."""
    last: int
    number: int
    check_turn: str
    """The turn that ran the check."""
    next_at: int | None = None


class TimerMissed(_TimerFact):
    """Due times passed, and nobody is told of them."""

    kind: ClassVar[str] = "timer.missed"

    due_at: int
    """The first of them."""
    last: int
    number: int
    because: MissedBecause
    next_at: int | None = None


class TimerCancelled(_TimerFact):
    """A timer is due no more."""

    kind: ClassVar[str] = "timer.cancelled"

    cancelled_by: str
    reason: str = ""


class WaitCreated(Event):
    """The model ends its turn, and waits. A wait for the same thing that was open in the thread is over with it."""

    kind: ClassVar[str] = "wait.created"
    needs: ClassVar[tuple[Need, ...]] = CALL

    wait_id: str
    reason: str
    wake: WaitWake
    """What ends it."""
    resource: str | None = None
    """What it is about: a task, a build, an address. Only what names the same thing ends it."""
    work_item_id: str | None = None
    due_at: int | None = None
    """Unix microseconds: of a timer, when it wakes; else the deadline at which the agent is told that it waited in
    vain. None: a sleep until a message comes, which nothing else ends."""
    is_sleep: bool = False
    derived_from: Authority | None = None

    @property
    def is_endless(self) -> bool:
        """A sleep until a message comes."""
        return self.is_sleep and self.due_at is None


class _WaitFact(RuntimeFact):
    needs: ClassVar[tuple[Need, ...]] = THREAD

    wait_id: str


class WaitResolved(_WaitFact):
    """It came, what was waited for."""

    kind: ClassVar[str] = "wait.resolved"

    message_id: str
    """The message that brought it."""


class WaitExpired(_WaitFact):
    """The deadline of a wait came first. The agent is told."""

    kind: ClassVar[str] = "wait.expired"

    message_id: str


class WaitCancelled(Event):
    """The agent waits no more: it said so in a call, or it is over itself."""

    kind: ClassVar[str] = "wait.cancelled"
    needs: ClassVar[tuple[Need, ...]] = THREAD
    outsider: ClassVar[bool] = True

    wait_id: str
    cancelled_by: str
    reason: str = ""


class WakeHintStored(RuntimeFact):
    """Something outside changed, and the agent may want to look. It is no message: the runtime makes a tick of it."""

    kind: ClassVar[str] = "wake_hint.stored"
    aliases: ClassVar[tuple[str, ...]] = ("wake_hint_coalesced",)
    needs: ClassVar[tuple[Need, ...]] = THREAD

    hint_id: str
    reason: str = ""
    external_trigger_id: str | None = None
    target_agent_id: str
    delivery_mode: DeliveryMode = "wake_hint"
    source: str | None = None
    """Who says so, as it was given or as the trigger is known."""
    resource: str | None = None
    content_type: str | None = None
    body: str | None = None
    """What came with it, as text; None: nothing did."""
    body_ref: BlobRef | None = None
    """The same, when it is too large to stand here."""
    correlation_id: str | None = None
    causation_id: str | None = None
    wait_ids: tuple[str, ...] = ()
    """The waits that it may be about."""
    authority_class: Authority = "integration_signal"
    derived_from: Authority | None = None
    metadata: dict[str, Any] | None = None


class WakeHintTriggered(RuntimeFact):
    """The agent was free: all pending hints became one tick."""

    kind: ClassVar[str] = "wake_hint.triggered"
    aliases: ClassVar[tuple[str, ...]] = ("wake_hint_triggered",)
    needs: ClassVar[tuple[Need, ...]] = THREAD

    message_id: str
    """The tick."""
    first_hint_id: str
    """The oldest pending hint, by which this is compared with the row."""
    hints: int
    """How many there were."""


class ContinuationResolved(RuntimeFact):
    """What a message meant to its agent before a turn was opened for it."""

    kind: ClassVar[str] = "continuation.resolved"
    needs: ClassVar[tuple[Need, ...]] = THREAD

    message_id: str
    message_kind: MessageKind
    resolution: ContinuationResolution
    treatment: Treatment


class MessageSettled(RuntimeFact):
    """A message needs no turn: it was for the record, or said nothing."""

    kind: ClassVar[str] = "message.settled"
    needs: ClassVar[tuple[Need, ...]] = THREAD

    message_id: str
    reason: str = ""


class ProgressStalled(RuntimeFact):
    """An agent started turn after turn by itself, and nothing came of them. Told once in such a row."""

    kind: ClassVar[str] = "progress.stalled"
    needs: ClassVar[tuple[Need, ...]] = THREAD

    turns: int
    resumes_at: int
    """When its next turn may begin."""
    work_item_id: str | None = None


class WakeMoved(RuntimeFact):
    """A due time was set while the clock was ahead. The clock has been set back since, and it comes at another time."""

    kind: ClassVar[str] = "wake.moved"
    needs: ClassVar[tuple[Need, ...]] = THREAD

    subject: str
    """What is due: a timer, a wait, a turn, a message; blank: the thread's queue."""
    cause: str
    cause_id: str
    due_at: int
    """When it would have been."""
    moved_to: int


class ClockJumped(RuntimeFact):
    """The wall clock moved by over an hour more, or less, than time passed."""

    kind: ClassVar[str] = "clock.jumped"

    by_us: int
    """Microseconds; below zero: it was set back."""
