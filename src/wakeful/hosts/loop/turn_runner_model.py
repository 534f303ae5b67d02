"""The host's `turn_runner` as a model of the runtime: one call a round, never repeated."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from wakeful.contracts.content import Text
from wakeful.contracts.conversation import AssistantItem, CallPart
from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.models import Reply, TokenUsage
from wakeful.contracts.transcript import Message
from wakeful.hosts.host_calls import in_its_place
from wakeful.hosts.loop.conversation_items import items_of
from wakeful.hosts.loop.turn_results import TurnTaken, failed_turn, read_turn
from wakeful.ports import ModelRequest

RAISED = "turn_runner_exception"
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
