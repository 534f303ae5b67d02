"""A program that is stopped in the middle of an effect, and wakes up when another has taken its turn over.

python stopped_effects.py FOLDER LEASE-SECONDS SCENARIO [unchecked]

The scenario `none` is the successor of whichever is named in the file `scenario` of the folder. With `unchecked`, the
store says that the lease is held without looking, and whoever is replaced is taken for dead.
"""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from wakeful import Agent, DidNotHappen, Happened, RunContext, run, tool
from wakeful.contracts.errors import OwnerFenced
from wakeful.contracts.probes import ProbeAnswer
from wakeful.ports import Claim
from wakeful.providers.scripted import ScriptedModel
from wakeful.store.sqlite import SqliteStore
from wakeful.testing.wrapped_store import WrappedStore
from wakeful.tools.local.file_changes import FileChanges
from wakeful.tools.local.file_writes import apply_patch_tool, write_file_tool
from wakeful.workspaces import Workspace

PATCH = """\
--- a/first
+++ b/first
@@
-old
+patched
--- a/second
+++ b/second
@@
-old
+patched
"""


def say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def stop() -> None:
    say("stopped")
    # To this very thread, which then does not get one step further; the others are stopped with it.
    signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
    say("awake")


class Unchecked(WrappedStore):
    """What it would be without the rules: leases are not looked at, and every owner before is a dead one."""

    async def claim(self, turn_id: str, *, reservation: str | None = None) -> Claim:
        return replace(await super().claim(turn_id, reservation=reservation), taken_from=None, late_upto=0)

    async def hold(self, claim: Claim) -> None:
        pass


@dataclass(frozen=True)
class Sleepy(Workspace):
    """A workspace in which the process is stopped once."""

    after_place: Callable[[str], None] = field(default=lambda path: None)

    def place(self, path: str, tag: str) -> None:
        super().place(path, tag)
        self.after_place(path)


FINISHED = threading.Event()
"""The tool's own thread has come to its end, whatever became of the run."""


def effect(folder: Path, scenario: str, is_first: bool) -> Agent[None, str]:
    """One probeable effect, which is stopped before it happens."""
    world = folder / "world"

    @tool(effect="probeable")
    def pay(ctx: RunContext[None]) -> str:
        if is_first:
            stop()
        with world.open("a") as file:
            file.write(f"{os.getpid()}\n")
        FINISHED.set()
        return "paid"

    @pay.probe
    def paid(ctx: RunContext[None]) -> ProbeAnswer:
        return Happened("paid") if world.exists() else DidNotHappen()

    return Agent("post", ScriptedModel([{"calls": [{"name": "pay"}]}, "done"]), tools=[pay])


def patch(folder: Path, scenario: str, is_first: bool) -> Agent[None, str]:
    """A patch of two files, stopped after the first is renamed. The successor's model writes both by itself."""
    root = folder / "workspace"
    if not root.exists():
        root.mkdir()
        for name in ("first", "second"):
            (root / name).write_text("old\n")

    def after_place(path: str) -> None:
        if not is_first or path != "first":
            return
        stop()
        if scenario == "rollback":
            raise OSError("the disk said no")

    workspace = replace(Sleepy.at(root), after_place=after_place)
    real, changes = apply_patch_tool(workspace), FileChanges(workspace)

    @tool(effect="probeable")
    def apply_patch(ctx: RunContext[None], patch: str) -> str:
        try:
            return str(real(ctx, patch))
        finally:
            FINISHED.set()

    @apply_patch.probe
    def applied(ctx: RunContext[None]) -> ProbeAnswer:
        return changes.asked(ctx.idempotency_key)

    again = [
        {"name": "wakeful/write_file", "arguments": {"path": name, "content": "by hand\n"}}
        for name in ("first", "second")
    ]
    steps: list[Any] = [{"calls": [{"name": "apply_patch", "arguments": {"patch": PATCH}}]}, {"calls": again}, "done"]
    tools = [apply_patch, write_file_tool(workspace)]
    return Agent("editor", ScriptedModel(steps), tools=tools, workspace=root, profile="chat")


async def main(folder: Path, lease: float, scenario: str, unchecked: bool) -> None:
    named = folder / "scenario"
    is_first = scenario != "none"
    if is_first:
        named.write_text(scenario)
    made = effect if named.read_text() == "effect" else patch
    agent = made(folder, named.read_text(), is_first)
    store = await SqliteStore.open(folder / "runs.db", ttl=lease)
    try:
        result = await run(agent, "go", store=Unchecked(store) if unchecked else store, key="k")
        say(f"{result.status} unknown={len(result.unknown)}")
    except OwnerFenced:
        await asyncio.to_thread(FINISHED.wait)
        say("fenced")
    finally:
        await store.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3], "unchecked" in sys.argv))
