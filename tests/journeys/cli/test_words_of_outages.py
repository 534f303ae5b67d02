"""What people see while an agent of the daemon waits for its provider, and how they have it asked at once."""

import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.surfaces.command_line import Wakeful
from kit.surfaces.served_home import ServedHome, served
from kit.surfaces.shown_terminal import at_terminal
from wakeful.service.serving.options import ServeOptions
from wakeful.testing import ProviderServer
from wakeful.testing.provider_server import WireRequest

AGENT = "name: clerk\nmodel: openai:gpt-5.5\ninstructions: Answer.\n"


def replies(asked: WireRequest) -> Any:
    """`look` has a tool called first."""
    if asked.prompt.endswith("look") and not asked.rounds:
        return {"calls": [{"name": "agent_get", "arguments": {}}]}
    return "There you are."


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer(replies) as found:
        found.weather.always("503 after=3600")
        yield found


@pytest.fixture
def home(tmp_path: Path, server: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedHome]:
    for name, value in server.environment().items():
        monkeypatch.setenv(name, value)
    folder = tmp_path / "home"
    monkeypatch.setenv("WAKEFUL_HOME", str(folder))
    (folder / "agents").mkdir(parents=True)
    (folder / "agents" / "clerk.yaml").write_text(AGENT)
    with served(folder, ServeOptions(host=None)) as found:
        yield found


def until(holds: Callable[[], object]) -> Any:
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        if found := holds():
            return found
        time.sleep(0.05)
    raise AssertionError("it never came to that")


def waiting(home: ServedHome) -> str:
    """A turn of the clerk that waits for its provider."""
    message = home.client.post("/agents/clerk/messages", {"text": "Hello."}).body["message_id"]
    until(lambda: home.client.get("/overview").body["agents"][0]["waiting_for"])
    return str(home.client.get(f"/messages/{message}").body["turn_id"])


def test_every_view_names_the_provider_and_the_command_that_asks_it(home: ServedHome, wakeful: Wakeful) -> None:
    waiting(home)
    for command in (("status",), ("agent",)):
        shown = wakeful(*command).out
        assert "waiting for openai" in shown and "idle" not in shown
        assert max(map(len, shown.splitlines())) <= 80
    for command in (("status", "clerk"), ("why", "clerk")):
        shown = " ".join(wakeful(*command).out.split())
        assert "openai does not answer since" in shown and "it is asked again at" in shown
        assert "To ask it now: wakeful agent resume clerk" in shown
    shown = wakeful("daemon", "status").out
    assert "0 working, 1 waiting" in shown and "openai does not answer since" in shown
    [clerk] = home.client.get("/agents").body
    assert clerk["waiting_for"] == "openai"


def test_resume_asks_a_provider_at_once_that_wanted_to_be_left_alone_for_an_hour(
    home: ServedHome, server: ProviderServer, wakeful: Wakeful
) -> None:
    turn = waiting(home)
    server.weather.clear()
    told = wakeful("resume", turn)
    assert (told.code, told.err) == (0, "") and "asks openai now" in told.out
    assert home.client.until_over(turn)["state"] == "completed"


def test_resume_over_http_asks_it_at_once_too(home: ServedHome, server: ProviderServer) -> None:
    turn = waiting(home)
    server.weather.clear()
    assert home.client.post(f"/turns/{turn}/resume").body["accepted"]
    assert home.client.until_over(turn)["state"] == "completed"


def test_whoever_waits_at_a_terminal_sees_what_the_turn_does_after_an_outage(
    home: ServedHome, server: ProviderServer, folder: Path
) -> None:
    """Its quick attempts are lost, so the turn rests until the provider answers."""
    server.weather.clear()
    server.weather.next("503", "503", "503")
    with at_terminal("run", "look", "--agent", "clerk", folder=folder, answers=subprocess.DEVNULL) as shown:
        code, words = shown.to_end()
    lost, looked = words.rindex("503: Service Unavailable"), words.index("→ agent_get")
    assert code == 0 and lost < looked < words.index("✓ agent_get"), words
