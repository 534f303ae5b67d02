"""Everything the runtime needs from the world, as Protocols: one module a concern.

An implementation is named nowhere but in `bootstrap`. What a method must not do is written on it.
"""

from wakeful.ports.approvals import ActionKind, ActionRow, Approvals, RuleRow
from wakeful.ports.artifacts import ArtifactRow, Artifacts
from wakeful.ports.blobs import Blobs
from wakeful.ports.briefs import BriefRow, Briefs
from wakeful.ports.dispatches import Dispatches, DispatchEvent, DispatchKind, DispatchRow
from wakeful.ports.feeds import Feed, Feeds, Watch
from wakeful.ports.imported_agents import ImportedAgent, ImportedAgents
from wakeful.ports.leases import Claim, Leases, TakenFrom
from wakeful.ports.log import AdmissionAnswer, Log, TurnReader
from wakeful.ports.mailbox import BusyThread, Mailbox, MessageRow, MessageState
from wakeful.ports.model import (
    Model,
    ModelRequest,
    Pricing,
    Reattachable,
    RefusedAttachment,
    RefusingModel,
    Secretive,
    Selective,
)
from wakeful.ports.spending import HoldRow, Spending, WindowRow
from wakeful.ports.store import MessageLog, Store, TableReads
from wakeful.ports.tables import Column, Condition, Match, Row, RowQuery, Rows, Table, TableIndex, TableKey, Value
from wakeful.ports.taint import TaintedFiles, TaintRow
from wakeful.ports.threads import ThreadRow, Threads
from wakeful.ports.turn_costs import TurnCostRow, TurnCosts
from wakeful.ports.turns import OPEN_STATES, TurnFilter, TurnRow, Turns, TurnState
from wakeful.ports.unknown_outcomes import UnknownOutcomes, UnknownRow
from wakeful.ports.upkeep import Damage, Upkeep
from wakeful.ports.usage import Usage, UsageOfName, UsageRow
from wakeful.ports.wakes import WakeCause, WakeRow, Wakes
from wakeful.ports.work_items import FocusRow, WorkItems
from wakeful.ports.workflows import WorkflowRow, Workflows
from wakeful.ports.world import (
    Clock,
    Collection,
    Ids,
)

__all__ = [
    "ActionKind",
    "ActionRow",
    "AdmissionAnswer",
    "Approvals",
    "ArtifactRow",
    "Artifacts",
    "Blobs",
    "BriefRow",
    "Briefs",
    "BusyThread",
    "Claim",
    "Clock",
    "Collection",
    "Column",
    "Condition",
    "Damage",
    "DispatchEvent",
    "DispatchKind",
    "DispatchRow",
    "Dispatches",
    "Feed",
    "Feeds",
    "HoldRow",
    "FocusRow",
    "Ids",
    "ImportedAgent",
    "ImportedAgents",
    "Leases",
    "Log",
    "Mailbox",
    "Match",
    "MessageLog",
    "MessageRow",
    "MessageState",
    "Model",
    "ModelRequest",
    "OPEN_STATES",
    "Pricing",
    "Reattachable",
    "RefusedAttachment",
    "RefusingModel",
    "Row",
    "RowQuery",
    "Rows",
    "RuleRow",
    "Secretive",
    "Selective",
    "Spending",
    "Store",
    "Table",
    "TableIndex",
    "TableKey",
    "TableReads",
    "TaintRow",
    "TaintedFiles",
    "TakenFrom",
    "ThreadRow",
    "Threads",
    "TurnCostRow",
    "TurnCosts",
    "TurnFilter",
    "TurnReader",
    "TurnRow",
    "TurnState",
    "Turns",
    "UnknownOutcomes",
    "UnknownRow",
    "Upkeep",
    "Usage",
    "UsageOfName",
    "UsageRow",
    "Value",
    "WakeCause",
    "WakeRow",
    "Wakes",
    "Watch",
    "WindowRow",
    "WorkItems",
    "WorkflowRow",
    "Workflows",
]
