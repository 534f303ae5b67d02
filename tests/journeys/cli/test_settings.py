"""Settings of an agent file, as a person at the terminal meets them."""

import json
from pathlib import Path

import pytest

from kit.surfaces.command_line import Wakeful
from kit.wires.provider_server import ProviderServer, messages_words


@pytest.fixture(autouse=True)
def here(provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-canary-0123456789abcdef")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", provider.url)


def test_a_setting_that_the_model_does_not_take_is_said_once_and_in_every_view(
    wakeful: Wakeful, provider: ProviderServer, tmp_path: Path
) -> None:
    provider.always = messages_words("hi")
    file = tmp_path / "writer.yaml"
    file.write_text("name: writer\nmodel: anthropic:claude-opus-4-7\nsettings: {seed: 7, max_tokens: 50}\n")
    words = "anthropic:claude-opus-4-7 does not take seed: the request was sent without"
    done = wakeful("run", "hello", "--agent", str(file), "--store", str(tmp_path / "runs.db"))
    assert (done.out, done.err.count(f"warning: {words}")) == ("hi\n", 1)
    assert provider.asked[0].body["max_tokens"] == 50 and "seed" not in provider.asked[0].body
    told = json.loads(wakeful("run", "hello", "--agent", str(file), "--store", str(tmp_path / "runs.db"), "--json").out)
    assert told["warnings"] == [words]
    events = wakeful("events", told["turn_id"], "--store", str(tmp_path / "runs.db"))
    assert f"settings_left_out: {words}" in events.out


def test_a_misspelt_setting_of_a_file_names_the_one_that_was_meant(
    wakeful: Wakeful, provider: ProviderServer, tmp_path: Path
) -> None:
    file = tmp_path / "writer.yaml"
    file.write_text("name: writer\nmodel: anthropic:claude-opus-4-7\nsettings: {temprature: 0.2}\n")
    done = wakeful("run", "hello", "--agent", str(file))
    assert (done.code, done.out, provider.asked) == (2, "", [])
    assert "Agent 'writer': 'temprature' is not a model setting" in done.err
    assert "did you mean 'temperature'?" in done.err
