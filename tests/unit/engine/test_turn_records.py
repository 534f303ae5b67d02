"""The records of a turn: gone when it is over."""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.runs.engine_runs import calls
from wakeful import Agent, Runtime, tool
from wakeful.decisions.state import ThreadSoFar, TurnState
from wakeful.engine.runner import TurnRunner
from wakeful.engine.steps import Steps
from wakeful.engine.turn_work import TurnWork
from wakeful.testing import scripted


@pytest.fixture
def without_collector() -> Iterator[None]:
    """Nobody looks for circles: what is left was not freed by itself."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def turn_records() -> list[object]:
    return [each for each in gc.get_objects() if isinstance(each, TurnWork | TurnRunner | Steps)]


@tool(effect="pure")
async def look(place: str) -> str:
    """Look somewhere."""
    return f"{place} is empty"


@pytest.mark.usefixtures("without_collector")
async def test_nothing_of_a_turn_waits_for_the_collector(tmp_path: Path) -> None:
    others = {id(each) for each in turn_records()}  # of tests before this one
    model = scripted([calls(("look", {"place": "the hall"})), "It is empty."])
    async with Runtime(tmp_path, agents=[Agent("ada", model, tools=[look])]) as rt:
        await rt.send("ada", "Look into the hall.")
        await rt.settled()
        left = [each for each in turn_records() if id(each) not in others]
    assert left == []


@pytest.mark.usefixtures("without_collector")
async def test_a_thread_in_use_keeps_what_its_next_turn_begins_with_and_no_state_of_a_turn(tmp_path: Path) -> None:
    def kept(kind: type) -> set[int]:
        return {id(each) for each in gc.get_objects() if isinstance(each, kind)}

    states, threads = kept(TurnState), kept(ThreadSoFar)
    model = scripted(lambda request: str(len(request.history)))
    async with Runtime(tmp_path, agents=[Agent("ada", model)]) as rt:
        for words in ("One.", "Two."):
            await rt.send("ada", words)
            await rt.settled()
        assert kept(TurnState) - states == set()
        assert len(kept(ThreadSoFar) - threads) == 1
        (last,) = (await rt.briefs("ada"))[:1]
        assert last.text == "3", "the second turn went on with the conversation of the first"
