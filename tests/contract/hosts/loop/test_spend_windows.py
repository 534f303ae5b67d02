"""A host's turn runner where the owner limits what is spent over time: priced it runs, unpriced it is told how to."""

from pathlib import Path
from typing import Any

import pytest

from kit.hosts.loop_host import Host
from kit.runs.engine_runs import facts_of, kinds
from wakeful.contracts.errors import InvalidConfig
from wakeful.hosts import ConversationLoop
from wakeful.testing import FixedClock

SAID = {"content": "hello", "usage": {"prompt_tokens": 1_000, "completion_tokens": 1_000}}
HELLO = [{"role": "user", "content": "hello"}]


@pytest.fixture(autouse=True)
def owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = tmp_path / "wakeful.toml"
    settings.write_text("[budget]\nper_day = {usd = 0.05}\n")
    monkeypatch.setenv("WAKEFUL_CONFIG", str(settings))


def loop_of(host: Host, **options: Any) -> ConversationLoop:
    return ConversationLoop(store=host.store, hooks=host.hooks, clock=FixedClock(), **options)


async def test_a_turn_runner_whose_price_is_known_runs_until_the_window_is_full_and_leaves_nothing_waiting() -> None:
    host = Host(*[SAID] * 40)
    loop = loop_of(host, price={"input": "0", "output": "12"})  # its longest answer fits into a whole window
    assert (await loop.run(HELLO, host.turn_runner)).completed
    (row,) = await host.store.spending(["runtime"], after=0)
    assert (row.spent, row.held) == (12_000_000, 0)
    asked = len(host.turns)
    while (full := await loop.run(HELLO, host.turn_runner)).completed:
        asked = len(host.turns)
    assert (full.status, full.completed, full.budget) == ("budget_exceeded", False, "cost")
    assert "the day of the runtime" in full.metadata["spend_window"]
    assert len(host.turns) == asked, "the turn runner is not asked"
    assert await host.store.turns(open_only=True) == []


async def test_one_that_fits_into_no_window_is_over_and_nobody_asks_it_to_stop() -> None:
    host = Host(SAID)
    result = await loop_of(host, price={"input": "0", "output": "1000"}).run(HELLO, host.turn_runner)
    assert (result.status, result.budget, len(host.turns)) == ("budget_exceeded", "cost", 1)
    (row,) = await host.store.turns()
    assert "turn.interrupt.requested" not in kinds(await facts_of(host.store, row.turn_id))


async def test_one_without_a_price_is_refused_and_says_how_to_name_one() -> None:
    host = Host(SAID)
    result = await loop_of(host).run(HELLO, host.turn_runner)
    assert result.status == "failed" and len(host.turns) == 1
    assert "ConversationLoop(price=" in str(result.failure)


def test_a_price_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidConfig, match="ConversationLoop: price: output is missing"):
        ConversationLoop(price={"input": 3})
