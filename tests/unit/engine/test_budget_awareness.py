"""What a model is told about how full its context is, and where a limit on that stops a run."""

from itertools import pairwise
from typing import Any

import pytest

from kit.runs.long_runs import WINDOW, Asked, Item, events_of, look, looking
from wakeful import Agent, CompactionPolicy, run
from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import AssistantItem, ToolItem, UserItem
from wakeful.contracts.errors import ContextWindowUnknown, InvalidConfig
from wakeful.contracts.events import (
    CompactionCompleted,
    CompactionFailed,
    CompactionStarted,
    LimitChanged,
    ModelCompleted,
    ModelRequested,
)
from wakeful.decisions.compaction import advisory, due
from wakeful.decisions.context import advised
from wakeful.decisions.level_conversation import LevelConversation, NextRequest
from wakeful.decisions.levels import Level
from wakeful.ports import ModelRequest, Store
from wakeful.service.queries.replay import replay_turn

OFF = CompactionPolicy(enabled=False)


def aware(asked: Asked, awareness: str | None, answer: Any = None, **options: Any) -> Agent[Any, str]:
    model = asked.model(answer or looking(3), window=options.pop("window", WINDOW), usage=options.pop("usage", None))
    return Agent("clerk", model, "Serve.", tools=[look], budget_awareness=awareness, **options)


def long_looks(rounds: int) -> Any:
    """Each round is longer than anything that could be kept beside it."""

    def answer(request: ModelRequest) -> Any:
        if request.answered < rounds:
            return {"calls": [{"name": "look", "arguments": {"x": "q" * 9_000}}]}
        return "the end"

    return answer


async def identical(store: Store, turn_id: str) -> bool:
    row = await store.turn(turn_id)
    assert row is not None
    report = await replay_turn(store, row)
    assert report.identical, report.divergence
    return True


@pytest.mark.spec("CTL-BUDG-01")
def test_there_are_two_modes() -> None:
    for right in (None, "per-message", *(f"limit:{n}" for n in range(101))):
        assert aware(Asked(), right).budget_awareness == right
    wrong = (
        "",
        "on",
        "per_message",
        "Per-Message",
        "limit",
        "limit:",
        "limit:101",
        "limit:-1",
        "limit:5.0",
        "limit:05",
    )
    for mode in (*wrong, " limit:5", "limit:5 ", "limit:\u0665", True, 5):
        with pytest.raises(InvalidConfig, match="budget_awareness"):
            aware(Asked(), mode)  # type: ignore[arg-type]


@pytest.mark.spec("CTL-BUDG-02")
async def test_none_switches_it_off(store: Store) -> None:
    asked = Asked()
    result = await run(aware(asked, None, looking(12), compaction=OFF), "go", store=store)
    assert (result.status, len(asked), asked.summaries) == ("completed", 13, [])
    assert len(asked[-1].text) > WINDOW * 3, "the window was passed, as far as anybody can tell"
    assert all("[context:" not in seen.text for seen in asked)
    assert events_of(result, LimitChanged, CompactionStarted) == []


# --- per-message -----------------------------------------------------------------------------------------------------


def told(item: Item) -> list[str]:
    return [part.text for part in item.parts if isinstance(part, Text) and part.text.startswith("[context:")]


