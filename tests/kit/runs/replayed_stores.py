"""Every turn of every store that a test left on disk, decided again: a log that is honest replays as it was decided."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from wakeful.contracts.errors import WakefulError
from wakeful.store.sqlite.reader import SqliteReader
from wakeful.testing.crash_snapshot import find_differences

SQLITE = b"SQLite format 3\0"


def check_stores_below(folder: Path) -> None:
    """Raises AssertionError for a decision that comes out differently. Changes nothing; what is no store is passed by,
    and so is one that cannot be read: a test has damaged it, or another version has made it."""
    places = [place for place in sorted(folder.rglob("*.db")) if _is_database(place)]
    with ThreadPoolExecutor(1) as apart:  # a test may have a loop of its own
        different = [f"{place}: {each}" for place in places for each in apart.submit(_run, place).result()]
    assert not different, "\n".join(["a decision does not come out the same when it is made again:", *different])


def _is_database(place: Path) -> bool:
    try:
        with place.open("rb") as file:
            return file.read(len(SQLITE)) == SQLITE
    except OSError:
        return False


def _run(place: Path) -> list[str]:
    return asyncio.run(_differences(place))


async def _differences(place: Path) -> list[str]:
    try:
        store = await SqliteReader.open(place)
    except WakefulError:
        return []
    try:
        return await find_differences(store)
    except WakefulError:
        return []
    finally:
        await store.close()
