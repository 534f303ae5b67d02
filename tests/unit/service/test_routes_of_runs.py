"""Which model a run asks, on record: what was asked for, who could answer, who does, and why."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from wakeful import Agent, Budget, Image, Text, run, tool
from wakeful.contracts.content import Text as Words
from wakeful.contracts.conversation import AssistantItem
from wakeful.contracts.events import RoutingCandidatesResolved, RoutingDecided, RoutingFallbackApplied
from wakeful.contracts.models import ModelGlimpse, Reply
from wakeful.ports import ModelRequest
from wakeful.providers.profiles import ModelProfile
from wakeful.testing import scripted

PIXEL = b"\x89PNG\r\n\x1a\n"
SEES = ModelProfile(tools=True, images=True)
BLIND = ModelProfile(tools=True, images=False)


class Answers:
    """A model that answers at once, of which is known what it can do."""

    def __init__(self, ref: str, profile: ModelProfile) -> None:
        self.ref = ref
        self.profile = profile

    async def respond(self, request: ModelRequest) -> AsyncIterator[ModelGlimpse | Reply]:
        yield Reply(item=AssistantItem(parts=(Words("hi"),)))


@tool(effect="pure")
def look() -> str:
    """Looks."""
    return "seen"


def of_kind(result: Any, kind: type[Any]) -> list[Any]:
    return [each.fact.event for each in result.facts() if isinstance(each.fact.event, kind)]


@pytest.mark.spec("STD-ROUTE-02", "STD-ROUTE-03", "STD-ROUTE-04", "STD-ROUTE-05")
async def test_a_route_says_what_was_asked_for_what_is_needed_who_can_be_asked_and_who_is() -> None:
    chain = [Answers("two:b", BLIND), Answers("three:c", SEES)]
    agent = Agent("a", Answers("one:a", SEES), tools=[look], fallbacks=chain)
    result = await run(agent, [Text("What is this?"), Image(data=PIXEL, media_type="image/png")])
    (resolved,), (decided,) = of_kind(result, RoutingCandidatesResolved), of_kind(result, RoutingDecided)
    for event in (resolved, decided):
        assert (event.requested_provider, event.requested_model) == ("one", "a")
        assert event.required_capabilities == ("vision",)
    assert [each.model_ref for each in resolved.candidates] == ["one:a", "three:c"]
    assert [(each.model_ref, each.reason) for each in resolved.excluded] == [("two:b", "capability_gap")]
    assert (decided.selected_model_ref, decided.candidate_count) == ("one:a", 2)


@pytest.mark.spec("STD-ROUTE-06", "STD-ROUTE-07", "STD-ROUTE-08")
async def test_a_decision_has_its_chain_its_limits_and_its_reason() -> None:
    busy = scripted([{"fail": {"kind": "auth_error", "message": "wrong key"}}], name="first")
    agent = Agent("a", busy, fallbacks=[scripted(["hi"], name="second")])
    result = await run(agent, "go", budget=Budget(usd=2.5))
    (decided,) = of_kind(result, RoutingDecided)
    assert decided.fallback_chain == ("scripted:second",)
    assert decided.limit_state.budget_limit == "2.5" and decided.limit_state.budget_spent is not None
    assert decided.decision_reason == "it is the model that was asked for"
    (moved,) = of_kind(result, RoutingFallbackApplied)
    assert (moved.from_model_ref, moved.to_model_ref, moved.reason) == (
        "scripted:first",
        "scripted:second",
        "auth_error",
    )


@pytest.mark.spec("STD-ROUTE-16")
async def test_no_model_that_lacks_what_is_needed_is_asked_in_silence() -> None:
    blind = Answers("two:b", BLIND)
    picture = [Text("What is this?"), Image(data=PIXEL, media_type="image/png")]
    alone = await run(Agent("a", blind), picture)
    assert (alone.status, alone.stop_reason) == ("failed", "routing_not_possible")
    seen = await run(Agent("a", blind, fallbacks=[Answers("one:a", SEES)]), picture)
    (decided,) = of_kind(seen, RoutingDecided)
    assert (decided.selected_model_ref, decided.capability_gap, decided.requires_user_override) == ("one:a", (), False)
