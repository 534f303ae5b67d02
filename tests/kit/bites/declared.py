"""Tools with any declaration whatever, which note that they were run; and whether two of them ran side by side."""

from typing import Any

from kit.runs.asked_runs import agent
from wakeful import run
from wakeful.contracts.events import ToolResult, ToolStarted
from wakeful.contracts.policies import GatePolicy
from wakeful.contracts.tools import Confinement, ToolDeclaration
from wakeful.decisions.policy.permissions import default_policy
from wakeful.store.memory import MemoryStore
from wakeful.tools.call_runner import CallHandle, begin
from wakeful.tools.context import RunContext
from wakeful.tools.tool import DeclaredTool

OPEN = GatePolicy(
    tools=default_policy("editor", profile="coding", secrets=True).model_copy(update={"ask": frozenset()})
)
"""Every class is on, and nobody is asked."""


class Declared(DeclaredTool):
    """A tool that does nothing, held as it is said."""

    def __init__(self, name: str = "it", held: Confinement | None = None, **fields: Any) -> None:
        self._declaration = ToolDeclaration(**{"name": name, "input_schema": {"type": "object"}, **fields})
        self._held = held
        self.ran: list[str] = []

    def start(self, ctx: RunContext[object], arguments: dict[str, Any]) -> CallHandle:
        return begin(self._note, True, (), {})

    async def _note(self) -> str:
        self.ran.append(self.name)
        return "done"

    def confinement(self, arguments: dict[str, Any]) -> Confinement | None:
        return self._held


async def side_by_side(policy: GatePolicy = OPEN, **fields: Any) -> bool:
    """Of two calls of such tools in one reply: did the second begin before the first had ended?"""
    tools = [Declared(name, **fields) for name in ("a", "b")]
    result = await run(agent(tools, ("a", "b"), policy=policy), "go", store=MemoryStore())
    assert [each.ran for each in tools] == [["a"], ["b"]], result.status
    kinds = [type(entry.fact.event) for entry in result.facts()]
    began = [place for place, kind in enumerate(kinds) if kind is ToolStarted]
    return began[1] < kinds.index(ToolResult)
