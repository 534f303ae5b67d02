"""`wakeful events`: the log as it is stored, as it is watched, while it happens; and held to its schema."""

import json
import subprocess
import time
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from kit.runs.event_samples import AGENT, TURN, fact, message, turn_started
from kit.surfaces.command_line import Wakeful, command_line
from wakeful.contracts.errors import EventRefused
from wakeful.contracts.events import ModelRequested
from wakeful.store.memory import MemoryStore
from wakeful.surfaces.cli.screen import short
from wakeful.testing.validating_store import ValidatingStore

REFUND = ("run", "Refund A17.", "--model", "scripted:refund.yaml", "--tools", "shop:both")


@pytest.fixture
def turn(wakeful: Wakeful) -> str:
    return str(json.loads(wakeful(*REFUND, "--json").out)["turn_id"])


def test_times_are_the_reader_s_own(process: Wakeful, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = json.loads(process("run", "hello", "--json").out)["turn_id"]
    monkeypatch.setenv("TZ", "AWAY-9")  # nine hours ahead
    first = json.loads(process("events", stored, "--json").out.splitlines()[0])["timestamp"]
    told = process("events", stored).out.splitlines()[0].split()[1]
    at = datetime.fromisoformat(first) + timedelta(hours=9)
    assert told == f"{at:%H:%M:%S}{first[19:23]}"


def test_without_a_turn_the_newest_are_listed(wakeful: Wakeful, turn: str) -> None:
    newer = json.loads(wakeful("run", "hello", "--json").out)["turn_id"]
    listed = wakeful("events").out
    assert listed.index(short(newer)) < listed.index(short(turn))
    assert f"log of a turn: wakeful events {short(newer)}" in listed
    rows = [json.loads(line) for line in wakeful("events", "--json").out.splitlines()]
    assert [(row["turn_id"], row["state"]) for row in rows] == [(newer, "completed"), (turn, "completed")]


def test_the_log_hides_secrets_unless_they_are_asked_for(wakeful: Wakeful, turn: str) -> None:
    for options in (
        (),
        ("--json",),
        ("--as", "stream"),
        ("--as", "stream", "--json"),
        ("--as", "transcript", "--json"),
    ):
        shown = wakeful("events", turn, *options)
        assert shown.code == 0
        assert shown.out
        assert "hunter2" not in shown.out, options
    assert "hunter2" in wakeful("events", turn, "--json", "--reveal").out


def test_escapes_in_the_log_are_shown_as_text(wakeful: Wakeful, turn: str) -> None:
    for view in ("facts", "stream", "transcript"):
        shown = wakeful("events", turn, "--as", view).out
        assert "Done \\x1b[31mred." in shown
        assert "\x1b" not in shown


def test_a_kind_is_found_by_its_name_and_by_its_aliases(wakeful: Wakeful, turn: str) -> None:
    by_name = wakeful("events", turn, "--kind", "tool.result", "--json").out
    assert by_name == wakeful("events", turn, "--kind", "tool_executed", "--json").out
    assert [json.loads(line)["type"] for line in by_name.splitlines()] == ["tool.result", "tool.result"]
    wrong = wakeful("events", turn, "--kind", "tol.result")
    assert (wrong.code, wrong.out) == (2, "")
    assert "did you mean tool.result" in wrong.err


def test_a_reader_may_go_on_after_a_number(wakeful: Wakeful, turn: str) -> None:
    everything = wakeful("events", turn, "--json").out.splitlines()
    third = json.loads(everything[2])["sequence"]
    assert wakeful("events", turn, "--json", "--after", str(third)).out.splitlines() == everything[3:]


def test_the_stream_and_the_transcript_are_views_of_the_log(wakeful: Wakeful, turn: str) -> None:
    stream = [json.loads(line) for line in wakeful("events", turn, "--as", "stream", "--json").out.splitlines()]
    assert [event["type"] for event in stream if event["type"] in ("status", "tool_call", "tool_result")] == [
        *("status", "tool_call", "tool_result", "tool_call", "tool_result", "status"),
    ]
    said = [
        json.loads(line)["kind"] for line in wakeful("events", turn, "--as", "transcript", "--json").out.splitlines()
    ]
    assert said == ["user_message", *("assistant_round", "tool_result") * 2, "assistant_round"]


def test_following_shows_what_is_stored_then_what_another_process_writes_and_ends_with_the_turn(folder: Path) -> None:
    running = subprocess.Popen(
        command_line("run", "wait", "--model", "scripted:wait.yaml", "--tools", "shop:everything"),
        stdin=subprocess.DEVNULL,
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
    )
    while not (folder / "waiting").exists():
        assert running.poll() is None
        time.sleep(0.01)
    following = subprocess.Popen(
        command_line("events", "--follow", "--json"),
        stdin=subprocess.DEVNULL,
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert following.stdout is not None
    seen = []
    for line in following.stdout:
        seen.append(json.loads(line)["type"])
        if seen[-1] == "tool.started":  # as far as the log goes: now it may go on
            (folder / "go").touch()
    following.stdout.close()
    assert (following.wait(timeout=240), running.wait(timeout=240)) == (0, 0)
    assert running.stdout is not None
    running.stdout.close()
    assert (seen[0], seen[-1]) == ("message.admitted", "turn.completed")
    assert "tool.result" in seen


def test_a_turn_that_is_not_there_is_answered_with_one_that_is(wakeful: Wakeful, turn: str) -> None:
    done = wakeful("events", turn[:-1] + "!")
    assert (done.code, done.out) == (2, "")
    assert f"did you mean {turn}" in done.err


@pytest.mark.spec("STD-VAL-02")
async def test_events_are_held_to_the_schema_when_appended_in_tests(folder: Path) -> None:
    store = ValidatingStore(MemoryStore())
    await store.admit(AGENT, [fact(message(), step=None)])
    claim = await store.claim(TURN)
    wrong = ModelRequested.model_construct(model_ref="scripted:list")
    with pytest.raises(EventRefused, match="'items' is a required property"):
        await store.append(claim, [fact(turn_started(), step=None), fact(wrong)])


@pytest.mark.spec("STD-VAL-02")
def test_validate_checks_a_log_and_an_export_naming_event_and_path(wakeful: Wakeful, turn: str, folder: Path) -> None:
    whole = wakeful("events", "validate")
    assert whole.code == 0
    assert "every event fits the schema" in whole.out
    exported = wakeful("events", turn, "--json").out
    (folder / "log.jsonl").write_text(exported)
    fine = wakeful("events", "validate", "log.jsonl")
    assert (fine.code, fine.out) == (
        0,
        f"{len(exported.splitlines())} events of log.jsonl: every event fits the schema\n",
    )

    events = [json.loads(line) for line in exported.splitlines()]
    requested = next(event for event in events if event["type"] == "model.requested")
    del requested["payload"]["items"]
    result = next(event for event in events if event["type"] == "tool.result")
    result["payload"]["metadata"]["status"] = "splendid"
    events[-1]["sequence"] = 1
    lines = [json.dumps(event) for event in events]
    (folder / "log.jsonl").write_text("\n".join([*lines, "{no json", "[]"]))
    done = wakeful("events", "validate", "log.jsonl", "--json")
    assert done.code == 1
    errors = {(error["event"], error["path"]) for error in json.loads(done.out)["errors"]}
    assert errors == {
        (requested["event_id"], "payload"),
        (result["event_id"], "payload.metadata.status"),
        (events[-1]["event_id"], "sequence"),
        (f"line {len(lines) + 1}", ""),
        (f"line {len(lines) + 2}", ""),
    }
    told = wakeful("events", "validate", "log.jsonl").out
    assert f"{result['event_id']}: payload.metadata.status: 'splendid' is not one of" in told


@pytest.mark.spec("HOL-LAT-01")
def test_latency_is_computed_from_the_timings_that_the_events_carry(wakeful: Wakeful, turn: str) -> None:
    def payloads(name: str) -> list[dict[str, float]]:
        shown = wakeful("events", turn, "--kind", name, "--json").out
        return [json.loads(line)["payload"] for line in shown.splitlines()]

    report = json.loads(wakeful("debug", "latency", turn, "--json").out)
    rounds, tools = payloads("provider_round_completed"), payloads("tool_executed")
    (context,), (end,) = payloads("turn_context_built"), payloads("turn_terminal")
    assert len(rounds) == 3
    assert report["provider_ms"] == pytest.approx(sum(each["provider_round_ms"] for each in rounds))
    assert report["context_build_ms"] == pytest.approx(
        context["context_build_ms"] + sum(each["context_build_ms"] for each in rounds)
    )
    assert report["tools_ms"] == pytest.approx(sum(each["duration_ms"] for each in tools))
    assert (report["turn_ms"], report["active_ms"]) == (end["duration_ms"], end["active_ms"])
    words = wakeful("debug", "latency")
    assert words.out.startswith(f"turn {short(turn)}: ")
    assert "look_up" in words.out
