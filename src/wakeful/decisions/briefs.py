"""Which brief the end of a turn writes, and what a failure is called in the words of the people who read it.

A brief is written from how the turn ended, never guessed from what a model said along the way. Its words stand in the
fact that it refers to. A report of a completed item stands in the place of a result that says the same.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from wakeful.contracts.briefs import BriefKind, BriefVisibility
from wakeful.contracts.events import Terminal, TurnFailed

_FAILURES: Final[Mapping[str, str]] = {
    "max_steps": "The agent stopped because it reached its limit of rounds.",
    "iterations": "The agent stopped because it reached its limit of rounds.",
    "subtasks": "The agent stopped because it reached its limit of subtasks.",
    "llm_calls": "The agent stopped because it reached its limit of model calls.",
    "tool_calls": "The agent stopped because it reached its limit of tool calls.",
    "wall_clock": "The agent stopped because its time was over.",
    "tokens": "The agent stopped because it reached its limit of tokens.",
    "bytes": "The agent stopped because a result was larger than allowed.",
    "cost": "The agent stopped because its budget was used up.",
    "context_budget": "The agent stopped because the conversation no longer fitted its model.",
    "stalled": "The agent stopped because it repeated itself without getting further.",
    "node_failed": "A step of the workflow failed.",
    "provider_error": "The model's provider did not answer.",
    "planner_error": "The agent could not make a plan.",
    "routing_not_possible": "No model was available for this agent.",
    "invalid_output": "The agent's answer did not have the required form.",
    "cut_off": "The agent's answer was cut off at its limit of tokens.",
    "filtered": "The provider's filter ended the agent's answer.",
    "refused": "The model refused to answer.",
    "cancelled": "The run was cancelled.",
    "superseded": "The run was replaced by a newer message.",
    "interrupted": "The run was interrupted.",
    "runtime_error": "Something went wrong inside the runtime.",
}


class PlannedBrief(NamedTuple):
    """The brief of a turn that ends."""

    kind: BriefKind
    visibility: BriefVisibility
    text_from: str
    """Whose words it has: `reply` or `end`; blank: nobody's."""


def brief_visibility(*, awaits_operator: bool, completed_item: bool) -> BriefVisibility:
    """The first that holds: somebody is waited for, a work item is done, anything else."""
    if awaits_operator:
        return "action_required"
    return "work_done" if completed_item else "turn_result"


def turn_brief(ended: Terminal, *, has_text: bool, awaits_operator: bool) -> PlannedBrief | None:
    """The brief for a turn's end. None for one that a person stopped: they know."""
    visibility = brief_visibility(awaits_operator=awaits_operator, completed_item=False)
    if not isinstance(ended, TurnFailed):
        return PlannedBrief("result", visibility, "reply" if has_text else "")
    if ended.status == "cancelled":
        return None
    return PlannedBrief("failure", visibility, "end")


def failure_text(ended: TurnFailed) -> str:
    """Why a turn failed, for people. What exactly went wrong stands in the event."""
    return _FAILURES.get(ended.stop_reason, "The run failed.")
