"""Traces and metrics of a real process that serves: they follow the log, and nothing waits for them."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.surfaces.served_home import HomeClient, ServedHome, served
from kit.surfaces.served_tokens import make_token
from kit.wires.otlp_receiver import OtlpReceiver, otlp_receiver

SECRET = "Bearer-word-of-the-collector"
_SERIES = re.compile(r"^([a-z_]+)(?:{(.*)})? ([0-9.e+]+)$", re.M)
_LABEL = re.compile(r'(\w+)="([^"]*)"')


@pytest.fixture(scope="module")
def receiver() -> Iterator[OtlpReceiver]:
    with otlp_receiver() as found:
        yield found


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, receiver: OtlpReceiver) -> Iterator[ServedHome]:
    folder = tmp_path_factory.mktemp("home")
    (folder / "wakeful.toml").write_text(
        f"""[telemetry]
endpoint = "{receiver.address}/"
headers_env = "OTLP_HEADERS"
metrics_route = true
timeout_seconds = 5
service_name = "shop"

[log]
format = "json"
"""
    )
    (folder / "secrets.env").write_text(f"OTLP_HEADERS=authorization={SECRET}\n")
    (folder / "secrets.env").chmod(0o600)
    with served(folder) as found:
        yield found


def say(home: ServedHome, text: str, thread: str) -> str:
    """The turn that answers a message, once it has ended."""
    client = home.client
    sent = client.post("/agents/clerk/messages", {"text": text, "thread": thread}).body
    until = time.monotonic() + 60
    while time.monotonic() < until:
        for turn in client.get("/turns?agent=clerk&limit=20").body:
            if turn["thread"] == thread and turn["state"] not in ("admitted", "running", "suspended"):
                return str(turn["turn_id"])
        time.sleep(0.05)
    raise AssertionError(f"{sent} was not answered")


def test_a_turn_comes_as_a_tree_of_spans_without_what_was_said(home: ServedHome, receiver: OtlpReceiver) -> None:
    turn = say(home, "please be slow 0.01, and tell nobody about Rosebud", "t1")
    receiver.until_sent(turn)
    spans = {span.span_id: span for span in receiver.spans}
    (root,) = [span for span in spans.values() if span.attributes.get("wakeful.turn.id") == turn]
    assert (root.name, root.parent_id, root.attributes["gen_ai.operation.name"]) == (
        "invoke_agent clerk",
        "",
        "invoke_agent",
    )
    assert root.attributes["wakeful.turn.status"] == "completed"
    assert root.attributes["gen_ai.conversation.id"] == "clerk/t1"
    below = [span for span in spans.values() if span.parent_id == root.span_id]
    assert sorted(span.name.split()[0] for span in below) == ["chat", "chat", "execute_tool"]
    assert {span.trace_id for span in below} == {root.trace_id}
    (call,) = [span for span in below if span.name == "execute_tool work_slowly"]
    assert call.attributes["wakeful.tool.effect"] == "pure" and call.nanoseconds >= 10_000_000
    assert "Rosebud" not in str(receiver.spans) and "0.01" not in str([span.attributes for span in below])
    assert receiver.headers[-1]["authorization"] == SECRET


def test_metrics_are_text_for_whoever_may_observe(home: ServedHome) -> None:
    say(home, "hello", "t2")
    looking = HomeClient(home.port, make_token(home.folder, "prometheus", ("observe",)))
    until = time.monotonic() + 60
    series: list[tuple[str, str, str]] = []
    while not any(name == "wakeful_turns_total" for name, _, _ in series):
        assert time.monotonic() < until
        answer = looking.get("/metrics")
        assert answer.status == 200 and answer.headers["content-type"].startswith("text/plain")
        series = _SERIES.findall(str(answer.body))
    ended = {labels: float(number) for name, labels, number in series if name == "wakeful_turns_total"}
    assert any('status="completed"' in labels for labels in ended)
    names = {name for name, _, _ in series}
    assert {"gen_ai_client_operation_duration_seconds_count", "wakeful_agents", "wakeful_turns_open"} <= names
    assert {label for _, labels, _ in series for label, _ in _LABEL.findall(labels)} <= {
        "status",
        "stop_reason",
        "state",
        "code",
        "le",
        "gen_ai_operation_name",
        "gen_ai_provider_name",
        "gen_ai_request_model",
        "gen_ai_token_type",
        "gen_ai_tool_name",
        "error_type",
        "service_name",
        "service_version",
        "service_instance_id",
        "telemetry_sdk_language",
        "telemetry_sdk_name",
        "telemetry_sdk_version",
    }
    assert HomeClient(home.port).get("/metrics").status == 401


def test_an_endpoint_that_hangs_or_refuses_holds_up_no_turn_and_gets_the_spans_later(
    home: ServedHome, receiver: OtlpReceiver
) -> None:
    receiver.released.clear()
    receiver.mood = "hang"
    first = say(home, "hello", "t3")
    asked = receiver.asked
    until = time.monotonic() + 60
    while receiver.asked == asked or not _problems(home):
        assert time.monotonic() < until, "the hanging address was not even asked, or nobody is told"
        time.sleep(0.05)
    receiver.mood = "refuse"
    receiver.released.set()
    second = say(home, "hello again", "t4")
    assert first not in receiver.turns() and second not in receiver.turns()
    (told,) = _problems(home)
    assert "takes no spans; they wait in the log" in told
    receiver.mood = "take"
    receiver.until_sent(first, second)
    while _problems(home):
        assert time.monotonic() < until, "it is told although spans are taken"


def _problems(home: ServedHome) -> list[str]:
    found: list[str] = home.client.get("/control/runtime/status").body["problems"]
    return [each for each in found if each.startswith("telemetry")]


def test_after_a_kill_spans_go_on_from_the_log_and_none_comes_twice(home: ServedHome, receiver: OtlpReceiver) -> None:
    receiver.mood = "refuse"
    unsent = say(home, "hello", "t5")
    home.kill()
    receiver.mood = "take"
    home.start()
    after = say(home, "hello", "t6")
    receiver.until_sent(unsent, after)


def test_no_token_and_no_header_reaches_the_log_of_the_daemon(home: ServedHome, tmp_path: Path) -> None:
    token = make_token(home.folder, "logged", ("operate",))
    asking: Any = HomeClient(home.port, token)
    assert asking.get("/agents/list").status == 200
    assert asking.get(f"/agents/{token}/status").status == 404
    said = home.said.read_text()
    assert token not in said and SECRET not in said


def test_metrics_are_sent_at_the_latest_when_the_daemon_ends(home: ServedHome, receiver: OtlpReceiver) -> None:
    say(home, "hello", "t7")
    until = time.monotonic() + 60
    while "wakeful_turns_total" not in str(home.client.get("/metrics").body):
        assert time.monotonic() < until
        time.sleep(0.05)
    assert home.end() == 0
    assert {"wakeful.turns", "gen_ai.client.operation.duration", "wakeful.agents"} <= receiver.metrics
    home.start()
