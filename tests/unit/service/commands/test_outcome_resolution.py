"""A person's word on a call whose outcome is unknown reaches the call that was named, and no other."""

from pathlib import Path
from typing import Any

import pytest

from kit.runs.engine_runs import calls
from wakeful import Agent, DidNotHappen, OutcomeUnknown, open_store, run, tool
from wakeful.errors import CallNotFound
from wakeful.testing import scripted


@tool(effect="irreversible")
async def ship() -> str:
    raise OutcomeUnknown("the line went dead")


async def left_unknown(store: str, count: int) -> Any:
    agent = Agent("clerk", scripted([calls(*["ship"] * count), "done"]), tools=[ship])
    return await run(agent, "go", store=store)


async def test_a_whole_id_is_never_taken_for_the_beginning_of_another_one(tmp_path: Path) -> None:
    """Said twice, as by a program that was cut off from its answer."""
    store = str(tmp_path / "runs.db")
    result = await left_unknown(store, 11)
    async with open_store(store) as opened:
        await opened.resolve("call_1_1", DidNotHappen())
        with pytest.raises(CallNotFound, match="known already") as again:
            await opened.resolve("call_1_1", DidNotHappen())
        assert f"{result.turn_id}/call_1_1" in again.value.hint
        left = {row.call_id for row in await opened.unknown()}
    assert left == {f"call_1_{number}" for number in range(2, 12)}


async def test_the_beginning_of_several_ids_names_none_of_them(tmp_path: Path) -> None:
    store = str(tmp_path / "runs.db")
    await left_unknown(store, 2)
    async with open_store(store) as opened:
        with pytest.raises(CallNotFound, match="matches 2 calls"):
            await opened.resolve("call_1", DidNotHappen())
        assert len(await opened.unknown()) == 2


async def test_a_call_that_two_turns_have_is_named_with_its_turn(tmp_path: Path) -> None:
    store = str(tmp_path / "runs.db")
    first, second = await left_unknown(store, 1), await left_unknown(store, 1)
    async with open_store(store) as opened:
        with pytest.raises(CallNotFound, match="'call_1_1' matches 2 calls") as vague:
            await opened.resolve("call_1_1", DidNotHappen())
        assert all(f"{each.turn_id}/call_1_1" in vague.value.hint for each in (first, second))
        await opened.resolve(f"{first.turn_id}/call_1_1", DidNotHappen())
        assert [row.turn_id for row in await opened.unknown()] == [second.turn_id]
