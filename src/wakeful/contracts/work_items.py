"""A work item: one objective that outlasts a turn, as its record stands in the store and as everybody reads it.

Its `state` says whether it is finished, and nothing else. Which item the agent works on is the agent's focus, and
whether an item may be worked on now is computed (`decisions.work_items.readiness`); neither is stored here.
"""

from typing import Any, Final, Literal, NamedTuple, TypeAlias

from wakeful.contracts.authority import Authority
from wakeful.contracts.values import Value

WorkItemState: TypeAlias = Literal["open", "completed"]
PlanStatus: TypeAlias = Literal["draft", "ready", "needs_input"]
TodoState: TypeAlias = Literal["pending", "in_progress", "completed"]
SchedulingState: TypeAlias = Literal[
    "runnable", "waiting_operator", "waiting_task", "waiting_external", "blocked", "completed"
]
"""What the scheduler makes of an item."""
ReadinessLabel: TypeAlias = Literal["runnable", "waiting_for_operator", "blocked", "completed"]
"""The same for readers, in fewer words."""
WaitKind: TypeAlias = Literal["operator", "task", "external", "timer"]
"""What a wait is for. A timer's is a wait for something outside, too."""

CREATE_WORK_ITEM: Final = "create_work_item"
PICK_WORK_ITEM: Final = "pick_work_item"
UPDATE_WORK_ITEM: Final = "update_work_item"
COMPLETE_WORK_ITEM: Final = "complete_work_item"
GET_WORK_ITEM: Final = "get_work_item"
LIST_WORK_ITEMS: Final = "list_work_items"
NOTIFY_OPERATOR: Final = "notify_operator"

MAX_OBJECTIVE: Final = 4_000
MAX_TODO_ITEMS: Final = 100
MAX_TODO_TEXT: Final = 500
MAX_BLOCKER: Final = 1_000
MAX_PLAN: Final = 100_000
"""Characters; of a list, entries."""
RECHECK_MS: Final = 3_600_000
"""When a blocker is looked at again where nobody said so: after an hour."""
KEPT_TURNS: Final = 3
"""How many of the turns that worked on an item its record names."""


class TodoItem(Value):
    """One entry of an item's checklist."""

    text: str
    state: TodoState = "pending"


class WorkItem(NamedTuple):
    """The record of one objective. Times are Unix microseconds."""

    work_item_id: str
    agent_id: str
    thread_id: str
    """Where it is worked on: the thread of the newest turn that created, picked or advanced it."""
    workspace_id: str
    """Where the agent worked when the item was written; blank: nowhere."""
    objective: str
    state: WorkItemState
    plan_status: PlanStatus
    todo_list: tuple[dict[str, Any], ...]
    """The checklist as a whole: `text` and `state` of each entry."""
    blocked_by: str | None
    recheck_at: int | None
    """When the agent is reminded of the blocker, once."""
    recheck_message_id: str
    """The message that reminds it of this deadline; blank: none was sent."""
    recheck_consumed_at: int | None
    """When a model turn saw that this deadline had come."""
    triggered_at: int | None
    """When its wait fired or its recheck came due, until a model turn has seen it."""
    report_event_id: str
    """The event that holds the completion report; blank: there is none."""
    derived_from: Authority
    """The lowest authority among the causes of what it says."""
    turns: tuple[str, ...]
    """The newest turns that began with it as the current item, the newest first."""
    idle_turns: int
    """Turns in a row that the agent started itself for it and that brought it no further."""
    plan_turns: int
    """Turns in a row that changed its plan or checklist alone."""
    created_by: str
    """`agent`, or who put it into the queue from outside."""
    created_at: int
    updated_at: int
    completed_at: int | None
    principal: str = ""
    """Whom the turn worked for that created it; blank: nobody in particular."""

    @property
    def is_open(self) -> bool:
        return self.state == "open"

    @property
    def todos_left(self) -> tuple[dict[str, Any], ...]:
        return tuple(item for item in self.todo_list if item["state"] != "completed")


class ActiveWait(NamedTuple):
    """A wait that nothing has ended yet, as work items see it."""

    wait_id: str
    work_item_id: str
    kind: WaitKind
    reason: str
