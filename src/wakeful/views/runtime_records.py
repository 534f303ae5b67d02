"""The records of a runtime: its agents, their timers, work items and briefs, and messages that were sent to them.

Times are Unix seconds.
"""

from typing import Any, Literal, TypeAlias

from wakeful.contracts.agent_identity import (
    AgentControl,
    AgentKind,
    AgentSource,
    ControlCause,
    Ownership,
    ProfilePreset,
    Visibility,
)
from wakeful.contracts.briefs import BriefKind, BriefVisibility
from wakeful.contracts.file_problems import FileProblem
from wakeful.contracts.notices import NoticeKind, NoticeState
from wakeful.contracts.values import Value
from wakeful.contracts.waking import CatchUp, ClosureDecision
from wakeful.contracts.work_items import PlanStatus, ReadinessLabel, SchedulingState, TodoItem, WorkItemState
from wakeful.views.agent_state import AgentModelState, AgentState, LifeStatus
from wakeful.views.child_agents import ActiveChild


class AgentRecord(Value):
    """One agent of a runtime: what it is, and whether it may run."""

    agent: str
    agent_home: str
    """Its folder."""
    status: LifeStatus
    """How it stands now, as its rows say."""
    waiting_for: str = ""
    """The provider that does not answer a turn of it, while nothing else of it runs."""
    kind: AgentKind
    visibility: Visibility
    ownership: Ownership
    profile_preset: ProfilePreset
    lineage_parent_agent_id: str | None = None
    source: AgentSource
    revision: str
    """The hash of the definition in force."""
    created_at: float
    revised_at: float | None = None
    control: AgentControl
    cause: ControlCause
    """Why it is paused or stopped."""
    changed_by: str
    changed_at: float
    reason: str = ""
    resumes_at: float | None = None
    """When a pause ends by itself."""
    archived_at: float | None = None
    """Set: it was archived; `resume` brings it back."""
    hint: str = ""
    """What to do about an agent that does not run."""
    refused: dict[str, int] = {}
    """Messages and deliveries that were refused, by reason. Nothing else is kept of them."""
    problems: tuple[FileProblem, ...] = ()
    """Errors in its file, which is not in force until they are mended: the definition before it is."""


class AgentIdentity(Value):
    """Which agent it is, to whom it belongs, and who made it."""

    agent_id: str
    kind: AgentKind
    visibility: Visibility
    ownership: Ownership
    profile_preset: ProfilePreset
    lineage_parent_agent_id: str | None = None
    """For audits: it is no handle of a task."""


class ChildRecord(Value):
    """An agent that another one made, as that one is shown it."""

    identity: AgentIdentity
    status: LifeStatus
    current_run_id: str | None = None
    pending: int = 0
    """Messages that no turn has taken."""
    current_work_item_id: str | None = None
    turns: int = 0
    """That have begun."""
    total_model_rounds: int = 0
    last_brief_at: float | None = None


class AgentDetails(AgentRecord):
    """One agent with everything that is known of it without reading its log."""

    state: AgentState
    model: AgentModelState
    closure: ClosureDecision
    """Where its own loop stands between turns."""
    turns_since_revision: int = 0
    """Turns that began with the definition in force."""
    children: tuple[ChildRecord, ...] = ()
    """Agents that it made, private ones included."""
    active_children: tuple[ActiveChild, ...] = ()
    """Its private children that are not over: how each is doing, and the task that supervises it."""


class AgentGetResult(Value):
    """An agent as a model is shown it: who it is and how it stands, and of the words of others only what its own
    children tell in short."""

    identity: AgentIdentity
    agent_home: str
    state: AgentState
    model: AgentModelState
    closure: ClosureDecision
    children: tuple[ChildRecord, ...] = ()
    active_children: tuple[ActiveChild, ...] = ()


class AgentRevision(Value):
    """A definition of an agent that was in force once, or is."""

    revision: str
    """Its hash."""
    at: float
    """When it came into force."""
    source: AgentSource
    place: str | None = None
    """The file it was read from."""
    turns: int
    """Turns that began with it, so far."""
    in_force: bool = False


