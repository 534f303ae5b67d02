"""Wire messages, from facts made by hand."""

from typing import Any, get_args

import pytest

from kit.runs.event_samples import (
    THREAD,
    TURN,
    completed,
    fact,
    in_step,
    log,
    message,
    model_failed,
    requested,
    said,
    tool_failed,
    turn_completed,
    turn_failed,
    turn_started,
)
from kit.runs.turn_trees import began, beside, call, did, inside, nested_turn, round_of
from kit.runs.whole_views import wire_messages
from wakeful.contracts.conversation import AssistantItem, CallPart
from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.events import (
    LimitChanged,
    PlanningStarted,
    TurnFailed,
    TurnInterruptApplied,
    TurnInterruptRequested,
)
from wakeful.contracts.events.turns import LimitName, StopCause
from wakeful.contracts.models import ReasoningDelta, TextDelta
from wakeful.contracts.sensitive_names import REDACTED
from wakeful.views.cost import CostSummary
from wakeful.views.mapping import WIRE_STOP
from wakeful.views.wire import WireView
from wakeful.views.wire_messages import (
    WIRE_MESSAGE,
    BudgetExceeded,
    BudgetReason,
    Chunk,
    ToolCallUpdate,
    TurnTerminal,
    WireMessage,
    WireStop,
)

START = (fact(message(), step=None), fact(turn_started(), step=None))
IDS = {"thread_id": THREAD, "turn_id": TURN}


def sent(*facts: Fact) -> list[WireMessage]:
    return wire_messages(TURN, log(*START, *facts))


def fed(*facts: Fact) -> WireView:
    view = WireView(TURN)
    for recorded in log(*START, *facts):
        view.feed(recorded)
    return view


def after(view: WireView, start: int, *facts: Fact) -> list[WireMessage]:
    return [one for recorded in log(*facts, start=start) for one in view.feed(recorded)]


@pytest.mark.spec("LOOP-WIRE-01", "LOOP-WIRE-02")
def test_a_call_is_sent_when_its_arguments_are_known_and_again_with_its_result() -> None:
    asked = round_of(1, "", "a")
    start, end = sent(*asked, began("a", order="A17"), did("a", "4200"))
    assert start == ToolCallUpdate(
        **IDS, event_seq=6, tool_call_id="a", name="look_up", args={"order": "A17"}, status="start"
    )
    assert (start.parent_id, start.depth) == (None, 0)
    assert end == ToolCallUpdate(
        **IDS,
        event_seq=7,
        tool_call_id="a",
        name="look_up",
        result="4200",
        is_error=False,
        outcome="succeeded",
        status="end",
    )
    assert sent(*asked) == [], "the model asked for it, and nobody has taken it up"
    data = start.model_dump(mode="json")
    assert data["type"] == "tool_call_update"
    spec = {"type", "tool_call_id", "name", "args", "result", "is_error", "parent_id", "depth", "status"}
    assert spec <= set(data)
    (failed,) = sent(*asked, began("a"), call("a", tool_failed("a")))[1:]
    assert isinstance(failed, ToolCallUpdate)
    assert (failed.is_error, failed.outcome, failed.result) == (True, "failed", "execution_failed: no such order")
    nested = {
        one.tool_call_id: (one.parent_id, one.depth)
        for one in wire_messages(TURN, nested_turn())
        if isinstance(one, ToolCallUpdate)
    }
    assert nested == {
        "sub_a": (None, 0),
        "sub_b": (None, 0),
        "look": (None, 0),
        "a_1": ("sub_a", 1),
        "sub_c": ("sub_b", 1),
        "c_1": ("sub_c", 2),
    }


