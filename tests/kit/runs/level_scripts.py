"""Models whose levels each have a script of their own, found by the words of their task, and what they were shown."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from wakeful import RunResult
from wakeful.contracts.events import SubagentCompleted, SubagentFailed, SubagentStarted, ToolFailed, ToolResult
from wakeful.ports import ModelRequest
from wakeful.providers.prices import IN_CODE, ListedPrice, Price
from wakeful.providers.scripted import ScriptedModel

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


@dataclass
class Shown:
    """What a level's model was shown with one request."""

    task: str
    level: str | None
    depth: int
    instructions: str
    tools: list[str]
    texts: list[str]
    tool_choice: str


class LevelModel(ScriptedModel):
    """`script` maps the task of a level to its steps; a step may be a function of what was shown. The last stays."""

    def __init__(
        self,
        script: Mapping[str, Any],
        *,
        priced: bool = False,
        most: int | None = None,
        spends: int = 0,
        window: int | None = None,
    ) -> None:
        self.seen: list[Shown] = []
        self.schemas: dict[str, Any] = {}
        """The input schemas of the tools it was shown, by name."""
        self._most = most
        self.price = ListedPrice(Price(Decimal(0), Decimal(1_000_000)), IN_CODE) if priced else None
        """A dollar a token of what it says."""

        async def answer(request: ModelRequest) -> Any:
            items = list(request.history)
            task = request.level if request.level in script else items[0].text
            shown = Shown(
                task or "",
                request.level,
                request.depth,
                request.instructions,
                [tool.name for tool in request.tools],
                [item.text for item in items],
                str(request.tool_choice),
            )
            self.seen.append(shown)
            self.schemas |= {tool.name: tool.input_schema for tool in request.tools}
            steps = script[task or ""]
            step = steps[min(request.answered, len(steps) - 1)]
            said = step(shown) if callable(step) else step
            if hasattr(said, "__await__"):
                said = await said
            if not spends:
                return said
            said = {"text": said} if isinstance(said, str) else said
            return {**said, "usage": {"input_tokens": 0, "output_tokens": spends}}

        super().__init__(answer, context_window=window)

    def most_output(self, settings: Any) -> int | None:
        return self._most

    def of(self, task: str) -> list[Shown]:
        return [each for each in self.seen if each.task == task]


def subtask(task: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return "run_subtask", {"title": f"do {task}", "instructions": task, **more}


def job(task: str, **more: Any) -> dict[str, Any]:
    return {"task": task, **more}


def parallel(*jobs: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return "spawn_parallel", {"jobs": list(jobs)}


def finish(**payload: Any) -> tuple[str, dict[str, Any]]:
    return "finish_subtask", payload


def note(key: str, value: Any) -> tuple[str, dict[str, Any]]:
    return "scratch_write", {"key": key, "value": value}


def ends(result: RunResult[Any], name: str) -> list[ToolResult | ToolFailed]:
    """How the calls of one tool ended, in all levels, in the order of the log."""
    found = [entry.fact.event for entry in result.facts()]
    return [event for event in found if isinstance(event, ToolResult | ToolFailed) and event.tool_name == name]


def told(result: RunResult[Any], name: str = "run_subtask") -> list[dict[str, Any]]:
    """What the calls of one tool told their models, as JSON."""
    return [json.loads(event.item.text) for event in ends(result, name)]


def children(result: RunResult[Any]) -> list[SubagentStarted]:
    return [entry.fact.event for entry in result.facts() if isinstance(entry.fact.event, SubagentStarted)]


def child_ends(result: RunResult[Any]) -> list[SubagentCompleted | SubagentFailed]:
    both = (SubagentCompleted, SubagentFailed)
    return [entry.fact.event for entry in result.facts() if isinstance(entry.fact.event, both)]
