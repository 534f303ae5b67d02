"""The tools that the runtime answers itself, as the rest of the belt sees tools: a declaration, and no code.

What a call of one does is in `decisions.delegation` and `engine.children`. Running one would be a mistake of ours.
"""

from typing import Any

from wakeful.contracts.tools import ToolDeclaration
from wakeful.decisions.runtime_answers import SCRATCH_TOOLS, SPAWN_SELF_TOOL, SUBTASK_TOOL, parallel_declaration
from wakeful.tools.call_runner import CallHandle
from wakeful.tools.context import RunContext
from wakeful.tools.tool import DeclaredTool


class AnsweredHere(DeclaredTool):
    """A declaration with nothing behind it: the loop takes its calls before anything would be run."""

    def __init__(self, declaration: ToolDeclaration) -> None:
        self._declaration = declaration

    def start(self, ctx: RunContext[Any], arguments: dict[str, Any]) -> CallHandle:
        raise AssertionError(f"{self.name} is answered by the loop itself and is never run")


def runtime_tools(*, subtasks: bool, parallel: int | None) -> tuple[AnsweredHere, ...]:
    """What an agent that may hand work on is given; `parallel` is how many jobs one call may have, None: none."""
    declared: list[ToolDeclaration] = []
    if subtasks:
        declared += (SUBTASK_TOOL, SPAWN_SELF_TOOL, *SCRATCH_TOOLS)
    elif parallel is not None:
        declared.append(SPAWN_SELF_TOOL)
    if parallel is not None:
        declared.append(parallel_declaration(parallel))
    return tuple(map(AnsweredHere, declared))
