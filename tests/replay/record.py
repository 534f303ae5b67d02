"""Writes the log of a release: `python tests/replay/record.py VERSION`. Once it is out, its log is never written again.

Four turns at first: one that completed, one that was killed inside a keyed tool, one whose irreversible call nobody
knows the outcome of, and one that was killed inside that call. Later ones: a call that was approved and one that still
needs it, a call that a client has to run, two turns of a thread whose conversation was folded, a tree of children that
completed, and one that was killed inside a child.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

LOGS = Path(__file__).resolve().parent / "logs"
TURNS = (
    ("shop", "done", ""),
    ("shop", "cut-off", "A17"),
    ("letters", "unknown", "B2"),
    ("letters", "cut-off-too", "B2"),
    ("cashier", "approved", ""),
    ("cashier", "needs-approval", ""),
    ("picker", "needs-a-client", ""),
    ("reader", "read", ""),
    ("reader", "read-again", ""),
    ("team", "tree", ""),
    ("team", "tree-cut-off", "A17"),
)


def shop() -> ModuleType:
    """The module of that name, under a path of no machine: tracebacks of its tools are in the log."""
    module = ModuleType("shop")
    sys.modules["shop"] = module
    exec(compile((Path(__file__).parent / "shop.py").read_text(), "shop.py", "exec"), vars(module))
    return module


def one(name: str, key: str, folder: Path) -> None:
    from wakeful import Approve, run_sync

    options: dict[str, Any] = {"approver": lambda _: Approve()} if key == "approved" else {}
    options |= {"thread": "book"} if name == "reader" else {}
    place = str(folder / "log.sqlite")
    run_sync(shop().agent(name), f"please: {key}", deps=folder / "book.txt", store=place, key=key, **options)


def record(version: str) -> None:
    target = LOGS / version
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for name, key, crash in TURNS:
        for kill in (crash, "") if key == "unknown" else (crash,):
            command = [sys.executable, str(Path(__file__).resolve()), "--one", name, key, str(target)]
            subprocess.run(command, env={**os.environ, "CRASH": kill}, cwd=LOGS.parent, check=False)
    (target / "book.txt").unlink()
    # Opened and closed once more, so that the log is one file.
    subprocess.run([sys.executable, __file__, "--close", str(target)], check=True)
    for beside in target.iterdir():  # locks and the like; a log is kept by itself, as a copy of it would be
        if beside.name != "log.sqlite":
            beside.unlink()


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
