"""Runs under spend windows: they pause when a window is used up, say so, and go on when it turns or somebody grants."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from kit.runs.engine_runs import facts_of, kinds, of_kind
from kit.runs.store_facts import NOON, claimed
from wakeful import Agent, Budget, SpendWindow, resume_all, run
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import AssistantItem, CallPart
from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.errors import AgentNotFound, InvalidConfig, ModelFailure
from wakeful.contracts.events import (
    BudgetGranted,
    BudgetNoticed,
    LimitChanged,
    ModelRequested,
    TurnResumed,
    TurnSuspended,
)
from wakeful.contracts.models import ModelGlimpse, Reply, TokenUsage
from wakeful.contracts.spending import WindowRef, nanodollars
from wakeful.contracts.tools import Principal
from wakeful.contracts.workflows import WorkflowGraph
from wakeful.decisions.spend_windows import OwnerWindows
from wakeful.engine.run_request import Engine, RunRequest, WorkflowTerms
from wakeful.engine.workflow_parts import workflow_registry
from wakeful.ports import Claim, ModelRequest, Store, TurnRow
from wakeful.providers.prices import IN_CODE, ListedPrice, Price
from wakeful.service.commands.interruption import cancel_turn
from wakeful.service.commands.spend_windows import STREAM, grant, spending
from wakeful.service.commands.turns import resume_turn, run_turn
from wakeful.service.queries.replay import replay_turn
from wakeful.service.workflows.runs import run_workflow
from wakeful.store.memory import Memory, MemoryStore
from wakeful.testing import FixedClock
from wakeful.testing.wrapped_store import WrappedStore
from wakeful.tools.decorator import tool

EVENING = datetime(2027, 1, 15, 22, 30, tzinfo=UTC)
MIDNIGHT = 90 * 60 + 1


class Paid:
    """A model that costs ten cents a round, and at most twenty: it calls `count` so many times, then answers."""

    ref = "mine:m"
    price = ListedPrice(Price(Decimal(0), Decimal(1_000)), IN_CODE)

    def __init__(self, rounds: int = 1, *failures: ModelFailure, priced: bool = True) -> None:
        self.rounds = rounds
        self.asked = 0
        self._failures = list(failures)
        self._priced = priced

    def most_output(self, settings: Any) -> int:
        return 200

    async def respond(self, request: ModelRequest) -> AsyncIterator[ModelGlimpse | Reply]:
        self.asked += 1
        if self._failures:
            raise self._failures.pop(0)
        last = request.answered + 1 >= self.rounds
        part: Text | CallPart = (
            Text("done") if last else CallPart(call_id=f"c{request.step}", name="count", arguments={})
        )
        used = TokenUsage(input_tokens=10, output_tokens=100, total_tokens=110) if self._priced else None
        yield Reply(item=AssistantItem(parts=(part,)), usage=used)


counted: list[int] = []


@tool(effect="pure")
def count() -> int:
    """Count."""
    counted.append(1)
    return len(counted)


def agent(model: Any, *windows: SpendWindow, name: str = "ops") -> Agent[Any, Any]:
    return Agent(name, model, tools=[count], spend_windows=windows)


@pytest.fixture
def memory() -> Memory:
    return Memory()


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(EVENING)


@pytest.fixture
async def system(memory: Memory, clock: FixedClock) -> Engine:
    return new_engine(MemoryStore(memory), clock=clock)


async def agrees(store: Store, turn_id: str) -> None:
    row = await store.turn(turn_id)
    assert row is not None
    report = await replay_turn(store, row)
    assert report.divergence is None, report.divergence


def day(usd: str) -> SpendWindow:
    return SpendWindow("day", usd)


async def test_a_run_pauses_when_its_agents_day_is_used_up_and_goes_on_in_the_next(
    system: Engine, clock: FixedClock
) -> None:
    model = Paid(rounds=4)
    ops = agent(model, day("0.35"))
    result = await run_turn(system, RunRequest(ops, "go"))
    assert (result.status, result.stop_reason, model.asked) == ("waiting", "cost", 2), "0.2 spent; 0.2 is too much"
    assert result.message == (
        "0.15 USD are left of the day of agent ops, which turns at 2027-01-16T00:00:00.000Z, and the next request "
        "needs up to 0.2 USD; nothing is lost, and the turn can continue then"
    )
    (limit,) = of_kind(result, LimitChanged)
    assert (limit.limit_name, limit.limit, limit.observed) == ("cost", 0.35, 0.4)
    (suspended,) = of_kind(result, TurnSuspended)
    assert suspended.reason == "budget_window"
    row = await system.store.turn(result.turn_id)
    assert row is not None and row.state == "suspended" and row.waiting_for == suspended.waiting_for

    before = len(await facts_of(system.store, result.turn_id))
    again = await resume_turn(system, result.turn_id, [ops])
    assert (again.stop_reason, again.message) == ("cost", result.message)
    assert len(await facts_of(system.store, result.turn_id)) == before, "taking it up too early writes nothing"

    clock.advance(MIDNIGHT)
    done = await resume_turn(system, result.turn_id, [ops])
    # The new day has room for the same again.
    assert (done.status, done.output, model.asked) == ("completed", "done", 4)
    assert [event.cause for event in of_kind(done, TurnResumed)] == ["window"]
    await agrees(system.store, result.turn_id)
    assert [(row.began, row.spent) for row in await system.store.spending()] == [
        (1_799_971_200_000_000, nanodollars("0.2")),
        (1_800_057_600_000_000, nanodollars("0.2")),
    ]


async def test_a_window_that_turns_in_a_moment_is_waited_for_by_whoever_waits_for_the_run(
    system: Engine, clock: FixedClock
) -> None:
    clock.advance(MIDNIGHT - 10)
    model = Paid(rounds=4)
    running = asyncio.create_task(run_turn(system, RunRequest(agent(model, day("0.35")), "go")))
    async with asyncio.timeout(30):
        await at_rest(system.store)
        assert model.asked == 2 and not running.done()
        clock.advance(10)
        done = await running
    assert (done.status, model.asked) == ("completed", 4)
    assert [event.cause for event in of_kind(done, TurnResumed)] == ["window"]
    await agrees(system.store, done.turn_id)


async def test_a_run_that_waits_for_its_window_can_be_cancelled(system: Engine, clock: FixedClock) -> None:
    clock.advance(MIDNIGHT - 10)
    running = asyncio.create_task(run_turn(system, RunRequest(agent(Paid(rounds=4), day("0.35")), "go")))
    async with asyncio.timeout(30):
        row = await at_rest(system.store)
        assert await cancel_turn(system, row.turn_id) is True
        assert (await running).status == "cancelled"


async def at_rest(store: Store) -> TurnRow:
    """The one turn there is, once it rests."""
    while True:
        rows = await store.turns()
        if rows and rows[0].state == "suspended":
            return rows[0]
        await asyncio.sleep(0.01)


async def test_without_the_window_the_same_run_spends_all_of_it(system: Engine) -> None:
    model = Paid(rounds=4)
    result = await run_turn(system, RunRequest(agent(model), "go"))
    assert (result.status, model.asked, result.cost_usd) == ("completed", 4, 0.4)
    assert of_kind(result, ModelRequested)[0].windows == () and await system.store.spending() == []


async def test_a_grant_lets_a_run_go_on_before_its_window_turns(system: Engine) -> None:
    model = Paid(rounds=3)
    ops = agent(model, day("0.35"))
    result = await run_turn(system, RunRequest(ops, "go"))
    assert result.stop_reason == "cost"
    await grant(system, "agent:ops", "0.01", by="ada")
    assert (await resume_turn(system, result.turn_id, [ops])).stop_reason == "cost", "a cent is not enough"
    row = await grant(system, "agent:ops", "0.04", "day", by="ada", reason="a launch")
    assert (row.limit, row.granted, row.spent) == tuple(map(nanodollars, ("0.35", "0.05", "0.2")))
    done = await resume_turn(system, result.turn_id, [ops])
    assert done.completed and model.asked == 3
    await agrees(system.store, result.turn_id)
    said = [entry.fact.event for entry in await system.store.read(STREAM)]
    granted = [event for event in said if isinstance(event, BudgetGranted)]
    assert [(event.usd, event.granted_by, event.reason) for event in granted] == [
        ("0.01", "ada", ""),
        ("0.04", "ada", "a launch"),
    ]


async def test_a_grant_is_refused_when_it_is_nothing_or_its_window_is_unclear(system: Engine) -> None:
    with pytest.raises(InvalidConfig, match="a grant cannot be '0'"):
        await grant(system, "runtime", "0", "day")
    with pytest.raises(InvalidConfig, match="name the limit to raise"):
        await grant(system, "runtime", "1")
    with pytest.raises(AgentNotFound, match="there is no agent 'ops'"):
        await grant(system, "agent:ops", "1", "hour")
    assert await system.store.read(STREAM) == []
    row = await grant(system, "runtime", "1", "hour")
    assert (row.limit, row.granted) == (0, nanodollars("1"))


async def test_the_limit_that_holds_is_the_one_the_code_says_when_the_turn_is_taken_up(system: Engine) -> None:
    model = Paid(rounds=3)
    result = await run_turn(system, RunRequest(agent(model, day("0.35")), "go"))
    assert result.stop_reason == "cost"
    done = await resume_turn(system, result.turn_id, [agent(model, day("1"))])
    assert done.completed
    await agrees(system.store, result.turn_id)


async def test_windows_of_the_runtime_and_of_a_principal_hold_for_every_agent(system: Engine) -> None:
    owner = OwnerWindows((day("0.5"),), {"ada": (SpendWindow("hour", "0.25"),)})
    system = replace(system, owner_windows=owner)
    for_ada = Principal(id="ada")
    first = await run_turn(system, RunRequest(agent(Paid(2), name="one"), "go", principal=for_ada))
    assert first.stop_reason == "cost" and "the hour of principal ada" in first.message
    second = await run_turn(system, RunRequest(agent(Paid(2), name="two"), "go"))
    assert second.completed, "nobody limits others so much"
    third = await run_turn(system, RunRequest(agent(Paid(2), name="three"), "go"))
    assert third.stop_reason == "cost" and "the day of the runtime" in third.message
    shown = [(row.scope, row.period, row.spent) for row in await spending(system)]
    assert shown == [("principal:ada", "hour", nanodollars("0.1")), ("runtime", "day", nanodollars("0.4"))]


async def test_most_of_a_window_is_noticed_once_in_the_transaction_that_spends_it(system: Engine) -> None:
    ops = agent(Paid(rounds=4), day("0.5"))
    result = await run_turn(system, RunRequest(ops, "go"))
    assert result.completed
    facts = await facts_of(system.store, result.turn_id)
    noticed = of_kind(result, BudgetNoticed)
    assert [(event.percent, event.spent, event.window.usd) for event in noticed] == [(80, "0.4", "0.5")]
    place = kinds(facts).index("budget.noticed")
    assert kinds(facts)[place - 1 : place + 2] == ["assistant.recorded", "budget.noticed", "turn.completed"]
    await agrees(system.store, result.turn_id)
    cheap = await run_turn(system, RunRequest(agent(Paid(1), day("9"), name="ops"), "go"))
    assert cheap.completed and of_kind(cheap, BudgetNoticed) == [], "it was said"


async def test_a_lost_attempt_counts_at_what_was_held_and_the_retry_needs_room(system: Engine) -> None:
    cut = ModelFailure("cut", kind="stream_interrupted", stage="body")
    model = Paid(1, cut)
    result = await run_turn(system, RunRequest(agent(model, day("0.35")), "go"))
    assert (result.stop_reason, model.asked) == ("cost", 1)
    (row,) = await system.store.spending()
    assert (row.spent, row.held) == (nanodollars("0.2"), 0)
    await agrees(system.store, result.turn_id)


async def test_a_request_that_fits_in_no_window_ends_the_turn_instead_of_waiting_for_ever(system: Engine) -> None:
    model = Paid()
    result = await run_turn(system, RunRequest(agent(model, day("0.15")), "go"))
    assert (result.status, result.stop_reason, model.asked) == ("incomplete", "cost", 0)
    assert "a request of up to 0.2 dollars is more than the day of agent ops" in result.message
    row = await system.store.turn(result.turn_id)
    assert row is not None and not row.is_open
    await agrees(system.store, result.turn_id)


class Unpriced(Paid):
    ref = "mine:unpriced"
    price = None  # type: ignore[assignment]


async def test_a_model_without_a_price_is_refused_in_a_window_unless_its_tokens_are_limited(system: Engine) -> None:
    model = Unpriced()
    result = await run_turn(system, RunRequest(agent(model, day("5")), "go"))
    assert (result.status, result.stop_reason, model.asked) == ("failed", "routing_not_possible", 0)
    assert "its price is not known" in result.message
    await agrees(system.store, result.turn_id)
    paid = Paid()
    other = agent(model, day("5")).changed(fallbacks=[paid])
    assert (await run_turn(system, RunRequest(other, "go"))).completed and (model.asked, paid.asked) == (0, 1)
    allowed = Budget(unpriced_token_ceiling=1_000)
    result = await run_turn(system, RunRequest(agent(model, day("5")), "go", budget=allowed))
    assert result.completed
    await agrees(system.store, result.turn_id)


async def test_children_hold_in_the_same_window(system: Engine) -> None:
    class Splitting(Paid):
        async def respond(self, request: ModelRequest) -> AsyncIterator[ModelGlimpse | Reply]:
            self.asked += 1
            used = TokenUsage(input_tokens=10, output_tokens=100, total_tokens=110)
            part: Text | CallPart = Text("done")
            if request.depth == 0 and request.answered == 0:
                jobs = [{"task": f"part {n}"} for n in range(3)]
                part = CallPart(call_id="split", name="spawn_parallel", arguments={"jobs": jobs})
            yield Reply(item=AssistantItem(parts=(part,)), usage=used)

    model = Splitting()
    ops = Agent("ops", model, allow_parallel_subagents=True, spend_windows=[day("0.5")])
    result = await run_turn(system, RunRequest(ops, "go"))
    (row,) = await system.store.spending()
    assert result.stop_reason == "cost" and row.spent <= row.limit and row.held == 0
    await grant(system, "agent:ops", 5)
    done = await resume_turn(system, result.turn_id, [ops])
    assert done.completed, done.message
    assert model.asked == 5
    await agrees(system.store, result.turn_id)


async def test_a_cancelled_turn_that_waits_for_money_ends(system: Engine) -> None:
    from wakeful.service.commands.interruption import cancel_turn

    result = await run_turn(system, RunRequest(agent(Paid(4), day("0.35")), "go"))
    assert result.stop_reason == "cost"
    assert await cancel_turn(system, result.turn_id)
    row = await system.store.turn(result.turn_id)
    assert row is not None and row.state == "cancelled"


async def test_two_runs_of_one_process_share_what_is_left(memory: Memory) -> None:
    import asyncio

    store = MemoryStore(memory)
    models = [Paid(1) for _ in range(5)]
    ops = [agent(model, day("0.5")) for model in models]
    results = await asyncio.gather(*(run(each, "go", store=store) for each in ops))
    (row,) = await store.spending()
    assert row.taken <= row.limit
    assert sum(model.asked for model in models) == sum(result.completed for result in results) >= 2


class Racing(WrappedStore):
    """A store in which somebody else is faster: before the owner's first request is written, the rest is taken."""

    def __init__(self, inner: Store, event: type[Any], do: Callable[[], Awaitable[Any]]) -> None:
        super().__init__(inner)
        self._event, self._do = event, do
        self.raced = 0

    async def append(
        self, claim: Claim, facts: Sequence[Fact], *, barrier: bool = False, rest: bool = False, last: bool = False
    ) -> list[StoredFact]:
        if not self.raced and any(isinstance(fact.event, self._event) for fact in facts):
            self.raced += 1
            await self._do()
        return await self.inner.append(claim, facts, barrier=barrier, rest=rest, last=last)


