"""Thousands of random trees under random budgets, decided without an engine.

Whatever models say and in whatever order things come to an end: no dimension of the budget is ever exceeded, the tree
ends once and says why, the ledger is what its facts add up to, and deciding again from the log gives the same. The same
holds for a tree that was cut off somewhere, folded anew and gone on with.
"""

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from kit.runs.tree_simulation import Simulation
from kit.runs.trees import Node, ProcessEnd, check_tree, nodes
from wakeful.contracts.budgets import Limits
from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.events import (
    LimitChanged,
    ModelRequested,
    SubagentCompleted,
    SubagentFailed,
    SubagentStarted,
    Terminal,
    TurnInterruptRequested,
)
from wakeful.decisions.step import AskModel, EndLevel, Step
from wakeful.decisions.turn import decide
from wakeful.store.memory import MemoryStore

TREES = int(os.environ.get("WAKEFUL_SIMULATED_TREES", "400"))
"""How many are grown; the whole check grows 2,000, `make trees` 10,000."""
SHARES = 2
"""Into how many tests they are divided: two workers of pytest grow them side by side."""
ENDINGS: tuple[ProcessEnd, ...] = ("text", "text", "text", "unavailable", "no_key", "refused", "never")


def some(*values: object) -> st.SearchStrategy[object]:
    return st.none() | st.sampled_from(values)


limits = st.builds(
    Limits,
    model_calls=some(1, 2, 3, 5, 8, 13),
    tool_calls=some(0, 1, 2, 5, 9),
    subtasks=some(0, 1, 3, 6),
    depth=st.integers(0, 3),
    width=st.integers(1, 8),
    max_steps=st.integers(1, 5),
    seconds=some(3.0, 20.0),
    tokens=some(900, 3_000, 9_000),
    output_tokens=some(50, 150),
    usd=some("0", "0.002", "0.01"),
    unpriced_token_ceiling=some(900, 4_000),
    per_tool=st.sampled_from([{}, {"look": 1}, {"run_subtask": 1, "pay": 2}]),
    result_bytes=st.just(50_000),
    final_answer_reserve=st.booleans(),
    schema_retries=st.integers(0, 3),
)
trees = nodes(3, endings=ENDINGS)


