"""The tools that write: all or nothing, inside the root, and never twice."""

import stat
from pathlib import Path
from typing import Any

import pytest

from wakeful.contracts.errors import OutcomeUnknown, ToolReported
from wakeful.contracts.probes import DidNotHappen, Happened, StillUnknown
from wakeful.contracts.tools import ToolError
from wakeful.tools.context import RunContext
from wakeful.tools.local import local_tools
from wakeful.workspaces import Workspace
from wakeful.workspaces.refusals import refused


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    return tmp_path / "root"


async def call(workspace: Workspace | None, name: str, key: str = "", **arguments: Any) -> Any:
    (tool,) = (each for each in local_tools(workspace) if each.name == f"wakeful/{name}")
    return await tool.invoke(RunContext(None, idempotency_key=key), arguments)


async def refusal(workspace: Workspace | None, name: str, key: str = "", **arguments: Any) -> ToolError:
    with pytest.raises(ToolReported) as raised:
        await call(workspace, name, key, **arguments)
    error = raised.value.error
    assert error.recovery_hint and error.details and error.details["field"]
    return error


async def probe(workspace: Workspace, name: str, key: str, **arguments: Any) -> Any:
    (tool,) = (each for each in local_tools(workspace) if each.name == f"wakeful/{name}")
    return await tool.ask_probe(RunContext(None, idempotency_key=key), arguments)


