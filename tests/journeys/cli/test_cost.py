"""`wakeful cost`: what was spent, by whom and on what, with unknown called unknown."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kit.surfaces.command_line import Wakeful
from kit.wires import chat_streams
from kit.wires.provider_server import Answer, ProviderServer, chat_words, messages_words, refusal

CLAUDE = "anthropic:claude-opus-4-7"
COST = "0.00024625"
"""What one answer of the server costs, by the price in the owner's file."""
PRICE = """[providers.anthropic.prices."claude-opus-4-7"]
input = 5
output = 25
cached_input = 0.5
cache_write = 6.25
as_of = 2026-11-01
"""


@pytest.fixture
def spent(wakeful: Wakeful, provider: ProviderServer, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A store with three turns: one with a price, one of another agent with a lost attempt, one of a script."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-canary-0123456789abcdef")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", provider.url)
    (folder / "prices.toml").write_text(PRICE)
    monkeypatch.setenv("WAKEFUL_CONFIG", str(folder / "prices.toml"))
    (folder / "clerk.yaml").write_text(f"name: clerk\nmodel: {CLAUDE}\n")
    provider.answers = [messages_words("One."), refusal(529, "overloaded_error", "busy"), messages_words("Two.")]
    turns = {}
    for name, options in {
        "plain": ("--model", CLAUDE),
        "clerk": ("--agent", "clerk.yaml"),
        "free": ("--model", "scripted:fine.yaml"),
    }.items():
        (folder / "fine.yaml").write_text("- Fine.\n")
        done = wakeful("run", "hello", "--profile", "chat", "--json", *options)
        assert done.code == 0, done.err
        turns[name] = json.loads(done.out)["turn_id"]
    return turns


def rows(text: str) -> dict[str, list[str]]:
    return {line.split()[0]: line.split()[1:] for line in text.splitlines() if line}


def report(wakeful: Wakeful, *options: str) -> Any:
    return json.loads(wakeful("cost", "--json", *options).out)


def test_costs_are_added_up_by_model_and_a_script_costs_nothing(wakeful: Wakeful, spent: dict[str, str]) -> None:
    done = wakeful("cost")
    assert (done.code, done.err) == (0, "")
    shown = rows(done.out)
    assert shown["MODEL"] == ["CALLS", "INPUT", "CACHED", "OUTPUT", "COST", "USD"]
    assert (shown[CLAUDE][0], shown[CLAUDE][-1]) == ("3", "0.0004925"), "the lost attempt is a call, too"
    assert (shown["scripted:fine.yaml"][0], shown["scripted:fine.yaml"][-1]) == ("1", "0"), "a script costs nothing"
    assert (shown["total"][0], shown["total"][-1]) == ("4", "0.0004925")
    assert " ".join(shown["prices"]) == "settings of 2026-11-01"
    assert "unknown" not in done.out
    assert shown["turns"][:2] == ["3", "since"] and "older requests: --all" in done.out
    assert rows(wakeful("cost", "--all").out)["turns"] == ["3"]