@pytest.mark.spec("LOOP-WIRE-03", "LOOP-WIRE-05")
def test_words_are_chunks_that_say_where_in_the_tree_they_were_said() -> None:
    view = fed(*in_step(1, requested()))
    assert view.glimpse(1, TextDelta(text="Hel")) == [Chunk(**IDS, content="Hel", step=1)]
    assert view.glimpse(1, ReasoningDelta(text="hm")) == []
    rest = after(view, 4, *in_step(1, completed(), said("Hello")))
    assert rest == [Chunk(**IDS, event_seq=5, content="lo", done=True, step=1)]
    chunks = [one for one in wire_messages(TURN, nested_turn()) if isinstance(one, Chunk)]
    assert [(one.content, one.parent_id, one.depth, one.done) for one in chunks] == [
        ("Splitting it.", None, 0, True),
        ("I look.", "sub_a", 1, True),
        ("12 EUR", "sub_a", 1, True),
        ("three", "sub_c", 2, True),
        ("3", "sub_b", 1, True),
        ("12 EUR, 3 left.", None, 0, True),
    ]
    assert all("depth" in one.model_dump(mode="json") for one in chunks)


def test_a_child_is_glimpsed_while_its_sibling_speaks() -> None:
    speaking = [*inside("a", 1, in_step(1, requested())), *inside("b", 2, in_step(1, requested()))]
    view = fed(*in_step(1, requested()), *speaking)
    shown = [view.glimpse(1, TextDelta(text=level), level)[0] for level in ("a", "b", "a")]
    assert [(one.content, one.parent_id, one.depth) for one in shown if isinstance(one, Chunk)] == [
        ("a", "a", 1),
        ("b", "b", 2),
        ("a", "a", 1),
    ]
    assert view.glimpse(1, TextDelta(text="?"), "nobody") == []
    done = after(view, 6, *inside("a", 1, in_step(1, completed(), said("aa."))))
    assert [(one.content, one.done) for one in done if isinstance(one, Chunk)] == [(".", True)]


def test_words_of_a_lost_attempt_are_replaced_by_those_of_the_next() -> None:
    view = fed(*in_step(1, requested()))
    (lost,) = view.glimpse(1, TextDelta(text="I thi"))
    assert after(view, 4, *in_step(1, model_failed(), requested(2))) == []
    (again,) = after(view, 6, *in_step(1, completed(), said("Final.")))
    assert isinstance(lost, Chunk)
    assert isinstance(again, Chunk)
    assert ((lost.step, lost.attempt), (again.step, again.attempt)) == ((1, 1), (1, 2))
    assert again.content == "Final."
    # What was shown was not what was said: it counts as another attempt.
    other = fed(*in_step(1, requested()))
    other.glimpse(1, TextDelta(text="Helo"))
    (whole,) = after(other, 4, *in_step(1, completed(), said("Hello")))
    assert isinstance(whole, Chunk)
    assert (whole.content, whole.attempt) == ("Hello", 2)


@pytest.mark.spec("LOOP-WIRE-04")
def test_a_client_that_ignores_the_nesting_fields_can_show_everything_flat() -> None:
    for one in wire_messages(TURN, nested_turn()):
        flat = {
            name: value for name, value in one.model_dump(mode="json").items() if name not in ("parent_id", "depth")
        }
        read = WIRE_MESSAGE.validate_python(flat)
        assert read.type == one.type
        if isinstance(read, Chunk | ToolCallUpdate):
            assert (read.parent_id, read.depth) == (None, 0), "in the main thread, at the top level"


@pytest.mark.spec("LOOP-WIRE-06")
@pytest.mark.parametrize("reason", get_args(BudgetReason))
def test_a_limit_of_the_turn_that_was_reached_is_sent(reason: Any) -> None:
    reached = LimitChanged(limit_name=reason, limit=60, observed=61)
    assert sent(fact(reached)) == [BudgetExceeded(**IDS, event_seq=3, reason=reason, limit=60, observed=61)]
    assert sent(*inside("sub", 1, [fact(reached)])) == sent(fact(reached)), "whoever reached it"


def test_limits_of_a_level_and_stops_that_are_no_budget_are_told_by_the_end_alone() -> None:
    assert set(get_args(BudgetReason)) == {
        "subtasks",
        "llm_calls",
        "tool_calls",
        "wall_clock",
        "tokens",
        "bytes",
        "cost",
    }
    for name in set(get_args(LimitName)) - set(get_args(BudgetReason)):
        reached = fact(LimitChanged(limit_name=name, limit=20, observed=21))
        assert sent(reached) == sent(*inside("sub", 1, [reached])) == []


