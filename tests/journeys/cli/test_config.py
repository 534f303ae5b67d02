"""`wakeful config`: the settings that are in force, where each comes from, and the file to change them in."""

import json
from pathlib import Path
from typing import Any

import pytest

from kit.surfaces.command_line import Wakeful
from kit.surfaces.served_home import served

FILE = """\
store = "runs.db"

[budget]
per_day = {usd = 5}

[log]
level = "debug"

[notify.phone]
to = "https://ntfy.example/very-secret-topic"

[providers.vllm]
base_url = "http://ana:pass@127.0.0.1:8000/v1"
headers = {x-team = "team-secret"}

[[hooks]]
command = ["true"]
"""


@pytest.fixture
def owner(folder: Path) -> Path:
    path = folder / "home" / "wakeful.toml"
    path.parent.mkdir()
    path.write_text(FILE)
    return path


def settings(wakeful: Wakeful, *arguments: str) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in json.loads(wakeful("config", *arguments, "--json").out)["settings"]}


def test_each_value_has_its_line_its_variable_or_its_default(
    wakeful: Wakeful, owner: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAKEFUL_OFFLINE", "1")
    monkeypatch.setenv("WAKEFUL_TOKEN", "wk_very_secret")
    found = settings(wakeful)
    of = {name: (each["value"], each["source"], each["line"] or each["variable"]) for name, each in found.items()}
    assert of["store"] == ("runs.db", "file", 1)
    assert of["budget.per_day"] == ({"usd": 5}, "file", 4)
    assert of["log.level"] == ("debug", "file", 7)
    assert of["log.format"] == ("text", "default", None)
    assert of["models.offline"] == (True, "environment", "WAKEFUL_OFFLINE")
    assert of["models.allow"] == (None, "default", None)
    assert of["runtime.default_tool_output_tokens"] == (8000, "default", None)
    assert of["hooks[0].command"] == (["true"], "file", 17)
    words = wakeful("config")
    assert words.code == 0 and "no daemon runs" in words.out and "$WAKEFUL_OFFLINE" in words.out
    assert "log.format" not in words.out and "log.format" in wakeful("config", "--all").out
    assert [line.split()[0] for line in wakeful("config", "log").out.splitlines()] == [
        "SETTING",
        "log.format",
        "log.level",
    ]
    assert wakeful("config", "show").out == words.out


def test_no_secret_of_the_file_or_the_environment_is_shown(
    wakeful: Wakeful, owner: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAKEFUL_TOKEN", "wk_very_secret")
    shown = wakeful("config", "--all").out + wakeful("config", "--json").out
    assert not any(secret in shown for secret in ("very-secret", "wk_very", "team-secret", "pass@"))
    assert "https://ntfy.example/[redacted]" in shown and "WAKEFUL_TOKEN=[redacted]" in shown
    assert "http://127.0.0.1:8000/v1" in shown


def test_the_file_is_named_checked_and_never_written(wakeful: Wakeful, owner: Path) -> None:
    assert wakeful("config", "path") == (0, f"{owner}\n", "")
    assert json.loads(wakeful("config", "path", "--json").out) == {"path": str(owner), "exists": True}
    assert wakeful("config", "check").out == wakeful("check").out
    wrong = wakeful("config", "buget")
    assert wrong.code == 2 and "did you mean budget?" in wrong.err
    owner.write_text(FILE + "[nothing]\n")
    broken = wakeful("config")
    assert broken.code == 2 and "no setting 'nothing'" in broken.err
    assert wakeful("config", "check").code == 2 and wakeful("config", "path").code == 0
    assert owner.read_text() == FILE + "[nothing]\n"
    no_store = wakeful("config", "--store", "x.db")
    assert no_store.code == 2 and "no such option: --store" in no_store.err


def test_a_daemon_says_what_it_goes_by_and_why_the_file_is_not_it(wakeful: Wakeful, owner: Path) -> None:
    owner.write_text('[log]\nlevel = "warning"\n')
    with served(owner.parent) as home:
        first = json.loads(wakeful("config", "--json").out)
        assert first["is_daemon"] and not first["problems"]
        assert settings(wakeful)["log.level"]["value"] == "warning"
        owner.write_text("[budget]\nper_day = {usd = 7}\n[nothing]\n")
        assert wakeful("reload").code != 0
        held = wakeful("config")
        assert held.code == 0 and "warning" in held.out and "per_day" not in held.out
        assert "no setting 'nothing'" in held.err, "the last good file is in force, and it is said why"
        owner.write_text("[budget]\nper_day = {usd = 7}\n")
        assert "wakeful reload" in wakeful("config").err or settings(wakeful)["budget.per_day"]["line"] == 2
        wakeful("reload")
        assert settings(wakeful)["budget.per_day"]["line"] == 2
        assert home.client.get("/control/runtime/settings").status == 200


def test_a_prompt_asks_the_default_agent_and_prints_its_answer(wakeful: Wakeful, folder: Path) -> None:
    nobody = wakeful("prompt", "hello")
    assert nobody.code == 2 and "wakeful daemon start" in nobody.err
    with served(folder / "home") as home:
        home.client.post("/agents", {"definition": {"name": "main", "model": "scripted:demo"}})
        assert wakeful("prompt", "hello").code == 0
        asked = wakeful("prompt", "good morning", "--agent", "clerk", "--thread", "talk")
        assert (asked.code, asked.out.splitlines()[-1]) == (0, "good morning")
        found = json.loads(wakeful("prompt", "again", "--agent", "clerk", "--json").out)
        assert (found["agent"], found["status"]) == ("clerk", "completed")
        waits = wakeful("prompt", "refund 5", "--agent", "clerk", "--thread", "money")
        assert waits.code == 3 and "wakeful approvals approve" in waits.err
        assert wakeful("prompt", "x", "--agent", "nobody").code == 2
