"""The conversation loop for hosts that bring their own model call and their own tools.

    result = await ConversationLoop().run(messages, turn_runner, {"max_turns": 5, ...})

A facade over the one runner: the host's `turn_runner` is its model, the host's `tool_executor` its tools, and every
event the host sees is a fact of the log. Here live the options, the adapters and the result. Not here: how a turn is
sequenced (`decisions`, `agents`), how a call is let through (`mediation`).
"""

from wakeful.contracts.completion import CompletionDecision
from wakeful.contracts.conversation_result import ConversationResult
from wakeful.contracts.iteration_budgets import IterationBudget
from wakeful.contracts.policies import ActionPolicy, ActionPolicyProvider, ToolAccessPolicy
from wakeful.contracts.principals import ExecutionPrincipal
from wakeful.contracts.requests import ConversationRequest
from wakeful.contracts.transcript import Message, normalise, normalise_all
from wakeful.contracts.transcript_compaction import TranscriptCompactionPolicy
from wakeful.decisions.compaction_items import CompactionItem
from wakeful.decisions.guards import IdenticalFailureTracker, SpinDetector
from wakeful.decisions.message_compaction import Compaction
from wakeful.decisions.policy.actions import ActionPolicyResolver
from wakeful.decisions.policy.tiers import Tiers, tiered
from wakeful.decisions.policy.visibility import ToolPolicyFilter
from wakeful.decisions.policy.visibility import ToolVisibility as ToolPolicy
from wakeful.decisions.truncation import ToolResultTruncator
from wakeful.ports import CompletionPolicy, ConversationLock, ToolExecutor, TranscriptPersister
from wakeful.service.principals import resolve_principal, runtime_local_declarations, runtime_tool_policy
from wakeful.surfaces.loop.compacting import compact
from wakeful.surfaces.loop.conversation_loop import ConversationLoop
from wakeful.surfaces.loop.execution import ToolExecutionCore
from wakeful.surfaces.loop.locks import MemoryConversationLock
from wakeful.surfaces.loop.mediating import mediate_turn
from wakeful.surfaces.loop.tool_sources import ToolSourceRegistry

__all__ = [
    "ActionPolicy",
    "ActionPolicyProvider",
    "ActionPolicyResolver",
    "Compaction",
    "CompactionItem",
    "TranscriptCompactionPolicy",
    "CompletionDecision",
    "CompletionPolicy",
    "ConversationLock",
    "ConversationLoop",
    "ConversationRequest",
    "ConversationResult",
    "ExecutionPrincipal",
    "IdenticalFailureTracker",
    "IterationBudget",
    "MemoryConversationLock",
    "Message",
    "SpinDetector",
    "Tiers",
    "ToolAccessPolicy",
    "ToolExecutionCore",
    "ToolExecutor",
    "ToolPolicy",
    "ToolPolicyFilter",
    "ToolResultTruncator",
    "ToolSourceRegistry",
    "TranscriptPersister",
    "compact",
    "mediate_turn",
    "normalise",
    "normalise_all",
    "resolve_principal",
    "runtime_local_declarations",
    "runtime_tool_policy",
    "tiered",
]
