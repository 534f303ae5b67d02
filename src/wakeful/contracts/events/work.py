"""Facts about work items: what an agent does to its own in a turn, and what others do to them between turns.

In a turn they stand in one commit with the result of the call that they are about. What the agent asserts there is
taken as it is; what others write is compared with the row first, and refused when it was settled before.
"""

from typing import ClassVar, Literal, TypeAlias

from wakeful.contracts.authority import Authority
from wakeful.contracts.events.base import CALL, THREAD, TURN, Event, Need, RuntimeFact
from wakeful.contracts.work_items import PlanStatus, TodoItem

BlockerCause: TypeAlias = Literal["wait", "wait_resolved", "sleep", "no_progress"]
"""Why the runtime changes a blocker. wait: the turn ended with a wait for the item. wait_resolved: that wait is over.
sleep: the agent went to sleep with the item runnable. no_progress: turn after turn changed nothing."""


class WorkFact(Event):
    """Something that a turn does to the agent's work items, or is shown of them."""


class WorkQueueProjected(WorkFact):
    """What a turn's model is shown of the agent's work items. The turn is bound to the current one."""

    kind: ClassVar[str] = "work_queue.projected"
    needs: ClassVar[tuple[Need, ...]] = TURN

    current: str | None = None
    """The agent's current item, if it has one."""
    others: tuple[str, ...] = ()
    triggered: tuple[str, ...] = ()
    """Of both: those whose wait fired, or whose recheck came due, since a model was last shown that."""
    untrusted: str = ""
    """An item among them whose words derive from no instruction, and from what; blank: there is none."""


class WorkItemCreated(WorkFact):
    """The agent took an objective on."""

    kind: ClassVar[str] = "work_item.created"
    needs: ClassVar[tuple[Need, ...]] = CALL

    work_item_id: str
    objective: str
    plan_status: PlanStatus = "draft"
    todo_list: tuple[TodoItem, ...] = ()
    workspace_id: str = ""
    derived_from: Authority = "operator_instruction"
    """The lowest authority among the causes of the turn that made it."""
    principal: str = ""
    """Whom that turn worked for; blank: nobody in particular."""


class WorkItemEnqueued(RuntimeFact):
    """Somebody outside put an objective into the agent's queue, without a message."""

    kind: ClassVar[str] = "work_item.enqueued"

    work_item_id: str
    objective: str
    plan_status: PlanStatus = "draft"
    todo_list: tuple[TodoItem, ...] = ()
    workspace_id: str = ""
    enqueued_by: str
    derived_from: Authority = "operator_instruction"


class WorkItemUpdated(WorkFact):
    """The agent changed what an open item says. What is None stays as it was."""

    kind: ClassVar[str] = "work_item.updated"
    needs: ClassVar[tuple[Need, ...]] = CALL

    work_item_id: str
    objective: str | None = None
    plan_status: PlanStatus | None = None
    todo_list: tuple[TodoItem, ...] | None = None
    """The whole checklist."""
    blocked_by: str | None = None
    """Blank: the blocker is gone, and its recheck with it."""
    recheck_at: int | None = None
    """Unix microseconds; given with a blocker."""
    derived_from: Authority = "operator_instruction"


class WorkItemPicked(WorkFact):
    """The agent made an open item its current one."""

    kind: ClassVar[str] = "work_item.picked"
    needs: ClassVar[tuple[Need, ...]] = CALL

    work_item_id: str
    previous: str | None = None
    """The current item before."""


class WorkItemCompleted(WorkFact):
    """The agent says that an item is done."""

    kind: ClassVar[str] = "work_item.completed"
    needs: ClassVar[tuple[Need, ...]] = CALL

    work_item_id: str
    text_ref: str | None = None
    """The reply of the same round, which is the report; None: the item has none."""


class WorkItemRechecked(RuntimeFact):
    """A blocked item's recheck came due, and the agent is told with a message. Once a deadline."""

    kind: ClassVar[str] = "work_item.rechecked"

    work_item_id: str
    recheck_at: int
    """The deadline that it is about: Unix microseconds."""
    message_id: str


class WorkItemBlockerChanged(RuntimeFact):
    """The runtime set or cleared a blocker. It never touches one that the agent set."""

    kind: ClassVar[str] = "work_item.blocker_changed"

    work_item_id: str
    before: str | None = None
    """What blocked it until now: with anything else in the row, the fact is refused."""
    blocked_by: str | None = None
    recheck_at: int | None = None
    cause: BlockerCause
    wait_id: str | None = None


class WorkQueueScheduled(RuntimeFact):
    """When an idle agent is woken for its own work; written with the end of a turn, or with an item from outside."""

    kind: ClassVar[str] = "work_queue.scheduled"
    needs: ClassVar[tuple[Need, ...]] = THREAD

    work_item_id: str | None = None
    """The item that it is about; None: there is nothing to wake for."""
    due_at: int | None = None
    """Unix microseconds; None: not at all."""
    idle_turns: int = 0
    """Turns in a row that the agent started itself and that brought the item no further."""
    plan_turns: int = 0
    """Turns in a row that changed its plan or checklist alone."""


class WorkQueueActivated(RuntimeFact):
    """The time came to wake an idle agent for its own work, and it is told with a message. Once for each such time."""

    kind: ClassVar[str] = "work_queue.activated"
    needs: ClassVar[tuple[Need, ...]] = THREAD

    due_at: int
    """The time that it is about: Unix microseconds."""
    work_item_id: str | None = None
    message_id: str | None = None
    """None: there is nothing to do any more, and nobody is told."""


class WorkItemReminded(WorkFact):
    """In a long turn the model is shown its current item again, because it has not touched its work items for long."""

    kind: ClassVar[str] = "work_item.reminded"
    needs: ClassVar[tuple[Need, ...]] = TURN

    work_item_id: str
    text: str
    """A note to the model alone: nobody else is told."""
    rounds: int
    """How many rounds went by without a change of a work item."""
