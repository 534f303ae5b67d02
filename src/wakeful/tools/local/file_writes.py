"""`write_file`, `edit_file` and `apply_patch`: three ways to say what should change, one way to change it.

Each makes a plan without touching anything and hands it to `changing`, which makes all of it happen or nothing. Their
effect is `probeable`: after a crash the files themselves, held against the call's record, tell what happened.
"""

import dataclasses
from typing import Any

from wakeful.contracts.probes import ProbeAnswer, StillUnknown
from wakeful.contracts.tools import Freeform
from wakeful.tools.context import RunContext
from wakeful.tools.local import patch_plan, unified_diff
from wakeful.tools.local.declarations import FileTool, given, in_field, must_be_text
from wakeful.tools.local.exact_replacement import replace_exactly
from wakeful.tools.local.file_changes import FileChanges, bytes_at
from wakeful.tools.local.patch_plan import Change
from wakeful.tools.local.text_lines import is_binary
from wakeful.workspaces import Workspace
from wakeful.workspaces.refusals import refused

DIFF = Freeform(
    parameter="patch",
    grammar=r"""start: file+
file: git* old new hunk*
git: /(diff|index|old|new|deleted|similarity|rename) [^\n]*/ LF
old: "--- " PATH LF
new: "+++ " PATH LF
hunk: HEAD line+
HEAD: /@@[^\n]*\n/
line: /[ +\\-][^\n]*/ LF | LF
PATH: /[^\n]+/
LF: "\n"
""",
)
"""A unified diff, for providers that hold a model to a grammar. What it lets through is read by `unified_diff` too."""


def write_file_tool(workspace: Workspace | None) -> FileTool:
    """The tool, for one workspace."""
    changes = None if workspace is None else FileChanges(workspace)

    def write_file(ctx: RunContext[Any], path: str, content: str) -> str:
        """Write a whole file: make it, with the folders it is in, or replace everything in it.

        Args:
            path: The file, relative to the workspace root.
            content: All that the file shall hold.
        """
        root = given(workspace)
        assert changes is not None
        finished = changes.finished(ctx.idempotency_key, ctx.hold)
        if finished is not None:
            return finished
        must_be_text(content, "content")
        place = root.locate(path)
        before, after = bytes_at(root, place), content.encode()
        if before == after:
            return f"{path} has this content already"
        done = "made" if before is None else "replaced"
        result = f"{done} {path}: {len(after):,} bytes, {len(content.splitlines()):,} lines"
        return changes.carry_out(ctx.idempotency_key, [Change(place, before, after)], result, ctx.hold)

    return _probed(FileTool(write_file, workspace, access="write", effect="probeable"), changes)


def edit_file_tool(workspace: Workspace | None) -> FileTool:
    """The tool, for one workspace."""
    changes = None if workspace is None else FileChanges(workspace)

    def edit_file(ctx: RunContext[Any], path: str, old_text: str, new_text: str, replace_all: bool = False) -> str:
        """Replace a text in a file by another. The old text has to stand in the file exactly once.

        Args:
            path: The file, relative to the workspace root.
            old_text: What is there now, exactly, white space included and without line numbers.
            new_text: What shall be there instead.
            replace_all: Replace every occurrence instead of the only one.
        """
        root = given(workspace)
        assert changes is not None
        finished = changes.finished(ctx.idempotency_key, ctx.hold)
        if finished is not None:
            return finished
        must_be_text(old_text, "old_text")
        must_be_text(new_text, "new_text")
        place = root.locate(path)
        data = root.read(path).data
        if is_binary(data):
            raise refused("binary_file", f"{path!r} is a binary file", "Only text can be edited.", path=path)
        replaced = replace_exactly(path, data, old_text, new_text, everywhere=replace_all)
        lines = ", ".join(map(str, replaced.lines[:20])) + (" ..." if len(replaced.lines) > 20 else "")
        result = f"edited {path} at line{'s' if len(replaced.lines) > 1 else ''} {lines}"
        return changes.carry_out(ctx.idempotency_key, [Change(place, data, replaced.data)], result, ctx.hold)

    return _probed(FileTool(edit_file, workspace, access="write", effect="probeable"), changes)


def apply_patch_tool(workspace: Workspace | None) -> FileTool:
    """The tool, for one workspace."""
    changes = None if workspace is None else FileChanges(workspace)

    def apply_patch(ctx: RunContext[Any], patch: str) -> str:
        """Apply a unified diff to files of the workspace: change, make, delete and rename them.

        Hunks are found by their context and removed lines, not by their line numbers; each must fit in exactly one
        place. Either everything applies or nothing is written.

        Args:
            patch: The diff: `--- a/path`, `+++ b/path` (or /dev/null), then hunks that begin with `@@`.
        """
        root = given(workspace)
        assert changes is not None
        finished = changes.finished(ctx.idempotency_key, ctx.hold)
        if finished is not None:
            return finished
        must_be_text(patch, "patch")
        with in_field("patch"):
            planned = _planned(root, unified_diff.parse(patch))
            return changes.carry_out(ctx.idempotency_key, planned.changes, "\n".join(planned.told), ctx.hold)

    made = FileTool(apply_patch, workspace, access="write", effect="probeable", freeform=DIFF)
    return _probed(made, changes)


def _planned(root: Workspace, files: list[unified_diff.FileDiff]) -> patch_plan.Plan:
    """The files by their true places, so that two spellings of one file are one file."""
    places = {path: root.locate(path) for path in unified_diff.paths_of(files)}
    placed = [
        dataclasses.replace(file, old=file.old and places[file.old], new=file.new and places[file.new])
        for file in files
    ]
    return patch_plan.plan(placed, {place: bytes_at(root, place) for place in places.values()})


def _probed(tool: FileTool, changes: FileChanges | None) -> FileTool:
    def happened(ctx: RunContext[Any]) -> ProbeAnswer:
        return StillUnknown("there is no workspace") if changes is None else changes.asked(ctx.idempotency_key)

    tool.probe(happened)
    return tool
