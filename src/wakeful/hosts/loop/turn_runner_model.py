"""The host's `turn_runner` as a model of the runtime: one call a round, never repeated.

A provider's adapter is a turn runner, too: it gets one request object a turn, and answers for the model alone. It never
runs tools: an answer that holds results of calls is refused. What it streams goes to the host's `on_provider_delta`, in
order, while it is under way; a sink that raises changes nothing but the log.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import Any

from wakeful.contracts.content import Text
from wakeful.contracts.conversation import AssistantItem, CallPart, ToolItem, UserItem
from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.events import ObserverFailed
from wakeful.contracts.models import Reply, TokenUsage
from wakeful.contracts.transcript import Message, normalise
from wakeful.hosts.host_calls import at_once, in_its_place
from wakeful.hosts.loop.budgets import RunBudgets
from wakeful.hosts.loop.loop_events import Teller, describe
from wakeful.hosts.loop.options import LoopOptions
from wakeful.hosts.loop.turn_reply import TurnTaken, failed_turn, read_turn
from wakeful.ports import ModelRequest

RAISED = "turn_runner_exception"
SINK = "on_provider_delta"
RESULTS = ("tool_execution_results", "tool_audit_events", "tool_events")
_END: Any = object()
UNPRICED_HINT = (
    "say what your turn runner costs, in dollars for a million tokens: "
    'ConversationLoop(price={"input": "3", "output": "15"})'
)


class TurnRunnerModel:
    """Asks the host for each round."""

    def __init__(
        self,
        turn_runner: Callable[..., Any],
        transcript: Callable[[], Awaitable[list[dict[str, Any]]]],
        context: Callable[[int], dict[str, Any]],
        resolve: Callable[[str], str],
        taken: dict[int, TurnTaken],
        used_ids: set[str],
        at_natural_end: Callable[[], Awaitable[tuple[Message, ...]]],
        price: object | None = None,
    ) -> None:
        self._turn_runner = turn_runner
        self._transcript = transcript
        """The transcript as it is now, once everything that happened has been told."""
        self._context = context
        self._resolve = resolve
        self._taken = taken
        """Where what the host said is kept, whole, by round."""
        self._used_ids = used_ids
        self._at_natural_end = at_natural_end
        """What is said to a model that would end here, when it may not."""
        self.price = price
        """What its host says it costs, as any model carries it."""
        self.unpriced_hint = UNPRICED_HINT

    @property
    def ref(self) -> str:
        return "caller:turn_runner"

    async def respond(self, request: ModelRequest) -> AsyncIterator[Reply]:
        """One round. A failure is final: only the host knows whether asking again would help."""
        taken = self._taken[request.step] = await self._turn(request.step)
        if taken.failure is None and not taken.calls and not taken.continuation:
            taken.continuation = await self._at_natural_end()
        if taken.failure is not None:
            raise ModelFailure(taken.failure.message, kind="unknown", stage="body", retryable=False)
        parts: list[Any] = [Text(taken.content)] if taken.content else []
        for call in taken.calls:
            # A call without a name, or with parameters that are none, is refused at the gate: it keeps its own result.
            raw = None if call.parameters is not None else call.raw
            parts.append(CallPart(call_id=call.call_id, name=call.name, arguments=call.parameters, raw_arguments=raw))
        yield Reply(
            item=AssistantItem(parts=tuple(parts), provider="caller"),
            stop_reason="tool_calls" if taken.calls else "end",
            usage=_tokens(taken.usage),
            request_metadata=taken.request_metadata or {},
            continuation=tuple(items_of(taken.continuation)),
            may_be_empty=True,
        )

    async def _turn(self, turn: int) -> TurnTaken:
        messages = await self._transcript()
        try:
            returned = await in_its_place(self._turn_runner, messages, self._context(turn))
        except Exception as error:
            code = getattr(error, "code", None)
            named = str(code) if isinstance(code, str | int) else None
            taken = failed_turn(turn, RAISED, f"{type(error).__name__}: {error}", named)
            taken.provider_failed = True
            return taken
        return read_turn(returned, turn, self._resolve, self._used_ids)


def _tokens(usage: dict[str, Any]) -> TokenUsage | None:
    """What the log counts; whatever else the host reports is summed for the result."""
    if not usage:
        return None
    read = {
        "input_tokens": _count(usage, "prompt_tokens", "input_tokens"),
        "output_tokens": _count(usage, "completion_tokens", "output_tokens"),
        "total_tokens": _count(usage, "total_tokens"),
    }
    return TokenUsage(**read)


def _count(usage: dict[str, Any], *names: str) -> int:
    for name in names:
        value = usage.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
    return 0


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
        if options.provider.structured_output is not None:
            asked["structured_output"] = dict(options.provider.structured_output)
        return asked

    async def _tell(self, deltas: "asyncio.Queue[Any]") -> None:
        tell: Callable[[Any], Awaitable[Any] | Any] | None = self._options.provider.on_delta
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


def items_of(messages: Iterable[Message]) -> list[UserItem | AssistantItem | ToolItem]:
    """Every entry in its place. What is no word of a person, the model or a tool is a note of the runtime."""
    return [_item(message) for message in messages]


def _item(message: Message) -> UserItem | AssistantItem | ToolItem:
    words = _words(message.content)
    if message.type == "tool_call":
        parameters = message.payload.get("parameters")
        call = CallPart(
            call_id=message.tool_call_id or "",
            name=str(message.payload.get("tool_name", "")),
            arguments=parameters if isinstance(parameters, dict) else {},
        )
        return AssistantItem(parts=(Text(words), call) if words else (call,), provider="caller")
    if message.type == "tool_result":
        return ToolItem(
            call_id=message.tool_call_id or "",
            name=str(message.payload.get("tool_name", "")),
            parts=(Text(words),),
            is_error=message.payload.get("success") is False,
        )
    if message.role == "assistant":
        return AssistantItem(parts=(Text(words),), provider="caller")
    is_persons = message.role == "user" and message.metadata.get("origin") != "runtime"
    return UserItem(parts=(Text(words),), origin="person" if is_persons else "runtime")


def _words(content: str | list[Any]) -> str:
    """The text of a content; a part that is not text is named, not shown."""
    if isinstance(content, str):
        return content
    return "\n".join(_of_part(part) for part in content)


def _of_part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return str(part["text"])
    kind = part.get("type", "part") if isinstance(part, dict) else type(part).__name__
    return f"[{kind}]"
