"""Runs on real providers to be killed: retries, a fail-fast and fallbacks, with the bill of the models' server.

What must be so at the end, beyond what holds of every run: no request without its intent, nothing that was answered
is asked and paid for again, and the log tells of each move to the other model once, as its timeline does.
"""

from collections import Counter
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import httpx2  # noqa: F401  loaded once, before the runs are forked

from crash.paid_models import ANSWER, FIRST, GEMINI, SECOND, WORLD, Paid, bill
from crash.scenarios import check, refund, send_letter
from wakeful import Agent, RunResult
from wakeful.bootstrap.engines import new_engine
from wakeful.bootstrap.stores import opened_store
from wakeful.contracts.envelope import StoredFact
from wakeful.contracts.events import ModelCompleted, ModelFailed, ModelRequested, RoutingFallbackApplied
from wakeful.contracts.models import ModelGlimpse, ProviderAttemptTimeline, Reply
from wakeful.engine.run_request import RunRequest
from wakeful.ports import Model, ModelRequest, Store
from wakeful.providers.anthropic import AnthropicMessages
from wakeful.providers.gemini import Gemini
from wakeful.providers.openai_chat import OpenAIChat
from wakeful.service.commands.turns import run_turn
from wakeful.testing import Ledger


class Mortal:
    """A model that one can die in: before it is asked, at each piece of its answer, and right after the last."""

    def __init__(self, inner: Model, ledger: Ledger) -> None:
        self._inner = inner
        self._ledger = ledger

    @property
    def ref(self) -> str:
        return self._inner.ref

    async def respond(self, request: ModelRequest) -> AsyncIterator[ModelGlimpse | Reply]:
        self._ledger.here()
        async for piece in self._inner.respond(request):
            self._ledger.here()
            yield piece


async def retries_and_fallbacks(url: str, key: str | None, store: Store, ledger: Ledger, *, wire: str = FIRST) -> None:
    """Four rounds on two models, of which the first is not to be relied on; `wire` is the first's."""
    world = quote(str(ledger.path), safe="")
    headers = {WORLD: world}
    first: Model = OpenAIChat("first", base_url=f"{url}/v1", headers=headers)
    if wire == GEMINI:
        first = Gemini("first", base_url=f"{url}/v1beta", headers=headers)
    second = AnthropicMessages("second", base_url=url, headers=headers)
    assert [first.ref, second.ref] == [wire, SECOND]
    agent: Agent[Ledger, str] = Agent(
        "support",
        Mortal(first, ledger),
        tools=[refund, send_letter],
        deps_type=Ledger,
        fallbacks=[Mortal(second, ledger)],
    )
    request = RunRequest(agent, "See to order A17.", deps=ledger, key=key)
    async with opened_store(store) as opened:
        result: RunResult[Any] = await run_turn(new_engine(opened, jitter=lambda: 0.0), request)
    assert (result.status, result.output) == ("completed", ANSWER), result.message
    facts = [entry for row in await store.turns() for entry in await store.read(row.agent_id, turn_id=row.turn_id)]
    check_bill(facts, bill(url, world))
    check_moves(facts, wire)
    await check(store, ledger, result)


def check_bill(facts: list[StoredFact], paid: list[Paid]) -> None:
    """Every request had its intent first, and no round is asked for when its answer is known."""
    intents: Counter[tuple[int | None, str]] = Counter()
    answered: dict[int | None, int] = {}
    for entry in facts:
        event, step = entry.fact.event, entry.fact.step
        if isinstance(event, ModelRequested):
            intents[step, event.model_ref] += 1
        elif isinstance(event, ModelCompleted):
            answered[step] = min(entry.fact.at, answered.get(step, entry.fact.at))
    for (number, ref), times in Counter((each.round, each.model_ref) for each in paid).items():
        known = intents[number, ref]
        assert times <= known, f"round {number}: {times} requests to {ref} and {known} intents"
    for each in paid:
        late = each.round in answered and each.at > answered[each.round]
        assert not late, f"round {each.round} was answered, and {each.model_ref} was paid for it again"


def check_moves(facts: list[StoredFact], first: str) -> None:
    """Attempts are counted from 1 on each model, and a move follows the attempt that it names, once."""
    by_round: dict[int | None, list[Any]] = {}
    for entry in facts:
        if isinstance(entry.fact.event, ModelFailed | ModelCompleted | RoutingFallbackApplied):
            by_round.setdefault(entry.fact.step, []).append(entry.fact.event)
    for number, events in by_round.items():
        lost = [event for event in events if isinstance(event, ModelFailed) and event.stage != "crash"]
        for ref in (first, SECOND):
            counted = [event.attempt for event in lost if event.model_ref == ref]
            assert counted == list(range(1, len(counted) + 1)), f"round {number}: {ref} has attempts {counted}"
        ended = [event for event in lost if event.disposition == "fallback"]
        moves = [event for event in events if isinstance(event, RoutingFallbackApplied)]
        assert [(move.from_model_ref, move.attempt, move.reason) for move in moves] == [
            (event.model_ref, event.attempt, event.failure_kind) for event in ended
        ], f"round {number}: the moves are not those of the lost attempts"
        assert all((move.from_model_ref, move.to_model_ref) == (first, SECOND) for move in moves)
        (won,) = [event for event in events if isinstance(event, ModelCompleted)]
        assert _told(won.timeline) == [(event.model_ref, event.attempt, event.failure_kind) for event in lost]


def _told(timeline: ProviderAttemptTimeline | None) -> list[tuple[str, int, str | None]]:
    if timeline is None:
        return []
    return [(each.model_ref, each.attempt, each.failure_kind) for each in timeline.attempts if each.failure_kind]