class SentMessage(Value):
    """A message that is safe."""

    message_id: str
    agent: str
    thread: str
    state: str
    """queued, deferred, taken, interjected, processed or expired."""
    position: int
    """Its number in the agent's log."""
    turn_id: str | None = None
    """The turn that took it."""


class MessageAnswer(Value):
    """The answer to a message, as far as it is there."""

    message_id: str
    turn_id: str | None = None
    """The turn that took it; None: none did yet."""
    result: dict[str, Any] | None = None
    """The result of that turn, once it has ended or rests until somebody acts; the fields of `RunResult`."""


class TimerRecord(Value):
    """A timer: when it is due, what became of its newest due time, and who set it."""

    timer_id: str
    agent: str
    name: str = ""
    state: Literal["armed", "done", "cancelled"]
    """done: it has no further due time."""
    next: float | None = None
    """The next due time."""
    cron: str | None = None
    """None: it is due once."""
    timezone: str = "UTC"
    say: str = ""
    thread: str
    """Where it speaks; `fresh`: each due time has a thread of its own."""
    catch_up: CatchUp
    armed_by: str
    armed_at: float
    last: float | None = None
    """The newest due time that has ended."""
    outcome: Literal["fired", "folded", "missed", "skipped"] | None = None
    """What became of it. folded: it is told of in the message of another one. skipped: its check had nothing to say."""
    fired: int = 0
    folded: int = 0
    missed: int = 0
    failures: int = 0
    """Due times in a row that came to nothing, the newest included: their turn failed, or could not begin."""
    check: str | None = None
    """A command that is run at each due time; the agent is woken only when it has something to say."""
    skipped: int = 0


LifeWord: TypeAlias = Literal["running", "queued", "waiting", "idle", "paused", "stopped", "broken"]
"""broken: none of the others, and a runtime's watchdog repairs it; or a child that could not be run and is over."""


class ThreadLife(Value):
    """What one thread of an agent is at."""

    thread: str
    state: LifeWord
    sentence: str
    until: float | None = None
    """When this ends by itself, at the latest."""
    evidence: tuple[str, ...] = ()
    """The facts it rests on: a kind and an id each."""


class AgentLife(Value):
    """What an agent is at, and why: the state of the thread that says most, and every thread that owes something."""

    agent: str
    state: LifeWord
    sentence: str
    threads: tuple[ThreadLife, ...]


class NoticeRecord(Value):
    """Something people were told without asking, and whether it arrived."""

    notice_id: str
    """The same in every try to deliver it."""
    agent: str
    thread: str
    turn_id: str | None = None
    kind: NoticeKind
    cause: str
    """The kind of the event that it follows from."""
    about: str | None = None
    """The approval, timer or provider it is about."""
    text: str
    created_at: float
    state: NoticeState
    attempts: int = 0
    to: str = ""
    """Where it went: a host or a command."""
    error: str = ""
    """What went wrong the last time."""
    settled_at: float | None = None


class RuntimeHold(Value):
    """Whether all agents may run."""

    control: AgentControl
    changed_by: str
    changed_at: float
    reason: str = ""


class WorkItemRecord(Value):
    """A work item as readers see it: its record, and what follows from it."""

    id: str
    agent: str
    thread: str
    workspace_id: str = ""
    objective: str
    state: WorkItemState
    is_current: bool
    scheduling_state: SchedulingState
    readiness: ReadinessLabel
    plan_status: PlanStatus
    todo_list: tuple[TodoItem, ...] = ()
    blocked_by: str | None = None
    recheck_at: float | None = None
    recheck_consumed_at: float | None = None
    completion_report: str | None = None
    created_by: str
    created_at: float
    updated_at: float
    completed_at: float | None = None


class BriefRecord(Value):
    """What an agent told the people it works for."""

    id: str
    agent_id: str
    thread: str
    turn_id: str
    kind: BriefKind
    visibility: BriefVisibility
    text: str
    """Blank: the turn ended without words."""
    work_item_id: str | None = None
    """The work item that the turn advanced."""
    workspace_id: str = ""
    related_message_id: str | None = None
    related_task_id: str | None = None
    created_at: float