@pytest.mark.spec("CTL-BUDG-03", "CTL-BUDG-09")
async def test_each_reply_and_result_that_is_shown_again_comes_with_an_advisory(store: Store) -> None:
    asked = Asked()
    agent = aware(asked, "per-message", looking(3), window=100_000)
    result = await run(agent, "go", store=store, thread="t")
    stored = result.history()
    for number, seen in enumerate(asked):
        shown = [item for item in seen.items if isinstance(item, AssistantItem | ToolItem)]
        notes = [note for item in seen.items for note in told(item)]
        assert len(shown) == 2 * number and len(notes) == len(shown), "one for each"
        assert [item for item in seen.items if isinstance(item, AssistantItem)] == [
            item for item in stored if isinstance(item, AssistantItem)
        ][:number], "a reply goes back word for word; what is said about it stands after it"
    assert all(told(item) == [] for item in stored), "what is stored is as it was"
    assert "[context:" not in result.final_content
    for before, after in pairwise(asked):
        assert after.items[: len(before.items)] == before.items, "worked out once, and never rewritten"

    later = Asked()
    await run(aware(later, "per-message", looking(0), window=100_000), "more", store=store, thread="t")
    assert later[0].items[: len(asked[-1].items)] == asked[-1].items, "not by the next turn either"
    last = later[0].items[len(asked[-1].items) :]
    assert [item.role for item in last] == ["assistant", "user", "user"]
    assert isinstance(last[1], UserItem) and last[1].origin == "runtime" and len(told(last[1])) == 1
    assert await identical(store, result.turn_id)


def test_without_the_rule_a_reply_would_not_go_back_as_it_came() -> None:
    """The inversion: an advisory inside the reply makes it another one."""
    reply = AssistantItem(parts=(Text("said"),), provider="p")
    shown = advised([reply], 0, {0: 10}, 100)
    assert shown[0] == reply
    assert reply.model_copy(update={"parts": (*reply.parts, Text(advisory(10, 100)))}) != reply


@pytest.mark.spec("CTL-BUDG-07", "CTL-BUDG-08")
async def test_advisory_and_limit_count_with_the_same_numbers(store: Store) -> None:
    def answer(request: ModelRequest) -> Any:
        used = {"input_tokens": 1_000 * (request.answered + 1), "output_tokens": 7}
        return {**looking(2)(request), "usage": used} if request.answered < 2 else "the end"

    asked = Asked()
    await run(aware(asked, "per-message", answer), "go", store=store)
    first = [note for item in asked[1].items for note in told(item)]
    assert first[0] == "[context: 1007 of 4000 tokens, 25% used]"
    assert advisory(1, 3) == "[context: 1 of 3 tokens, 33% used]", "rounded down"
    result_tokens = int(first[1].split()[1])
    assert first[1] == f"[context: {result_tokens} of 4000 tokens, {result_tokens * 100 // 4000}% used]"

    limited = Asked()
    at = result_tokens * 100 // WINDOW
    stopped = await run(aware(limited, f"limit:{at}", answer), "go", store=store)
    begun = events_of(stopped, CompactionStarted)
    assert begun == [] or begun[0].tokens_before == result_tokens
    (limit,) = events_of(stopped, LimitChanged)
    assert limit.what.startswith(f"Context budget limit reached: {result_tokens} of 4000 tokens")


# --- a limit ---------------------------------------------------------------------------------------------------------


@pytest.mark.spec("CTL-BUDG-04", "CTL-BUDG-12")
async def test_a_limit_forces_one_compaction_before_the_next_call(store: Store) -> None:
    asked = Asked()
    result = await run(aware(asked, "limit:50", looking(10), compaction=OFF), "go", store=store)
    assert result.status == "completed"
    begun = events_of(result, CompactionStarted)
    ended = events_of(result, CompactionCompleted, CompactionFailed)
    assert len(begun) >= 2 and [event.trigger for event in begun] == ["context_budget"] * len(begun)
    assert [event.compaction_id for event in ended] == [event.compaction_id for event in begun]
    assert all(event.tokens_before * 100 > 50 * WINDOW for event in begun)
    passes = []
    for entry in result.facts():
        if isinstance(entry.fact.event, CompactionStarted):
            passes.append(entry.fact.event)
        elif isinstance(entry.fact.event, ModelRequested) and entry.fact.level is None:
            assert len(passes) <= 1, "one pass for each call"
            passes.clear()
    for seen in asked.of(None):
        assert len(seen.text) <= 50 * WINDOW * 3 // 100, "no request was longer than the limit"
    assert await identical(store, result.turn_id)