def grow(count: int, share: int, check: Callable[..., None], *parts: st.SearchStrategy[Any]) -> None:
    """Check a share of so many drawn trees."""
    held = settings(max_examples=max(1, count // SHARES), deadline=None, suppress_health_check=list(HealthCheck))
    checked = held(given(*parts)(check))
    if settings().derandomize:  # as in CI: without a seed of its own each share would draw the same trees
        checked = seed(share)(checked)
    checked()


@pytest.mark.parametrize("share", range(SHARES))
def test_no_tree_exceeds_its_budget_and_every_one_ends_once(share: int) -> None:
    def check(root: Node, held_to: Limits, luck: Random, priced: bool, planned: bool, cut: bool) -> None:
        asyncio.run(play(root, held_to, luck, priced, planned, cut))

    async def play(root: Node, held_to: Limits, luck: Random, priced: bool, planned: bool, cut: bool) -> None:
        played = Simulation(root, held_to, luck, priced=priced, planned=planned)
        played.play()
        check_tree(played.facts, played.state, held_to)
        assert played.replayed() is None
        if cut:
            played.cut_off(luck.choice(played.commits[:-1]))
            played.play()
            check_tree(played.facts, played.state, held_to)
            assert played.replayed() is None

    luck, flag = st.randoms(use_true_random=False), st.booleans()
    grow(TREES, share, check, trees, limits, luck, flag, flag, flag)


@pytest.mark.parametrize("share", range(SHARES))
def test_a_tree_that_somebody_stops_is_over_at_every_depth(share: int) -> None:
    def check(root: Node, after: int, luck: Random, cut: bool) -> None:
        asyncio.run(play(root, after, luck, cut))

    async def play(root: Node, after: int, luck: Random, cut: bool) -> None:
        free = Limits(depth=3, width=4, max_steps=8, result_bytes=50_000, subtasks=50)
        played = Simulation(root, free, luck)
        played.play(stop_after=after)
        if cut:
            played.cut_off(luck.choice(played.commits[:-1]))
            played.play()
        check_tree(played.facts, played.state, free)
        assert played.replayed() is None
        asked = [entry.fact.event for entry in played.facts if isinstance(entry.fact.event, TurnInterruptRequested)]
        end = played.facts[-1].fact.event
        assert isinstance(end, Terminal)
        if asked:  # a limit, or a key that fits nowhere, may have stopped it before
            assert end.status != "completed"

    grow(TREES // 4, share, check, trees, st.integers(0, 20), st.randoms(use_true_random=False), st.booleans())


@pytest.mark.parametrize("share", range(SHARES))
def test_time_that_passes_inside_a_commit_changes_no_decision(share: int) -> None:
    """The facts of one step do not have one time, and the turn's seconds may run out between two of them."""

    def check(root: Node, held_to: Limits, luck: Random, priced: bool, tick: int) -> None:
        asyncio.run(play(root, held_to, luck, priced, tick))

    async def play(root: Node, held_to: Limits, luck: Random, priced: bool, tick: int) -> None:
        played = Simulation(root, held_to, luck, priced=priced, tick=tick)
        played.play()
        check_tree(played.facts, played.state, held_to)
        assert played.replayed() is None

    luck, ticks = st.randoms(use_true_random=False), st.sampled_from([7, 900, 60_000, 400_000])
    grow(TREES // 2, share, check, trees, limits, luck, st.booleans(), ticks)


async def test_a_turn_whose_seconds_run_out_between_an_estimate_and_its_request_comes_out_the_same() -> None:
    root = Node([[("many", [Node(), Node()]), ("look",)]])
    for half_ms in range(1, 80):
        held_to = Limits(seconds=half_ms / 2_000, width=8, depth=1, usd="0.01", result_bytes=50_000)
        played = Simulation(root, held_to, Random(half_ms), tick=500)
        played.play()
        assert played.replayed() is None


TWO_CHILDREN = Node([[("run", Node()), ("run", Node())]])
ONE_FOR_CHILDREN = Limits(
    model_calls=3, width=2, depth=1, max_steps=2, usd="0.002", result_bytes=50_000, final_answer_reserve=True
)
"""One request for the root, one for its final answer, and one for a child; there is not even money for that one."""


def ends_of_children(played: Simulation) -> dict[str, str]:
    events = [entry.fact.event for entry in played.facts]
    failed = {each.level_id: each.details["reason"] for each in events if isinstance(each, SubagentFailed)}
    return failed | {each.level_id: "" for each in events if isinstance(each, SubagentCompleted)}


async def test_a_child_does_not_end_for_a_request_that_another_one_could_not_afford() -> None:
    for luck in range(20):
        played = Simulation(TWO_CHILDREN, ONE_FOR_CHILDREN, Random(luck))
        played.play()
        check_tree(played.facts, played.state, ONE_FOR_CHILDREN)
        assert played.replayed() is None
        assert set(ends_of_children(played).values()) <= {"cost"}


async def test_a_child_makes_the_request_that_the_model_of_another_one_turned_down() -> None:
    limits = ONE_FOR_CHILDREN.model_copy(update={"usd": None})
    played = Simulation(TWO_CHILDREN, limits, Random(3))
    turned_down = iter([None, ModelFailure("not this one", kind="unsupported_transport", stage="connect")])
    played.agent.model.refusal = lambda settings: next(turned_down, None)
    played.work.place.store = MemoryStore()
    played.play()
    check_tree(played.facts, played.state, limits)
    assert played.replayed() is None
    ends = [entry.fact.event for entry in played.facts if isinstance(entry.fact.event, SubagentFailed)]
    assert [(each.level_id, each.error) for each in ends] == [("c1", "subtask_failed")]
    assert any(isinstance(entry.fact.event, SubagentCompleted) for entry in played.facts)


class EagerEnds(Simulation):
    """Decides as logs of before were: a child ends at once when others are about to make the last requests."""

    def next_steps(self) -> list[Step]:
        steps, limits = decide(self.state), self.state.limits
        asking = [each.level for each in steps if isinstance(each, AskModel) and each.level is not None]
        left = (limits.model_calls or 0) - self.state.ledger.model_calls - len(asking)
        waiting = [level for level in self.state.tree.levels.values() if level.phase == "ready"]
        if not asking or left > 1 or self.state.stop is not None:
            return steps
        details = (("reason", "llm_calls"), ("limit", limits.model_calls), ("observed", 2))
        late = [level.id for level in waiting if level.id not in asking and level.stop_error is None]
        return [*steps, *(EndLevel(each or "", "budget_exceeded", "kept", details) for each in late)]


@pytest.mark.parametrize("usd", ["0.002", "0.004", "0.01"])
async def test_a_log_in_which_children_ended_at_once_comes_out_the_same(usd: str) -> None:
    many = Node([[("many", [Node(), Node([[("look",)]]), Node()]), ("run", Node())]])
    eager = 0
    for root in (TWO_CHILDREN, many):
        for calls in (3, 4, 5):
            limits = ONE_FOR_CHILDREN.model_copy(update={"usd": usd, "model_calls": calls, "width": 8})
            for luck in range(10):
                played = EagerEnds(root, limits, Random(luck))
                played.play()
                assert played.replayed() is None
                eager += "llm_calls" in ends_of_children(played).values()
    assert eager


async def test_a_child_that_ended_for_want_of_requests_there_were_does_not_come_out_the_same() -> None:
    limits = ONE_FOR_CHILDREN.model_copy(update={"usd": None})
    played = Simulation(TWO_CHILDREN, limits, Random(3))
    played.play()
    assert ends_of_children(played) == {"c1": "", "c2": "llm_calls"}
    assert played.replayed() is None
    started = next(entry for entry in played.facts if entry.fact.event.kind == "turn.started")
    more = limits.model_copy(update={"model_calls": 4})
    event = started.fact.event.model_copy(update={"limits": more})
    played.facts[1] = started._replace(fact=replace(started.fact, event=event))
    assert played.replayed() is not None


def drawn(share: int) -> list[int]:
    seen: list[int] = []

    def check(number: int) -> None:
        seen.append(number)

    grow(60, share, check, st.integers())
    return seen


@pytest.mark.parametrize("derandomize", [False, True])
def test_each_share_draws_trees_of_its_own(derandomize: bool) -> None:
    before = settings.get_current_profile_name()
    settings.register_profile("drawing", settings(), derandomize=derandomize, database=None)
    settings.load_profile("drawing")
    try:
        first, second = drawn(0), drawn(1)
    finally:
        settings.load_profile(before)
    assert len(first) == len(second) == 60 // SHARES
    assert first != second


@pytest.mark.parametrize("limit", ["model_calls", "tool_calls", "subtasks", "tokens", "usd", "width", "depth"])
async def test_without_a_limit_the_same_check_finds_it_exceeded(limit: str) -> None:
    """The inversion: a tree that is not held to what it is checked against."""
    below = Node([[("run", Node([[("look",), ("look",)]]))]])
    root = Node([[("run", below), ("run", below), ("look",)]])
    least = {"model_calls": 2, "tool_calls": 1, "subtasks": 1, "tokens": 100, "usd": "0.0001", "width": 1, "depth": 1}
    free = Limits(depth=3, width=8, result_bytes=50_000)
    played = Simulation(root, free, Random(1))
    played.play()
    check_tree(played.facts, played.state, free)
    with pytest.raises(AssertionError):
        check_tree(played.facts, played.state, free.model_copy(update={limit: least[limit]}))


@pytest.mark.parametrize(
    ("kind", "changed"),
    [
        (SubagentStarted, {"depth": 2}),
        (SubagentStarted, {"level_id": "elsewhere"}),
        (SubagentStarted, {"index": 1}),
        (SubagentStarted, {"tools": ("look",)}),
        (SubagentFailed, {"steps": 9}),
        (SubagentFailed, {"error": "cancelled"}),
        (ModelRequested, {"items": 7}),
        (LimitChanged, {"limit": 3}),
        (LimitChanged, {"observed": 1}),
    ],
)
async def test_a_tree_whose_log_was_changed_does_not_come_out_the_same(
    kind: type[Any], changed: dict[str, Any]
) -> None:
    """The inversion of the replay: a child that nobody asked for, a round too many, a limit that was none."""
    child = Node([[("look",)]])
    root = Node([[("run", child), ("run", child), ("run", child)]])
    played = Simulation(root, Limits(depth=3, width=8, subtasks=2, result_bytes=50_000), Random(4))
    played.play()
    assert played.replayed() is None
    place = max(place for place, entry in enumerate(played.facts) if isinstance(entry.fact.event, kind))
    entry = played.facts[place]
    event = entry.fact.event.model_copy(update=changed)
    played.facts[place] = entry._replace(fact=replace(entry.fact, event=event))
    assert played.replayed() is not None
