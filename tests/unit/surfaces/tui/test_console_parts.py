"""Parts of the terminal UI that show nothing by themselves: conversation, activity, lines, overview."""

from typing import Any

import pytest

from wakeful.errors import InvalidRequest
from wakeful.surfaces.tui.approval_overlay import decision_fields
from wakeful.surfaces.tui.conversation import Activity, AgentConversation
from wakeful.surfaces.tui.overview import overview_of, place_line, tree_lines
from wakeful.surfaces.tui.screen_text import cut, folded, harmless, padded
from wakeful.surfaces.tui.shown_times import ShownTimes, span
from wakeful.surfaces.tui.slash_commands import TypedLine, read_line
from wakeful.views.presentation.feed_entries import FeedEntry


def entry(number: int, kind: str, message: str, summary: str = "", **more: Any) -> FeedEntry:
    placed = {
        "message.admitted": ("progress", "message"),
        "brief.created": ("turn_result", "brief"),
        "tool.result": ("trace", "tool"),
    }
    visibility, category = placed.get(kind, ("progress", "assistant_progress"))
    return FeedEntry.model_validate(
        {
            "envelope": {
                "event_id": f"ops:{number}",
                "event_seq": number,
                "ts": "2026-11-16T07:02:00.000Z",
                "kind": kind,
                "agent_id": "ops",
                "turn_id": f"turn_{message}",
                "message_id": message,
                "origin": {"kind": more.get("origin", "operator")},
            },
            "presentation": {
                "visibility": visibility,
                "category": category,
                "title": kind,
                "body": summary,
                "summary": summary,
                "source_event_kind": kind,
            },
            "payload": {"item": {"parts": [{"type": "text", "text": summary}]}},
            "cursor": f"feed-{number}",
        }
    )


def lines(conversation: AgentConversation, mode: Any = "info", width: int = 40) -> list[str]:
    times = ShownTimes()
    at = times.of("2026-11-16T07:02:00.000Z")
    return [line.text.replace(at, "07:02") for line in conversation.lines(mode, width, times)]


@pytest.mark.spec("HOL-CONSOLE-06")
def test_a_conversation_is_messages_and_briefs_each_once_in_the_order_of_the_log() -> None:
    talk = AgentConversation("ops")
    said = [
        entry(4, "tool.result", "m1", "ok ls, 3 ms"),
        entry(9, "brief.created", "m1", "All backups are there, and the newest one is from tonight."),
        entry(3, "message.admitted", "m1", "Check."),
        entry(5, "message.admitted", "m2", "a timer said so", origin="timer"),
    ]
    for each in (*said, *said):
        talk.take(each)
    assert lines(talk) == [
        "07:02 you  Check.",
        "07:02 ops  All backups are there, and",
        "           the newest one is from",
        "           tonight.",
    ]
    assert "        .. ok ls, 3 ms" in lines(talk, "verbose")
    assert "        .. a timer said so" in lines(talk, "verbose"), "nobody but the operator is `you`"


@pytest.mark.spec("HOL-CONSOLE-16")
def test_an_activity_is_of_the_newest_message_alone() -> None:
    activity = Activity()
    activity.take(entry(1, "message.admitted", "m1", "first"))
    activity.take(entry(2, "assistant.recorded", "m1", "Model requested tools: ls"))
    assert (activity.words, activity.turn) == ("Model requested tools: ls", "turn_m1")
    activity.begin(None)
    assert (activity.words, activity.turn) == ("sent", None)
    activity.take(entry(3, "tool.result", "m1", "ok ls"))
    activity.take(entry(4, "message.admitted", "m2", "second"))
    activity.take(entry(5, "assistant.recorded", "m2", "Model requested tools: du"))
    assert activity.words == "sent", "the answer to the message has not come yet"
    activity.name("m2")
    assert activity.words == "Model requested tools: du", "what came before the answer counts"
    activity.take(entry(6, "brief.created", "m1", "the first is done"))
    assert activity.words == "Model requested tools: du"
    activity.take(entry(7, "brief.created", "m2", "done"))
    assert (activity.words, activity.turn) == ("", None)


def test_a_message_that_was_not_sent_leaves_no_activity() -> None:
    activity = Activity()
    activity.begin(None)
    activity.give_up()
    assert activity.words == ""


def test_lines_are_messages_or_commands() -> None:
    assert read_line("check the backups") == TypedLine("", "check the backups")
    assert read_line("//etc is full") == TypedLine("", "/etc is full")
    assert read_line("/display debug") == TypedLine("display", "debug")
    assert read_line("/pause") == TypedLine("pause", "")


