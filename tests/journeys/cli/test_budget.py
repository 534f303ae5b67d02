"""`wakeful budget`: what is spent in which window, a run that waits for money, and a grant that lets it go on."""

import json
from pathlib import Path
from typing import Any

import pytest

from kit.surfaces.command_line import Wakeful
from kit.wires.provider_server import ProviderServer, messages_words
from wakeful.contracts.envelope import iso
from wakeful.surfaces.cli.shown_values import moment

CLAUDE = "anthropic:claude-opus-4-7"


@pytest.fixture
def owner(folder: Path, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An owner who allows little a month; the model costs a fraction of a cent, and at most some cents."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-canary-0123456789abcdef")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", provider.url)
    price = "input = 5\noutput = 25\ncached_input = 0.5\ncache_write = 6.25\n"
    (folder / "prices.toml").write_text(f'[providers.anthropic.prices."claude-opus-4-7"]\n{price}')
    monkeypatch.setenv("WAKEFUL_CONFIG", str(folder / "prices.toml"))
    (folder / "clerk.yaml").write_text(
        f"name: clerk\nmodel: {CLAUDE}\nmax_tokens: 1000\nbudget: {{per_month: {{usd: 0.0300}}}}\n"
    )
    return folder


def shown(wakeful: Wakeful) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(wakeful("budget", "--json").out)
    return rows


def test_a_run_waits_for_money_says_so_and_goes_on_after_a_grant(
    wakeful: Wakeful, owner: Path, provider: ProviderServer
) -> None:
    provider.answers = [messages_words("One."), messages_words("Two.")]
    first = wakeful("run", "hello", "--profile", "chat", "--agent", "clerk.yaml")
    assert first.code == 0, first.err
    (row,) = shown(wakeful)
    resets_at, own = iso(round(row["resets_at"] * 1_000_000)), moment(round(row["resets_at"] * 1_000_000))
    assert (row["scope"], row["window"], row["limit_usd"]) == ("agent:clerk", "month", "0.03")
    assert (row["spent_usd"], row["reserved_usd"], row["granted_usd"]) == ("0.00024625", "0", "0")
    table = wakeful("budget").out.splitlines()
    assert table[0].split() == ["SCOPE", "WINDOW", "LIMIT", "GRANTED", "SPENT", "RESERVED", "RESETS", "AT"]
    assert table[1].split() == ["agent:clerk", "month", "0.03", "0", "0.00024625", "0", *own.split()]

    (owner / "clerk.yaml").write_text((owner / "clerk.yaml").read_text().replace("0.0300", "0.0252"))
    waits = wakeful("run", "again", "--profile", "chat", "--agent", "clerk.yaml")
    assert waits.code == 3 and waits.out == ""
    left = f"0.0249 USD are left of the month of agent clerk, which turns at {resets_at}, and the next request needs up"
    assert f"waiting (cost): {left} to 0.0251 USD; nothing is lost" in waits.err
    assert "more for this month: wakeful budget grant --agent clerk --usd AMOUNT --window month" in waits.err
    listed = wakeful("resume", "--list").out
    turn = next(line.split()[0] for line in listed.splitlines() if line.startswith("turn"))
    assert f"{turn} waits for the month of agent clerk" in listed
    again = wakeful("resume", turn)
    assert again.code == 3 and left in again.err
    assert len(provider.asked) == 1, "nothing was sent"

    granted = wakeful("budget", "grant", "--agent", "clerk", "--usd", "0.01", "--reason", "a launch")
    assert granted.code == 0, granted.err
    assert granted.out.splitlines()[0] == (f"agent clerk may spend 0.01 dollars more in this month, until {own}")
    done = wakeful("resume", turn)
    assert (done.code, done.out) == (0, "Two.\n"), done.err
    (row,) = shown(wakeful)
    assert (row["granted_usd"], row["spent_usd"], row["limit_usd"]) == ("0.01", "0.0004925", "0.0252")


def test_the_owners_windows_are_shown_before_anything_is_spent(
    wakeful: Wakeful, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "fine.yaml").write_text("- Fine.\n")
    assert wakeful("run", "hello", "--profile", "chat", "--model", "scripted:fine.yaml").code == 0
    assert wakeful("budget").out == "no spending limits apply now\n"
    monkeypatch.setenv("WAKEFUL_CONFIG", str(folder / "owner.toml"))
    (folder / "owner.toml").write_text('[budget]\nper_day = {usd = 5}\n[principals."ada"]\nper_hour = {usd = 1}\n')
    rows = shown(wakeful)
    assert [(row["scope"], row["window"], row["limit_usd"], row["spent_usd"]) for row in rows] == [
        ("principal:ada", "hour", "1", "0"),
        ("runtime", "day", "5", "0"),
    ]
    monkeypatch.setenv("OLLAMA_BASE_URL", "http://10.0.0.1/v1")  # another machine's
    refused = wakeful("run", "hello", "--profile", "chat", "--model", "ollama:qwen3")
    assert refused.code == 1 and "its price is not known" in refused.err
    more = json.loads(wakeful("budget", "grant", "--usd", "2", "--json").out)
    assert (more["scope"], more["limit_usd"], more["granted_usd"]) == ("runtime", "5", "2")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--usd", "0"), "a grant cannot be '0' dollars"),
        (("--usd", "x", "--window", "day"), "usd='x'"),
        (("--usd", "1", "--window", "week"), "--window week: there is no such period"),
        (("--usd", "1", "--agent", "a", "--principal", "b"), "--agent and --principal"),
        (("--usd", "1", "--agent", "assistant"), "name the limit to raise: --window day"),
        (("--usd", "1", "--agent", "asistant", "--window", "day"), "did you mean assistant?"),
    ],
)
def test_a_grant_that_cannot_be_made_says_why(
    wakeful: Wakeful, folder: Path, options: tuple[str, ...], words: str
) -> None:
    (folder / "fine.yaml").write_text("- Fine.\n")
    assert wakeful("run", "hello", "--profile", "chat", "--model", "scripted:fine.yaml").code == 0
    done = wakeful("budget", "grant", *options)
    assert done.code == 2 and words in done.err
    assert shown(wakeful) == []
