"""Rows that are made again from the log of real runs are the rows that the runs left behind."""

from pathlib import Path
from typing import Any

import pytest

from kit.runs.engine_runs import calls
from wakeful import Agent, run, tool
from wakeful.store.sqlite import SqliteStore
from wakeful.testing import scripted


@tool(effect="pure")
def look() -> str:
    """Looks."""
    return "seen"


@tool(effect="irreversible", approval=True)
def pay(cents: int) -> str:
    """Pays."""
    return f"paid {cents}"


async def rows(store: Any, agent: str) -> list[Any]:
    """What readers ask for: turns, what waits for a person, what it cost, and the use of tokens."""
    return [
        await store.turns(),
        await store.actions(),
        await store.turn_costs(),
        await store.usage(agent),
        await store.unknown(),
    ]


@pytest.mark.spec("STD-VAL-06")
async def test_rows_made_again_from_the_log_of_runs_are_the_same(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "runs.db")
    try:
        usage = {"usage": {"input_tokens": 11, "output_tokens": 3}}
        done = Agent("shop", scripted([{**calls("look"), **usage}, {"text": "done", **usage}]), tools=[look, pay])
        waits = Agent("shop", scripted([calls(("pay", {"cents": 5}))]), tools=[look, pay])
        fails = Agent(
            "shop", scripted([{"fail": {"kind": "contract_error", "message": "wrong field"}}]), tools=[look, pay]
        )
        for agent, thread in ((done, "a"), (done, "b"), (waits, "c"), (fails, "d")):
            await run(agent, "go", store=store, thread=thread)
        live = await rows(store, "shop")
        assert [len(live[0]), len(live[1])] == [4, 1]
        await store.rebuild_views()
        assert await rows(store, "shop") == live
    finally:
        await store.close()
