"""What is known of a turn's facts while it runs: few are kept, many are read again, and what is asked is noted."""

from dataclasses import replace
from pathlib import Path

import pytest

from kit.runs.engine_runs import calls
from kit.runs.event_samples import ONE_OF_EACH
from kit.runs.store_facts import AGENT, NOON, TURN, requested
from wakeful import Agent, Budget, run, tool
from wakeful.contracts.envelope import Fact, StoredFact, event_id
from wakeful.contracts.events import (
    AnyEvent,
    PermissionEvaluated,
    SandboxApplied,
    ToolFailed,
    ToolResult,
    TurnResumed,
)
from wakeful.engine.turn_facts import KEPT, CallRefs, KnownFacts, run_apart
from wakeful.providers.scripted import ScriptedModel


def sample(kind: type[AnyEvent], call_id: str | None = "call_1") -> Fact:
    event = next(each for each in ONE_OF_EACH if type(each) is kind)
    return Fact(event, NOON, "main", TURN, 1, call_id)


def numbered(*facts: Fact) -> list[StoredFact]:
    return [StoredFact(AGENT, seq, fact) for seq, fact in enumerate(facts, 1)]


async def unread() -> list[StoredFact]:
    raise AssertionError("nothing has to be read")


@pytest.mark.parametrize("outcome", [ToolResult, ToolFailed])
async def test_what_let_a_call_through_is_known_until_it_has_an_outcome(outcome: type[AnyEvent]) -> None:
    other = replace(sample(PermissionEvaluated), call_id="call_2")
    known = KnownFacts(AGENT, numbered(sample(PermissionEvaluated), other), unread, [])
    known.add_own([sample(PermissionEvaluated), sample(SandboxApplied)], 3)
    assert known.refs_of("call_1") == CallRefs(event_id(AGENT, 3), event_id(AGENT, 4)), "the newest verdict counts"
    assert known.refs_of("call_2") == CallRefs(event_id(AGENT, 2), None)
    known.add_own([sample(outcome)], 5)
    assert known.refs_of("call_1") == CallRefs() != known.refs_of("call_2")


async def test_the_newest_resumption_is_known() -> None:
    known = KnownFacts(AGENT, numbered(requested()), unread, [])
    assert known.resumed_at == 0
    known.add_own([sample(TurnResumed, None), requested(step=2), sample(TurnResumed, None)], 2)
    assert known.resumed_at == 4


async def test_few_facts_are_kept_and_many_are_read_again() -> None:
    facts = numbered(*(requested(step=step) for step in range(1, KEPT + 2)))

    async def read() -> list[StoredFact]:
        return facts

    known = KnownFacts(AGENT, facts[:KEPT], unread, [])
    assert await known.all() == known.for_result() == facts[:KEPT]
    many = KnownFacts(AGENT, facts, read, [])
    assert await many.all() is facts
    assert many.for_result() is facts, "also where a loop runs in this thread"


def test_what_a_read_raises_reaches_who_asked() -> None:
    with pytest.raises(AssertionError, match="nothing has to be read"):
        run_apart(unread)


async def test_a_long_result_has_its_events_after_its_store_was_closed(tmp_path: Path) -> None:
    rounds = KEPT // 3

    @tool(effect="pure")
    def look() -> str:
        """Look."""
        return "yes"

    model = ScriptedModel([*[calls("look")] * rounds, "done"])
    agent = Agent("clerk", model, tools=[look], max_steps=rounds + 5)
    result = await run(agent, "go", store=tmp_path / "runs.db", budget=Budget(model_calls=rounds + 5))
    assert result.completed and len(result.facts()) > KEPT
    assert [fact.seq for fact in result.facts()] == sorted({fact.seq for fact in result.facts()})
    assert len(result.calls("look")) == rounds and result.events
