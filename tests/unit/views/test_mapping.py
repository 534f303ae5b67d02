"""One table for all views: what each shows of a fact is what the table says, and no two say different things."""

from typing import Any, get_args

import pytest
from pydantic import TypeAdapter

from kit.runs.event_samples import (
    ONE_OF_EACH,
    TURN,
    completed,
    fact,
    in_step,
    log,
    message,
    model_failed,
    progress,
    requested,
    said,
    tool_failed,
    turn_completed,
    turn_failed,
    turn_started,
)
from kit.runs.turn_trees import USED, began, call, did, inside, nested_turn, round_of
from kit.runs.whole_views import run_stream, wire_messages
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.envelope import StoredFact, published, step_id
from wakeful.contracts.events import (
    EVENTS,
    AnswerRejected,
    CompactionStarted,
    ContextResolved,
    CostRecorded,
    LimitChanged,
    ModelWaiting,
    SubagentStarted,
    TurnInterjected,
    WarningIssued,
    WorkflowStarted,
)
from wakeful.contracts.models import TextDelta
from wakeful.contracts.tools import FailedStatus
from wakeful.gate import outcomes
from wakeful.views.mapping import DELTA, METADATA_STATUS, NOWHERE, VIEWS, shown
from wakeful.views.run_stream import RunStream
from wakeful.views.run_stream_events import RunEvent, StatusEvent, StepEvent, TextEvent
from wakeful.views.wire import WireView
from wakeful.views.wire_messages import BudgetExceeded, Chunk, ToolCallUpdate, WireMessage

START = (fact(message(), step=None), fact(turn_started(), step=None))
KINDS = {event.kind for event in EVENTS}


def everything() -> list[StoredFact]:
    """A turn in which each thing that a view shows happens."""
    changed = next(one for one in ONE_OF_EACH if isinstance(one, ContextResolved)).model_copy(update={"revision": 2})
    interjected = next(one for one in ONE_OF_EACH if isinstance(one, TurnInterjected))
    compactions = [one for one in ONE_OF_EACH if one.kind.startswith("context.compaction.")]
    cost = next(one for one in ONE_OF_EACH if isinstance(one, CostRecorded))
    drawing = SubagentStarted(
        level_id="b", tool="build_workflow", title="", depth=1, task=UserItem(parts=(Text("Build it."),))
    )
    rejected = AnswerRejected(item=UserItem(parts=(Text("Again."),)), errors=("cycle",))
    running = next(one for one in ONE_OF_EACH if isinstance(one, WorkflowStarted))
    warned = next(one for one in ONE_OF_EACH if isinstance(one, WarningIssued))
    waits = next(one for one in ONE_OF_EACH if isinstance(one, ModelWaiting))
    return log(
        *START,
        *(fact(one) for one in (changed, *compactions, interjected, warned)),
        *in_step(
            1, requested(), model_failed(), waits, requested(2), completed(USED), cost, said("Looking.", "a", "b")
        ),
        *(began("a"), began("b"), call("a", progress(1)), did("a"), call("b", tool_failed("b"))),
        *(call("b", drawing), *inside("b", 1, in_step(1, rejected)), fact(running)),
        *round_of(2, "Done."),
        fact(LimitChanged(limit_name="tool_calls", limit=2, observed=3)),
        fact(turn_failed("incomplete", "tool_calls"), step=2),
    )


def kinds_behind(events: list[Any], facts: list[StoredFact]) -> set[tuple[str, str]]:
    """What is shown, and the fact behind it."""
    by_seq = {recorded.seq: recorded.fact.event.kind for recorded in facts}
    return {(event.type, by_seq[event.event_seq]) for event in events if getattr(event, "event_seq", None) is not None}


@pytest.mark.spec("STD-MAP-01")
def test_each_view_shows_a_fact_as_the_one_table_says() -> None:
    assert set(VIEWS) - {DELTA} <= KINDS, "facts of the one log"
    facts = everything()
    for kind, name in kinds_of_run(facts):
        assert VIEWS[name].run == kind
    for kind, name in kinds_behind(wire_messages(TURN, facts), facts):
        assert VIEWS[name].wire == kind
    # Each name in a column is made from the log, and there is none besides.
    assert {kind for kind, _ in kinds_of_run(facts)} == {one.run for one in VIEWS.values()} - {None}
    assert {one.type for one in wire_messages(TURN, facts)} == {one.wire for one in VIEWS.values()} - {None}
    assert {kind for kind, _ in kinds_of_run(facts)} == _types(RunEvent)
    assert {one.type for one in wire_messages(TURN, facts)} == _types(WireMessage)
    # What has no row is shown by no view: fed alone, it makes nothing.
    for event in ONE_OF_EACH:
        one = log(*START, fact(event))
        if shown(event).run is None:
            assert run_begun().feed(one[-1]) == []
        if shown(event).wire is None:
            assert wire_begun().feed(one[-1]) == []
    assert any(shown(event) == NOWHERE for event in ONE_OF_EACH)
    # None is a source of its own: made again from the same log, it is the same.
    assert run_stream(TURN, facts) == run_stream(TURN, facts)
    assert wire_messages(TURN, facts) == wire_messages(TURN, facts)


def run_begun() -> RunStream:
    stream = RunStream(TURN)
    for recorded in log(*START):
        stream.feed(recorded)
    return stream


def wire_begun() -> WireView:
    view = WireView(TURN)
    for recorded in log(*START):
        view.feed(recorded)
    return view


def kinds_of_run(facts: list[StoredFact]) -> set[tuple[str, str]]:
    return kinds_behind(run_stream(TURN, facts), facts)


def _types(union: Any) -> set[str]:
    """The names of the members of a tagged union."""
    return {member.model_fields["type"].default for member in get_args(get_args(union)[0])}


