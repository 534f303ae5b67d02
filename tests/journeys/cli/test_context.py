"""`wakeful context`: what the model was shown in a turn, and why each part was in or out."""

import json
from pathlib import Path

import pytest

from kit.surfaces.command_line import Wakeful
from wakeful.surfaces.cli.screen import short

LONG = '''
from wakeful import Agent, tool
from wakeful.testing import scripted

@tool(effect="pure")
def look(x: str, password: str = "") -> str:
    """Look."""
    return f"saw {x} " + "lorem " * 200

def answer(request):
    if request.level and "~compaction:" in request.level:
        return "the gist \\x1b[31m of it"
    if request.level == "~plan":
        return "1. look around"
    if request.answered < 12:
        return {"calls": [{"name": "look", "arguments": {"x": str(request.answered % 6), "password": "hunter2"}}]}
    return "done"

clerk = Agent("clerk", scripted(answer, context_window=4000), "Serve.", tools=[look], planning_enabled=True)
'''


@pytest.fixture(autouse=True)
def long(folder: Path) -> None:
    (folder / "long.py").write_text(LONG)


def test_what_a_turn_was_shown_is_told_with_its_reasons(wakeful: Wakeful) -> None:
    done = json.loads(wakeful("run", "find it", "--tools", "long:clerk", "--json").out)
    told = wakeful("context", done["turn_id"])
    assert told.code == 0, told.err
    assert f"turn {short(done['turn_id'])} of agent clerk, window of 4,000 tokens\nthread main\n" in told.out
    for part in ("instructions", "plan", "tools", "summary", "history"):
        assert f"\n{part} " in told.out
    assert "left out: superseded_by_summary, cmp_" in told.out
    assert "planner 1" in told.out and "compaction 1" in told.out
    assert "stands for" in told.out and "tokens before" in told.out
    assert "the gist" in told.out and "\x1b" not in told.out
    assert "hunter2" not in told.out

    view = json.loads(wakeful("context", "--json").out)
    assert view["turn_id"] == done["turn_id"], "left out: the newest turn"
    assert [section["kind"] for section in view["sections"]] == ["tools", "instructions", "plan", "summary", "history"]
    assert view["tools"] == ["look"]
    root = [request for request in view["requests"] if request["level"] is None]
    assert [request["step"] for request in root] == list(range(1, 14))
    assert root[0]["rests_on"] is None and root[-1]["rests_on"] == view["summaries"][-1]["compaction_id"]
    (first, *_) = view["summaries"]
    assert first["outcome"] == "completed" and first["tokens_before"] > first["tokens_after"]
    assert view["tokens_folded"] == sum(each["tokens_before"] - each["tokens_after"] for each in view["summaries"])
    assert view["folded_calls"] >= 5
    again = view["read_again"]
    assert again and {each["tool"] for each in again} == {"look"}, "it looked at the same things a second time"
    assert all(each["arguments"]["password"] == "[redacted]" for each in again)
    assert f"requested again: {len(again)}" in told.out


def test_the_messages_of_one_request_are_shown(wakeful: Wakeful) -> None:
    done = json.loads(wakeful("run", "find it", "--tools", "long:clerk", "--json").out)
    first = wakeful("context", done["turn_id"], "--step", "1")
    assert "step 1: 1 messages to scripted:inline" in first.out and "find it" in first.out
    (last,) = json.loads(wakeful("context", "--step", "13", "--json").out)["requests"]
    assert last["items"] == len(last["shown"])
    assert last["shown"][0]["is_summary"] and last["shown"][0]["preview"].startswith("[Summary")
    assert [item["place"] for item in last["shown"]] == list(range(1, last["items"] + 1))
    wrong = wakeful("context", "--step", "99")
    assert wrong.code == 2 and "has no step 99" in wrong.err and "1 to 13" in wrong.err


def test_a_later_turn_says_on_which_summary_it_rests(wakeful: Wakeful) -> None:
    first = json.loads(wakeful("run", "find it", "--tools", "long:clerk", "--thread", "t", "--json").out)
    wakeful("run", "and now?", "--tools", "long:clerk", "--thread", "t")
    root = [each for each in json.loads(wakeful("context", "--json").out)["requests"] if each["level"] is None]
    folded = json.loads(wakeful("context", first["turn_id"], "--json").out)["summaries"]
    assert root[0]["rests_on"] == folded[-1]["compaction_id"]


def test_a_turn_there_is_not_is_named(wakeful: Wakeful) -> None:
    wakeful("run", "x", "--tools", "long:clerk")
    missing = wakeful("context", "turn_nope")
    assert missing.code != 0 and "there is no turn 'turn_nope'" in missing.err