@pytest.mark.parametrize("line", ["/", "/paws", "/display", "/pause now", "/etc/passwd is gone"])
def test_a_line_that_is_no_command_is_refused_with_what_would_be_one(line: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read_line(line)
    assert refused.value.hint


def test_text_is_folded_between_words_to_columns_not_letters() -> None:
    assert folded("漢字漢字漢字 and more", 8) == ["漢字漢字", "漢字 and", "more"]
    assert folded("", 10) == [""]
    assert cut("漢字漢字", 5) == "漢字…"
    assert padded("漢字", 6) == "漢字  "
    assert harmless("a\tb\x1b[2J\u202e\u200b") == "a   b\\x1b[2J\\u202e"


def test_decisions_that_need_words_say_what_is_wrong_with_them() -> None:
    assert decision_fields("decision", {"decision": "approved"}) == {"decision": "approved"}
    assert decision_fields("decision", {"words": " "}) == {"decision": "rejected"}
    assert decision_fields("edit", {"words": '{"cents": 1}'}) == {"arguments": {"cents": 1}}
    assert decision_fields("always", {"words": "tool"}) == {"scope": "tool"}
    assert decision_fields("always", {"words": "git_*"}) == {"scope": "pattern", "match": "git_*"}
    assert decision_fields("answer", {"words": "blue"}) == {"answer": "blue"}
    for how, words in (("edit", "{"), ("edit", "[1]"), ("always", "")):
        with pytest.raises(ValueError, match=r"."):
            decision_fields(how, {"words": words})


def agent(name: str, status: str = "awake_idle", parent: str | None = None) -> dict[str, Any]:
    return {"agent": name, "status": status, "lineage_parent_agent_id": parent, "reason": "", "cause": "operator"}


@pytest.mark.spec("HOL-CONSOLE-09")
def test_children_stand_below_their_parents_and_money_is_of_today() -> None:
    found = overview_of(
        [agent("dig", parent="ops"), agent("ops", "asleep"), agent("shop", "paused"), agent("lost", parent="gone")],
        [],
        [{"agent": "ops"}, {"agent": "shop"}],
        [],
        {"total": {"cost": "0.5"}, "groups": {"ops": {"cost": "0.003"}}},
        [{"scope": "runtime", "window": "day", "spent_usd": "0.44", "limit_usd": "5", "granted_usd": "1"}],
        ShownTimes(),
    )
    assert [(row.name, row.depth, row.state) for row in found.rows] == [
        ("ops", 0, "NEEDS YOU"),
        ("dig", 1, "ready"),
        ("shop", 0, "PAUSED"),
        ("lost", 0, "ready"),
    ]
    assert found.head(80, "Mon 12:00 ").startswith(" wakeful   4 agents   2 NEEDS YOU (F6)   today $0.44 of $6.00")
    table = found.table(60, "shop", 2)
    assert len(table) == 3
    assert table[2].startswith(">shop")
    assert all(len(line) <= 60 for line in table)
    assert "$0.0030" in found.table(80, "ops", 1)[1]


def test_an_agent_that_cannot_go_on_by_itself_needs_somebody_as_well() -> None:
    stuck = {**agent("shop", "paused"), "cause": "configuration", "reason": "there is no provider 'nope'"}
    alone = overview_of([stuck, agent("ops", "paused")], [], [], [], {}, [], ShownTimes())
    assert alone.head(80, "").startswith(" wakeful   2 agents   1 PAUSED: needs you   today $0.00")
    asked = overview_of([stuck], [], [{"agent": "shop"}], [], {}, [], ShownTimes())
    assert asked.head(80, "").startswith(" wakeful   1 agent   1 NEEDS YOU (F6)   1 PAUSED   today $0.00")


@pytest.mark.spec("HOL-CONSOLE-08")
def test_a_place_has_projection_and_access() -> None:
    places = {
        "active_workspace_entry": {
            "cwd": "/home/ada/shop", "mode": "worktree", "projection_kind": "git_worktree_root", "state": "missing"
        },
        "execution": {"profile": {"backend": "sandboxed", "process_execution_exposed": True}},
    }  # fmt: skip
    shown = place_line(places, "openai:gpt-5.5", 120)
    assert shown == (
        "workspace /home/ada/shop (worktree, git_worktree_root, MISSING)  commands sandboxed  openai:gpt-5.5"
    )
    assert place_line(places, "openai:gpt-5.5", 78) == (
        "workspace /home/ada/shop, MISSING  commands sandboxed  openai:gpt-5.5"
    ), "where there is no room, the path says the most"


def test_calls_of_a_turn_are_drawn_below_the_one_that_made_them() -> None:
    nodes = [
        {"id": "a", "parent_id": None, "name": "run_subtask", "title": "who?", "args_preview": "{}", "is_error": None,
         "duration_ms": 62_400, "cost": "0.04"},
        {"id": "b", "parent_id": "a", "name": "ls", "args_preview": '{"path": "src"}', "is_error": False,
         "duration_ms": 12},
        {"id": "c", "parent_id": "a", "name": "rm", "args_preview": "{}", "is_error": True, "duration_ms": 180_000},
    ]  # fmt: skip
    assert tree_lines(nodes, 60, ShownTimes()) == [
        '   .. run_subtask "who?"                        1 min  $0.04',
        '      ok ls {"path": "src"}                            0.0 s',
        "      failed rm                                        3 min",
    ]


def test_spans_are_short() -> None:
    assert [span(each) for each in (-1, 59, 60, 7200, 86_400 * 3)] == ["0 s", "59 s", "1 min", "2 h", "3 d"]


def test_long_names_are_told_apart_and_a_wide_screen_shows_them_whole() -> None:
    names = [f"a-very-long-name-for-the-shop-{number}" for number in (1, 2)]
    found = overview_of([agent(name, "awake_idle") for name in names], [], [], [], {}, [], ShownTimes())
    narrow, wide = (found.table(width, names[0], 2)[1:] for width in (80, 160))
    assert [row.split()[0].lstrip(">") for row in narrow] == ["a-very-…shop-1", "a-very-…shop-2"]
    assert [row.split()[0].lstrip(">") for row in wide] == names
    assert {len(row.rstrip()) <= 80 for row in narrow} == {True}


def test_the_head_gives_up_its_blanks_and_its_name_before_the_money() -> None:
    agents = [agent(f"a{number}", "paused") | {"cause": "configuration"} for number in range(10)]
    budgets = [{"scope": "runtime", "window": "day", "spent_usd": "0", "limit_usd": "5", "granted_usd": "0"}]
    found = overview_of(agents, [], [{"agent": "a1"}], [], {}, budgets, ShownTimes())
    head = found.head(80, "Mon 12:00 ")
    assert head.startswith(" 10 agents  1 NEEDS YOU (F6)   10 PAUSED  today $0.00 of $5.00") and len(head) <= 80
