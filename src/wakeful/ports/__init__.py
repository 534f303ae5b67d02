"""Everything the runtime needs from the world, as Protocols: one module a concern.

An implementation is named nowhere but in `bootstrap`. What a method must not do is written on it.
"""

from wakeful.ports.approvals import ActionKind, ActionRow, Approvals, RuleRow
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
from wakeful.ports.store import (
    AdmissionAnswer,
    Claim,
    Damage,
    Feed,
    ImportedAgent,
    ImportedAgents,
    RunKind,
    Store,
    TableReads,
    TakenFrom,
    TaskRunEvent,
    TaskRunRow,
    TaskRunStore,
    Watch,
    WorkflowRow,
)
from wakeful.ports.tables import Column, Condition, Match, Row, RowQuery, Rows, Table, TableIndex, TableKey, Value
from wakeful.ports.taint import TaintedFiles, TaintRow
from wakeful.ports.turn_costs import TurnCostRow, TurnCosts
from wakeful.ports.turns import OPEN_STATES, ThreadRow, TurnFilter, TurnRow, Turns, TurnState
from wakeful.ports.unknown_outcomes import UnknownOutcomes, UnknownRow
from wakeful.ports.usage import Usage, UsageOfName, UsageRow
from wakeful.ports.wakes import WakeCause, WakeRow, Wakes
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
    "BusyThread",
    "Claim",
    "Clock",
    "Collection",
    "Column",
    "Condition",
    "Damage",
    "Feed",
    "Ids",
    "ImportedAgent",
    "ImportedAgents",
    "TableIndex",
    "TableKey",
    "RowQuery",
    "Mailbox",
    "Match",
    "MessageRow",
    "MessageState",
    "Model",
    "ModelRequest",
    "OPEN_STATES",
    "Pricing",
    "Reattachable",
    "RefusingModel",
    "Row",
    "Rows",
    "RuleRow",
    "RunKind",
    "Secretive",
    "Selective",
    "Store",
    "Table",
    "TableReads",
    "TaintRow",
    "TaintedFiles",
    "TakenFrom",
    "TaskRunEvent",
    "TaskRunRow",
    "TaskRunStore",
    "ThreadRow",
    "TurnFilter",
    "TurnCostRow",
    "TurnCosts",
    "TurnRow",
    "TurnState",
    "Turns",
    "UnknownOutcomes",
    "UnknownRow",
    "Usage",
    "UsageOfName",
    "UsageRow",
    "HoldRow",
    "WindowRow",
    "Spending",
    "Value",
    "WakeCause",
    "WakeRow",
    "Wakes",
    "RefusedAttachment",
    "Watch",
    "WorkflowRow",
]