async def test_a_runner_that_is_refused_by_the_store_looks_again_and_rests_without_having_asked(
    memory: Memory, clock: FixedClock
) -> None:
    owner = OwnerWindows((day("0.35"),))
    inner = MemoryStore(memory)
    rival = replace(new_engine(MemoryStore(memory), clock=clock), owner_windows=owner)
    theirs, ours = Paid(rounds=2), Paid(rounds=2)

    async def be_faster() -> None:
        assert (await run_turn(rival, RunRequest(agent(theirs, name="rival"), "go"))).stop_reason == "natural"

    store = Racing(inner, ModelRequested, be_faster)
    system = replace(new_engine(store, clock=clock), owner_windows=owner)
    result = await run_turn(system, RunRequest(agent(ours), "go"))
    assert (store.raced, theirs.asked, ours.asked) == (1, 2, 0)
    assert (result.status, result.waiting_for) == ("waiting", "money")
    (limit,) = of_kind(result, LimitChanged)
    assert (limit.limit, limit.observed) == (0.35, 0.4), "as it was when it looked again"
    assert of_kind(result, ModelRequested) == []
    await agrees(inner, result.turn_id)


async def test_of_two_who_notice_at_once_one_says_so_and_nothing_else_is_lost(
    memory: Memory, clock: FixedClock
) -> None:
    owner = OwnerWindows((day("0.5"),))
    inner = MemoryStore(memory)

    async def be_faster() -> None:
        (row,) = await inner.spending()
        window = WindowRef(scope=row.scope, period=row.period, began=row.began, turns=row.turns, usd="0.5")
        rival = MemoryStore(memory)
        claim = await claimed(rival, "turn_2", "agent_2")
        said = BudgetNoticed(window=window, percent=80, spent="0.4", held="0")
        await rival.append(claim, [Fact(said, NOON, "main", "turn_2")])

    store = Racing(inner, BudgetNoticed, be_faster)
    system = replace(new_engine(store, clock=clock), owner_windows=owner)
    result = await run_turn(system, RunRequest(agent(Paid(rounds=4)), "go"))
    assert store.raced == 1 and of_kind(result, BudgetNoticed) == []
    assert (result.completed, result.cost_usd) == (True, 0.4)
    (row,) = await inner.spending()
    assert (row.spent, row.held, row.noticed) == (nanodollars("0.4"), 0, True)
    await agrees(inner, result.turn_id)


