"""A store that is deleted or replaced under a running turn: nothing that cannot be taken back begins any more."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from wakeful import Agent, RunContext, run, tool
from wakeful.contracts.errors import StoreProblem, StoreRewound
from wakeful.providers.scripted import ScriptedModel
from wakeful.store.sqlite import SqliteStore
from wakeful.store.sqlite.anchor import forget_anchor
from wakeful.store.sqlite.helper import sync_data


def agent(happens: Callable[[], None], sent: list[str]) -> Agent[None, str]:
    @tool(effect="pure")
    async def look(ctx: RunContext[None]) -> str:
        happens()
        return "seen"

    @tool(effect="irreversible")
    async def send(ctx: RunContext[None]) -> str:
        sent.append(ctx.call_id)
        return "sent"

    steps = [{"calls": [{"name": "look"}]}, {"calls": [{"name": "send"}]}, "done"]
    return Agent("post", ScriptedModel(steps), tools=[look, send])


def deleted(path: Path) -> None:
    path.unlink()


def deleted_wal(path: Path) -> None:
    Path(f"{path}-wal").unlink()


def folder_deleted(path: Path) -> None:
    shutil.rmtree(path.parent)


def replaced(path: Path) -> None:
    copy = path.with_name("copy.db")
    shutil.copy(path, copy)
    copy.replace(path)


def emptied(path: Path) -> None:
    os.truncate(path, 0)


def emptied_wal(path: Path) -> None:
    """What is written next goes to its old end: it is as long as before, with nothing in it."""
    os.truncate(f"{path}-wal", 0)


def half_of_the_wal(path: Path) -> None:
    os.truncate(f"{path}-wal", Path(f"{path}-wal").stat().st_size // 2)


@pytest.mark.parametrize(
    ("happens", "became"),
    [
        (deleted, "deleted"),
        (deleted_wal, "deleted"),
        (folder_deleted, "deleted"),
        (replaced, "replaced"),
        (emptied, "cut off"),
        (emptied_wal, "cut off"),
        (half_of_the_wal, "cut off"),
    ],
)
async def test_it_is_noticed_before_the_next_effect(
    tmp_path: Path, happens: Callable[[Path], None], became: str
) -> None:
    path, sent = tmp_path / "store" / "runs.db", list[str]()
    path.parent.mkdir()
    with pytest.raises(StoreProblem, match=f"was {became} while it was in use") as lost:
        await run(agent(lambda: happens(path), sent), "go", store=str(path), key="k")
    assert sent == []
    assert "restore the store from a backup" in lost.value.hint


async def test_inversion_where_nobody_looks_the_effect_happens_and_its_intent_is_in_no_store(tmp_path: Path) -> None:
    """The barrier syncs the file it has open, as it did: that the file lost its name is not seen by that."""
    path, sent = tmp_path / "runs.db", list[str]()
    store = await SqliteStore.open(path, sync=sync_data)
    store._helper._files.clear()
    await run(agent(lambda: deleted(path), sent), "go", store=store, key="k")
    await store.close()
    assert len(sent) == 1 and not path.exists()


async def test_a_log_that_was_emptied_is_not_copied_into_the_database(tmp_path: Path) -> None:
    path, sent = tmp_path / "runs.db", list[str]()
    first = await run(agent(lambda: None, sent), "go", store=str(path), key="first")
    with pytest.raises(StoreProblem):
        await run(agent(lambda: emptied_wal(path), sent), "go", store=str(path), key="second")
    with pytest.raises(StoreRewound, match="lost the end of its log"):
        await SqliteStore.open(path)
    forget_anchor(path)
    store = await SqliteStore.open(path)
    assert [row.turn_id for row in await store.turns()] == [first.turn_id], "what had been copied before is whole"
    await store.close()
