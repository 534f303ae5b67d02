"""The first files of a home: readable by the runtime, for their owner alone, and never over others."""

import tomllib
from pathlib import Path

import pytest
import yaml

from wakeful.contracts.errors import InvalidRequest
from wakeful.service.setup_files import (
    WayToOwner,
    agent_file,
    agent_text,
    keep_secrets,
    owner_text,
    reach_of,
    write_new,
)


def test_the_owners_file_says_what_was_answered() -> None:
    text = owner_text(
        spend=2.5,
        reach=reach_of("https://ntfy.sh/topic"),
        base_url=("openai", "http://127.0.0.1:1/v1"),
        environ={"TZ": "Europe/Berlin"},
    )
    assert tomllib.loads(text) == {
        "budget": {"per_day": {"usd": 2.5}, "timezone": "Europe/Berlin"},
        "notify": {"me": {"to_env": "NOTIFY_URL"}},
        "providers": {"openai": {"base_url": "http://127.0.0.1:1/v1"}},
    }
    assert "topic" not in text  # whoever knows the address reads the notices


@pytest.mark.parametrize(
    ("said", "lines"),
    [
        ("none", ()),
        ("notify-send wakeful", ("[notify.me]", 'to = ["notify-send", "wakeful"]')),
        ("/usr/local/bin/tell", ("[notify.me]", 'to = ["/usr/local/bin/tell"]')),
    ],
)
def test_ways_to_be_reached(said: str, lines: tuple[str, ...]) -> None:
    assert reach_of(said) == WayToOwner(lines)


@pytest.mark.parametrize("said", ["phone", "ftp://x/y", "https://", 'tell "me'])
def test_a_way_that_leads_nowhere_is_refused_with_those_there_are(said: str) -> None:
    with pytest.raises(InvalidRequest) as problem:
        reach_of(said)
    assert "ntfy or telegram" in problem.value.hint


def test_an_agents_file_holds_any_words(tmp_path: Path) -> None:
    words = 'Check "it": {now}\n# and: then'
    text = agent_text(
        "ops", "openai:gpt-5.5", words, workspace=tmp_path, wake=[{"cron": "0 7 * * *", "say": words}], notify=True
    )
    assert yaml.safe_load(text) == {
        "name": "ops",
        "model": "openai:gpt-5.5",
        "instructions": words,
        "workspace": str(tmp_path),
        "wake": [{"cron": "0 7 * * *", "say": words}],
        "notify": {"to": "me"},
    }


def test_a_file_that_is_there_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "wakeful.toml"
    write_new(path, "mine")
    with pytest.raises(InvalidRequest, match="is there already"):
        write_new(path, "yours")
    assert path.read_text() == "mine"
    write_new(path, "yours", replace=True)
    assert (path.read_text(), (tmp_path / "wakeful.toml.old").read_text()) == ("yours", "mine")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["wakeful.toml", "wakeful.toml.old"]


def test_secrets_are_added_and_lines_that_are_there_stay(tmp_path: Path) -> None:
    path = tmp_path / "secrets.env"
    path.write_text("# mine\nexport A=old\n")
    assert keep_secrets(path, {"A": "new", "B": "b c"}) == ["B"]
    assert path.read_text() == "# mine\nexport A=old\nB='b c'\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert keep_secrets(path, {"A": "new"}) == []
    with pytest.raises(InvalidRequest, match="cannot be kept"):
        keep_secrets(path, {"C": "two\nlines"})


def test_secrets_are_replaced_where_that_is_asked_for_and_others_stay(tmp_path: Path) -> None:
    path = tmp_path / "secrets.env"
    path.write_text("# A=mine\nexport A=old\nOTHER='stays'\nA=older\n")
    path.chmod(0o600)
    assert keep_secrets(path, {"A": "new", "B": "b"}, replace=True) == ["A", "B"]
    assert path.read_text() == "# A=mine\nOTHER='stays'\nA='new'\nB='b'\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["secrets.env"], "no copy of the old ones"


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "a b"])
def test_a_name_that_is_no_name_of_a_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidRequest, match="not a name for an agent"):
        agent_file(tmp_path, name)