async def test_a_sibling_that_settles_makes_room_and_is_waited_for(system: Engine) -> None:
    """What the turn itself holds will mostly come back: nobody rests on that."""

    class Twins(Paid):
        async def respond(self, request: ModelRequest) -> AsyncIterator[ModelGlimpse | Reply]:
            self.asked += 1
            part: Text | CallPart = Text("done")
            if request.depth == 0 and request.answered == 0:
                jobs = [{"task": "one"}, {"task": "two"}]
                part = CallPart(call_id="split", name="spawn_parallel", arguments={"jobs": jobs})
            used = TokenUsage(input_tokens=10, output_tokens=100, total_tokens=110)
            yield Reply(item=AssistantItem(parts=(part,)), usage=used)

    model = Twins()
    ops = Agent("ops", model, allow_parallel_subagents=True, spend_windows=[day("0.5")])
    result = await run_turn(system, RunRequest(ops, "go"))
    # 0.1 is spent and 0.2 held when the second child wants 0.2; with the first one settled it fits, and so on.
    assert (result.stop_reason, model.asked) == ("natural", 4)
    (row,) = await system.store.spending()
    assert (row.spent, row.held) == (nanodollars("0.4"), 0)
    await agrees(system.store, result.turn_id)


async def test_the_same_line_and_resume_all_go_on_once_there_is_money(memory: Memory) -> None:
    store = MemoryStore(memory)
    ops = agent(Paid(rounds=2), SpendWindow("month", "0.25"))
    first = await run(ops, "go", store=store, key="a")
    second = await run(ops, "go", store=store, key="b", thread="queue")
    third = await run(ops, "go on", store=store, key="c", thread="queue")
    assert {each.stop_reason for each in (first, second, third)} == {"cost"}, "what was admitted waits in its order"
    assert {each.stop_reason for each in await resume_all(store, [ops])} == {"cost"}
    await grant(new_engine(store), "agent:ops", 5)
    assert (await run(ops, "go", store=store, key="a")).completed
    rest = await resume_all(store, [ops])
    assert [(each.turn_id, each.completed) for each in rest] == [(second.turn_id, True), (third.turn_id, True)]


async def test_an_agent_inside_a_workflow_spends_from_its_own_window(system: Engine) -> None:
    nodes = [{"id": name, "kind": "agent", "ref": "writer", "inputs": {"input": "go"}} for name in ("one", "two")]
    graph = WorkflowGraph.model_validate({"name": "letters", "nodes": nodes, "edges": []})
    model = Paid()
    writer = agent(model, day("0.25"), name="writer")
    desk = agent(Paid(), name="desk")
    registry = await workflow_registry(system, desk, (writer,))
    outcome = await run_workflow(
        system, registry, graph, RunRequest(desk, "", workflows=WorkflowTerms(agents=(writer,)))
    )
    assert (outcome.run.stop_reason, model.asked) == ("cost", 1)
    assert "the day of agent writer" in outcome.run.message
    await grant(system, "agent:writer", "1")
    done = await resume_turn(system, outcome.run.turn_id, [desk, writer])
    assert (done.completed, model.asked) == (True, 2)
    assert [(row.scope, row.spent) for row in await spending(system)] == [("agent:writer", nanodollars("0.2"))]
    await agrees(system.store, outcome.run.turn_id)