@pytest.mark.spec("LOOP-WIRE-07")
def test_a_direct_answer_is_one_text_and_nothing_nested() -> None:
    shown = sent(*round_of(1, "42."), fact(turn_completed()))
    assert [one.type for one in shown] == ["chunk", "cost_summary", "turn_terminal"]
    assert shown[0] == Chunk(**IDS, event_seq=5, content="42.", done=True, step=1)


ENDS = [
    (turn_completed(), "completed", "natural"),
    (turn_failed("incomplete", "tool_calls"), "incomplete", "tool_calls"),
    (turn_failed("failed", "provider_error"), "error", "provider_error"),
    (turn_failed("cancelled", "cancelled"), "cancelled", "cancelled"),
]


@pytest.mark.parametrize(("end", "status", "reason"), ENDS)
def test_every_turn_ends_with_its_cost_and_then_one_terminal_message(end: Any, status: str, reason: str) -> None:
    facts = log(*START, *round_of(1, "So far."), fact(end))
    shown = wire_messages(TURN, facts)
    assert isinstance(shown[-2], CostSummary)
    last = shown[-1]
    assert isinstance(last, TurnTerminal)
    assert (last.thread_id, last.turn_id, last.event_seq) == (THREAD, TURN, len(facts))
    assert (last.status, last.stop_reason, last.retryable) == (status, reason, end.retryable)
    assert last.message == (end.message if status != "completed" else None)
    assert [one.type for one in shown].count("turn_terminal") == 1
    assert [one.type for one in shown].count("cost_summary") == 1
    # Nothing after it, whatever is fed.
    view = WireView(TURN)
    for recorded in facts:
        view.feed(recorded)
    assert view.ended
    assert after(view, len(facts) + 1, *round_of(2, "late"), began("a"), fact(turn_completed())) == []
    assert view.glimpse(1, TextDelta(text="late")) == []


WORDS = {
    *("natural", "max_steps", "iterations", "subtasks", "llm_calls", "tool_calls", "wall_clock", "tokens", "bytes"),
    *("cost", "context_budget", "stalled", "provider_error", "planner_error", "routing_not_possible"),
    *("cancelled", "superseded", "interrupted"),
}


@pytest.mark.spec("LOOP-WIRE-08")
def test_the_cost_and_one_terminal_message_with_a_word_of_the_closed_list_end_every_turn() -> None:
    statuses = {"incomplete": "incomplete", "failed": "error", "cancelled": "cancelled"}
    ends: list[tuple[Any, str, str]] = [(turn_completed(), "completed", "natural")]
    ends += [
        (turn_failed(said_in_log, cause), status, WIRE_STOP.get(cause, cause))
        for said_in_log, status in statuses.items()
        for cause in get_args(StopCause)
        if cause != "natural"
    ]
    for end, status, word in ends:
        facts = log(*START, *round_of(1, "So far."), fact(end))
        view = WireView(TURN)
        shown = [one for recorded in facts for one in view.feed(recorded)]
        assert [one.type for one in shown] == ["chunk", "cost_summary", "turn_terminal"]
        last = shown[-1].model_dump(mode="json", exclude_none=True, exclude={"event_seq"})
        said_to_client: dict[str, str] = {"message": end.message} if isinstance(end, TurnFailed) else {}
        assert last == {
            "type": "turn_terminal",
            "thread_id": THREAD,
            "turn_id": TURN,
            "status": status,
            "stop_reason": word,
            "retryable": end.retryable,
            **said_to_client,
        }
        assert word in WORDS
        late = [*round_of(2, "late"), began("a"), fact(turn_completed()), fact(turn_failed())]
        assert after(view, len(facts) + 1, *late) == [], "nothing after it"
    assert set(get_args(WireStop)) == WORDS, "and the message itself takes no other word"
    assert set(get_args(StopCause)) - WORDS == set(WIRE_STOP), "each word that only the log has is one of them there"


