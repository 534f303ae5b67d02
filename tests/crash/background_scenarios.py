"""A run on background responses, to be killed: what the provider made is held against the log at the end."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

from crash.provider_scenarios import Mortal
from crash.scenarios import check, refund
from kit.wires.background_server import ANSWER, WORLD, Created, bill
from wakeful import Agent, RunResult, cancel, run
from wakeful.contracts.envelope import StoredFact
from wakeful.contracts.events import (
    ModelCompleted,
    ModelRequested,
    ModelResponseAccepted,
    ModelResponseReattached,
)
from wakeful.contracts.models import ModelGlimpse, Reply
from wakeful.ports import ModelRequest, Store
from wakeful.providers.openai_responses import OpenAIResponses
from wakeful.service.queries.replay import replay_turn
from wakeful.testing import Ledger


class MortalBackground(Mortal):
    """A model one can die in, which can be asked again for what it was asked before."""

    def __init__(self, inner: OpenAIResponses, ledger: Ledger) -> None:
        super().__init__(inner, ledger)
        self._background = inner

    async def reattach(self, request: ModelRequest, response_id: str) -> AsyncIterator[ModelGlimpse | Reply]:
        self._ledger.here()
        async for piece in self._background.reattach(request, response_id):
            self._ledger.here()
            yield piece

    async def abandon(self, response_id: str) -> None:
        self._ledger.here()
        await self._background.abandon(response_id)
        self._ledger.here()


def support(url: str, name: str, ledger: Ledger, *, stream: bool = True) -> Agent[Ledger, str]:
    headers = {WORLD: world_of(ledger)}
    model = OpenAIResponses(name, base_url=f"{url}/v1", headers=headers)
    settings = {"openai": {"background": True}, "stream": stream}
    return Agent("support", MortalBackground(model, ledger), tools=[refund], deps_type=Ledger, settings=settings)


def world_of(ledger: Ledger) -> str:
    return quote(str(ledger.path), safe="")


async def two_rounds(url: str, name: str, store: Store, ledger: Ledger) -> None:
    """A call and an answer, each made by the provider by itself."""
    result: RunResult[Any] = await run(support(url, name, ledger), "Refund A17.", deps=ledger, store=store, key="k")
    assert (result.status, result.output) == ("completed", ANSWER), result.message
    await check_bill(store, bill(url, world_of(ledger)))
    await check(store, ledger, result)


async def cancelled(url: str, name: str, store: Store, ledger: Ledger) -> None:
    """Somebody stops the turn while the provider works: it is told, whenever the process dies."""
    agent = support(url, name, ledger)

    async def stop_it() -> None:
        while True:
            for row in await store.turns(open_only=True):
                facts = await store.read(row.agent_id, turn_id=row.turn_id)
                if any(isinstance(each.fact.event, ModelResponseAccepted) for each in facts):
                    await cancel(store, row.turn_id)
                    return
            await asyncio.sleep(0.005)

    stopper = asyncio.create_task(stop_it())
    result: RunResult[Any] = await run(agent, "Think for long.", deps=ledger, store=store, key="k")
    stopper.cancel()
    assert result.status == "cancelled", result.message
    await check_bill(store, bill(url, world_of(ledger)))


async def check_bill(store: Store, created: list[Created]) -> None:
    """Every response had its intent first, and none is created for a round whose response is known to the log."""
    facts = [entry for row in await store.turns() for entry in await store.read(row.agent_id, turn_id=row.turn_id)]
    intents = Counter(entry.fact.step for entry in facts if isinstance(entry.fact.event, ModelRequested))
    known = _first(facts, ModelResponseAccepted) | _first(facts, ModelCompleted)
    for number, times in Counter(each.round for each in created).items():
        assert times <= intents[number], f"round {number}: {times} responses and {intents[number]} intents"
    for each in created:
        again = each.round in known and each.at > known[each.round]
        assert not again, f"round {each.round} was accepted, and {each.response_id} was paid for it again"
    for row in await store.turns():
        replayed = await replay_turn(store, row)
        assert replayed.identical, replayed.divergence
    accepted = {entry.fact.event.response_id for entry in facts if isinstance(entry.fact.event, ModelResponseAccepted)}
    for entry in facts:
        if isinstance(entry.fact.event, ModelResponseReattached):
            assert entry.fact.event.response_id in accepted


def _first(facts: list[StoredFact], kind: type[Any]) -> dict[int | None, int]:
    found: dict[int | None, int] = {}
    for entry in facts:
        if isinstance(entry.fact.event, kind):
            found.setdefault(entry.fact.step, entry.fact.at)
    return found
