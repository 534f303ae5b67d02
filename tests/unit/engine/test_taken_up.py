"""A turn that is taken up has heard everything that was written before: no request is made, or paid, past a word."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest

from kit.runs.engine_runs import Died, calls, facts_of, kinds
from wakeful import Agent, cancel, pause, resume, run, tool
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.engine.run_request import RunRequest
from wakeful.ports import Claim, ModelRequest, Store
from wakeful.service.commands.steering import interject
from wakeful.service.commands.turns import run_turn
from wakeful.service.queries.replay import replay_turn
from wakeful.store.memory import MemoryStore
from wakeful.store.sqlite import SqliteStore
from wakeful.testing import FixedClock, scripted
from wakeful.testing.wrapped_store import WrappedStore

Say = Callable[[Store], Awaitable[object]]


class SaidInBetween(WrappedStore):
    """Somebody outside writes in the moment in which a turn is taken up: right after its log was read, or right before
    the runner's first commit."""

    def __init__(self, inner: Store, say: Say, moment: Literal["read", "append"]) -> None:
        super().__init__(inner)
        self._say: Say | None = say
        self._moment = moment
        self._is_claimed = False

    async def claim(self, turn_id: str, *, reservation: str | None = None) -> Claim:
        self._is_claimed = True
        return await super().claim(turn_id, reservation=reservation)

    async def read(self, agent_id: str, **options: Any) -> list[StoredFact]:
        found = await super().read(agent_id, **options)
        if self._is_claimed and self._moment == "read":
            await self._now()
        return found

    async def append(self, claim: Claim, facts: Sequence[Fact], **options: Any) -> list[StoredFact]:
        if self._moment == "append":
            await self._now()
        return await super().append(claim, facts, **options)

    async def _now(self) -> None:
        say, self._say = self._say, None
        if say is not None:
            await say(self.inner)


class Till(WrappedStore):
    """A store whose owner dies, in effect, inside its first payment: from then on it takes nothing any more."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.is_dead = False

    async def append(self, claim: Claim, facts: Sequence[Fact], **options: Any) -> list[StoredFact]:
        if self.is_dead:
            raise Died
        return await super().append(claim, facts, **options)


def agent(asked: list[str], till: Till | None = None, effect: Any = "irreversible") -> Agent[None, str]:
    def answer(request: ModelRequest) -> Any:
        asked.append("asked")
        return calls("pay") if request.answered < 2 else "done"

    @tool(effect=effect)
    async def pay() -> str:
        asked.append("paid")
        if till is not None:
            till.is_dead = True
        return "paid"

    return Agent("till", scripted(answer), tools=[pay])


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    opened: Store = MemoryStore() if request.param == "memory" else await SqliteStore.open(tmp_path / "s.db")
    yield opened
    await opened.close()


async def cut_off(store: Store, effect: Any = "irreversible") -> str:
    """A turn whose process died inside its first call."""
    till = Till(store)
    with pytest.raises(Died):
        await run(agent([], till, effect), "go", store=till, key="k")
    (row,) = await store.turns()
    return row.turn_id


@pytest.mark.parametrize("moment", ["read", "append"])
async def test_a_pause_in_the_moment_a_turn_is_taken_up_is_heard_before_anything_is_asked(
    store: Store, moment: Any
) -> None:
    turn_id, asked = await cut_off(store), list[str]()
    between = SaidInBetween(store, lambda inner: pause(inner, turn_id), moment)
    result = await resume(between, turn_id, [agent(asked)])
    assert (result.status, result.stop_reason, asked) == ("waiting", "paused", [])
    assert await replays(store, turn_id)
    facts = kinds(await facts_of(store, turn_id))
    assert facts.index("turn.pause.requested") < facts.index("turn.resumed")
    assert (await resume(store, turn_id, [agent(asked)])).output == "done"
    assert await replays(store, turn_id)


async def test_a_call_that_is_run_again_runs_once_where_a_pause_came_in_that_moment(store: Store) -> None:
    """The commit with which it begins again is refused first, and nothing of it has begun then."""
    turn_id, asked = await cut_off(store, "keyed"), list[str]()
    between = SaidInBetween(store, lambda inner: pause(inner, turn_id), "append")
    result = await resume(between, turn_id, [agent(asked, effect="keyed")])
    assert (result.status, result.stop_reason, asked) == ("waiting", "paused", ["paid"])
    assert [(call.tool, call.status) for call in result.calls()] == [("pay", "success")]
    assert await replays(store, turn_id)


@pytest.mark.parametrize("moment", ["read", "append"])
async def test_a_cancel_in_the_moment_a_turn_is_taken_up_ends_it_before_anything_is_asked(
    store: Store, moment: Any
) -> None:
    turn_id, asked = await cut_off(store), list[str]()
    between = SaidInBetween(store, lambda inner: cancel(inner, turn_id), moment)
    result = await resume(between, turn_id, [agent(asked)])
    assert (result.status, asked) == ("cancelled", [])
    assert len(result.unknown) == 1
    assert await replays(store, turn_id)


async def replays(store: Store, turn_id: str) -> bool:
    row = await store.turn(turn_id)
    assert row is not None
    report = await replay_turn(store, row)
    assert report.identical, report.divergence
    return True


@pytest.mark.parametrize("moment", ["read", "append"])
async def test_hours_before_a_turn_is_taken_up_do_not_end_it_where_somebody_spoke_to_it_meanwhile(
    store: Store, moment: Any
) -> None:
    clock, till = FixedClock(), Till(store)
    with pytest.raises(Died):
        await run_turn(new_engine(till, clock=clock), RunRequest(agent([], till, "pure"), "go", key="k"))
    (row,) = await store.turns()
    clock.advance(2 * 3600.0)
    between = SaidInBetween(
        store, lambda inner: interject(new_engine(inner, clock=clock), row.turn_id, "Hurry."), moment
    )
    result = await run_turn(new_engine(between, clock=clock), RunRequest(agent([], effect="pure"), "go", key="k"))
    assert (result.output, result.stop_reason) == ("done", "natural")
    assert await replays(store, row.turn_id)
