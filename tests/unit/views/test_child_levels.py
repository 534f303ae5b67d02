"""What is a view of the turn's own conversation is the same with and without what happens in children."""

import pytest

from kit.runs.event_samples import TURN, fact, log, message, requested, turn_completed, turn_started
from kit.runs.turn_trees import USED, began, beside, did, inside, nested_turn, round_of
from kit.runs.whole_views import run_stream, transcript
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.envelope import StoredFact
from wakeful.contracts.events import PlanningStarted, TurnInterjected
from wakeful.contracts.models import TextDelta
from wakeful.hosts.loop.budgets import RunBudgets
from wakeful.hosts.loop.loop_events import HostIds
from wakeful.hosts.loop.run_calls import Sources
from wakeful.hosts.loop.view import LoopView
from wakeful.views.conversation_export import export
from wakeful.views.latency import turn_latency
from wakeful.views.run_stream import RunStream
from wakeful.views.run_stream_events import RunEvent, StatusEvent, StepEvent, TextEvent
from wakeful.views.turn_record import terminal_record


def childless(facts: list[StoredFact]) -> list[StoredFact]:
    return [one for one in facts if one.fact.level is None]


NESTED = nested_turn()
FLAT = childless(NESTED)


def test_there_are_facts_of_children_at_two_depths() -> None:
    assert {one.fact.depth for one in NESTED} == {0, 1, 2}
    assert len(FLAT) < len(NESTED) / 2


def test_the_run_stream_shows_the_calls_and_not_what_is_inside_them() -> None:
    assert run_stream(TURN, NESTED) == run_stream(TURN, FLAT)
    assert [event.text for event in run_stream(TURN, NESTED) if isinstance(event, TextEvent)] == [
        "Splitting it.",
        "12 EUR, 3 left.",
    ]


def test_a_glimpse_of_a_child_is_not_taken_for_the_answer() -> None:
    stream = RunStream(TURN)
    for one in log(fact(turn_started(), step=None), fact(requested()), *inside("sub", 1, [fact(requested())])):
        stream.feed(one)
    assert stream.glimpse(1, TextDelta(text="I look"), "sub") == []
    assert stream.glimpse(1, TextDelta(text="So"), None) != []


def test_the_transcript_the_record_and_the_messages_are_the_conversations() -> None:
    assert transcript(NESTED) == transcript(FLAT)
    assert terminal_record(TURN, NESTED) == terminal_record(TURN, FLAT)
    nested, flat = export(NESTED, None), export(FLAT, None)
    assert nested.messages == flat.messages
    assert nested.tool_execution_results == flat.tool_execution_results
    assert nested.request_metadata == flat.request_metadata


def test_the_audit_and_the_events_are_of_everything_that_ran() -> None:
    exported = export(NESTED, None)
    assert [one.tool_call_id for one in exported.tool_audit_events] == ["c_1", "a_1", "sub_a", "sub_c", "sub_b", "look"]
    assert [one.event_seq for one in exported.events] == [one.seq for one in NESTED]


def test_a_host_of_the_loop_sees_its_own_calls() -> None:
    def events(facts: list[StoredFact]) -> list[object]:
        view = LoopView((), Sources(), RunBudgets({}, 5), HostIds())
        return [event for one in facts for event in view.take(one)]

    assert events(NESTED) == events(FLAT)


def test_time_inside_a_child_is_listed_with_its_depth_and_counted_as_its_calls() -> None:
    nested, flat = turn_latency(TURN, NESTED), turn_latency(TURN, FLAT)
    for field in ("provider_ms", "tools_ms", "context_build_ms", "cleanup_ms", "turn_ms"):
        assert getattr(nested, field) == getattr(flat, field), field
    assert [one.depth for one in nested.rounds] == [0, 1, 1, 2, 1, 2, 1, 0]
    assert {one.call_id: one.depth for one in nested.tools} == {
        "look": 0,
        "sub_a": 0,
        "sub_b": 0,
        "a_1": 1,
        "sub_c": 1,
        "c_1": 2,
    }


def planned() -> list[StoredFact]:
    planning = fact(PlanningStarted(level_id="plan", model_ref="scripted:list", task=message().item), step=None)
    return log(
        fact(message(), step=None),
        fact(turn_started(), step=None),
        planning,
        *beside("plan", [*round_of(1, "", "p"), began("p"), did("p"), *round_of(2, "1. look")]),
        *round_of(1, "Done."),
        fact(turn_completed()),
    )


def phases(events: list[RunEvent]) -> list[tuple[str, str]]:
    return [(event.type, event.phase) for event in events]


def test_the_planners_rounds_are_marked_and_the_executors_begin_at_one() -> None:
    facts = planned()
    events = run_stream(TURN, facts)
    executor = [event for event in events if event.phase == "executor"]
    assert executor == run_stream(TURN, childless(facts)), "the trace is the same without them"
    first, last = (
        phases(events).index(("step", "planner")),
        len(events) - 1 - phases(events[::-1]).index(("step", "planner")),
    )
    assert first == 1, "after the starting status"
    assert phases(events[first : last + 1]) == [
        ("step", "planner"),
        ("usage", "planner"),
        ("tool_call", "planner"),
        ("tool_result", "planner"),
        ("step", "planner"),
        ("step", "planner"),
        ("text", "planner"),
        ("usage", "planner"),
        ("step", "planner"),
    ]
    assert events[last + 1] == StepEvent(step=1, status="started", event_seq=events[last + 1].event_seq)
    stream = RunStream(TURN)
    for one in facts[:4]:
        stream.feed(one)
    (glimpsed,) = stream.glimpse(1, TextDelta(text="1."), "plan")
    assert glimpsed.phase == "planner"


def test_the_end_says_what_the_whole_turn_used() -> None:
    done = turn_completed().model_copy(update={"token_usage": USED + USED})
    last = run_stream(TURN, log(fact(turn_started(), step=None), fact(done)))[-1]
    assert isinstance(last, StatusEvent)
    assert last.usage == USED + USED


@pytest.mark.parametrize("said_by", ["operator", "somebody"])
def test_what_was_said_to_a_turn_under_way_is_part_of_its_conversation(said_by: str) -> None:
    item = UserItem(parts=(Text("and B2"),))
    facts = log(
        fact(message(), step=None),
        fact(turn_started(), step=None),
        *round_of(1, "", "a"),
        fact(TurnInterjected(message_id="m2", item=item, said_by=said_by)),
    )
    assert [one.content for one in export(facts, None).messages if one.role == "user"][-1] == "and B2"
    assert transcript(facts)[-1].data.text == "and B2"  # type: ignore[union-attr]
    assert run_stream(TURN, facts)[-1].type == "message_injected"
