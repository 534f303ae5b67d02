"""What one may ask of the runtime: commands, queries, watching, and the points at which a host may listen in.

`operations` is the table of it. `commands` change something, `queries` only read, `workflows` and `client_tools` carry
out what takes longer than one append. Not here: how a turn is carried out (`engine`), what a caller sees of it on a
screen or a wire (`surfaces`).

This module is the room's door: what surfaces need of the rooms below they take from here, and from nowhere else. Each
name is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wakeful.decisions.policy.patterns import any_named as any_named
    from wakeful.decisions.redaction import redact as redact
    from wakeful.decisions.spend_windows import scope_words as scope_words
    from wakeful.decisions.waking.spoken_schedules import FORMS as FORMS
    from wakeful.decisions.waking.spoken_schedules import NotASchedule as NotASchedule
    from wakeful.decisions.waking.spoken_schedules import cron_of as cron_of
    from wakeful.decisions.workflows.graph_reader import graph_of as graph_of
    from wakeful.decisions.workflows.graph_reader import read_graph as read_graph
    from wakeful.decisions.workflows.layout import as_lines as as_lines
    from wakeful.decisions.workflows.layout import as_mermaid as as_mermaid
    from wakeful.decisions.workflows.node_inputs import as_text as as_text
    from wakeful.decisions.workflows.node_inputs import fitted as fitted
    from wakeful.engine.agent import Agent as Agent
    from wakeful.engine.agent import AgentTool as AgentTool
    from wakeful.engine.agent_checks import ModelChoice as ModelChoice
    from wakeful.engine.agent_checks import checked_hooks as checked_hooks
    from wakeful.engine.agent_checks import checked_notify as checked_notify
    from wakeful.engine.agent_checks import tools_of_the_runtime as tools_of_the_runtime
    from wakeful.engine.named_servers import check_servers as check_servers
    from wakeful.engine.prepare.models import choices_of as choices_of
    from wakeful.engine.run_request import Engine as Engine
    from wakeful.engine.run_request import MessageOrigin as MessageOrigin
    from wakeful.engine.run_request import RunRequest as RunRequest
    from wakeful.engine.run_request import WorkflowTerms as WorkflowTerms
    from wakeful.engine.watchers import Glimpse as Glimpse
    from wakeful.engine.watchers import ModelGlimpsed as ModelGlimpsed
    from wakeful.engine.watchers import OutputGlimpsed as OutputGlimpsed
    from wakeful.engine.watchers import ProgressGlimpsed as ProgressGlimpsed
    from wakeful.engine.workflow_parts import workflow_registry as workflow_registry
    from wakeful.engine.workflow_registry import WorkflowRegistry as WorkflowRegistry
    from wakeful.ports import Clock as Clock
    from wakeful.ports import Ids as Ids
    from wakeful.ports import RuleRow as RuleRow
    from wakeful.ports import Store as Store
    from wakeful.ports import TurnRow as TurnRow
    from wakeful.ports import UnknownRow as UnknownRow
    from wakeful.runtime.scheduler import Places as Places
    from wakeful.runtime.timers import cancel_timer as cancel_timer
    from wakeful.runtime.timers import next_time as next_time
    from wakeful.sandbox.import_guard import guard_imports as guard_imports
    from wakeful.settings.agent_homes import default_agent_id as default_agent_id
    from wakeful.settings.daemon import owner_drain as owner_drain
    from wakeful.settings.local_zone import local_zone as local_zone
    from wakeful.settings.owner_file import settings_path as settings_path
    from wakeful.settings.store_file import default_store as default_store
    from wakeful.settings.store_file import home_store as home_store
    from wakeful.tools.context import RunContext as RunContext
    from wakeful.tools.decorator import tool as tool
    from wakeful.tools.hooks import Ask as Ask
    from wakeful.tools.hooks import Hook as Hook
    from wakeful.tools.local.profiles import PROFILES as PROFILES
    from wakeful.tools.source import ToolSource as ToolSource
    from wakeful.tools.tool import Tool as Tool

_WHERE = {
    "Agent": "wakeful.engine.agent",
    "AgentTool": "wakeful.engine.agent",
    "Ask": "wakeful.tools.hooks",
    "Places": "wakeful.runtime.scheduler",
    "cancel_timer": "wakeful.runtime.timers",
    "Clock": "wakeful.ports",
    "Ids": "wakeful.ports",
    "Glimpse": "wakeful.engine.watchers",
    "Hook": "wakeful.tools.hooks",
    "MessageOrigin": "wakeful.engine.run_request",
    "ModelChoice": "wakeful.engine.agent_checks",
    "ModelGlimpsed": "wakeful.engine.watchers",
    "OutputGlimpsed": "wakeful.engine.watchers",
    "PROFILES": "wakeful.tools.local.profiles",
    "ProgressGlimpsed": "wakeful.engine.watchers",
    "RuleRow": "wakeful.ports",
    "RunContext": "wakeful.tools.context",
    "RunRequest": "wakeful.engine.run_request",
    "Engine": "wakeful.engine.run_request",
    "Store": "wakeful.ports",
    "Tool": "wakeful.tools.tool",
    "ToolSource": "wakeful.tools.source",
    "TurnRow": "wakeful.ports",
    "UnknownRow": "wakeful.ports",
    "WorkflowRegistry": "wakeful.engine.workflow_registry",
    "WorkflowTerms": "wakeful.engine.run_request",
    "FORMS": "wakeful.decisions.waking.spoken_schedules",
    "NotASchedule": "wakeful.decisions.waking.spoken_schedules",
    "cron_of": "wakeful.decisions.waking.spoken_schedules",
    "local_zone": "wakeful.settings.local_zone",
    "owner_drain": "wakeful.settings.daemon",
    "next_time": "wakeful.runtime.timers",
    "any_named": "wakeful.decisions.policy.patterns",
    "as_lines": "wakeful.decisions.workflows.layout",
    "as_mermaid": "wakeful.decisions.workflows.layout",
    "as_text": "wakeful.decisions.workflows.node_inputs",
    "check_servers": "wakeful.engine.named_servers",
    "checked_hooks": "wakeful.engine.agent_checks",
    "checked_notify": "wakeful.engine.agent_checks",
    "choices_of": "wakeful.engine.prepare.models",
    "default_agent_id": "wakeful.settings.agent_homes",
    "default_store": "wakeful.settings.store_file",
    "fitted": "wakeful.decisions.workflows.node_inputs",
    "graph_of": "wakeful.decisions.workflows.graph_reader",
    "guard_imports": "wakeful.sandbox.import_guard",
    "home_store": "wakeful.settings.store_file",
    "read_graph": "wakeful.decisions.workflows.graph_reader",
    "redact": "wakeful.decisions.redaction",
    "settings_path": "wakeful.settings.owner_file",
    "scope_words": "wakeful.decisions.spend_windows",
    "tool": "wakeful.tools.decorator",
    "tools_of_the_runtime": "wakeful.engine.agent_checks",
    "workflow_registry": "wakeful.engine.workflow_parts",
}


def __getattr__(name: str) -> Any:
    where = _WHERE.get(name)
    if where is None:
        raise AttributeError(f"module 'wakeful.service' has no attribute {name!r}")
    value = getattr(import_module(where), name)
    globals()[name] = value
    return value
