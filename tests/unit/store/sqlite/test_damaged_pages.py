"""A damaged page, whichever it is: a typed error or the right answer, and whatever is elsewhere stays as it was."""

from pathlib import Path
from random import Random

import pytest

from wakeful import Agent, RunContext, run, tool
from wakeful.bootstrap.installation import doctor
from wakeful.contracts.errors import StoreProblem, WakefulError
from wakeful.providers.scripted import ScriptedModel
from wakeful.store.sqlite import SqliteStore
from wakeful.store.sqlite.anchor import anchor_path
from wakeful.store.sqlite.new_file import PAGE_BYTES


def agent() -> Agent[None, str]:
    @tool(effect="irreversible")
    async def send(ctx: RunContext[None]) -> str:
        return "sent"

    return Agent("post", ScriptedModel([{"calls": [{"name": "send"}]}, "done"]), tools=[send])


async def made(path: Path) -> tuple[bytes, bytes]:
    for number in range(3):
        await run(agent(), "go", store=str(path), key=f"k{number}", thread="t" if number else None)
    return path.read_bytes(), anchor_path(path).read_bytes()


async def asked(path: Path) -> list[str]:
    """Ask everything of a store; what it said that is no error of ours is raised."""
    said = []
    try:
        store = await SqliteStore.open(path)
    except StoreProblem as problem:
        return [problem.message]
    try:
        for ask in (store.agents, store.turns, store.unknown, store.actions, store.rules, store.spending):
            try:
                await ask()
            except StoreProblem as problem:
                said.append(problem.message)
        try:
            await store.read("post")
        except StoreProblem as problem:
            said.append(problem.message)
    finally:
        await store.close()
    return said


def damaged(whole: bytes, page: int, chance: Random) -> bytes:
    """One page, as failing disks leave them: all ones, all zeros, a piece of something else, single bits."""
    data, at = bytearray(whole), page * PAGE_BYTES
    match page % 4:
        case 0:
            data[at : at + PAGE_BYTES] = b"\xff" * PAGE_BYTES
        case 1:
            data[at : at + PAGE_BYTES] = bytes(PAGE_BYTES)
        case 2:
            piece = at + chance.randrange(PAGE_BYTES - 64)
            data[piece : piece + 64] = chance.randbytes(64)
        case _:
            for _ in range(4):
                data[at + chance.randrange(PAGE_BYTES)] ^= 1 << chance.randrange(8)
    return bytes(data)


async def test_every_page_in_turn(tmp_path: Path) -> None:
    whole, anchor = await made(tmp_path / "whole.db")
    chance, complaints = Random(5), 0
    for page in range(len(whole) // PAGE_BYTES):
        path = tmp_path / f"page-{page}.db"
        path.write_bytes(damaged(whole, page, chance))
        anchor_path(path).write_bytes(anchor)
        complaints += len(await asked(path))
        report = await doctor(str(path))
        assert report.healthy == (not report.problems)
        try:
            await run(agent(), "go", store=str(path), key="k1", thread="t")
            await run(agent(), "go", store=str(path), key="new", thread="t")
        except WakefulError:
            complaints += 1
    assert complaints > 10


async def test_blobs_on_a_damaged_page_are_typed_errors_and_the_log_is_still_read(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    store = await SqliteStore.open(path)
    kept = await store.put_blob(b"0123456789" * 300, "text/plain")
    await run(agent(), "go", store=store, thread="t")
    before = len(await store.read("post"))
    await store.close()
    data = path.read_bytes()
    at = data.index(b"0123456789" * 10)
    page = at // PAGE_BYTES * PAGE_BYTES
    path.write_bytes(data[:page] + b"\xff" * PAGE_BYTES + data[page + PAGE_BYTES :])
    store = await SqliteStore.open(path)
    with pytest.raises(StoreProblem):
        await store.get_blob(kept.digest)
    assert len(await store.read("post")) == before
    await store.close()
