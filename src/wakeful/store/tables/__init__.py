"""Every table that is declared, and what facts do to its rows.

The declaration stands in `ports`, beside the row type; the rules stand here. A new table is one entry in `TABLES`.
"""

from collections.abc import Mapping
from typing import Any

from wakeful.ports.agent_figures import AGENT_FIGURES, AGENT_REVISIONS
from wakeful.ports.approvals import ACTIONS, APPROVAL_RULES
from wakeful.ports.artifacts import ARTIFACTS
from wakeful.ports.briefs import BRIEFS
from wakeful.ports.channels import CHANNEL_INPUTS, CHANNEL_MESSAGES, CHANNELS
from wakeful.ports.keyed_requests import KEYED_REQUESTS
from wakeful.ports.mailbox import BUSY_THREADS, MESSAGES
from wakeful.ports.memory import EPISODES, MEMORY_CHANGES, MEMORY_USES, PROMPTED_MEMORY, WORKING_MEMORY
from wakeful.ports.notices import NOTICES, PARKED_PROVIDERS, RUNTIME_FILES, RUNTIME_HOLDS, TOLD_RESULTS
from wakeful.ports.operator_feed import FEED
from wakeful.ports.runtime_agents import RUNTIME_AGENTS
from wakeful.ports.spending import HOLDS, SPENDING
from wakeful.ports.tables import Table
from wakeful.ports.taint import TAINTED_FILES
from wakeful.ports.tasks import TASKS
from wakeful.ports.threads import THREADS
from wakeful.ports.timers import TIMERS
from wakeful.ports.triggers import REFUSED_INPUT, TRIGGER_DELIVERIES, TRIGGERS
from wakeful.ports.turn_costs import TURN_COSTS
from wakeful.ports.turns import TURNS
from wakeful.ports.unknown_outcomes import UNKNOWN_OUTCOMES
from wakeful.ports.usage import USAGE
from wakeful.ports.waits import CONTINUATIONS, PENDING_HINTS, WAITS
from wakeful.ports.wakes import WAKES
from wakeful.ports.work_items import WORK_FOCUS, WORK_ITEMS
from wakeful.ports.workflow_runs import WORKFLOW_RUNS
from wakeful.ports.workspaces import ACTIVE_WORKSPACES, ATTACHED_WORKSPACES, WORKTREES
from wakeful.store.tables.agent_figures import AGENT_FIGURE_RULES, AGENT_REVISION_RULES
from wakeful.store.tables.approvals import ACTION_RULES, RULE_RULES
from wakeful.store.tables.artifacts import ARTIFACT_RULES
from wakeful.store.tables.briefs import BRIEF_RULES
from wakeful.store.tables.channels import CHANNEL_RULES, CHANNEL_WAKES, INPUT_RULES, MESSAGE_ON_PHONE_RULES
from wakeful.store.tables.checkpoints import GOING, KEPT, checkpoint_rules
from wakeful.store.tables.keyed_requests import KEYED_REQUEST_RULES
from wakeful.store.tables.liveness import LIVENESS_WAKES
from wakeful.store.tables.mailbox import BUSY_RULES, MESSAGE_RULES
from wakeful.store.tables.memory import (
    CHANGE_RULES,
    EPISODE_RULES,
    PROMPTED_RULES,
    USE_RULES,
    WORKING_MEMORY_RULES,
)
from wakeful.store.tables.notices import (
    FILES_RULES,
    HOLD_OF_ALL_RULES,
    NOTICE_RULES,
    NOTICE_WAKES,
    PARKED_RULES,
    RESULT_RULES,
)
from wakeful.store.tables.operator_feed import FEED_RULES
from wakeful.store.tables.row_rules import Needs, RowRule, Rules, joined
from wakeful.store.tables.runtime_agents import RUNTIME_AGENT_RULES
from wakeful.store.tables.spending import HOLD_RULES, SPENDING_RULES
from wakeful.store.tables.taint import TAINT_RULES
from wakeful.store.tables.tasks import TASK_RULES, TASK_WAKES
from wakeful.store.tables.threads import THREAD_RULES
from wakeful.store.tables.timers import TIMER_RULES, TIMER_WAKES
from wakeful.store.tables.triggers import DELIVERY_RULES, REFUSED_RULES, TRIGGER_RULES
from wakeful.store.tables.turn_costs import TURN_COST_RULES
from wakeful.store.tables.turns import TURN_RULES
from wakeful.store.tables.unknown_outcomes import UNKNOWN_RULES
from wakeful.store.tables.usage import USAGE_RULES
from wakeful.store.tables.waits import CONTINUATION_RULES, HINT_RULES, WAIT_RULES, WAIT_WAKES
from wakeful.store.tables.wakes import WAKE_RULES
from wakeful.store.tables.work_items import FOCUS_RULES, WORK_ITEM_RULES, WORK_WAKES
from wakeful.store.tables.workflow_runs import WORKFLOW_RUN_RULES
from wakeful.store.tables.workspaces import ACTIVE_RULES, ATTACHED_RULES, WORKTREE_RULES, WORKTREE_WAKES

