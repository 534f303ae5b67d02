"""A provider's adapter as a turn runner: it gets one request object a turn, and answers for the model alone.

It never runs tools: an answer that holds results of calls is refused. What it streams goes to the host's
`on_provider_delta`, in order, while it is under way; a sink that raises changes nothing but the log.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from wakeful.contracts.events import ObserverFailed
from wakeful.contracts.transcript import normalise
from wakeful.hosts.host_calls import at_once, in_its_place
from wakeful.hosts.loop.budgets import RunBudgets
from wakeful.hosts.loop.event_reports import Teller, describe
from wakeful.hosts.loop.options import LoopOptions

SINK = "on_provider_delta"
RESULTS = ("tool_execution_results", "tool_audit_events", "tool_events")
_END: Any = object()


class ToolsRun(ValueError):
    """An adapter brought results of calls: it may not have run any."""

    code = "invalid_provider_turn"


class ProviderTurns:
    """Asks the adapter for each turn of one run."""

    def __init__(
        self,
        adapter: Callable[..., Any],
        options: LoopOptions,
        budgets: RunBudgets,
        teller: Teller,
        tools: Callable[[], list[dict[str, Any]]],
    ) -> None:
        self._adapter = adapter
        self._options = options
        self._budgets = budgets
        self._teller = teller
        self._tools = tools

    async def run(self, messages: list[dict[str, Any]], context: dict[str, Any]) -> Any:
        """One turn, as a turn runner returns it. Raises what the adapter raises."""
        deltas: asyncio.Queue[Any] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        # A plain adapter calls this from its own thread.
        request = self._request(messages, context, lambda delta: loop.call_soon_threadsafe(deltas.put_nowait, delta))
        telling = asyncio.ensure_future(self._tell(deltas))
        try:
            returned = await in_its_place(self._adapter, request)
        finally:
            loop.call_soon(deltas.put_nowait, _END)
            await telling
        return _as_turn(returned)

    def _request(
        self, messages: list[dict[str, Any]], context: dict[str, Any], sink: Callable[[Any], Any]
    ) -> dict[str, Any]:
        options, request = self._options, self._options.request
        overrides = request.runtime_overrides if request is not None else None
        asked: dict[str, Any] = {
            "messages": messages,
            "tool_declarations": self._tools(),
            "model": {
                "provider_id": overrides.provider_id if overrides is not None else None,
                "model_id": overrides.model_id if overrides is not None else None,
            },
            "runtime": dict(request.runtime_context) if request is not None else {},
            "context": context,
            "budgets": self._budgets.shown(),
            "run_id": options.run_id,
            "session_id": options.session_id,
            "metadata": dict(request.metadata) if request is not None else {},
            "delta_sink": sink,
        }
        if options.structured_output is not None:
            asked["structured_output"] = dict(options.structured_output)
        return asked

    async def _tell(self, deltas: "asyncio.Queue[Any]") -> None:
        tell: Callable[[Any], Awaitable[Any] | Any] | None = self._options.on_provider_delta
        broken = False
        while (delta := await deltas.get()) is not _END:
            if tell is None or broken:
                continue
            try:
                await at_once(tell, delta)
            except Exception as error:
                broken = True  # it would fail at the next one too: one trace a turn is enough
                await self._teller.record(ObserverFailed(surface=SINK, error=describe(error)))


def _as_turn(returned: Any) -> Any:
    """An adapter's answer as a turn. What is no object is judged where turns are read."""
    if not isinstance(returned, Mapping):
        return returned
    turn = dict(returned)
    if any(turn.get(name) for name in RESULTS):
        raise ToolsRun("the adapter returned results of calls; tools are run by the loop alone")
    turn.pop("messages", None)  # the transcript is the loop's
    message = turn.pop("message", None)
    if message is not None and not turn.get("content"):
        content = normalise(message).content
        turn["content"] = content if isinstance(content, str) else ""
    structured = turn.get("structured_output")
    if isinstance(structured, Mapping) and ("parsed" in structured or "diagnostics" in structured):
        turn["structured_output"] = structured.get("parsed")
        turn["structured_output_diagnostics"] = structured.get("diagnostics")
    return turn
