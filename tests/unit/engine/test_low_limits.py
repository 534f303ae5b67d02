"""A limit that is low is told of once: when it gets low, and when it still is after it was to be full again."""

from collections.abc import AsyncIterator

from kit.runs.engine_runs import calls, of_kind
from wakeful import Agent, run, tool
from wakeful.contracts.events import ModelCompleted, QuotaLow
from wakeful.contracts.models import ModelGlimpse, ProviderLimit, Reply
from wakeful.engine.low_limits import LowLimits
from wakeful.ports import ModelRequest
from wakeful.providers.scripted import ScriptedModel
from wakeful.store.memory import MemoryStore

NOW = 1_800_000_000_000_000
LATER = "2027-01-15T08:00:10Z"
"""Ten seconds after it."""


def low(name: str = "tokens", resets_at: str | None = LATER) -> QuotaLow:
    return QuotaLow(model_ref="a:m", attempt=1, limit_name=name, limit=100, observed=99, resets_at=resets_at)


def test_it_is_told_again_when_it_was_fine_between_or_is_low_after_its_time() -> None:
    lows = LowLimits()
    assert lows.crossed("a:m", low(), NOW) == low()
    assert lows.crossed("a:m", low(), NOW + 9_000_000) is None
    assert lows.crossed("a:m", low("requests"), NOW) == low("requests"), "another limit"
    assert lows.crossed("a:m", low(), NOW + 10_000_000) == low(), "it was to be full again"
    assert lows.crossed("b:m", None, NOW) is None
    assert lows.crossed("a:m", low("requests"), NOW) is None, "another model's answer says nothing of it"
    assert lows.crossed("a:m", None, NOW) is None
    assert lows.crossed("a:m", low("requests"), NOW) == low("requests"), "it was fine between"
    assert lows.crossed("c:m", low(resets_at=None), NOW) is not None
    assert lows.crossed("c:m", low(resets_at=None), NOW + 10**9) is None, "without a time, until it is fine"


@tool(effect="pure")
def look() -> str:
    """Look."""
    return "seen"


class Poor(ScriptedModel):
    async def respond(self, request: ModelRequest) -> AsyncIterator[ModelGlimpse | Reply]:
        async for piece in super().respond(request):
            if isinstance(piece, Reply):
                limit = ProviderLimit(name="tokens", limit=100, remaining=1, resets_at="2999-01-01T00:00:00Z")
                piece = piece.model_copy(update={"limits": (limit,)})
            yield piece


async def test_a_run_and_the_threads_next_one_say_it_once() -> None:
    def answer(request: ModelRequest) -> object:
        return calls("look") if request.answered < 2 else "done"

    store = MemoryStore()
    agent = Agent("ops", Poor(answer), tools=[look])
    first = await run(agent, "go", store=store, thread="t")
    assert (len(of_kind(first, ModelCompleted)), len(of_kind(first, QuotaLow))) == (3, 1)
    second = await run(agent, "again", store=store, thread="t")
    assert (len(of_kind(second, ModelCompleted)), len(of_kind(second, QuotaLow))) == (3, 0)
