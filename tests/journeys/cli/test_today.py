"""What was spent today is one figure, whoever is asked, and says what of it is held for requests that were cut off."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from kit.surfaces.command_line import Wakeful
from kit.wires.provider_server import Answer, ProviderServer, responses_words
from wakeful.surfaces.tui.overview import overview_of
from wakeful.surfaces.tui.shown_times import ShownTimes

OWNER = """
[budget]
per_day = {usd = 20}
timezone = "Pacific/Kiritimati"

[providers.openai.prices."gpt-5.5"]
input = 5
output = 30
"""


@pytest.fixture
def spent(folder: Path, wakeful: Wakeful, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two runs: one was answered, of the other the first stream was cut."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-0123456789abcdef")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")
    (folder / "owner.toml").write_text(OWNER)
    monkeypatch.setenv("WAKEFUL_CONFIG", str(folder / "owner.toml"))
    whole = responses_words("One.")
    cut = Answer(whole.body[: len(whole.body) // 3])
    provider.answers = [whole, cut, whole]
    for _ in range(2):
        done = wakeful("run", "hello", "--profile", "chat", "--model", "openai:gpt-5.5")
        assert done.code == 0, done.err
    return folder


def shown(wakeful: Wakeful, *command: str) -> Any:
    return json.loads(wakeful(*command, "--json").out)


def test_today_is_one_figure_and_names_what_was_held_for_requests_that_were_cut_off(
    spent: Path, wakeful: Wakeful
) -> None:
    (window,) = shown(wakeful, "budget")
    total = shown(wakeful, "cost", "--today")["total"]
    cut_off, cost = Decimal(total["cut_off"]), Decimal(total["cost"])
    assert 3 < cut_off < 4, "the whole answer of a model that may write for 3.84 dollars"
    assert Decimal(window["spent_usd"]) == cost + cut_off and 0 < cost < 1
    (line,) = shown(wakeful, "status")["agents"]
    assert Decimal(line["spent_today_usd"]) == cost + cut_off
    assert Decimal(line["cut_off_today_usd"]) == cut_off

    assert f"cut off  {cut_off} were reserved for requests that were cut off, and budgets count them" in (
        wakeful("cost", "--today").out
    )
    words = f"{cut_off} were reserved for requests that were cut off"
    assert words in wakeful("budget").out
    assert f"{cut_off} USD were reserved for requests that were cut off" in wakeful("status").out


def test_the_terminal_shows_the_same_figure(spent: Path, wakeful: Wakeful) -> None:
    report, windows = shown(wakeful, "cost", "--today", "--by", "agent"), shown(wakeful, "budget")
    (name,) = report["groups"]
    agents = [{"agent": name, "status": "awake_idle", "cause": ""}]
    with_limit = overview_of(agents, [], [], [], report, windows, ShownTimes())
    without = overview_of(agents, [], [], [], report, [], ShownTimes())
    spent_usd = round(float(windows[0]["spent_usd"]), 2)
    assert with_limit.rows[0].today == without.rows[0].today == f"${spent_usd:.2f}"
    held = f"(${float(report['total']['cut_off']):.2f} held)"
    assert with_limit.spent == f"today ${spent_usd:.2f} of $20.00 {held}"
    assert without.spent == f"today ${spent_usd:.2f} {held}"
