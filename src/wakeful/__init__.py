"""wakeful: a durable runtime for AI agents.

    from wakeful import Agent, tool, run

Importing this does nothing but name things: each name is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from wakeful._version import __version__

if TYPE_CHECKING:
    from wakeful.bootstrap.trusted_files import trust as trust
    from wakeful.contracts.approvals import Always as Always
    from wakeful.contracts.approvals import Answer as Answer
    from wakeful.contracts.approvals import Approval as Approval
    from wakeful.contracts.approvals import Approve as Approve
    from wakeful.contracts.approvals import Edit as Edit
    from wakeful.contracts.approvals import Reject as Reject
    from wakeful.contracts.budgets import Budget as Budget
    from wakeful.contracts.budgets import BudgetLeft as BudgetLeft
    from wakeful.contracts.budgets import SpendWindow as SpendWindow
    from wakeful.contracts.content import File as File
    from wakeful.contracts.content import Image as Image
    from wakeful.contracts.content import Text as Text
    from wakeful.contracts.controls import CompactionPolicy as CompactionPolicy
    from wakeful.contracts.errors import KeyReused as KeyReused
    from wakeful.contracts.errors import NotBuiltYet as NotBuiltYet
    from wakeful.contracts.errors import NotCompleted as NotCompleted
    from wakeful.contracts.errors import OutcomeUnknown as OutcomeUnknown
    from wakeful.contracts.errors import ToolRetry as ToolRetry
    from wakeful.contracts.errors import WakefulError as WakefulError
    from wakeful.contracts.knowledge import Passage as Passage
    from wakeful.contracts.model_settings import ModelSettings as ModelSettings
    from wakeful.contracts.policies import GatePolicy as GatePolicy
    from wakeful.contracts.policies import Rule as Rule
    from wakeful.contracts.policies import ToolPolicy as ToolPolicy
    from wakeful.contracts.probes import DidNotHappen as DidNotHappen
    from wakeful.contracts.probes import Happened as Happened
    from wakeful.contracts.probes import StillUnknown as StillUnknown
    from wakeful.contracts.retention import Retention as Retention
    from wakeful.contracts.retries import Retry as Retry
    from wakeful.contracts.runtime_tools import RuntimeToolRequest as RuntimeToolRequest
    from wakeful.contracts.tools import Principal as Principal
    from wakeful.engine.agent import Agent as Agent
    from wakeful.ports import Collection as Collection
    from wakeful.retrieval.text_files import TextFiles as TextFiles
    from wakeful.sandbox.settings import SandboxSettings as SandboxSettings
    from wakeful.service.queries.replay import ReplayReport as ReplayReport
    from wakeful.service.queries.tool_inventory import ToolInventory as ToolInventory
    from wakeful.service.run_result import RunResult as RunResult
    from wakeful.surfaces.library.async_store import AsyncStore as AsyncStore
    from wakeful.surfaces.library.client_requests import cancel_request as cancel_request
    from wakeful.surfaces.library.client_requests import pending_requests as pending_requests
    from wakeful.surfaces.library.client_requests import submit_result as submit_result
    from wakeful.surfaces.library.client_requests import timeout_request as timeout_request
    from wakeful.surfaces.library.report import doctor as doctor
    from wakeful.surfaces.library.runs import resume as resume
    from wakeful.surfaces.library.runs import resume_all as resume_all
    from wakeful.surfaces.library.runs import retry as retry
    from wakeful.surfaces.library.runs import run as run
    from wakeful.surfaces.library.runs import run_sync as run_sync
    from wakeful.surfaces.library.runtime import Runtime as Runtime
    from wakeful.surfaces.library.steering import cancel as cancel
    from wakeful.surfaces.library.steering import interject as interject
    from wakeful.surfaces.library.steering import interrupt as interrupt
    from wakeful.surfaces.library.steering import pause as pause
    from wakeful.surfaces.library.store_handle import StoreHandle as StoreHandle
    from wakeful.surfaces.library.store_handle import open_store as open_store
    from wakeful.surfaces.library.streams import stream as stream
    from wakeful.surfaces.library.workflows import run_workflow as run_workflow
    from wakeful.tools.context import RunContext as RunContext
    from wakeful.tools.decorator import tool as tool
    from wakeful.tools.hooks import Hook as Hook
    from wakeful.tools.hooks import HookInput as HookInput
    from wakeful.tools.hooks import HookVerdict as HookVerdict
    from wakeful.tools.hooks import hook as hook
    from wakeful.tools.mcp.config import mcp_servers as mcp_servers
    from wakeful.tools.mcp.source import from_mcp as from_mcp
    from wakeful.tools.person import ask_person as ask_person
    from wakeful.tools.tool import Tool as Tool
    from wakeful.tools.web_search import web_search as web_search
    from wakeful.views.agent_status import AgentStatus as AgentStatus
    from wakeful.views.cost import CostReport as CostReport
    from wakeful.views.explanation import CallExplanation as CallExplanation
    from wakeful.views.prompt_report import PromptReport as PromptReport
    from wakeful.views.store_records import ApprovalRule as ApprovalRule
    from wakeful.views.store_records import Artifact as Artifact
    from wakeful.views.store_records import ArtifactContent as ArtifactContent
    from wakeful.views.store_records import SpendingLimit as SpendingLimit
    from wakeful.views.store_records import ThreadRecord as ThreadRecord
    from wakeful.views.store_records import TurnRecord as TurnRecord
    from wakeful.views.store_records import UnknownCall as UnknownCall
    from wakeful.views.tree import ExecutionTreeSnapshot as ExecutionTreeSnapshot
    from wakeful.views.tree import ThreadMessage as ThreadMessage
    from wakeful.views.turn_record import TurnLatency as TurnLatency

_WHERE = {
    "Agent": "wakeful.engine.agent",
    "Always": "wakeful.contracts.approvals",
    "Answer": "wakeful.contracts.approvals",
    "Approval": "wakeful.contracts.approvals",
    "Approve": "wakeful.contracts.approvals",
    "Budget": "wakeful.contracts.budgets",
    "BudgetLeft": "wakeful.contracts.budgets",
    "Collection": "wakeful.ports",
    "CompactionPolicy": "wakeful.contracts.controls",
    "DidNotHappen": "wakeful.contracts.probes",
    "Edit": "wakeful.contracts.approvals",
    "File": "wakeful.contracts.content",
    "GatePolicy": "wakeful.contracts.policies",
    "Happened": "wakeful.contracts.probes",
    "Hook": "wakeful.tools.hooks",
    "HookInput": "wakeful.tools.hooks",
    "HookVerdict": "wakeful.tools.hooks",
    "Image": "wakeful.contracts.content",
    "KeyReused": "wakeful.contracts.errors",
    "ModelSettings": "wakeful.contracts.model_settings",
    "NotBuiltYet": "wakeful.contracts.errors",
    "NotCompleted": "wakeful.contracts.errors",
    "OutcomeUnknown": "wakeful.contracts.errors",
    "Passage": "wakeful.contracts.knowledge",
    "Principal": "wakeful.contracts.tools",
    "Reject": "wakeful.contracts.approvals",
    "Rule": "wakeful.contracts.policies",
    "RunContext": "wakeful.tools.context",
    "RunResult": "wakeful.service.run_result",
    "Retention": "wakeful.contracts.retention",
    "Retry": "wakeful.contracts.retries",
    "Runtime": "wakeful.surfaces.library.runtime",
    "RuntimeToolRequest": "wakeful.contracts.runtime_tools",
    "SandboxSettings": "wakeful.sandbox.settings",
    "SpendWindow": "wakeful.contracts.budgets",
    "StillUnknown": "wakeful.contracts.probes",
    "Text": "wakeful.contracts.content",
    "TextFiles": "wakeful.retrieval.text_files",
    "Tool": "wakeful.tools.tool",
    "ToolPolicy": "wakeful.contracts.policies",
    "ToolRetry": "wakeful.contracts.errors",
    "WakefulError": "wakeful.contracts.errors",
    "ask_person": "wakeful.tools.person",
    "cancel": "wakeful.surfaces.library.steering",
    "cancel_request": "wakeful.surfaces.library.client_requests",
    "doctor": "wakeful.surfaces.library.report",
    "hook": "wakeful.tools.hooks",
    "from_mcp": "wakeful.tools.mcp.source",
    "interject": "wakeful.surfaces.library.steering",
    "interrupt": "wakeful.surfaces.library.steering",
    "mcp_servers": "wakeful.tools.mcp.config",
    "pause": "wakeful.surfaces.library.steering",
    "pending_requests": "wakeful.surfaces.library.client_requests",
    "resume": "wakeful.surfaces.library.runs",
    "resume_all": "wakeful.surfaces.library.runs",
    "retry": "wakeful.surfaces.library.runs",
    "run": "wakeful.surfaces.library.runs",
    "run_sync": "wakeful.surfaces.library.runs",
    "AsyncStore": "wakeful.surfaces.library.async_store",
    "StoreHandle": "wakeful.surfaces.library.store_handle",
    "open_store": "wakeful.surfaces.library.store_handle",
    "Artifact": "wakeful.views.store_records",
    "ArtifactContent": "wakeful.views.store_records",
    "ThreadRecord": "wakeful.views.store_records",
    "TurnRecord": "wakeful.views.store_records",
    "UnknownCall": "wakeful.views.store_records",
    "AgentStatus": "wakeful.views.agent_status",
    "ApprovalRule": "wakeful.views.store_records",
    "CallExplanation": "wakeful.views.explanation",
    "CostReport": "wakeful.views.cost",
    "ExecutionTreeSnapshot": "wakeful.views.tree",
    "PromptReport": "wakeful.views.prompt_report",
    "ReplayReport": "wakeful.service.queries.replay",
    "SpendingLimit": "wakeful.views.store_records",
    "ThreadMessage": "wakeful.views.tree",
    "ToolInventory": "wakeful.service.queries.tool_inventory",
    "TurnLatency": "wakeful.views.turn_record",
    "run_workflow": "wakeful.surfaces.library.workflows",
    "stream": "wakeful.surfaces.library.streams",
    "submit_result": "wakeful.surfaces.library.client_requests",
    "timeout_request": "wakeful.surfaces.library.client_requests",
    "tool": "wakeful.tools.decorator",
    "trust": "wakeful.bootstrap.trusted_files",
    "web_search": "wakeful.tools.web_search",
}

__all__ = ["__version__", *_WHERE]


def __getattr__(name: str) -> Any:
    where = _WHERE.get(name)
    if where is None:
        raise AttributeError(f"module 'wakeful' has no attribute {name!r}")
    value = getattr(import_module(where), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
