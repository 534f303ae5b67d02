"""The planner phase: what the planner is told, and how its answer becomes a plan.

A phase of the run and not a second conversation: the planner sees what the executor would see and the same tools, and
of all it says and does only the plan is left, as a section of the executor's context for this one run.
"""

import re

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.events import PlanArtifact, PlanStep
from wakeful.decisions.prompt_size import within
from wakeful.decisions.runtime_answers import DELEGATING

PLANNER = "~plan"
"""The id of the planner's level."""
MAX_PLAN_BYTES = 20_000
MAX_PLAN_STEPS = 200
"""A text with more lines than that is one step: each would be written down with a number of its own."""
INSTRUCTIONS = (
    "You plan a piece of work that somebody else will carry out with the same tools. Look things up where the plan "
    "depends on it, change nothing, and answer with a short numbered list: one step a line, in the order they are to "
    "be done, each saying what is done and how one sees that it worked."
)
_STEP = re.compile(r"(?:\d+[.)]|[-*•])\s++(.+)")
"""Of a line without space around it."""


def planner_config(config: TurnConfig) -> TurnConfig:
    """What holds for the planner: its own instructions, the executor's tools, no children of its own."""
    return config.changed(
        instructions=config.planning_instructions or INSTRUCTIONS,
        model_ref=config.planning_model or config.model_ref,
        fallbacks=() if config.planning_model else config.fallbacks,
        tools=tuple(tool for tool in config.tools if tool.name not in DELEGATING),
        settings=config.settings_below(config.planning_model),
        output_schema=None,
    )


def read_plan(text: str, *, run_id: str, model_ref: str, at: float, tool_calls: int) -> PlanArtifact | None:
    """The plan in an answer; None when there is nothing in it."""
    text = within(text.strip(), MAX_PLAN_BYTES)
    if not text:
        return None
    found = [match.group(1) for line in text.splitlines() if (match := _STEP.match(line.strip()))]
    steps = found if 0 < len(found) <= MAX_PLAN_STEPS else [text]
    return PlanArtifact(
        run_id=run_id,
        model_ref=model_ref,
        steps=tuple(PlanStep(number=number, text=step) for number, step in enumerate(steps, 1)),
        text=text,
        created_at=at,
        tool_call_count=tool_calls,
    )


def plan_section(plan: PlanArtifact) -> str:
    """The plan as the executor sees it."""
    listed = "\n".join(f"{step.number}. {step.text}" for step in plan.steps)
    return (
        "# Plan for this run\nMade beforehand, for orientation: leave it where the work shows that it is wrong.\n"
        f"{listed}"
    )