@pytest.mark.spec("STD-MAP-02")
def test_the_run_stream_stands_for_the_facts_of_the_standard() -> None:
    facts = everything()
    pairs = kinds_of_run(facts) - {("text", "assistant.recorded"), ("waiting", "model.wait_started")}
    stream = run_begun()
    stream.feed(log(fact(requested()), start=3)[0])
    (glimpsed,) = stream.glimpse(1, TextDelta(text="Hi"))
    assert isinstance(glimpsed, TextEvent)
    assert VIEWS[DELTA].run == glimpsed.type
    assert pairs == {
        ("status", "turn.started"),
        ("step", "model.requested"),
        ("tool_call", "tool.started"),
        ("mcp_progress", "tool.progress"),
        ("tool_result", "tool.result"),
        ("tool_result", "tool.failed"),
        ("usage", "model.completed"),
        ("context", "context.resolved"),
        ("context", "context.compaction.started"),
        ("context", "context.compaction.completed"),
        ("context", "context.compaction.failed"),
        ("warning", "runtime.warning"),
        ("message_injected", "turn.interjected"),
        ("error", "model.failed"),
        ("status", "turn.failed"),
    }
    done = run_stream(TURN, nested_turn())[-1]
    assert isinstance(done, StatusEvent)
    assert (done.status, done.event_seq) == ("completed", len(nested_turn()))
    (failed,) = (one for one in run_stream(TURN, log(*START, fact(turn_failed("failed")))) if one.event_seq == 3)
    assert isinstance(failed, StatusEvent)
    assert failed.status == "failed", "the standard's error"
    # A step is the step_id of what happens between its start and its end.
    by_seq = {recorded.seq: published(recorded, "runtime_1") for recorded in facts}
    current: int | None = None
    for event in run_stream(TURN, facts):
        if isinstance(event, StepEvent):
            current = event.step if event.status == "started" else None
        if current is not None and event.event_seq is not None:
            assert by_seq[event.event_seq].step_id == step_id(TURN, current)


@pytest.mark.spec("STD-MAP-03")
def test_the_wire_stands_for_the_facts_of_the_standard() -> None:
    facts = everything()
    sent = wire_messages(TURN, facts)
    assert kinds_behind(sent, facts) == {
        ("chunk", "assistant.recorded"),
        ("tool_call_update", "tool.started"),
        ("tool_call_update", "tool.result"),
        ("tool_call_update", "tool.failed"),
        ("budget_exceeded", "limit.changed"),
        ("turn_terminal", "turn.failed"),
        # Of workflows, which the standard does not speak of.
        ("planning_update", "subagent.started"),
        ("planning_update", "answer.rejected"),
        ("task_update", "workflow.started"),
    }
    by_seq = {recorded.seq: recorded.fact for recorded in facts}
    for one in sent:
        if isinstance(one, ToolCallUpdate):
            assert one.event_seq is not None
            ends = by_seq[one.event_seq].event.kind in ("tool.result", "tool.failed")
            assert one.status == ("end" if ends else "start")
    (budget,) = (one for one in sent if isinstance(one, BudgetExceeded))
    assert budget.reason == "tool_calls", "the limit's name"
    view = wire_begun()
    view.feed(log(fact(requested()), start=3)[0])
    (glimpsed,) = view.glimpse(1, TextDelta(text="Hi"))
    assert isinstance(glimpsed, Chunk)
    assert VIEWS[DELTA].wire == glimpsed.type
    summary = next(one for one in sent if one.type == "cost_summary")
    costs = [one.fact.event for one in facts if isinstance(one.fact.event, CostRecorded)]
    assert summary.total.cost == costs[0].amount
    assert len(costs) == 1
    # `parent_id` is the standard's `parent_tool_call_id`.
    tree = nested_turn()
    parents = {one.seq: published(one, "runtime_1").parent_tool_call_id for one in tree}
    nested = [one for one in wire_messages(TURN, tree) if isinstance(one, Chunk | ToolCallUpdate)]
    assert [one.parent_id for one in nested] == [parents[one.event_seq or 0] for one in nested]
    assert len({one.parent_id for one in nested}) == 4
    completed_ = wire_messages(TURN, log(*START, fact(turn_completed())))
    assert [one.type for one in completed_] == ["cost_summary", "turn_terminal"]


@pytest.mark.spec("STD-MAP-04")
def test_the_status_of_a_results_metadata_follows_from_how_the_call_ended() -> None:
    assert did("a").event.metadata.status == "success"  # type: ignore[union-attr]
    error = {status for status, said in METADATA_STATUS.items() if said == "error"}
    # A cancelled call has a status of its own in the metadata.
    assert error == {"failed", "interrupted", "skipped", "invalid"}
    assert METADATA_STATUS["cancelled"] == "cancelled"
    assert {status for status, said in METADATA_STATUS.items() if said == "rejected"} == {"rejected", "denied"}
    assert METADATA_STATUS["timed_out"] == "timed_out"
    assert set(METADATA_STATUS) == set(get_args(FailedStatus))
    assert vars(outcomes)["METADATA_STATUS"] is METADATA_STATUS, "it is what results are made with"


def test_context_is_shown_when_it_changes() -> None:
    first = next(one for one in ONE_OF_EACH if isinstance(one, ContextResolved))
    assert first.revision == 1
    assert run_stream(TURN, log(*START, fact(first)))[1:] == []
    begun = next(one for one in ONE_OF_EACH if isinstance(one, CompactionStarted))
    (event,) = run_stream(TURN, log(*START, fact(begun)))[1:]
    as_json = TypeAdapter[RunEvent](RunEvent)
    assert as_json.validate_json(as_json.dump_json(event)) == event
    assert event.event_seq == 3
