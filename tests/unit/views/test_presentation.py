"""One raw event to what people are told of it: visibility, category, title, one line, details."""

from typing import Any, get_args

import pytest

from kit.runs.event_samples import NOON, ONE_OF_EACH, THREAD, TURN
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import AssistantItem, CallPart
from wakeful.contracts.envelope import Fact, RuntimeEvent, StoredFact, published
from wakeful.contracts.errors import InvalidRequest
from wakeful.contracts.events import (
    BY_KIND,
    AgentStateChanged,
    AnyEvent,
    AssistantRecorded,
    BriefCreated,
    CallAsked,
    TurnFailed,
)
from wakeful.decisions.notices import notice_of
from wakeful.views.presentation.display_modes import detail_lines, display_mode, is_shown
from wakeful.views.presentation.operator_events import OperatorEventPresentation, present
from wakeful.views.presentation.placements import VISIBILITIES, Category, Visibility, feed_placement, place

OF_KIND = {event.kind: event for event in ONE_OF_EACH}


def raw(event: AnyEvent, **ids: Any) -> RuntimeEvent:
    return published(StoredFact("ops", 7, Fact(event, NOON, THREAD, TURN, 1, **ids)), "rt_1")


def said(text: str = "", *calls: str) -> AssistantRecorded:
    parts = [CallPart(call_id=f"c{at}", name=name, arguments={"q": "a\x1b[31m"}) for at, name in enumerate(calls)]
    asked = tuple(CallAsked(call_id=part.call_id, name=part.name) for part in parts)
    words = [Text(text=text)] if text else []
    return AssistantRecorded(item=AssistantItem(parts=(*words, *parts)), calls=asked, text_preview=text)


@pytest.mark.parametrize("kind", OF_KIND)
def test_every_kind_of_event_has_one_presentation(kind: str) -> None:
    shown = present(raw(OF_KIND[kind]))
    assert set(OperatorEventPresentation.model_fields) == {
        "visibility",
        "category",
        "title",
        "body",
        "summary",
        "source_event_kind",
    }, "neither a severity nor hints where to deliver it"
    assert shown.category in get_args(Category)
    assert shown.visibility in get_args(Visibility) == VISIBILITIES
    assert shown.source_event_kind == kind
    assert shown.title and shown.summary and "\n" not in shown.summary


def test_a_kind_of_another_version_is_a_trace() -> None:
    event = raw(said("x")).model_copy(update={"type": "comet.sighted", "payload": {"message": "bright"}})
    assert present(event) == OperatorEventPresentation(
        visibility="trace",
        category="trace",
        title="Comet sighted",
        summary="Comet sighted: bright",
        source_event_kind="comet.sighted",
    )


def test_a_round_says_its_words_or_else_the_tools_it_asked_for() -> None:
    words = present(raw(said("Looking at the\nbackups.", "exec_command")))
    assert words.summary == "Assistant progress: Looking at the backups."
    tools = present(raw(said("", "exec_command", "apply_patch")))
    assert tools.summary == "Model requested tools: exec_command, apply_patch"
    assert present(raw(said())).summary == "Model round completed without words or tools"
    assert (words.visibility, words.category) == ("progress", "assistant_progress")


def test_signals_to_refresh_and_tools_at_work_are_no_part_of_a_conversation() -> None:
    state = present(raw(AgentStateChanged(control="paused", changed_by="ann", reason="lunch")))
    assert (state.visibility, state.category) == ("trace", "state_sync")
    assert not any(is_shown(state, mode) for mode in ("info", "verbose", "debug"))
    for kind in ("tool.started", "tool.result", "tool.failed"):
        tool = present(raw(OF_KIND[kind]))
        assert (tool.visibility, tool.category) == ("trace", "tool"), "a raw event of the trace"
    ended = present(raw(OF_KIND["tool.result"]))
    assert [is_shown(ended, mode) for mode in ("info", "verbose", "debug")] == [False, True, True]
    assert not is_shown(present(raw(OF_KIND["tool.started"])), "verbose"), "one line a call"


