"""An agent as clients inspect it: a line of a list, a summary, and a snapshot from which a client goes on with events.

They differ in size and promise. The list is for choosing an agent, the summary for asking about one, the snapshot for a
client that keeps a picture of its own. Times are Unix seconds.
"""

from wakeful.contracts.agent_identity import AgentControl
from wakeful.contracts.approvals import Approval
from wakeful.contracts.values import Value
from wakeful.contracts.waking import WaitWake
from wakeful.views.agent_state import LifeStatus
from wakeful.views.execution_snapshot import ActiveWorkspaceEntry, AgentWorkspaces
from wakeful.views.runtime_records import (
    AgentDetails,
    AgentIdentity,
    BriefRecord,
    NoticeRecord,
    TimerRecord,
    WorkItemRecord,
)
from wakeful.views.trigger_records import TriggerRecord


class ListedWorkspace(Value):
    """The folder that an agent works in, as a list shows it."""

    workspace_id: str
    workspace_anchor: str


class AgentListEntry(Value):
    """One public agent, as a client needs it for choosing one."""

    identity: AgentIdentity
    status: LifeStatus
    control: AgentControl
    model: str
    """The model that its next turn asks."""
    pending: int = 0
    """Messages that no turn has taken."""
    last_brief_at: float | None = None
    active_workspace: ListedWorkspace | None = None


class AgentSummary(AgentDetails):
    """One agent, for operators, scripts and integrations."""

    identity: AgentIdentity
    active_workspace: ActiveWorkspaceEntry
    needs_you: int = 0
    """Approvals and questions that wait for somebody."""


class WaitRecord(Value):
    """Something that an agent waits for."""

    wait_id: str
    agent: str
    thread: str
    turn_id: str
    wake: WaitWake
    reason: str
    resource: str | None = None
    work_item_id: str | None = None
    due_at: float
    """When it ends by itself."""
    is_sleep: bool = False
    created_at: float


class AgentStateSnapshot(Value):
    """One coherent picture of an agent, and the event after which its events go on from there."""

    agent: AgentSummary
    event_seq: int
    """Ask for the events after this one."""
    workspaces: AgentWorkspaces
    work_items: tuple[WorkItemRecord, ...] = ()
    waits: tuple[WaitRecord, ...] = ()
    timers: tuple[TimerRecord, ...] = ()
    triggers: tuple[TriggerRecord, ...] = ()
    approvals: tuple[Approval, ...] = ()
    briefs: tuple[BriefRecord, ...] = ()
    """The newest ones, the newest first."""
    notices: tuple[NoticeRecord, ...] = ()
