"""The tools that the runtime answers itself, as the rest of the belt sees tools: a declaration, and no code.

What a call of one does is in `decisions.delegation` and `engine.children`. Running one would be a mistake of ours.
"""

from functools import lru_cache
from typing import Any

from wakeful.contracts.children import SpawnPreset
from wakeful.contracts.tools import ToolDeclaration
from wakeful.decisions.runtime_answers import SCRATCH_TOOLS, SPAWN_SELF_TOOL, SUBTASK_TOOL, parallel_declaration
from wakeful.decisions.spawn_terms import spawn_declaration
from wakeful.decisions.waking.wait_tools import DECLARATIONS as WAIT_DECLARATIONS
from wakeful.tools.agent_get import DECLARATION as AGENT_GET_DECLARATION
from wakeful.tools.call_runner import CallHandle
from wakeful.tools.context import RunContext
from wakeful.tools.memory import DECLARATIONS as MEMORY_DECLARATIONS
from wakeful.tools.tool import DeclaredTool
from wakeful.tools.work_items import DECLARATIONS
from wakeful.tools.workspaces import DECLARATION as USE_DECLARATION


class AnsweredHere(DeclaredTool):
    """A declaration with nothing behind it: the loop takes its calls before anything would be run."""

    def __init__(self, declaration: ToolDeclaration) -> None:
        self._declaration = declaration

    def start(self, ctx: RunContext[Any], arguments: dict[str, Any]) -> CallHandle:
        raise AssertionError(f"{self.name} is answered by the loop itself and is never run")


@lru_cache(maxsize=64)
def runtime_tools(
    *,
    subtasks: bool,
    parallel: int | None,
    work_items: bool,
    memory: bool = False,
    waits: bool = False,
    workspaces: bool = False,
    spawn: SpawnPreset | None = None,
) -> tuple[AnsweredHere, ...]:
    """What an agent is given that may hand work on, has work items or memory, makes other agents, or lives in a runtime
    (`waits`); `parallel` is how many jobs one call may have, None: none. Tools for work items and memory, `agent_get`
    and `use_workspace` have code of a turn, which takes their place there.
    """
    declared: list[ToolDeclaration] = []
    if subtasks:
        declared += (SUBTASK_TOOL, SPAWN_SELF_TOOL, *SCRATCH_TOOLS)
    elif parallel is not None:
        declared.append(SPAWN_SELF_TOOL)
    if parallel is not None:
        declared.append(parallel_declaration(parallel))
    if work_items:
        declared += DECLARATIONS.values()
    if memory:
        declared += MEMORY_DECLARATIONS.values()
    if waits:
        declared += (*WAIT_DECLARATIONS, AGENT_GET_DECLARATION)
    if workspaces:
        declared.append(USE_DECLARATION)
    if spawn is not None:
        declared.append(spawn_declaration(spawn))
    return tuple(map(AnsweredHere, declared))