def test_a_brief_is_as_near_as_it_says() -> None:
    def of(visibility: Any, kind: Any = "result") -> OperatorEventPresentation:
        event = BriefCreated(brief_id="b", brief_kind=kind, visibility=visibility, text_ref="@-1")
        return present(raw(event), words="Freed 12 GB,\nbackups fine.")

    waits, done, result = of("action_required"), of("work_done"), of("turn_result")
    assert [each.visibility for each in (waits, done, result)] == ["action_required", "work_done", "turn_result"]
    assert [each.title for each in (waits, done, result)] == ["Needs you", "Work done", "Result"]
    assert of("turn_result", "failure").title == "Failure"
    assert result.summary == "Freed 12 GB, backups fine."
    assert result.body == "Freed 12 GB,\nbackups fine."
    wordless = present(raw(BriefCreated(brief_id="b", brief_kind="result")))
    assert (wordless.summary, wordless.body) == ("done, without words", None)


def test_a_notice_and_the_line_of_its_event_say_the_same() -> None:
    told = [event for event in ONE_OF_EACH if not isinstance(event, BriefCreated) and notice_of(event) is not None]
    assert len(told) >= 8
    for event in told:
        words = notice_of(event)
        assert words is not None
        shown = present(raw(event))
        assert shown.summary == " ".join(words.words.split())[:200]
        assert shown.visibility in ("action_required", "turn_result"), f"{event.kind} is told, and not in info"


def test_modes_have_names_and_numbers_and_show_more_and_more() -> None:
    assert [display_mode(each) for each in ("info", "3", "VERBOSE", "4", "debug", "5")] == [
        "info",
        "info",
        "verbose",
        "verbose",
        "debug",
        "debug",
    ]
    for wrong in ("2", "trace", "verbos", ""):
        with pytest.raises(InvalidRequest):
            display_mode(wrong)
    with pytest.raises(InvalidRequest) as raised:
        display_mode("trace")
    assert "wakeful events" in str(raised.value.hint), "the raw trace has its inspector"
    asked, round_, result = present(raw(OF_KIND["action.required"])), present(raw(said("", "look"))), of_result()
    shown = {mode: [is_shown(each, mode) for each in (asked, result, round_)] for mode in ("info", "verbose", "debug")}
    assert shown == {"info": [True, True, False], "verbose": [True] * 3, "debug": [True] * 3}
    assert detail_lines(round_, "verbose") == []
    assert detail_lines(round_, "debug") == ['look(q="a\\u001b[31m")'], "arguments, and no escape in them"
    assert detail_lines(present(raw(OF_KIND["tool.result"])), "debug") != []


def of_result() -> OperatorEventPresentation:
    return present(raw(BriefCreated(brief_id="b", brief_kind="result", text="done")))


def test_escapes_are_text() -> None:
    shown = present(raw(BriefCreated(brief_id="b", brief_kind="progress", text="a\x1b[2Jb\u202ec")))
    assert shown.summary == "a\\x1b[2Jb\\u202ec" == shown.body


def test_the_feed_has_what_verbose_shows_and_leaves_the_end_of_a_turn_to_its_brief() -> None:
    for event in ONE_OF_EACH:
        fact, found = Fact(event, NOON, THREAD, TURN, 1), None
        found = feed_placement(fact)
        shown = present(raw(event))
        if found is not None:
            assert (found.visibility, found.category) == (shown.visibility, shown.category)
            assert is_shown(shown, "verbose")
        elif is_shown(shown, "verbose"):
            assert event.kind in ("turn.completed", "turn.failed", "work_item.completed", "assistant.recorded")
    assert feed_placement(Fact(said("The end."), NOON, THREAD, TURN, 1)) is None, "its brief has the words"
    assert feed_placement(Fact(said("A child's.", "look"), NOON, THREAD, TURN, 1)) is not None
    assert feed_placement(Fact(said("A plan.", "look"), NOON, THREAD, TURN, 1, level="~plan")) is None
    failed = OF_KIND["turn.failed"]
    assert isinstance(failed, TurnFailed)
    assert feed_placement(Fact(failed.model_copy(update={"status": "failed"}), NOON, THREAD, TURN)) is None
    cancelled = failed.model_copy(update={"status": "cancelled", "stop_reason": "cancelled"})
    assert feed_placement(Fact(cancelled, NOON, THREAD, TURN)) is not None, "a cancelled turn has no brief"


def test_every_placed_kind_is_an_event() -> None:
    from wakeful.views.presentation.placements import FEED_KINDS

    assert set(BY_KIND) >= FEED_KINDS
    assert place("no.such", lambda name: None) == ("trace", "trace")
