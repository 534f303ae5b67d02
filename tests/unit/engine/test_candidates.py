"""Candidates: what is recorded when one is given up for the next, what an answer cost, and models without tools."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from wakeful import Agent, Retry, run, tool
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import AssistantItem, CallPart
from wakeful.contracts.events import CostRecorded, ModelCompleted, ModelRequested, RoutingFallbackApplied, TurnFailed
from wakeful.contracts.models import ModelGlimpse, Reply, TokenUsage
from wakeful.ports import ModelRequest
from wakeful.providers.profiles import ModelProfile
from wakeful.service.queries.replay import replay_turn
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted

REFUSED = {"fail": {"kind": "auth_error", "message": "wrong key"}}
BUSY = {"fail": {"kind": "overloaded", "message": "busy", "retry_after": 0.001}}


class Answers:
    """A model that answers at once."""

    def __init__(self, ref: str, usage: TokenUsage | None = None, profile: ModelProfile | None = None) -> None:
        self.ref = ref
        self.usage = usage
        self.seen: list[ModelRequest] = []
        if profile is not None:
            self.profile = profile

    async def respond(self, request: ModelRequest) -> AsyncIterator[ModelGlimpse | Reply]:
        self.seen.append(request)
        yield Reply(item=AssistantItem(parts=(Text("hi"),)), usage=self.usage)


def of_kind(result: Any, kind: type[Any]) -> list[Any]:
    return [entry.fact.event for entry in result.facts() if isinstance(entry.fact.event, kind)]


@pytest.mark.spec("STD-ROUTE-14", "HOL-RETRY-06", "HOL-RETRY-07")
async def test_a_move_to_the_next_candidate_names_the_attempt_that_failed_and_the_chain_is_the_timeline() -> None:
    store = MemoryStore()
    first, second = scripted([BUSY], name="first"), scripted([REFUSED], name="second")
    result = await run(Agent("a", first, fallbacks=[second, Answers("last:m")]), "go", store=store)
    assert result.output == "hi"
    moves = of_kind(result, RoutingFallbackApplied)
    assert [(move.from_model_ref, move.to_model_ref, move.reason, move.attempt) for move in moves] == [
        ("scripted:first", "scripted:second", "overloaded", 3),  # retries exhausted
        ("scripted:second", "last:m", "auth_error", 1),  # failed fast: only that candidate is given up
    ]
    (completed,) = of_kind(result, ModelCompleted)
    tried = list(dict.fromkeys(attempt.model_ref for attempt in completed.timeline.attempts))
    assert [*moves[-1].fallback_chain, "last:m"] == tried
    assert [event.candidate for event in of_kind(result, ModelRequested)] == [0, 0, 0, 1, 2]
    (row,) = await store.turns()
    assert (await replay_turn(store, row)).identical


@pytest.mark.spec("HOL-TIMELINE-05", "HOL-RETRY-08")
async def test_a_round_that_was_lost_keeps_its_timeline_beside_the_error_which_says_that_retries_were_exhausted() -> (
    None
):
    result = await run(Agent("a", scripted([BUSY], name="only")), "go", retry=Retry(patience=0))
    (failed,) = of_kind(result, TurnFailed)
    assert failed.stop_reason == "provider_error" and "retries exhausted" in failed.message
    assert failed.timeline is not None
    assert [(attempt.attempt, attempt.outcome) for attempt in failed.timeline.attempts] == [
        (1, "retrying"),
        (2, "retrying"),
        (3, "retries_exhausted"),
    ]


async def test_an_answer_whose_price_is_known_has_a_cost_and_one_whose_price_is_not_has_none() -> None:
    used = TokenUsage(input_tokens=1_000_000, output_tokens=0, total_tokens=1_000_000)
    known = await run(Agent("a", Answers("anthropic:claude-opus-4-7", used)), "go")
    (cost,) = of_kind(known, CostRecorded)
    assert float(cost.amount) > 0 and known.cost_usd == float(cost.amount)
    for model in (Answers("nobody:model", used), Answers("anthropic:claude-opus-4-7", None)):
        unknown = await run(Agent("a", model), "go")
        assert of_kind(unknown, CostRecorded) == [] and unknown.cost_usd is None


@pytest.mark.spec("LOOP-PROV-03")
async def test_a_model_without_tools_is_offered_none_and_answers_in_one_round() -> None:
    @tool(effect="pure")
    async def look() -> str:
        """Look."""
        return "seen"

    without, with_tools = (
        Answers("x:m", profile=ModelProfile(tools=False)),
        Answers("x:m", profile=ModelProfile(tools=True)),
    )
    results = [await run(Agent("a", model, tools=[look]), "go") for model in (without, with_tools)]
    assert [result.output for result in results] == ["hi", "hi"]
    assert [len(model.seen[0].tools) for model in (without, with_tools)] == [0, 1]
    assert results[0].turn_count == 1


@pytest.mark.spec("LOOP-PROV-02")
async def test_a_model_without_parallel_calls_is_run_by_the_same_loop_and_what_it_calls_all_the_same_is_scheduled() -> (
    None
):
    ran: list[int] = []

    @tool(effect="pure")
    async def look(n: int) -> str:
        """Look."""
        ran.append(n)
        return f"seen {n}"

    def calls(*numbers: int) -> AssistantItem:
        return AssistantItem(parts=tuple(CallPart(call_id=f"c{n}", name="look", arguments={"n": n}) for n in numbers))

    class OneByOne(Answers):
        async def respond(self, request: ModelRequest) -> AsyncIterator[ModelGlimpse | Reply]:
            replies = [calls(1), calls(2), calls(3, 4), AssistantItem(parts=(Text("done"),))]
            yield Reply(item=replies[request.answered])

    model = OneByOne("x:m", profile=ModelProfile(tools=True, parallel_tool_calls=False))
    result = await run(Agent("a", model, tools=[look]), "go")
    assert result.output == "done" and result.turn_count == 4
    assert sorted(ran) == [1, 2, 3, 4]
    assert [call.arguments["n"] for call in result.calls()] == [1, 2, 3, 4]
