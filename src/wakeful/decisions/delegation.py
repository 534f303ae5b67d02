"""Handing work to a child: what a call asks for, what the child is given, and what its parent is told in the end.

`run_subtask` (one child, a title and instructions), `spawn_self` (one child, a task) and `spawn_parallel` (several at
once, one result each) are three declarations over one thing: a level below. The runtime answers these calls itself,
together with `finish_subtask` and the scratch tools: they are on the list of tools that no code stands behind.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.budgets import Limits
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.events import SubagentCompleted, SubagentStarted
from wakeful.contracts.tools import ToolDeclaration
from wakeful.decisions.levels import Call, ChildEnd, Level
from wakeful.decisions.prompt import level_prompt
from wakeful.decisions.runtime_answers import (
    DELEGATING,
    FINISH,
    RUN_SUBTASK,
    SCRATCH,
    SPAWN_PARALLEL,
    SPAWN_SELF,
    finish_declaration,
)

MAX_PARALLEL_JOBS = 7
"""However many an agent allows, one call makes no more children than this."""
MAX_NOTE_BYTES = 16_000
"""The longest value that may be written down for the rest of the turn."""
MAX_INLINE_OUTPUT = 16_000
"""A child's text longer than this is not written down a second time."""
TASK_KEY = "task:"
"""Under which the result of a child can be read; only the runtime writes such keys."""
REMINDER = "End this task by calling finish_subtask with the result: a text alone does not end it."


class Refusal(NamedTuple):
    """A call that makes no child, in words its model can act on."""

    error: str
    message: str
    details: dict[str, Any]


class Job(NamedTuple):
    """One child that a call asks for."""

    title: str
    task: str
    tools: tuple[str, ...] | None
    output_schema: dict[str, Any] | None
    system_prompt: str = ""


NO_JOB = Job("", "", None, None)
"""One child that asks for nothing of its parent's."""


def jobs_of(name: str, arguments: Mapping[str, Any], config: TurnConfig) -> list[Job] | Refusal:
    """What the call asks for. Its arguments fit the declared schema; what a schema cannot say is looked at here."""
    if name == RUN_SUBTASK:
        jobs = [_job(arguments["title"], arguments["instructions"], arguments.get("tools"), arguments)]
    elif name == SPAWN_SELF:
        jobs = [_spawned(arguments)]
    else:
        jobs = [_spawned(each) for each in arguments["jobs"]]
        allowed = min(config.max_parallel_subagents, MAX_PARALLEL_JOBS)
        if len(jobs) > allowed:
            return Refusal(
                "invalid_input",
                f"{len(jobs)} jobs in one call; at most {allowed} are allowed. Nothing was started.",
                {"jobs": len(jobs), "max_parallel_subagents": allowed},
            )
    if not jobs:
        return Refusal("invalid_input", "there are no jobs", {})
    for index, job in enumerate(jobs):
        if not job.task.strip():
            return Refusal("invalid_input", f"job {index}: the task is empty. Nothing was started.", {"index": index})
    return jobs


def _job(title: str, task: str, tools: Sequence[str] | None, arguments: Mapping[str, Any]) -> Job:
    return Job(
        title,
        task,
        tuple(dict.fromkeys(tools)) if tools is not None else None,
        arguments.get("output_schema"),
        arguments.get("system_prompt", ""),
    )


def _spawned(arguments: Mapping[str, Any]) -> Job:
    task, more = arguments["task"], arguments.get("additional_context", "")
    words = f"{task}\n\nContext:\n{more}" if more else task
    title = task.strip().partition("\n")[0][:80]
    return _job(title, words if task.strip() else "", arguments.get("tool_names"), arguments)


def refused(jobs: Sequence[Job], level: Level, config: TurnConfig, limits: Limits, started: int) -> Refusal | None:
    """Why no child is made at this place of the tree; `started` is how many there were so far."""
    deepest = limits.depth
    if deepest is not None and level.depth >= deepest:
        return Refusal(
            "max_depth_reached",
            f"this is depth {level.depth}, and work is split down to depth {deepest}: do it here.",
            {"depth": level.depth, "max_depth": deepest},
        )
    safe = child_tools(config)
    for index, job in enumerate(jobs):
        unknown = [tool for tool in job.tools or () if tool not in safe]
        if unknown:
            listed = ", ".join(sorted(safe)) or "none"
            return Refusal(
                "unknown_tools",
                f"a child cannot have {', '.join(unknown)}; it can have: {listed}. Nothing was started.",
                {"index": index, "unknown": unknown},
            )
    if limits.subtasks is not None and started + len(jobs) > limits.subtasks:
        return Refusal(
            "budget_exceeded",
            f"the turn may start {limits.subtasks} subtasks, and {started} were started",
            {"reason": "subtasks", "limit": limits.subtasks, "observed": started + len(jobs)},
        )
    return None


