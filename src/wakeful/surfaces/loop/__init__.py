"""The conversation loop for hosts that bring their own model call and their own tools.

    result = await ConversationLoop().run(messages, turn_runner, {"max_turns": 5, ...})

A facade over the one runner: the host's `turn_runner` is its model, the host's `tool_executor` its tools, and every
event the host sees is a fact of the log. Here live the options, the adapters and the result. Not here: how a turn is
sequenced (`decisions`, `agents`), how a call is let through (`mediation`).
"""

from wakeful.contracts.policies import ActionPolicy, ActionPolicyProvider, ToolAccessPolicy
from wakeful.decisions.policy.actions import ActionPolicyResolver
from wakeful.decisions.policy.tiers import Tiers, tiered
from wakeful.decisions.policy.visibility import ToolPolicyFilter
from wakeful.decisions.policy.visibility import ToolVisibility as ToolPolicy
from wakeful.service.principals import resolve_principal, runtime_local_declarations, runtime_tool_policy
from wakeful.surfaces.loop.conversation_loop import ConversationLoop
from wakeful.surfaces.loop.execution import ToolExecutionCore
from wakeful.surfaces.loop.locks import MemoryConversationLock
from wakeful.surfaces.loop.mediating import mediate_turn

__all__ = [
    "ActionPolicy",
    "ActionPolicyProvider",
    "ActionPolicyResolver",
    "ConversationLoop",
    "MemoryConversationLock",
    "Tiers",
    "ToolAccessPolicy",
    "ToolExecutionCore",
    "ToolPolicy",
    "ToolPolicyFilter",
    "mediate_turn",
    "resolve_principal",
    "runtime_local_declarations",
    "runtime_tool_policy",
    "tiered",
]
