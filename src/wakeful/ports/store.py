"""The store: the sum of its ports. A function takes the port it needs, and the whole only where it hands it on."""

from typing import Protocol

from wakeful.ports.agent_figures import AgentFigures
from wakeful.ports.approvals import Approvals
from wakeful.ports.artifacts import Artifacts
from wakeful.ports.blobs import Blobs
from wakeful.ports.briefs import Briefs
from wakeful.ports.channels import Channels
from wakeful.ports.dispatches import Dispatches
from wakeful.ports.feeds import Feeds
from wakeful.ports.imported_agents import ImportedAgents
from wakeful.ports.keyed_requests import KeyedRequests
from wakeful.ports.leases import Leases
from wakeful.ports.log import Log
from wakeful.ports.mailbox import Mailbox
from wakeful.ports.memory import MemoryRows
from wakeful.ports.notices import Notices, RuntimeHolds
from wakeful.ports.operator_feed import OperatorFeed
from wakeful.ports.retention import RetentionStore
from wakeful.ports.runtime_agents import RuntimeAgents
from wakeful.ports.spending import Spending
from wakeful.ports.taint import TaintedFiles
from wakeful.ports.tasks import Tasks
from wakeful.ports.timers import Timers
from wakeful.ports.transfer import LogTransfer
from wakeful.ports.triggers import Triggers
from wakeful.ports.turn_costs import TurnCosts
from wakeful.ports.unknown_outcomes import UnknownOutcomes
from wakeful.ports.upkeep import Upkeep
from wakeful.ports.usage import Usage
from wakeful.ports.waits import AgentWaits
from wakeful.ports.wakes import Wakes
from wakeful.ports.work_items import WorkItems
from wakeful.ports.workflow_runs import WorkflowRuns
from wakeful.ports.workflows import Workflows
from wakeful.ports.workspaces import Workspaces


class TableReads(
    TurnCosts,
    Usage,
    Spending,
    UnknownOutcomes,
    Approvals,
    TaintedFiles,
    Artifacts,
    Mailbox,
    Timers,
    AgentWaits,
    Wakes,
    RuntimeAgents,
    AgentFigures,
    Tasks,
    WorkItems,
    Briefs,
    WorkflowRuns,
    MemoryRows,
    Notices,
    RuntimeHolds,
    KeyedRequests,
    Channels,
    OperatorFeed,
    Triggers,
    Workspaces,
    Protocol,
):
    """Everything that is read from declared tables. A backend inherits it, and gives the four methods of `Rows`."""


class MessageLog(Log, Mailbox, Wakes, Protocol):
    """The log, and where in it the messages stand that turns took or that wait."""


class DueStore(Wakes, RuntimeHolds, Feeds, Protocol):
    """What is due, and when to look at it again."""


class Store(TableReads, Log, Leases, Feeds, Blobs, Workflows, Upkeep, Protocol):
    """One interface, several backends, one contract suite a port."""

    @property
    def location(self) -> str:
        """What a person would type after `--store`."""
        ...

    @property
    def runtime_id(self) -> str:
        """The installation this store belongs to."""
        ...

    @property
    def secret(self) -> bytes:
        """Known to this store alone: what approvals are bound with. Never shown, logged or handed on."""
        ...

    @property
    def dispatches(self) -> Dispatches: ...

    @property
    def retention(self) -> RetentionStore: ...

    @property
    def transfer(self) -> LogTransfer: ...

    @property
    def imported_agents(self) -> ImportedAgents: ...

    async def close(self) -> None: ...
