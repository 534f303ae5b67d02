"""The watch over the files of a home: what is noticed without anybody asking."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import pytest

from wakeful.service.file_reloads import watch_files


class Reads:
    """What stood in the folder each time it was read."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.last, self._read = folder, "", asyncio.Event()

    async def reload(self) -> None:
        found = self._folder / "ops.yaml"
        self.last = found.read_text() if found.exists() else ""
        self._read.set()

    async def until(self, words: str) -> None:
        async with asyncio.timeout(60):
            while self.last != words:
                self._read.clear()
                await self._read.wait()


@asynccontextmanager
async def watched(folder: Path) -> AsyncIterator[Reads]:
    reads = Reads(folder)
    watch = asyncio.create_task(watch_files(folder, lambda: False, reads.reload, every_ms=100))
    try:
        for number in count():  # until it has begun
            if reads.last:
                break
            (folder / f"{number}.yaml").touch()
            await asyncio.sleep(0.05)
        yield reads
    finally:
        watch.cancel()
        with pytest.raises(asyncio.CancelledError):
            await watch


def put(folder: Path, words: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "ops.yaml").write_text(words)


async def test_what_was_written_before_the_watch_began_is_read(tmp_path: Path) -> None:
    """The runtime has read the files before it watches them."""
    folder = tmp_path / "agents"
    put(folder, "one")
    reads = Reads(folder)
    watch = asyncio.create_task(watch_files(folder, lambda: False, reads.reload, every_ms=100))
    await reads.until("one")
    watch.cancel()
    with pytest.raises(asyncio.CancelledError):
        await watch


async def test_a_folder_that_takes_the_place_of_another_is_watched(tmp_path: Path) -> None:
    """So files are deployed: the new folder is complete when it comes, and is written to later."""
    folder = tmp_path / "agents"
    put(folder, "one")
    async with watched(folder) as reads:
        put(tmp_path / "new", "two")
        folder.rename(tmp_path / "old")
        (tmp_path / "new").rename(folder)
        await reads.until("two")
        put(folder, "three")
        await reads.until("three")


async def test_a_folder_that_was_away_is_watched_again(tmp_path: Path) -> None:
    folder = tmp_path / "agents"
    put(folder, "one")
    async with watched(folder) as reads:
        folder.rename(tmp_path / "old")
        await reads.until("")
        put(tmp_path / "new", "two")
        (tmp_path / "new").rename(folder)
        await reads.until("two")
        put(folder, "three")
        await reads.until("three")


async def test_files_behind_a_link_that_is_exchanged_are_read_again(tmp_path: Path) -> None:
    """So a cluster brings files: the names are links into a hidden folder, and that is exchanged."""
    folder, first, second = tmp_path / "agents", tmp_path / "first", tmp_path / "second"
    folder.mkdir()
    put(first, "one")
    put(second, "two")
    (folder / "..data").symlink_to(first)
    (folder / "ops.yaml").symlink_to("..data/ops.yaml")
    async with watched(folder) as reads:
        (folder / "..data_tmp").symlink_to(second)
        (folder / "..data_tmp").replace(folder / "..data")
        await reads.until("two")