@pytest.mark.spec("LOOP-ERR-10")
def test_after_a_cancel_only_the_ends_of_what_was_under_way_and_the_end_are_sent() -> None:
    view = fed(*round_of(1, "", "a", "b"), began("a"), *inside("a", 1, in_step(1, requested())))
    asked = fact(TurnInterruptRequested(interrupt_id="i", requested_by="somebody"))
    shown = after(
        view,
        8,
        asked,
        *inside("a", 1, in_step(1, completed(), said("late words", "c"))),
        *inside("a", 1, [began("c")]),
        fact(TurnInterruptApplied(interrupt_id="i", cancelled_tool_call_ids=("a",), latency_ms=1)),
        *inside("a", 1, [call("c", tool_failed("c", status="cancelled"))]),
        call("a", tool_failed("a", status="cancelled")),
        call("b", tool_failed("b", status="skipped")),
        fact(turn_failed("cancelled", "cancelled")),
    )
    assert [one.type for one in shown] == ["tool_call_update", "cost_summary", "turn_terminal"]
    (end,) = (one for one in shown if isinstance(one, ToolCallUpdate))
    assert (end.tool_call_id, end.status, end.is_error, end.outcome) == ("a", "end", True, "cancelled")
    stopping = fed(*in_step(1, requested()), asked)
    assert stopping.glimpse(1, TextDelta(text="late")) == []
    assert fed(*in_step(1, requested())).glimpse(1, TextDelta(text="in time")) != [], "the inversion"


def test_a_call_that_was_refused_is_still_seen_to_begin() -> None:
    start, end = sent(*round_of(1, "", "a"), call("a", tool_failed("a", status="denied")))
    assert isinstance(start, ToolCallUpdate)
    assert isinstance(end, ToolCallUpdate)
    assert (start.status, start.event_seq, start.args) == ("start", None, None)
    assert (end.status, end.event_seq, end.outcome) == ("end", 6, "denied")


def test_what_the_planner_and_a_summary_do_is_not_part_of_the_conversation() -> None:
    planning = fact(PlanningStarted(level_id="plan", model_ref="scripted:list", task=message().item))
    hidden = [*round_of(1, "First I would", "p"), began("p"), did("p")]
    assert sent(planning, *beside("plan", hidden), *beside("compaction:1", hidden)) == []


def test_a_fact_is_sent_once_and_facts_of_other_turns_never() -> None:
    facts = log(*START, *round_of(1, "42."))
    view = WireView(TURN)
    assert len([one for recorded in (*facts, *facts) for one in view.feed(recorded)]) == 1
    assert wire_messages("turn_2", facts) == []


def test_secrets_are_hidden_also_in_what_was_sent_before_they_were_known() -> None:
    secret = "correct-horse"
    given = CallPart(call_id="a", name="look_up", arguments={"password": secret})
    spoken = said("", "a").model_copy(update={"item": AssistantItem(parts=(given,), provider="scripted")})
    facts = log(*START, *round_of(1, f"it is {secret}"), fact(spoken, step=2), began("a"), did("a", f"<{secret}>"))
    shown = [one.model_dump_json() for one in wire_messages(TURN, facts)]
    assert [REDACTED in one for one in shown] == [True, False, True]
    assert not any(secret in one for one in shown)


def sequences(facts: list[StoredFact], after_seq: int) -> list[int | None]:
    return [
        one.event_seq if not isinstance(one, CostSummary) else None for one in wire_messages(TURN, facts, after_seq)
    ]


def test_whoever_comes_back_gets_what_comes_after_what_they_have() -> None:
    facts = nested_turn()
    whole = wire_messages(TURN, facts)
    assert all((one.thread_id, one.turn_id) == (THREAD, TURN) for one in whole)
    for seen in range(len(facts) + 1):
        rest = wire_messages(TURN, facts, seen)
        assert rest == whole[len(whole) - len(rest) :], "the end of the same messages"
        assert all(seq is None or seq > seen for seq in sequences(facts, seen))
    assert [one.type for one in wire_messages(TURN, facts, len(facts) - 1)] == ["cost_summary", "turn_terminal"]
    assert wire_messages(TURN, facts, len(facts)) == []
