"""Writes the log of a release: `python tests/replay/record.py VERSION`. Once it is out, its log is never written again.

Four turns: one that completed, one that was killed inside a keyed tool, one whose irreversible call nobody knows the
outcome of, and one that was killed inside that call.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

LOGS = Path(__file__).parent / "logs"
TURNS = (
    ("shop", "done", ""),
    ("shop", "cut-off", "A17"),
    ("letters", "unknown", "B2"),
    ("letters", "cut-off-too", "B2"),
)


def one(name: str, key: str, folder: Path) -> None:
    from shop import agent

    from wakeful import run_sync

    run_sync(agent(name), f"please: {key}", deps=folder / "book.txt", store=str(folder / "log.sqlite"), key=key)


def record(version: str) -> None:
    target = LOGS / version
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for name, key, crash in TURNS:
        for kill in (crash, "") if key == "unknown" else (crash,):
            command = [sys.executable, __file__, "--one", name, key, str(target)]
            subprocess.run(command, env={**os.environ, "CRASH": kill}, check=False)
    (target / "book.txt").unlink()
    # Opened and closed once more, so that the log is one file.
    subprocess.run([sys.executable, __file__, "--close", str(target)], check=True)


def close(folder: Path) -> None:
    import asyncio

    from wakeful.store.sqlite import SqliteStore

    async def once() -> None:
        store = await SqliteStore.open(folder / "log.sqlite")
        await store.close()

    asyncio.run(once())


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--one", name, key, folder]:
            one(name, key, Path(folder))
        case ["--close", folder]:
            close(Path(folder))
        case [version]:
            record(version)
