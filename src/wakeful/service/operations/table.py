"""The table of operations, made of its families: from each line a surface can make a door."""

from collections.abc import Mapping
from typing import Any

from wakeful.service.operations import (
    agents,
    answers,
    approvals,
    artifacts,
    calls,
    channels,
    chat,
    client_requests,
    decisions,
    dispatches,
    inspection,
    log,
    memory,
    operator_feed,
    overview,
    process,
    runtime,
    runtime_agents,
    skills,
    spending,
    steering,
    subjects,
    tasks,
    threads,
    timers,
    triggers,
    turn_reports,
    turns,
    upkeep,
    work,
    workflows,
    workspaces,
)
from wakeful.service.operations.operation import Operation

FAMILIES = (
    agents,
    answers,
    approvals,
    artifacts,
    calls,
    chat,
    channels,
    client_requests,
    decisions,
    dispatches,
    inspection,
    log,
    memory,
    operator_feed,
    overview,
    process,
    runtime,
    runtime_agents,
    skills,
    spending,
    steering,
    subjects,
    tasks,
    threads,
    timers,
    triggers,
    turn_reports,
    turns,
    upkeep,
    work,
    workflows,
    workspaces,
)
OPERATIONS: Mapping[str, Operation[Any, Any]] = {
    each.name: each for family in FAMILIES for each in vars(family).values() if isinstance(each, Operation)
}
"""Every operation that a family declares, by name."""