@pytest.mark.parametrize("percent", [20, 30, 60, 80])
async def test_what_stays_is_measured_by_the_limit_and_not_by_the_window(store: Store, percent: int) -> None:
    asked = Asked()
    result = await run(aware(asked, f"limit:{percent}", looking(12)), "go", store=store)
    assert result.status == "completed", result.final_content
    begun = events_of(result, CompactionStarted)
    rounds = len(asked.of(None))
    assert begun and (percent < 60 or len(begun) < rounds / 2), "one compaction leaves room for several rounds"


@pytest.mark.spec("CTL-BUDG-05", "CTL-BUDG-06", "CTL-BUDG-11")
async def test_where_compaction_does_not_help_the_run_ends_with_a_result(store: Store) -> None:
    asked = Asked()
    result = await run(aware(asked, "limit:50", long_looks(9)), "go", store=store)
    again = await run(aware(Asked(), "limit:50", long_looks(9)), "go", store=store)
    (limit,) = events_of(result, LimitChanged)
    used = int(limit.what.split()[4])
    words = (
        f"Context budget limit reached: {used} of {WINDOW} tokens ({used * 100 // WINDOW}%), limit 50%. "
        "No further model call was made."
    )
    assert (result.final_content, again.final_content) == (words, words), "the same each time"
    assert (result.status, result.completed, result.stop_reason) == ("incomplete", False, "context_budget")
    end = next(place for place, entry in enumerate(result.facts()) if isinstance(entry.fact.event, LimitChanged))
    assert not any(isinstance(entry.fact.event, ModelRequested) for entry in list(result.facts())[end:])
    assert len(asked.of(None)) == 1
    assert await identical(store, result.turn_id)
    unlimited = await run(aware(Asked(), None, long_looks(1), compaction=OFF), "go", store=store)
    assert unlimited.status == "completed", "the inversion: without the limit it goes on"


@pytest.mark.spec("CTL-BUDG-10")
async def test_exceeding_is_strictly_more_and_is_looked_at_before_every_call(store: Store) -> None:
    asked = Asked()
    none = await run(aware(asked, "limit:0"), "go", store=store)
    assert (asked, none.stop_reason, none.model_calls) == ([], "context_budget", 0)
    full = Asked()
    whole = await run(aware(full, "limit:100", looking(12)), "go", store=store)
    assert whole.status == "completed" and full.summaries
    assert all(event.tokens_before > WINDOW for event in events_of(whole, CompactionStarted))
    by_share = await run(aware(Asked(), None, looking(12)), "go", store=store)
    assert all(event.tokens_before < WINDOW for event in events_of(by_share, CompactionStarted)), "80 % without a limit"
    assert max(len(seen.text) for seen in full.of(None)) > WINDOW * 3 * 80 // 100, "not before the window is full"

    def level(used: int, percent: int) -> Level:
        config = TurnConfig(
            agent_name="a", model_ref="m", budget_awareness=f"limit:{percent}", context_window=1_000, compaction=OFF
        )
        conversation = LevelConversation([UserItem(parts=(Text("x"),))])
        return Level(config=config, conversation=conversation, next_request=NextRequest(known_tokens=used, known_at=1))

    for percent in (1, 50, 100):
        assert due(level(10 * percent, percent), None) is None
        found = due(level(10 * percent + 1, percent), None)
        assert found is not None and found.trigger == "context_budget"


@pytest.mark.spec("CTL-BUDG-13")
@pytest.mark.parametrize("said", ["limit:50", "per-message"])
async def test_awareness_without_a_window_is_refused_before_anything_is_asked(store: Store, said: str) -> None:
    asked = Asked()
    with pytest.raises(ContextWindowUnknown, match="scripted:inline") as refused:
        await run(aware(asked, said, window=None), "go", store=store)
    assert refused.value.code == "context_window_unknown"
    assert asked == [] and await store.turns() == []


async def test_a_planner_and_children_are_held_to_the_same_limit(store: Store) -> None:
    asked = Asked()
    result = await run(aware(asked, "limit:0", planning_enabled=True), "go", store=store)
    assert (asked, result.stop_reason) == ([], "context_budget")
    assert events_of(result, ModelCompleted) == []
