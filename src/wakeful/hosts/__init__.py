"""Hosts: programs that bring their own model call, their own tools, or their own idea of an agent.

    from wakeful.hosts import ConversationLoop

    result = await ConversationLoop().run(messages, turn_runner, {"max_turns": 5, ...})

A facade over the one runner: the host's `turn_runner` is its model, its `tool_executor` its tools, and every event it
hears of is a fact of the log. Everything that a host needs has its address here; each name is loaded when it is first
used. Not here: how a turn is sequenced (`decisions`, `engine`), how a call is let through (`gate`).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wakeful.contracts.policies import ActionPolicy as ActionPolicy
    from wakeful.contracts.policies import ActionPolicyProvider as ActionPolicyProvider
    from wakeful.contracts.policies import ToolAccessPolicy as ToolAccessPolicy
    from wakeful.contracts.principals import CapabilityCeiling as CapabilityCeiling
    from wakeful.contracts.principals import ExecutionPrincipal as ExecutionPrincipal
    from wakeful.contracts.runtime_tools import RuntimeToolRequest as RuntimeToolRequest
    from wakeful.contracts.runtime_tools import RuntimeToolResult as RuntimeToolResult
    from wakeful.contracts.transcript import Message as Message
    from wakeful.contracts.transcript import merge_same_role as merge_same_role
    from wakeful.contracts.transcript import normalise as normalise
    from wakeful.contracts.transcript import normalise_all as normalise_all
    from wakeful.decisions.guards import IdenticalFailureTracker as IdenticalFailureTracker
    from wakeful.decisions.guards import SpinDetector as SpinDetector
    from wakeful.decisions.policy.actions import ActionPolicyResolver as ActionPolicyResolver
    from wakeful.decisions.policy.actions import RememberedKey as RememberedKey
    from wakeful.hosts.abilities.registry import Abilities as Abilities
    from wakeful.hosts.abilities.registry import Ability as Ability
    from wakeful.hosts.abilities.registry import AbilityExecutor as AbilityExecutor
    from wakeful.hosts.abilities.registry import AbilityRefused as AbilityRefused
    from wakeful.hosts.actions.decisions import ActionOutcome as ActionOutcome
    from wakeful.hosts.actions.decisions import PendingActions as PendingActions
    from wakeful.hosts.actions.pending_action import PendingAction as PendingAction
    from wakeful.hosts.actions.pending_action import PendingActionError as PendingActionError
    from wakeful.hosts.actions.records import OwnPendingActionStore as OwnPendingActionStore
    from wakeful.hosts.compaction.compaction_items import CompactionItem as CompactionItem
    from wakeful.hosts.compaction.markdown_sections import join_markdown as join_markdown
    from wakeful.hosts.compaction.markdown_sections import point_to_section as point_to_section
    from wakeful.hosts.compaction.markdown_sections import split_markdown as split_markdown
    from wakeful.hosts.compaction.markdown_sections import split_markdown_overflow as split_markdown_overflow
    from wakeful.hosts.compaction.markdown_sections import summarise_section as summarise_section
    from wakeful.hosts.compaction.transcript_compaction import Compaction as Compaction
    from wakeful.hosts.compaction.transcript_compaction import compact as compact
    from wakeful.hosts.compaction.transcript_cut import TranscriptCompactionPolicy as TranscriptCompactionPolicy
    from wakeful.hosts.dispatch.dispatch_request import DispatchRequest as DispatchRequest
    from wakeful.hosts.dispatch.dispatch_request import DispatchResult as DispatchResult
    from wakeful.hosts.dispatch.dispatch_request import ExecutionMetrics as ExecutionMetrics
    from wakeful.hosts.dispatch.dispatch_request import ExecutionPlacement as ExecutionPlacement
    from wakeful.hosts.dispatch.dispatch_request import ExecutorTarget as ExecutorTarget
    from wakeful.hosts.dispatch.dispatcher import Dispatcher as Dispatcher
    from wakeful.hosts.entrances import dispatch_ability as dispatch_ability
    from wakeful.hosts.entrances import import_runtime_bundles as import_runtime_bundles
    from wakeful.hosts.entrances import open_engine as open_engine
    from wakeful.hosts.entrances import open_host as open_host
    from wakeful.hosts.entrances import register_ability as register_ability
    from wakeful.hosts.entrances import run_runtime_package as run_runtime_package
    from wakeful.hosts.host import Host as Host
    from wakeful.hosts.loop.budgets import IterationBudget as IterationBudget
    from wakeful.hosts.loop.conversation_loop import ConversationLoop as ConversationLoop
    from wakeful.hosts.loop.conversation_loop import mediate_turn as mediate_turn
    from wakeful.hosts.loop.conversation_request import ConversationRequest as ConversationRequest
    from wakeful.hosts.loop.conversation_result import ConversationResult as ConversationResult
    from wakeful.hosts.loop.conversation_run import MemoryConversationLock as MemoryConversationLock
    from wakeful.hosts.loop.transcript_bounds import ToolResultTruncator as ToolResultTruncator
    from wakeful.hosts.packages.package_run import PackageRunRequest as PackageRunRequest
    from wakeful.hosts.packages.package_run import PackageRunResult as PackageRunResult
    from wakeful.hosts.policies.tool_visibility import ToolPolicyFilter as ToolPolicyFilter
    from wakeful.hosts.policies.tool_visibility import ToolVisibility as ToolPolicy  # noqa: F401
    from wakeful.hosts.ports import CompletionDecision as CompletionDecision
    from wakeful.hosts.ports import CompletionPolicy as CompletionPolicy
    from wakeful.hosts.ports import ConversationLock as ConversationLock
    from wakeful.hosts.ports import PendingActionStore as PendingActionStore
    from wakeful.hosts.ports import ToolCall as ToolCall
    from wakeful.hosts.ports import ToolExecutor as ToolExecutor
    from wakeful.hosts.ports import TranscriptPersister as TranscriptPersister
    from wakeful.hosts.ports import TurnRunner as TurnRunner
    from wakeful.hosts.run_access import RunAccess as RunAccess
    from wakeful.hosts.run_access import RunRefused as RunRefused
    from wakeful.hosts.run_access import resolve_principal as resolve_principal
    from wakeful.hosts.tools.declaration_reader import validate_declaration as validate_declaration
    from wakeful.hosts.tools.runtime_policy import runtime_local_declarations as runtime_local_declarations
    from wakeful.hosts.tools.runtime_policy import runtime_tool_policy as runtime_tool_policy
    from wakeful.hosts.tools.tool_declaration import RuntimeToolDeclaration as RuntimeToolDeclaration
    from wakeful.hosts.tools.tool_execution import ToolExecutionCore as ToolExecutionCore
    from wakeful.hosts.tools.tool_sources import Tiers as Tiers
    from wakeful.hosts.tools.tool_sources import ToolSourceRegistry as ToolSourceRegistry
    from wakeful.hosts.tools.tool_sources import tiered as tiered
    from wakeful.hosts.unified_loop import LoopContext as LoopContext
    from wakeful.hosts.unified_loop import run_unified_agent_loop as run_unified_agent_loop
    from wakeful.ports.client_requests import RequestEnding as RequestEnding
    from wakeful.ports.client_requests import RuntimeToolRequestStore as RuntimeToolRequestStore
    from wakeful.service.client_tools.lifecycle import RuntimeToolLifecycle as RuntimeToolLifecycle
    from wakeful.service.client_tools.store import OwnRequestStore as OwnRequestStore
    from wakeful.service.hooks import HookRegistry as HookRegistry
    from wakeful.service.hooks import hooks as hooks

_WHERE = {
    "Abilities": "wakeful.hosts.abilities.registry",
    "Ability": "wakeful.hosts.abilities.registry",
    "AbilityExecutor": "wakeful.hosts.abilities.registry",
    "AbilityRefused": "wakeful.hosts.abilities.registry",
    "ActionOutcome": "wakeful.hosts.actions.decisions",
    "ActionPolicy": "wakeful.contracts.policies",
    "ActionPolicyProvider": "wakeful.contracts.policies",
    "ActionPolicyResolver": "wakeful.decisions.policy.actions",
    "CapabilityCeiling": "wakeful.contracts.principals",
    "Compaction": "wakeful.hosts.compaction.transcript_compaction",
    "CompactionItem": "wakeful.hosts.compaction.compaction_items",
    "CompletionDecision": "wakeful.hosts.ports",
    "CompletionPolicy": "wakeful.hosts.ports",
    "ConversationLock": "wakeful.hosts.ports",
    "ConversationLoop": "wakeful.hosts.loop.conversation_loop",
    "ConversationRequest": "wakeful.hosts.loop.conversation_request",
    "ConversationResult": "wakeful.hosts.loop.conversation_result",
    "DispatchRequest": "wakeful.hosts.dispatch.dispatch_request",
    "DispatchResult": "wakeful.hosts.dispatch.dispatch_request",
    "Dispatcher": "wakeful.hosts.dispatch.dispatcher",
    "ExecutionMetrics": "wakeful.hosts.dispatch.dispatch_request",
    "ExecutionPlacement": "wakeful.hosts.dispatch.dispatch_request",
    "ExecutionPrincipal": "wakeful.contracts.principals",
    "ExecutorTarget": "wakeful.hosts.dispatch.dispatch_request",
    "HookRegistry": "wakeful.service.hooks",
    "Host": "wakeful.hosts.host",
    "IdenticalFailureTracker": "wakeful.decisions.guards",
    "IterationBudget": "wakeful.hosts.loop.budgets",
    "LoopContext": "wakeful.hosts.unified_loop",
    "MemoryConversationLock": "wakeful.hosts.loop.conversation_run",
    "Message": "wakeful.contracts.transcript",
    "OwnPendingActionStore": "wakeful.hosts.actions.records",
    "OwnRequestStore": "wakeful.service.client_tools.store",
    "PackageRunRequest": "wakeful.hosts.packages.package_run",
    "PackageRunResult": "wakeful.hosts.packages.package_run",
    "PendingAction": "wakeful.hosts.actions.pending_action",
    "PendingActionError": "wakeful.hosts.actions.pending_action",
    "PendingActionStore": "wakeful.hosts.ports",
    "PendingActions": "wakeful.hosts.actions.decisions",
    "RunAccess": "wakeful.hosts.run_access",
    "RunRefused": "wakeful.hosts.run_access",
    "RuntimeToolDeclaration": "wakeful.hosts.tools.tool_declaration",
    "RuntimeToolLifecycle": "wakeful.service.client_tools.lifecycle",
    "RuntimeToolRequest": "wakeful.contracts.runtime_tools",
    "RuntimeToolRequestStore": "wakeful.ports.client_requests",
    "RuntimeToolResult": "wakeful.contracts.runtime_tools",
    "RememberedKey": "wakeful.decisions.policy.actions",
    "RequestEnding": "wakeful.ports.client_requests",
    "SpinDetector": "wakeful.decisions.guards",
    "Tiers": "wakeful.hosts.tools.tool_sources",
    "ToolAccessPolicy": "wakeful.contracts.policies",
    "ToolCall": "wakeful.hosts.ports",
    "ToolExecutionCore": "wakeful.hosts.tools.tool_execution",
    "ToolExecutor": "wakeful.hosts.ports",
    "ToolPolicy": "wakeful.hosts.policies.tool_visibility",
    "ToolPolicyFilter": "wakeful.hosts.policies.tool_visibility",
    "ToolResultTruncator": "wakeful.hosts.loop.transcript_bounds",
    "ToolSourceRegistry": "wakeful.hosts.tools.tool_sources",
    "TranscriptCompactionPolicy": "wakeful.hosts.compaction.transcript_cut",
    "TranscriptPersister": "wakeful.hosts.ports",
    "TurnRunner": "wakeful.hosts.ports",
    "compact": "wakeful.hosts.compaction.transcript_compaction",
    "dispatch_ability": "wakeful.hosts.entrances",
    "hooks": "wakeful.service.hooks",
    "import_runtime_bundles": "wakeful.hosts.entrances",
    "join_markdown": "wakeful.hosts.compaction.markdown_sections",
    "merge_same_role": "wakeful.contracts.transcript",
    "mediate_turn": "wakeful.hosts.loop.conversation_loop",
    "normalise": "wakeful.contracts.transcript",
    "normalise_all": "wakeful.contracts.transcript",
    "open_engine": "wakeful.hosts.entrances",
    "open_host": "wakeful.hosts.entrances",
    "point_to_section": "wakeful.hosts.compaction.markdown_sections",
    "register_ability": "wakeful.hosts.entrances",
    "resolve_principal": "wakeful.hosts.run_access",
    "run_runtime_package": "wakeful.hosts.entrances",
    "run_unified_agent_loop": "wakeful.hosts.unified_loop",
    "runtime_local_declarations": "wakeful.hosts.tools.runtime_policy",
    "runtime_tool_policy": "wakeful.hosts.tools.runtime_policy",
    "split_markdown": "wakeful.hosts.compaction.markdown_sections",
    "split_markdown_overflow": "wakeful.hosts.compaction.markdown_sections",
    "summarise_section": "wakeful.hosts.compaction.markdown_sections",
    "tiered": "wakeful.hosts.tools.tool_sources",
    "validate_declaration": "wakeful.hosts.tools.declaration_reader",
}
_OWN_NAME = {"ToolPolicy": "ToolVisibility"}
"""Where the published name is not the one in the code, which has another thing of that name."""

__all__ = list(_WHERE)


def __getattr__(name: str) -> Any:
    where = _WHERE.get(name)
    if where is None:
        raise AttributeError(f"module 'wakeful.hosts' has no attribute {name!r}")
    value = getattr(import_module(where), _OWN_NAME.get(name, name))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
