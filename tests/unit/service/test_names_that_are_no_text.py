"""Keys, threads and names that are empty, too long or no Unicode text are refused before anything is stored."""

from pathlib import Path
from typing import Any

import pytest

from wakeful import Agent, resume, run
from wakeful.contracts.errors import InvalidValue, WakefulError
from wakeful.providers.scripted import ScriptedModel
from wakeful.store.memory import MemoryStore
from wakeful.store.sqlite import SqliteStore

HALF = "order \ud83d"


def agent(name: str = "clerk") -> Agent[None, str]:
    return Agent(name, ScriptedModel(["done"]))


@pytest.mark.parametrize("given", [{"key": HALF}, {"thread": HALF}])
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_half_a_surrogate_pair_is_refused_with_its_name(tmp_path: Path, given: dict[str, Any], kind: str) -> None:
    store = MemoryStore() if kind == "memory" else await SqliteStore.open(tmp_path / "runs.db")
    (name,) = given
    with pytest.raises(InvalidValue) as refused:
        await run(agent(), "go", store=store, **given)
    assert refused.value.code == f"invalid_{name}" and "surrogate" in refused.value.reason and refused.value.hint
    assert (await store.agents(), await store.turns()) == ([], []), "nothing was stored"
    assert (await run(agent(), "go", store=store, **{name: "order \U0001f600"})).output == "done"
    await store.close()


@pytest.mark.parametrize("given", [{"key": ""}, {"thread": ""}, {"key": "k" * 70_000}, {"thread": "t" * 70_000}])
async def test_an_empty_name_and_one_that_no_event_has_room_for_are_refused(given: dict[str, Any]) -> None:
    store, (name,) = MemoryStore(), given
    with pytest.raises(InvalidValue, match="1 to 2,000 characters") as refused:
        await run(agent(), "go", store=store, **given)
    assert refused.value.code == f"invalid_{name}" and await store.turns() == []


async def test_an_id_from_outside_that_is_no_text_is_a_typed_error_everywhere(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with pytest.raises(WakefulError):
        await run(agent(HALF), "go", store=str(path), thread="t")
    with pytest.raises(WakefulError):
        await resume(str(path), HALF, agents=[agent()])
    store = await SqliteStore.open(path)
    for ask in (store.turn, store.turn_of_key, store.read, store.action, store.usage, store.claim, store.workflow):
        with pytest.raises(InvalidValue, match="surrogate"):
            await ask(HALF)
    assert await store.agents() == []
    await store.close()
