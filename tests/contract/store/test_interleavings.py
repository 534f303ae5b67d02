"""Any order of owners, outsiders, claims, ends of processes and repairs: both backends tell the same story."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kit.runs.store_facts import (
    completed,
    ended,
    interrupt,
    message,
    requested,
    resolved,
    session,
    started,
    tool_failed,
    tool_result,
    tool_started,
)
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import WakefulError
from wakeful.ports import Claim, Store

from .conftest import BACKENDS, Backend

T = TypeVar("T")
AGENTS = ("agent_1", "agent_2")
TURNS = tuple(f"turn_{n}" for n in range(4))
"""The first two are the first agent's."""

turns = st.sampled_from(TURNS)
owners = st.sampled_from((0, 1))
OWNED: tuple[Callable[[str], Fact], ...] = (
    started,
    requested,
    completed,
    tool_started,
    tool_failed,
    tool_result,
    resolved,
)


def agent_of(turn: str) -> str:
    return AGENTS[TURNS.index(turn) // 2]


def thread_of(turn: str) -> str:
    """The first agent's turns are of one thread, the second's of two."""
    return "side" if turn == TURNS[-1] else "main"


class Side:
    """One backend with two owners on it, and the claims they were given."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.stores: list[Store] = []
        self.claims: dict[tuple[int, str], Claim] = {}

    async def begin(self) -> None:
        self.stores = [await self.backend.open(), await self.backend.open()]

    async def end(self, owner: int) -> None:
        """The process ends with whatever it holds, and another takes its place."""
        await self.stores[owner].close()
        self.stores[owner] = await self.backend.open()


async def outcome(awaited: Awaitable[Any]) -> Any:
    """What came of it: an answer, or the kind of refusal."""
    try:
        return await awaited
    except WakefulError as refusal:
        return type(refusal).__name__


def told(answer: Any) -> Any:
    """An answer without what is random in it."""
    if isinstance(answer, Claim):
        return (answer.agent_id, answer.turn_id, answer.lease_epoch, answer.turn_epoch, answer.fresh)
    return answer


class Interleavings(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.runner = asyncio.Runner()
        self.sides = [Side(make(Path(self.folder.name))) for make in BACKENDS.values()]
        for side in self.sides:
            self.runner.run(side.begin())

    def both(self, act: Callable[[Side], Awaitable[Any]]) -> None:
        """Do the same to every backend; each must answer the same."""
        answers = [self.runner.run(outcome(act(side))) for side in self.sides]
        assert all(told(answer) == told(answers[0]) for answer in answers), answers

    @rule(owner=owners, turn=turns, key=st.sampled_from((None, None, "k1", "k2")), named=st.booleans())
    def admit(self, owner: int, turn: str, key: str | None, named: bool) -> None:
        facts = [*([session()] if named else []), message(turn, key=key, thread=thread_of(turn))]
        self.both(lambda side: side.stores[owner].admit(agent_of(turn), facts))

    @rule(owner=owners, turn=turns, one=st.sampled_from((interrupt, resolved)))
    def tell(self, owner: int, turn: str, one: Callable[[str], Fact]) -> None:
        self.both(lambda side: side.stores[owner].admit(agent_of(turn), [one(turn)]))

    @rule(owner=owners, turn=turns)
    def claim(self, owner: int, turn: str) -> None:
        async def act(side: Side) -> Any:
            claim = await side.stores[owner].claim(turn)
            side.claims[(owner, turn)] = claim
            return claim

        self.both(act)

    @rule(owner=owners, turn=turns)
    def release(self, owner: int, turn: str) -> None:
        async def act(side: Side) -> Any:
            claim = side.claims.get((owner, turn))
            return None if claim is None else await side.stores[owner].release(claim)

        self.both(act)

    @rule(
        owner=owners,
        turn=turns,
        made=st.lists(st.sampled_from(OWNED), max_size=4),
        last=st.booleans(),
        barrier=st.booleans(),
    )
    def append(self, owner: int, turn: str, made: list[Callable[[str], Fact]], last: bool, barrier: bool) -> None:
        facts = [make(turn) for make in made] + ([ended(turn)] if last else [])

        async def act(side: Side) -> Any:
            claim = side.claims.get((owner, turn))
            if claim is None:
                return None
            return await side.stores[owner].append(claim, facts, rest=last, barrier=barrier)

        self.both(act)

    @rule(owner=owners, turn=turns)
    def hold(self, owner: int, turn: str) -> None:
        async def act(side: Side) -> Any:
            claim = side.claims.get((owner, turn))
            return None if claim is None else await side.stores[owner].hold(claim)

        self.both(act)

    @rule(seconds=st.sampled_from((1.0, 20.0, 40.0)))
    def wait(self, seconds: float) -> None:
        for side in self.sides:
            side.backend.hands.now += seconds

    @rule(owner=owners)
    def end(self, owner: int) -> None:
        self.both(lambda side: side.end(owner))

    @rule(owner=owners)
    def rebuild(self, owner: int) -> None:
        self.both(lambda side: side.stores[owner].rebuild_views())

    @invariant()
    def the_same_is_stored_and_the_chain_holds(self) -> None:
        for agent in AGENTS:
            self.both(lambda side, agent=agent: side.stores[0].read(agent))
            self.both(lambda side, agent=agent: side.stores[1].usage(agent))
        self.both(lambda side: side.stores[1].agents())
        self.both(lambda side: side.stores[1].turns())
        self.both(lambda side: side.stores[0].unknown())

    def teardown(self) -> None:
        self.both(lambda side: side.stores[0].verify())
        for side in self.sides:
            for store in side.stores:
                self.runner.run(store.close())
        self.runner.close()
        self.folder.cleanup()


Interleavings.TestCase.settings = settings(
    max_examples=25, stateful_step_count=25, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
test_both_backends_tell_the_same_story = Interleavings.TestCase
