"""The guards of a turn: the same call over and over ends it, the same failure over and over is pointed out."""

from collections.abc import Sequence
from typing import Any

import pytest

from kit.runs.engine_runs import calls, check_ends, of_kind
from wakeful import Agent, Budget, RunResult, run, tool
from wakeful.contracts.amounts import InvalidBudget
from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.events import LimitChanged, SubagentFailed
from wakeful.ports import ModelRequest
from wakeful.service.queries.replay import replay_turn
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted


@tool(effect="pure")
def look(at: str = "a") -> str:
    return f"saw {at}"


@tool(effect="pure")
def fail(at: str = "a") -> str:
    raise ValueError(f"no {at}")


async def of_rounds(*rounds: Any, budget: Budget, more: Sequence[Any] = (), **options: Any) -> RunResult[Any]:
    store = MemoryStore()
    steps = [calls(*each) if isinstance(each, list) else each for each in rounds]
    agent = Agent("any", scripted(steps, leftover="ignore"), tools=[look, fail, *more], **options)
    result = await run(agent, "go", store=store, key="k", budget=budget)
    row = await store.turn_of_key("k")
    assert row is not None and (await replay_turn(store, row)).identical
    check_ends(result.facts())
    return result


SAME = [("look", {"at": "a"})]
OTHER = [("look", {"at": "b"})]


async def test_the_same_call_made_again_and_again_ends_the_turn() -> None:
    result = await of_rounds(SAME, SAME, SAME, SAME, "done", budget=Budget(stall_repeats=3))
    assert (result.status, result.stop_reason, result.turn_count) == ("incomplete", "stalled", 3)
    (limit,) = of_kind(result, LimitChanged)
    assert (limit.limit_name, limit.limit, limit.observed) == ("stalled", 3, 3)
    assert "look with the same arguments" in result.message


async def test_calls_of_one_round_count_one_after_the_other() -> None:
    result = await of_rounds([*SAME, *SAME, *SAME], "done", budget=Budget(stall_repeats=3))
    assert (result.stop_reason, result.turn_count) == ("stalled", 1)


@pytest.mark.parametrize(
    ("rounds", "budget"),
    [
        ((SAME, SAME, OTHER, SAME, SAME, "done"), Budget(stall_repeats=3)),
        ((SAME, SAME, "done"), Budget(stall_repeats=3)),
        ((SAME, SAME, SAME, SAME, "done"), Budget()),
    ],
    ids=["another between", "not often enough", "not asked for"],
)
async def test_what_is_no_repeat_goes_on(rounds: Any, budget: Budget) -> None:
    assert (await of_rounds(*rounds, budget=budget)).output == "done"


async def test_a_child_that_goes_round_in_circles_ends_and_its_parent_goes_on() -> None:
    async def answer(request: ModelRequest) -> Any:
        if request.depth:
            return calls(("look", {"at": "a"}))
        return "done" if request.answered else calls(("run_subtask", {"title": "t", "instructions": "i"}))

    store = MemoryStore()
    agent = Agent("any", scripted(answer), tools=[look], subtasks=True)
    result = await run(agent, "go", store=store, key="k", budget=Budget(stall_repeats=2))
    assert result.output == "done"
    (ended,) = of_kind(result, SubagentFailed)
    assert (ended.error, ended.details) == ("budget_exceeded", {"reason": "stalled", "limit": 2, "observed": 2})
    row = await store.turn_of_key("k")
    assert row is not None and (await replay_turn(store, row)).identical


WRONG = [("fail", {"at": "a"})]
NUDGE = "The call of fail failed 2 times in the same way"


def nudges(result: RunResult[Any]) -> list[int]:
    """Where in the conversation the model is told."""
    items = enumerate(result.history())
    return [place for place, item in items if item.role == "user" and item.text.startswith(NUDGE)]


async def test_a_call_that_fails_the_same_way_again_and_again_is_pointed_out_to_the_model() -> None:
    result = await of_rounds(WRONG, WRONG, WRONG, "done", budget=Budget(failure_repeats=2))
    assert result.output == "done"
    assert nudges(result) == [5], "after the second failure, with its result"
    both = await of_rounds(WRONG, [*WRONG, ("look", {})], "done", budget=Budget(failure_repeats=2))
    assert nudges(both) == [6], "after all results of the round"


async def test_other_failures_and_successes_begin_a_new_count() -> None:
    other = [("fail", {"at": "b"})]
    for between in (other, SAME):
        assert nudges(await of_rounds(WRONG, between, WRONG, "done", budget=Budget(failure_repeats=2))) == []
    assert nudges(await of_rounds(WRONG, WRONG, "done", budget=Budget())) == [], "nobody asked for it"


async def test_a_call_that_may_be_repeated_neither_counts_nor_begins_a_new_count() -> None:
    poll = tool(lambda at: "not yet", name="poll", effect="pure", duplicate_policy="repeatable")
    with pytest.raises(InvalidConfig, match="duplicate_policy='often'"):
        tool(duplicate_policy="often")  # type: ignore[call-overload]
    polled = [("poll", {"at": "a"})]
    result = await of_rounds(*[polled] * 4, "done", budget=Budget(stall_repeats=2), more=[poll])
    assert result.output == "done"
    between = await of_rounds(SAME, polled, SAME, "done", budget=Budget(stall_repeats=2), more=[poll])
    assert (between.stop_reason, between.turn_count) == ("stalled", 3)


def test_a_number_of_repeats_is_two_or_more() -> None:
    for name in ("stall_repeats", "failure_repeats"):
        for wrong in (1, 0, True, "3"):
            with pytest.raises(InvalidBudget, match=name):
                Budget(**{name: wrong})  # type: ignore[arg-type]
    assert Budget(stall_repeats=4).limits().stall_repeats == 4
    assert Budget().limits().failure_repeats is None