def files(root: Path) -> dict[str, bytes]:
    """What a person sees: the runtime's own folder is left out."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".wakeful" not in path.relative_to(root).parts
    }


async def test_a_file_is_made_replaced_and_edited(root: Path) -> None:
    workspace = Workspace.at(root)
    made = await call(workspace, "write_file", path="src/a.py", content="x = 1\ny = 2\n")
    assert made == "made src/a.py: 12 bytes, 2 lines"
    assert (
        await call(workspace, "write_file", path="src/a.py", content="x = 1\n") == "replaced src/a.py: 6 bytes, 1 lines"
    )
    assert (
        await call(workspace, "write_file", path="src/a.py", content="x = 1\n") == "src/a.py has this content already"
    )
    assert (
        await call(workspace, "edit_file", path="src/a.py", old_text="1", new_text="10") == "edited src/a.py at line 1"
    )
    assert files(root) == {"src/a.py": b"x = 10\n"}


async def test_an_edit_keeps_line_ends_final_newline_and_permission_bits(root: Path) -> None:
    (root / "run").write_bytes(b"one\r\ntwo\r\nlast")
    (root / "run").chmod(0o755)
    await call(Workspace.at(root), "edit_file", path="run", old_text="one\ntwo", new_text="1\n2\n3")
    assert files(root) == {"run": b"1\r\n2\r\n3\r\nlast"}
    assert stat.S_IMODE((root / "run").stat().st_mode) == 0o755


async def test_a_patch_changes_several_files_and_says_what_it_did(root: Path) -> None:
    (root / "a").write_text("".join(f"{number}\n" for number in range(20)))
    (root / "old").write_text("bye\n")
    (root / "old").chmod(0o750)
    patch = (
        "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n 14\n-15\n+fifteen\n"
        "--- /dev/null\n+++ b/deep/new\n@@ -0,0 +1 @@\n+hello\n"
        "diff --git a/old b/moved\nrename from old\nrename to moved\n"
    )
    told = await call(Workspace.at(root), "apply_patch", patch=patch)
    assert told == "M a (hunk 1 was found at line 15, not 1)\nA deep/new\nR old -> moved"
    assert b"fifteen" in (root / "a").read_bytes()
    assert sorted(files(root)) == ["a", "deep/new", "moved"]
    assert stat.S_IMODE((root / "moved").stat().st_mode) == 0o750


async def test_two_spellings_of_a_file_are_one_file(root: Path) -> None:
    (root / "a").write_text("1\n2\n")
    (root / "link").symlink_to("a")
    patch = "--- a/a\n+++ b/a\n@@\n-1\n+one\n--- a/./link\n+++ b/./link\n@@\n-2\n+two\n"
    await call(Workspace.at(root), "apply_patch", patch=patch)
    assert (root / "a").read_text() == "one\ntwo\n"
    assert (root / "link").is_symlink()


# --- nothing or all ---------------------------------------------------------------------------------------------------


async def test_a_last_hunk_that_fails_leaves_every_file_untouched(root: Path) -> None:
    (root / "a").write_text("1\n")
    (root / "b").write_text("2\n3\n")
    before = files(root)
    patch = (
        "--- a/a\n+++ b/a\n@@\n-1\n+one\n--- /dev/null\n+++ b/new/c\n@@\n+c\n"
        "--- a/b\n+++ b/b\n@@\n-2\n+two\n@@\n-nowhere\n+x\n"
    )
    error = await refusal(Workspace.at(root), "apply_patch", patch=patch)
    assert error.message.startswith("b: hunk 2 (line 15 of the patch) is nowhere in the file")
    assert files(root) == before
    assert not (root / "new").exists()


class FullDisk(Workspace):
    """A disk that refuses one file, and, if it is to be so, every one after it."""

    refuses = 0
    for_good = False

    def place(self, path: str, tag: str) -> None:
        if not path.startswith(".wakeful"):
            FullDisk.refuses -= 1
            if FullDisk.refuses == 0 or (FullDisk.for_good and FullDisk.refuses < 0):
                raise refused("no_space", f"there is no room to write {path!r}", "Space has to be made first.")
        super().place(path, tag)


THREE = (
    "".join(f"--- a/{name}\n+++ b/{name}\n@@\n-1\n+2\n" for name in "abc") + "--- /dev/null\n+++ b/d/e/new\n@@\n+1\n"
)


@pytest.mark.parametrize("refused_file", [1, 2, 3, 4])
async def test_a_write_that_fails_in_the_middle_takes_the_others_back(root: Path, refused_file: int) -> None:
    for name in "abc":
        (root / name).write_text("1\n")
    (root / "b").chmod(0o755)
    workspace = FullDisk.at(root)
    before = files(root)
    FullDisk.refuses, FullDisk.for_good = refused_file, False
    error = await refusal(workspace, "apply_patch", key="k", patch=THREE)
    assert (error.kind, error.details and error.details["field"]) == ("no_space", "patch")
    assert files(root) == before
    assert not (root / "d").exists()
    assert stat.S_IMODE((root / "b").stat().st_mode) == 0o755
    assert await probe(workspace, "apply_patch", "k", patch=THREE) == DidNotHappen()
    await call(workspace, "apply_patch", key="k", patch=THREE)
    assert files(root) == {"a": b"2\n", "b": b"2\n", "c": b"2\n", "d/e/new": b"1\n"}


async def test_what_cannot_be_taken_back_is_an_unknown_outcome(root: Path) -> None:
    for name in "abc":
        (root / name).write_text("1\n")
    FullDisk.refuses, FullDisk.for_good = 2, True
    with pytest.raises(OutcomeUnknown, match="look at a, b"):
        await call(FullDisk.at(root), "apply_patch", key="k", patch=THREE)


# --- the root ------------------------------------------------------------------------------------------


def calls_on(path: str) -> list[tuple[str, dict[str, Any]]]:
    return [
        ("read_file", {"path": path}),
        ("write_file", {"path": path, "content": "x"}),
        ("edit_file", {"path": path, "old_text": "secret", "new_text": "x"}),
        ("apply_patch", {"patch": f"--- a/{path}\n+++ b/{path}\n@@\n-secret\n+x\n"}),
        ("apply_patch", {"patch": f"--- /dev/null\n+++ b/{path}.new\n@@\n+x\n"}),
        ("apply_patch", {"patch": f"--- a/{path}\n+++ /dev/null\n@@\n-secret\n\\ No newline at end of file\n"}),
        ("apply_patch", {"patch": f"--- a/mine\n+++ b/{path}.new\n@@\n-mine\n+x\n"}),
    ]


@pytest.mark.spec("LOOP-PERM-05", "LOOP-PERM-07")
@pytest.mark.parametrize("way", ["dots", "inner_dots", "absolute", "link", "chain"])
async def test_every_file_tool_refuses_a_path_outside_its_root_and_every_path_without_a_root(
    root: Path, way: str
) -> None:
    (root / "mine").write_text("mine\n")
    (root / "a").mkdir()
    (root / "out").symlink_to("../outside")
    (root / "chain").symlink_to("a/../out")
    path = {
        "dots": "../outside/secret",
        "inner_dots": "a/../../outside/secret",
        "absolute": str(root.parent / "outside" / "secret"),
        "link": "out/secret",
        "chain": "chain/secret",
    }[way]
    workspace = Workspace.at(root)
    for name, arguments in calls_on(path):
        if way == "absolute" and name == "apply_patch":
            arguments = {"patch": arguments["patch"].replace("a//", "/").replace("b//", "/")}
        error = await refusal(workspace, name, **arguments)
        assert error.kind == "outside_workspace", (name, error)
        assert str(root) in (error.recovery_hint or "")
        assert (await refusal(None, name, **arguments)).kind == "no_workspace"
    for name, arguments in calls_on("mine"):
        assert (await refusal(None, name, **arguments)).kind == "no_workspace"
    assert files(root.parent) == {"outside/secret": b"secret", "root/mine": b"mine\n"}


@pytest.mark.parametrize("path", [".git/hooks/pre-commit", ".git/config", ".wakeful/edits/x", "wakeful.toml"])
async def test_no_tool_writes_a_protected_name(root: Path, path: str) -> None:
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("secret\n")
    for name, arguments in calls_on(path)[1:3]:
        assert (await refusal(Workspace.at(root), name, **arguments)).kind == "protected_path"
    error = await refusal(
        Workspace.at(root), "apply_patch", **calls_on(path)[4][1] | {"patch": f"--- /dev/null\n+++ b/{path}\n@@\n+x\n"}
    )
    assert (error.kind, error.details and error.details["field"]) == ("protected_path", "patch")
    assert files(root) == {".git/config": b"secret\n"}


async def test_text_that_no_file_can_hold_is_refused(root: Path) -> None:
    (root / "a").write_text("x")
    for name, arguments, field in (
        ("write_file", {"path": "a", "content": "\x00"}, "content"),
        ("edit_file", {"path": "a", "old_text": "x", "new_text": "\ud800"}, "new_text"),
        ("apply_patch", {"patch": "--- a/a\n+++ b/a\n@@\n-x\n+\ud800\n"}, "patch"),
    ):
        error = await refusal(Workspace.at(root), name, **arguments)
        assert (error.kind, error.details and error.details["field"]) == ("invalid_parameters", field)
    (root / "b").write_bytes(b"\x00x")
    assert (await refusal(Workspace.at(root), "edit_file", path="b", old_text="x", new_text="y")).kind == "binary_file"


# --- never twice ------------------------------------------------------------------------------------------------------


EDIT = {"path": "a", "old_text": "one", "new_text": "one more"}


async def test_the_same_call_again_does_nothing_and_says_the_same(root: Path) -> None:
    (root / "a").write_text("one\n")
    workspace = Workspace.at(root)
    assert await probe(workspace, "edit_file", "k", **EDIT) == DidNotHappen()
    first = await call(workspace, "edit_file", key="k", **EDIT)
    assert await probe(workspace, "edit_file", "k", **EDIT) == Happened(first)
    assert await call(workspace, "edit_file", key="k", **EDIT) == first
    assert files(root) == {"a": b"one more\n"}
    await call(workspace, "edit_file", key="another", **EDIT)
    assert files(root) == {"a": b"one more more\n"}, "another call is another edit"


async def test_a_file_that_somebody_changed_in_between_is_not_touched(root: Path) -> None:
    (root / "a").write_text("one\n")
    workspace = Workspace.at(root)
    await call(workspace, "edit_file", key="k", **EDIT)
    (root / "a").write_text("one, by hand\n")
    answer = await probe(workspace, "edit_file", "k", **EDIT)
    assert answer == StillUnknown("a is neither as it was before the call nor as the call makes it")
    with pytest.raises(OutcomeUnknown, match="neither as it was"):
        await call(workspace, "edit_file", key="k", **EDIT)
    assert files(root) == {"a": b"one, by hand\n"}


async def test_the_runtimes_records_are_ignored_by_git_and_do_not_pile_up(
    root: Path,
) -> None:
    workspace = Workspace.at(root)
    await call(workspace, "write_file", key="k", path="a", content="0")
    assert (root / ".wakeful" / ".gitignore").read_text() == "*\n"
    for number in range(1_001):
        (root / ".wakeful" / "edits" / f"{number}.json").write_text("{}")
    await call(workspace, "write_file", key="l", path="a", content="1")
    assert len(list((root / ".wakeful" / "edits").iterdir())) < 600
    assert isinstance(await probe(workspace, "write_file", "l", path="a", content="1"), Happened)