_RULES: Mapping[Table[Any], Rules] = {
    TURNS: TURN_RULES,
    THREADS: THREAD_RULES,
    TURN_COSTS: TURN_COST_RULES,
    UNKNOWN_OUTCOMES: UNKNOWN_RULES,
    ACTIONS: ACTION_RULES,
    APPROVAL_RULES: RULE_RULES,
    TAINTED_FILES: TAINT_RULES,
    ARTIFACTS: ARTIFACT_RULES,
    MESSAGES: MESSAGE_RULES,
    BUSY_THREADS: BUSY_RULES,
    TIMERS: TIMER_RULES,
    WAITS: WAIT_RULES,
    PENDING_HINTS: HINT_RULES,
    CONTINUATIONS: CONTINUATION_RULES,
    WAKES: joined(
        WAKE_RULES,
        TIMER_WAKES,
        WAIT_WAKES,
        WORK_WAKES,
        LIVENESS_WAKES,
        NOTICE_WAKES,
        WORKTREE_WAKES,
        TASK_WAKES,
        CHANNEL_WAKES,
    ),
    USAGE: USAGE_RULES,
    SPENDING: SPENDING_RULES,
    HOLDS: HOLD_RULES,
    RUNTIME_AGENTS: RUNTIME_AGENT_RULES,
    AGENT_FIGURES: AGENT_FIGURE_RULES,
    AGENT_REVISIONS: AGENT_REVISION_RULES,
    TASKS: TASK_RULES,
    WORK_ITEMS: WORK_ITEM_RULES,
    WORK_FOCUS: FOCUS_RULES,
    BRIEFS: BRIEF_RULES,
    WORKFLOW_RUNS: WORKFLOW_RUN_RULES,
    NOTICES: NOTICE_RULES,
    RUNTIME_HOLDS: HOLD_OF_ALL_RULES,
    RUNTIME_FILES: FILES_RULES,
    PARKED_PROVIDERS: PARKED_RULES,
    KEYED_REQUESTS: KEYED_REQUEST_RULES,
    TOLD_RESULTS: RESULT_RULES,
    CHANNELS: CHANNEL_RULES,
    CHANNEL_INPUTS: INPUT_RULES,
    CHANNEL_MESSAGES: MESSAGE_ON_PHONE_RULES,
    FEED: FEED_RULES,
    TRIGGERS: TRIGGER_RULES,
    TRIGGER_DELIVERIES: DELIVERY_RULES,
    REFUSED_INPUT: REFUSED_RULES,
    WORKING_MEMORY: WORKING_MEMORY_RULES,
    PROMPTED_MEMORY: PROMPTED_RULES,
    EPISODES: EPISODE_RULES,
    MEMORY_CHANGES: CHANGE_RULES,
    MEMORY_USES: USE_RULES,
    ATTACHED_WORKSPACES: ATTACHED_RULES,
    ACTIVE_WORKSPACES: ACTIVE_RULES,
    WORKTREES: WORKTREE_RULES,
}
TABLES: Mapping[Table[Any], Rules] = {
    table: {**rules, **checkpoint_rules(table)} if table in (*KEPT, *GOING) else rules
    for table, rules in _RULES.items()
}


def _by_event() -> dict[type, tuple[tuple[Table[Any], RowRule], ...]]:
    found: dict[type, tuple[tuple[Table[Any], RowRule], ...]] = {}
    for table, rules in TABLES.items():
        for event, rule in rules.items():
            found[event] = (*found.get(event, ()), (table, rule))
    return found


RULES_OF_EVENT = _by_event()
"""What an event is about: its tables, each with its rule. Most events are not in here."""
NEEDS_OF_EVENT: Mapping[type, tuple[Needs, ...]] = {
    event: tuple(dict.fromkeys(need for _, rule in rules for need in rule.needs))
    for event, rules in RULES_OF_EVENT.items()
}
"""What the rules of an event read: each function once, whichever tables name it."""
