"""Budgets of a run: what is one too many is refused before it happens, and the run says which budget it was."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kit.hosts.loop_host import CLIENTS, CLOCK, SEARCH, Host, calling, search
from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.events import LimitChanged, TurnStarted
from wakeful.hosts import ConversationLoop, IterationBudget

PURE = {
    "ability/search": {**SEARCH, "effect": "pure"},
    "ability/clock": {**CLOCK, "effect": "pure"},
}
TIME = {"name": "ability/clock", "parameters": {}}


def error_types(result: Any) -> list[str | None]:
    return [entry["result"]["metadata"].get("error_type") for entry in result.tool_execution_results]


@pytest.mark.spec("API-BUD-03", "API-BUD-02")
async def test_budgets_count_turns_calls_and_calls_of_one_tool_and_the_caller_counts_its_own() -> None:
    pages = IterationBudget("pages", 9)
    budgets = [
        IterationBudget("turns", 9),
        IterationBudget("tool_calls", 9),
        IterationBudget("tool_calls_ability/search", 9),
        IterationBudget("tool_calls_clock", 9),
        IterationBudget("wall_clock_seconds", 900),
        pages,
    ]

    def turn(messages: Any, context: Any) -> dict[str, Any]:
        pages.increment(2)
        return calling(search("a"), search("b"), TIME, {"name": "no/such", "parameters": {}})

    host = Host(turn, calling(search("c")), {"content": "done"})
    result = await host.mediated(budgets=budgets)
    assert result.completed
    counted = {budget.name: budget.current for budget in budgets}
    assert counted.pop("wall_clock_seconds") < 900
    assert counted == {
        "turns": 3,
        "tool_calls": 4,
        "tool_calls_ability/search": 3,
        "tool_calls_clock": 1,
        "pages": 2,
    }, "a call that no executor got is not counted"


@pytest.mark.spec("API-BUD-04")
async def test_a_ceiling_of_n_allows_n_and_refuses_the_one_after_before_it_happens() -> None:
    for tools in ({}, {"tool_declarations": PURE}):  # one after another, and side by side
        exact = Host(calling(search("a"), search("b")), {"content": "done"})
        done = await exact.mediated(budgets=[IterationBudget("tool_calls", 2)], **tools)
        assert (done.completed, done.status, len(exact.calls)) == (True, None, 2)
        more = Host(calling(search("a"), search("b"), search("c")), {"content": "never"})
        cut = await more.mediated(budgets=[IterationBudget("tool_calls", 2)], **tools)
        assert (cut.completed, cut.status, len(more.calls)) == (False, "budget_exceeded", 2)
        assert sorted(call.parameters["q"] for call in more.calls) == ["a", "b"]
    last = Host({"content": "done"})
    finished = await last.mediated(budgets=[IterationBudget("turns", 1)])
    assert (finished.completed, finished.turn_count) == (True, 1)
    over = Host(calling(search()), calling(search()), {"content": "never"})
    stopped = await over.mediated(budgets=[IterationBudget("turns", 2)])
    assert (stopped.status, stopped.turn_count, len(over.seen)) == ("budget_exceeded", 2, 2)


@pytest.mark.spec("API-BUD-05")
async def test_the_refused_call_says_so_its_siblings_are_skipped_and_the_loop_stops() -> None:
    host = Host(calling(search("a"), search("b"), TIME, search("c")), {"content": "never"})
    result = await host.mediated(budgets=[IterationBudget("tool_calls_search", 1)])
    assert error_types(result) == [None, "budget_exceeded", "sibling_skipped", "sibling_skipped"]
    skipped = result.tool_execution_results[2]["result"]
    assert (skipped["success"], skipped["metadata"]["reason"]) == (False, "budget")
    assert [call.parameters.get("q") for call in host.calls] == ["a"]
    assert (result.turn_count, len(host.seen), result.status) == (1, 1, "budget_exceeded")
    kinds = [recorded.fact.event.kind for recorded in await host.log()]
    assert "turn.completed" not in kinds, "a limit is no completion in the log either"
    free = Host(calling(search("a"), search("b"), TIME, search("c")), {"content": "reached"})
    assert error_types(await free.mediated()) == [None] * 4


@pytest.mark.spec("API-BUD-06")
@pytest.mark.parametrize(
    ("budget", "dimension"),
    [("tool_calls", "tool_calls"), ("tool_calls_search", "tool_calls"), ("turns", "turns"), ("pages", "pages")],
)
async def test_a_trip_is_told_once_and_names_the_budget(budget: str, dimension: str) -> None:
    counter = IterationBudget(budget, 2)

    def turn(messages: Any, context: Any) -> dict[str, Any]:
        if budget == "pages":
            counter.increment(3)
        return calling(search("a"), search("b"), search("c"))

    host = Host(turn, turn, turn)
    result = await host.mediated(budgets=[counter])
    (payload,) = host.payloads("budget_exceeded")
    used = 3 if budget == "pages" else 2
    assert payload == {"budget": budget, "dimension": dimension, "current": used, "ceiling": 2}
    assert (result.status, result.budget, result.completed) == ("budget_exceeded", budget, False)
    assert [event.type for event in result.events].count("budget_exceeded") == 1


@pytest.mark.spec("API-BUD-07", "API-LOOP-09")
async def test_a_turn_limit_reports_alike_wherever_it_comes_from_and_is_no_completion() -> None:
    more = {"role": "user", "content": "on"}
    unfinished: list[tuple[list[Any], dict[str, Any]]] = [
        ([calling(search())] * 2, {}),
        ([{"content": "a"}] * 2, {"should_continue": lambda *_: True}),
        ([{"content": "a", "continuation_messages": [more]}] * 2, {}),
    ]
    for turns, options in unfinished:
        reports = []
        for limit in ({"max_turns": 2}, {"budgets": [IterationBudget("turns", 2)], "max_turns": None}):
            host = Host(*turns)
            result = await host.mediated(**options, **limit)
            (payload,) = host.payloads("budget_exceeded")
            assert (result.completed, result.status, result.budget) == (False, "budget_exceeded", "turns")
            assert result.run_outcome.stop_reason == "max_turns"
            reports.append((payload, result.run_outcome, result.turn_count, host.names[-1]))
        assert reports[0] == reports[1]
        assert reports[0][0] == {"budget": "turns", "dimension": "turns", "current": 2, "ceiling": 2}


async def test_of_a_turn_limit_and_a_turns_budget_the_smaller_is_reached() -> None:
    for max_turns, ceiling, expected in ((3, 2, 2), (2, 3, 2)):
        budget = IterationBudget("turns", ceiling)
        host = Host(*[calling(search())] * 4)
        result = await host.mediated(max_turns=max_turns, budgets=[budget])
        assert (result.turn_count, budget.current, result.budget) == (expected, expected, "turns")
        assert host.payloads("budget_exceeded")[0]["ceiling"] == 2


@pytest.mark.parametrize("name", ["turns", "wall_clock_seconds", "pages"])
async def test_a_budget_that_is_used_up_allows_no_turn(name: str) -> None:
    host = Host({"content": "never"})
    result = await host.run(budgets=[IterationBudget(name, 2, current=3)])
    assert (result.status, result.budget, result.turn_count, host.seen) == ("budget_exceeded", name, 0, [])
    assert host.names == ["budget_exceeded", "completed"]


class Slow(Host):
    """Its tool would take for ever, and hears when nobody waits any more."""

    stopped = False

    async def execute(self, call: Any, declaration: Any, context: dict[str, Any]) -> Any:
        self.call_contexts.append(context)
        try:
            await asyncio.Event().wait()
        finally:
            self.stopped = True


@pytest.mark.spec("API-BUD-08", "API-CORE-10")
async def test_the_wall_clock_is_looked_at_before_a_turn_and_bounds_a_call_that_runs() -> None:
    for seconds in (1, 5, 25):
        slow = Slow(calling(search()), {"content": "never"})
        began = datetime.now(UTC)
        result = await slow.mediated(budgets=[IterationBudget("wall_clock_seconds", seconds)])
        if slow.stopped:
            break  # else the time was over before the call began, on a machine that is too busy
    assert (slow.stopped, len(slow.seen)) == (True, 1), "the call was not waited for"
    assert (result.status, result.budget) == ("budget_exceeded", "wall_clock_seconds")
    (payload,) = slow.payloads("budget_exceeded")
    assert (payload["budget"], payload["dimension"], payload["ceiling"]) == (
        "wall_clock_seconds",
        "wall_clock",
        seconds,
    )
    (context,) = slow.call_contexts
    assert context["cancelled"].is_set()
    assert timedelta(0) < context["deadline"] - began < timedelta(seconds=60 + seconds)
    free = Host(calling(search()), {"content": "done"})
    await free.mediated()
    assert "deadline" not in free.call_contexts[0]

    async def late(messages: Any, context: Any) -> dict[str, Any]:
        free.seen.append(messages)
        await asyncio.sleep(1.1)
        return {"content": "late"}

    free.seen.clear()
    options = {"max_turns": 3, "should_continue": lambda *_: True, "on_event": free.on_event}
    clock = IterationBudget("wall_clock_seconds", 1)
    asked = [{"role": "user", "content": "x"}]
    stopped = await ConversationLoop().run(asked, late, {**options, "budgets": [clock]})
    assert (len(free.seen), stopped.budget, clock.remaining()) == (1, "wall_clock_seconds", 0)


@pytest.mark.spec("API-BUD-09")
async def test_two_budgets_of_one_name_are_an_error() -> None:
    host = Host({"content": "never"})
    with pytest.raises(InvalidValue, match="there are two budgets 'turns'"):
        await host.run(budgets=[IterationBudget("turns", 1), {"name": "turns", "ceiling": 2}])
    assert not host.seen


async def test_a_call_that_a_mediator_turns_down_uses_nothing() -> None:
    host = Host(calling(search("a"), search("b"), search("c")), {"content": "done"})
    budget = IterationBudget("tool_calls", 1)

    async def mediator(context: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(0)
        answers: dict[str, dict[str, Any]] = {
            "a": {"action": "reject", "error": "no"},
            "b": {"action": "replace_result", "result": {"result": 1}},
        }
        return answers.get(context["parameters"]["q"], {"action": "proceed"})

    result = await host.mediated(budgets=[budget], pre_tool_mediator=mediator, tool_declarations=PURE)
    assert [call.parameters["q"] for call in host.calls] == ["c"], error_types(result)
    assert (budget.current, result.completed) == (1, True)


async def test_the_budget_of_the_turn_holds_the_calls_and_its_limit_is_in_the_log() -> None:
    """The inversion: without the host's budget among the turn's limits, all calls run."""
    host = Host(calling(search("a"), search("b")), {"content": "done"})
    await host.mediated(budgets=[IterationBudget("tool_calls", 9, current=8), IterationBudget("tool_calls_clock", 3)])
    facts = [recorded.fact.event for recorded in await host.log()]
    (started,) = (event for event in facts if isinstance(event, TurnStarted))
    assert (started.limits.tool_calls, started.limits.per_tool) == (1, {"clock": 3})
    (limited,) = (event for event in facts if isinstance(event, LimitChanged))
    assert (limited.limit_name, limited.limit, limited.observed) == ("tool_calls", 1, 2)
    assert len(host.calls) == 1
    free = Host(calling(search("a"), search("b")), {"content": "done"})
    await free.mediated(budgets=[IterationBudget("turns", 9)])
    assert len(free.calls) == 2


async def test_a_call_too_many_stops_the_run_also_when_another_waits_for_a_client() -> None:
    pick = {"name": "client/pick", "description": "Lets the person pick.", "parameters": {"type": "object"}}
    tools = {"client/pick": pick, "ability/search": SEARCH}
    host = Host(calling({"name": "client/pick", "parameters": {}}, search("a")))
    result = await host.mediated(tool_declarations=tools, context=CLIENTS, budgets=[IterationBudget("tool_calls", 1)])
    assert (result.status, result.runtime_tool_pending, host.calls) == ("budget_exceeded", None, [])
    assert error_types(result) == ["cancelled", "budget_exceeded"]


async def test_a_budget_of_calls_that_others_use_up_too_stops_the_run_after_the_turn() -> None:
    shared = IterationBudget("tool_calls", 5)

    def turn(messages: Any, context: Any) -> dict[str, Any]:
        shared.increment(5)  # another run of this host
        return calling(search("a"))

    host = Host(turn, {"content": "never"})
    result = await host.mediated(budgets=[shared])
    assert (result.status, result.budget, len(host.seen)) == ("budget_exceeded", "tool_calls", 1)
