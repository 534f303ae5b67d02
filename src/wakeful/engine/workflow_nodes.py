"""The arguments of a workflow's nodes, from what the nodes before them gave.

What stands in the log is resolved at once. What was too long for it is fetched first, and its outcome posted like that
of any other work on the side.
"""

import json
from collections.abc import Callable
from typing import Any

from wakeful.contracts.content import BlobRef, Text
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import ToolResult, WorkflowNodeResolved
from wakeful.contracts.tools import ToolError
from wakeful.decisions.levels import Call
from wakeful.decisions.workflows.node_inputs import UnresolvedInput, arguments_of, fitted
from wakeful.engine.turn_work import TurnWork
from wakeful.gate.call_at_gate import CallRecord
from wakeful.gate.large_content import INLINE_BYTES
from wakeful.gate.outcomes import failed


class WorkflowNodes:
    """Resolves nodes, one at a time and each once."""

    def __init__(self, work: TurnWork, post: Callable[[list[Fact]], None]) -> None:
        self._work = work
        self._post = post
        self._busy: set[str] = set()

    def resolve(self, call: Call, large: dict[str, dict[str, Any] | None]) -> list[Fact]:
        """The fact of its arguments, or that they cannot be had; nothing when it takes a moment.

        Arguments that are too large for their fact go to `large`, too: that is where the gate looks for them.
        """
        if call.call_id in self._busy:
            return []
        after = call.node.after if call.node is not None else ()
        if not any(_ref(before) for before in after):
            values = {before.call_id: before.answer.text for before in after if before.answer is not None}
            arguments = self._arguments(call, values)
            if isinstance(arguments, Fact):
                return [arguments]
            if len(json.dumps(arguments)) <= INLINE_BYTES:
                return [self._fact(call, WorkflowNodeResolved(arguments=arguments))]
        self._busy.add(call.call_id)
        self._work.tasks.spawn(self._resolve_later(call, large))
        return []

    async def _resolve_later(self, call: Call, large: dict[str, dict[str, Any] | None]) -> None:
        after = call.node.after if call.node is not None else ()
        values = {before.call_id: await whole_text(self._work, before) for before in after}
        arguments = self._arguments(call, values)
        if not isinstance(arguments, Fact):
            encoded = json.dumps(arguments).encode()
            event = WorkflowNodeResolved(arguments=arguments)
            if len(encoded) > INLINE_BYTES:
                large[call.call_id] = arguments
                event = WorkflowNodeResolved(arguments_ref=await self._work.gate.keep(encoded, "application/json"))
            arguments = self._fact(call, event)
        self._busy.discard(call.call_id)
        if call.answer is None:  # the turn may have ended without it
            self._post([arguments])

    def _arguments(self, call: Call, values: dict[str, str]) -> dict[str, Any] | Fact:
        config = call.level.config
        assert config is not None and config.workflow is not None
        run = config.workflow
        try:
            arguments = arguments_of(run.graph.node(call.call_id), run.graph, run.inputs, values)
        except UnresolvedInput as unresolved:
            error = ToolError(kind=unresolved.error.kind, message=unresolved.error.message)
            event = failed(
                CallRecord(call, self._work.now()),
                error,
                now=self._work.now(),
                status="failed",
                category="execution_failed",
                effects="none",
            )
            return self._fact(call, event)
        declared = config.tool(call.part.name)
        return fitted(arguments, declared.input_schema) if declared is not None else arguments

    def _fact(self, call: Call, event: Any) -> Fact:
        return self._work.fact(event, call.step, call.call_id, call.level)


def _ref(call: Call) -> BlobRef | None:
    """Where its whole result is, where the model is shown less."""
    if call.end is None:
        return None
    if isinstance(call.end, ToolResult) and call.end.result_ref is not None:
        return call.end.result_ref
    return next((part.ref for part in call.end.item.parts if isinstance(part, Text) and part.ref is not None), None)


async def whole_text(work: TurnWork, call: Call) -> str:
    """All that a call gave, as text."""
    ref = _ref(call)
    if ref is not None:
        return (await work.gate.fetch(ref.digest)).decode("utf-8", "replace")
    return call.answer.text if call.answer is not None else ""
