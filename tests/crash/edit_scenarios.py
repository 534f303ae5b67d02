"""Runs that change files, to be killed: before and after every step that a change of files consists of."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from crash.scenarios import calls, check, model
from wakeful import Agent, RunContext, run, tool
from wakeful.ports import Store
from wakeful.testing import Ledger
from wakeful.tools.local import local_tools
from wakeful.workspaces import Workspace

PATCH = """\
--- a/log
+++ b/log
@@
 first
+second
--- /dev/null
+++ b/deep/new
@@
+made
--- a/gone
+++ /dev/null
@@
-gone
diff --git a/old b/moved
rename from old
rename to moved
"""
BEFORE = {"a": "one\n", "log": "first\n", "gone": "gone\n", "old": "kept\n"}
AFTER = {"a": "one more\n", "log": "first\nsecond\n", "deep/new": "made\n", "moved": "kept\n", "whole": "all of it\n"}
STEPS: list[Any] = [
    calls(("wakeful/edit_file", {"path": "a", "old_text": "one", "new_text": "one more"})),
    calls(("wakeful/apply_patch", {"patch": PATCH})),
    calls(("wakeful/write_file", {"path": "whole", "content": "all of it\n"}), ("wakeful/read_file", {"path": "a"})),
    "done",
]


@dataclass(frozen=True)
class Watched(Workspace):
    """A workspace with a place to die before and after everything it does to a file."""

    ledger: Ledger | None = None

    def here(self) -> None:
        assert self.ledger is not None
        self.ledger.here()

    def stage(self, path: str, data: bytes, tag: str, mode: int | None = None) -> None:
        self.here()
        super().stage(path, data, tag, mode)
        self.here()

    def place(self, path: str, tag: str) -> None:
        super().place(path, tag)
        self.here()

    def delete(self, path: str) -> None:
        super().delete(path)
        self.here()


def prepared(ledger: Ledger) -> Watched:
    folder = ledger.path.with_name("workspace")
    if not folder.exists():
        folder.mkdir()
        for name, text in BEFORE.items():
            (folder / name).write_text(text)
    return replace(Watched.at(folder), ledger=ledger)


def found(root: Path) -> dict[str, str]:
    """Every file that is there, the leavings of a killed call included; the runtime's own folder is not looked into."""
    return {
        str(path.relative_to(root)): path.read_text()
        for path in root.rglob("*")
        if path.is_file() and path.relative_to(root).parts[0] != ".wakeful"
    }


async def edits(store: Store, ledger: Ledger) -> None:
    workspace = prepared(ledger)
    # The tools are those of the watched workspace; the profile has none of its own.
    editor = Agent(
        "editor", model(ledger, STEPS), tools=local_tools(workspace), workspace=workspace.root, profile="chat"
    )
    result = await run(editor, "change it", store=store, key="k")
    assert result.output == "done"
    if not result.unknown:  # a call that killed the process three times is not tried again
        assert found(workspace.root) == AFTER, found(workspace.root)
    await check(store, ledger, result)


# --- without the record ----------------------------------------------------------------------------------------------


async def unrecorded(store: Store, ledger: Ledger) -> None:
    """The same edit by a tool that only believes that it can be repeated."""
    workspace = prepared(ledger)

    @tool(effect="keyed")
    def edit(ctx: RunContext[None]) -> str:
        workspace.write("a", workspace.read("a").data.replace(b"one", b"one more"))
        return "edited"

    editor = Agent("editor", model(ledger, [calls("edit"), "done"]), tools=[edit])
    await run(editor, "change it", store=store, key="k")
    assert (workspace.root / "a").read_text() == "one more\n", (workspace.root / "a").read_text()