def child_tools(config: TurnConfig) -> dict[str, ToolDeclaration]:
    """What a child may have of its parent's tools. It splits its work further with `run_subtask` alone."""
    never = {FINISH, SPAWN_SELF, SPAWN_PARALLEL}
    return {tool.name: tool for tool in config.tools if tool.child_safe and tool.name not in never}


def child_of(name: str, call: Call, level: Level, job: Job, index: int, alone: bool) -> SubagentStarted:
    """The fact that makes a child."""
    return SubagentStarted(
        level_id=call.call_id if alone else f"{call.call_id}#{index}",
        tool=name,
        title=job.title,
        depth=level.depth + 1,
        task=UserItem(parts=(Text(job.task),), origin="runtime"),
        tools=job.tools,
        output_schema=job.output_schema,
        system_prompt=job.system_prompt,
        index=index,
    )


def child_config(parent: TurnConfig, started: SubagentStarted, limits: Limits) -> TurnConfig:
    """What holds for a child: its parent's configuration, narrowed. Follows from the facts alone."""
    safe = child_tools(parent)
    if started.tools is not None:
        kept = {*started.tools, *SCRATCH}
        safe = {name: tool for name, tool in safe.items() if name in kept}
    tools = tuple(safe.values())
    if started.output_schema is not None:
        tools = (*tools, finish_declaration(started.output_schema))
    prompt = level_prompt(
        parent,
        [tool.name for tool in tools],
        splits=limits.depth is None or started.depth < limits.depth,
        structured=started.output_schema is not None,
        system_prompt=started.system_prompt,
    )
    return parent.changed(
        instructions=prompt.text,
        prompt_blocks=prompt.blocks,
        tools=tools,
        settings=parent.settings_below(),
        output_schema=None,
    )


# --- how it ends ----------------------------------------------------------------------------------------------------


def outcome_text(name: str, ends: Sequence[ChildEnd], texts: Sequence[str | None]) -> tuple[str, bool]:
    """What the call's model reads, and whether it is an error. `texts` are results too long to stand in a fact."""
    if name == RUN_SUBTASK or name not in DELEGATING:
        end, text = ends[0].end, texts[0]
        if isinstance(end, SubagentCompleted):
            output = text if text is not None else end.output
            return (output if isinstance(output, str) else _json(output)), False
        assert end is not None
        return _json({"error": end.error, "message": end.message, **end.details}), True
    results = [child_result(end, text) for end, text in zip(ends, texts, strict=True)]
    if name == SPAWN_SELF:
        return _json(results[0]), results[0]["status"] == "error"
    return _json(results), False


def child_result(job: ChildEnd, text: str | None) -> dict[str, Any]:
    """One job's result, structured: a success or an error, never joined text."""
    end = job.end
    assert end is not None
    usage = end.token_usage
    entry: dict[str, Any] = {
        "index": job.started.index,
        "task": job.started.task.text,
        "status": "success" if isinstance(end, SubagentCompleted) else "error",
        "output": None,
        "error": None,
        "child_run_id": job.started.level_id,
        "started_at": job.started_at / 1_000_000,
        "completed_at": job.ended_at / 1_000_000,
        "usage": {
            name: value
            for name, value in (usage.model_dump(exclude_none=True) if usage is not None else {}).items()
            if isinstance(value, int)
        },
    }
    if isinstance(end, SubagentCompleted):
        entry["output"] = text if text is not None else end.output
    else:
        entry["error"] = {"kind": _KINDS.get(end.error, end.error), "message": end.message}
    return entry


_KINDS = {"subtask_failed": "run_failed", "iteration_limit": "run_failed", "budget_exceeded": "budget"}
"""The words of `ChildError` where they are not the subtask's own."""


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