def test_a_server_on_this_machine_costs_nothing_and_is_called_local(
    wakeful: Wakeful, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_BASE_URL", f"{provider.url}/v1")
    uncounted = chat_streams.stream(chat_streams.chunk({"content": "Two."}), chat_streams.chunk(finish="stop"))
    provider.answers = [chat_words("One."), Answer(uncounted)]
    for _ in provider.answers[:]:
        done = wakeful("run", "hello", "--profile", "chat", "--model", "ollama:qwen3", "--json", "--budget-usd", "1")
        assert done.code == 0, done.err
    assert json.loads(done.out)["cost_summary"]["total"]["local_calls"] == 1
    shown = wakeful("cost")
    assert rows(shown.out)["ollama:qwen3"][-2:] == rows(shown.out)["total"][-2:] == ["0", "local"]
    assert rows(shown.out)["prices"] == ["local"] and "unknown" not in shown.out
    found = report(wakeful)
    assert (found["total"]["local_calls"], found["cost_complete"]) == (2, True)
    assert found["price_lists"] == [{"name": "local", "date": None}]
    assert (
        "0 in, 0 out\n             USD per million tokens, by local\n" in wakeful("models", "show", "ollama:qwen3").out
    )


@pytest.mark.parametrize("by", ["model", "agent", "day", "depth"])
def test_whatever_they_are_added_up_by_the_total_is_the_same(wakeful: Wakeful, spent: dict[str, str], by: str) -> None:
    found = report(wakeful, "--by", by)
    assert sum(line["calls"] for line in found["groups"].values()) == found["total"]["calls"] == 4
    assert (found["by"], found["total"]["cost"], found["currency"]) == (by, "0.0004925", "USD")
    assert (found["cost_complete"], found["turns"]) == (True, 3)
    assert found["price_lists"] == [{"name": "settings", "date": "2026-11-01"}]
    today = f"{datetime.now():%Y-%m-%d}"
    keys = {"model": {CLAUDE, "scripted:fine.yaml"}, "depth": {"0"}}
    if by == "day":
        assert set(found["groups"]) <= {today, f"{datetime.now() - timedelta(days=1):%Y-%m-%d}"}
    elif by == "agent":
        assert found["groups"]["clerk"]["cost"] == COST and len(found["groups"]) == 2
    else:
        assert set(found["groups"]) == keys[by]
    assert wakeful("cost", "--by", by).out.startswith(by.upper())


def test_one_agent_one_turn_or_only_what_is_new(wakeful: Wakeful, spent: dict[str, str]) -> None:
    assert report(wakeful, "--agent", "clerk")["total"]["cost"] == COST
    one = report(wakeful, "--turn", spent["plain"])
    assert (one["turn_id"], one["total"]["calls"], one["cost_complete"]) == (spent["plain"], 1, True)
    since = f"{datetime.now() - timedelta(days=1):%Y-%m-%dT%H:%M}"
    assert report(wakeful, "--since", since)["total"]["calls"] == 4
    tomorrow = f"{datetime.now() + timedelta(days=1):%Y-%m-%d}"
    none = wakeful("cost", "--since", tomorrow)
    assert (none.code, none.out) == (0, f"no model requests since {tomorrow} 00:00:00\n")
    assert report(wakeful, "--today")["since"] is not None
    begins = datetime.fromisoformat(report(wakeful)["since"])
    assert begins <= datetime.now().astimezone() - timedelta(days=30) and report(wakeful, "--all")["since"] is None


def test_the_result_of_a_run_has_its_cost_by_model_and_depth(wakeful: Wakeful, spent: dict[str, str]) -> None:
    done = wakeful("run", "again", "--profile", "chat", "--json", "--model", "scripted:fine.yaml")
    summary = json.loads(done.out)["cost_summary"]
    assert summary["type"] == "cost_summary"
    assert summary["total"] == summary["by_model"]["scripted:fine.yaml"] == summary["by_depth"]["0"]
    assert (summary["total"]["unpriced_calls"], summary["cost_complete"]) == (0, True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--by", "colour"), "give one of: model, agent, day, depth"),
        (("--since", "soon"), "write 2026-11-01"),
        (("--since", "2026-11-01", "--today"), "give one of them"),
        (("--all", "--today"), "give one of them"),
        (("--agent", "clark"), "did you mean clerk?"),
        (("--agent", "clerk", "--turn", "t"), "leave --agent out"),
        (("--turn", "turn_nobody"), "there is no turn 'turn_nobody'"),
    ],
)
def test_a_question_that_makes_no_sense_is_answered_with_one_that_does(
    wakeful: Wakeful, spent: dict[str, str], options: tuple[str, ...], words: str
) -> None:
    done = wakeful("cost", *options)
    assert (done.code, done.out) == (2, "")
    assert words in done.err


def test_where_nothing_was_run_there_is_nothing_to_add_up(wakeful: Wakeful) -> None:
    assert wakeful("cost").code == 2
