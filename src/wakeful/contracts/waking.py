"""Waiting and waking as values: where an agent stands when a turn has ended, and what a message means to it then.

`ClosureDecision` says where it stands, `ContinuationResolution` whether a message starts a turn. Both come with the
evidence that led to them, and both are computed in `decisions.waking`.
"""

from typing import Literal, Self, TypeAlias

from pydantic import ConfigDict, Field, model_validator

from wakeful.contracts.described_values import DescribedValue
from wakeful.contracts.messages import TriggerKind
from wakeful.contracts.values import Value

Outcome: TypeAlias = Literal["completed", "continuable", "failed", "waiting"]
WaitingReason: TypeAlias = Literal[
    "awaiting_operator_input", "awaiting_external_change", "awaiting_task_result", "awaiting_timer"
]
Posture: TypeAlias = Literal["awake", "sleeping"]
WaitWake: TypeAlias = Literal["operator_input", "task_result", "external", "timer"]
"""What ends a wait before its deadline."""
CatchUp: TypeAlias = Literal["one", "all", "none"]
"""What becomes of due times that passed while nothing ran: one message for all of them, one for each, none."""
ContinuationClass: TypeAlias = Literal["resume_expected_wait", "resume_override", "local_continuation", "liveness_only"]


CHECK_THREAD = "check:"
"""Before a timer's name: the thread of its checks. Lists of turns leave out those that ended well."""


class WakeEntry(DescribedValue):
    """A line of an agent's `wake`: when a runtime wakes it, and with which words."""

    cron: str
    """Five fields: minute, hour, day, month, weekday."""
    timezone: str = "UTC"
    """By its name in the tz database: `Europe/Berlin`."""
    say: str = Field(min_length=1, max_length=4_000)
    """What the agent is told, as its owner's word."""
    thread: str = Field("fresh", min_length=1)
    """Where it is told: a thread by name, or `fresh` for a new one each time."""
    catch_up: CatchUp = "one"
    """What becomes of times that pass while nothing runs: `one` message for all of them, `all` (at most 24), `none`."""
    name: str = ""
    """What its fresh threads are called."""
    check: str | None = Field(None, min_length=1, max_length=4_000)
    """A command that is run first, through the gate. It ends with 0 and prints nothing: nothing is to be done, and no
    model is asked. Anything else wakes the agent, with what it printed."""


class WorkSignal(Value):
    """Work that can go on without anybody's word."""

    work_item_id: str
    status: Literal["active", "queued"]
    reactivation_mode: Literal["continue_active", "activate_queued"]
    """activate_queued: the model is shown the item. It has to pick it: the runtime never changes the focus."""

    @model_validator(mode="after")
    def _mode_goes_with_status(self) -> Self:
        if (self.status == "active") != (self.reactivation_mode == "continue_active"):
            raise ValueError(f"a {self.status} item does not go with {self.reactivation_mode}")
        return self


class ClosureDecision(Value):
    """Where an agent stands between two turns."""

    outcome: Outcome
    waiting_reason: WaitingReason | None = None
    work_signal: WorkSignal | None = None
    runtime_posture: Posture
    evidence: tuple[str, ...] = ()
    """The facts that led to it."""

    @model_validator(mode="after")
    def _fields_go_with_outcome(self) -> Self:
        if (self.waiting_reason is not None) != (self.outcome == "waiting"):
            raise ValueError(f"waiting_reason {self.waiting_reason} does not go with outcome {self.outcome}")
        if (self.work_signal is not None) != (self.outcome == "continuable"):
            raise ValueError(f"outcome {self.outcome} with work_signal {self.work_signal}")
        return self


class ContinuationResolution(Value):
    """What a message means to an agent that stood where it stood."""

    model_config = ConfigDict(validate_by_alias=True, validate_by_name=True, serialize_by_alias=True)

    trigger_kind: TriggerKind
    continuation_class: ContinuationClass = Field(alias="class")
    model_visible: bool
    """A turn begins with it. Else it is recorded, and what it says waits for the next turn."""
    prior_closure_outcome: Outcome
    prior_waiting_reason: WaitingReason | None = None
    matched_waiting_reason: bool
    evidence: tuple[str, ...]
