"""A root that holds: whatever a path says, nothing outside is read, written or even made."""

import os
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from wakeful.contracts.errors import InvalidConfig, ToolReported
from wakeful.contracts.tools import ToolError
from wakeful.workspaces import PROTECTED, Workspace, covering
from wakeful.workspaces.rooted_paths import kernel_resolves

WAYS = [pytest.param(False, id="walked")]
if kernel_resolves():
    WAYS.append(pytest.param(True, id="kernel"))


@pytest.fixture(params=WAYS)
def workspace(request: pytest.FixtureRequest, tmp_path: Path) -> Workspace:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    return replace(Workspace.at(root), kernel=request.param)


def failure(call: Callable[[], Any]) -> ToolError:
    with pytest.raises(ToolReported) as raised:
        call()
    error = raised.value.error
    assert error.recovery_hint and error.details and error.details["field"] == "path", error
    return error


def everything(folder: Path) -> dict[str, bytes | str | None]:
    return {
        str(path.relative_to(folder)): str(path.readlink())
        if path.is_symlink()
        else path.read_bytes()
        if path.is_file()
        else None
        for path in sorted(folder.rglob("*"))
    }


ESCAPES = [
    "../outside/secret",
    "a/../../outside/secret",
    "/etc/passwd",
    "link/secret",
    "file_link",
    "up/outside/secret",
]


@pytest.mark.parametrize("path", [*ESCAPES, "absolute", "twice/secret", "a/back/outside/secret"])
def test_a_path_that_leads_out_is_refused_by_every_operation(workspace: Workspace, path: str, tmp_path: Path) -> None:
    (workspace.root / "a").mkdir()
    (workspace.root / "link").symlink_to("../outside")
    (workspace.root / "file_link").symlink_to("../outside/secret")
    (workspace.root / "up").symlink_to("..")
    (workspace.root / "absolute").symlink_to(tmp_path / "outside" / "secret")
    (workspace.root / "twice").symlink_to("link")
    (workspace.root / "a" / "back").symlink_to("../..")
    before = everything(tmp_path)
    for call in (
        lambda: workspace.read(path),
        lambda: workspace.stat(path),
        lambda: workspace.list(path),
        lambda: workspace.write(path, b"x"),
        lambda: workspace.write(f"{path}/new/file", b"x"),
        lambda: workspace.locate(path),
        lambda: workspace.rename("a", f"{path}/a"),
    ):
        error = failure(call)
        assert error.kind == "outside_workspace"
        assert str(workspace.root) in (error.recovery_hint or "")
    assert everything(tmp_path) == before


def test_links_that_stay_inside_are_followed_and_stay_links(workspace: Workspace) -> None:
    (workspace.root / "real").mkdir()
    (workspace.root / "real" / "file").write_text("one")
    (workspace.root / "link").symlink_to("real")
    (workspace.root / "real" / "up").symlink_to("../real/file")
    assert workspace.read("link/file").data == b"one"
    assert workspace.read("link/../real/up").data == b"one"
    workspace.write("link/up", b"two")
    assert (workspace.root / "real" / "file").read_bytes() == b"two"
    assert (workspace.root / "real" / "up").is_symlink()
    assert workspace.locate("link/up") == "real/file"


def test_an_absolute_path_inside_the_root_is_the_same_file(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "alias").symlink_to("real")
    workspace = Workspace.at(tmp_path / "alias")
    workspace.write(str(tmp_path / "real" / "a"), b"1")
    assert workspace.read(str(tmp_path / "alias" / "a")).data == b"1"
    assert failure(lambda: workspace.read(f"{tmp_path}/real-beside/a")).kind == "outside_workspace"
    assert failure(lambda: workspace.read(f"{tmp_path}/real/../outside")).kind == "outside_workspace"


def test_a_hard_link_to_a_file_outside_is_replaced_and_not_written_through(
    workspace: Workspace, tmp_path: Path
) -> None:
    os.link(tmp_path / "outside" / "secret", workspace.root / "hard")
    workspace.write("hard", b"mine")
    assert (tmp_path / "outside" / "secret").read_text() == "secret"
    assert (workspace.root / "hard").read_bytes() == b"mine"


def test_a_pipe_a_device_and_a_loop_of_links_do_not_hold_anybody_up(workspace: Workspace) -> None:
    os.mkfifo(workspace.root / "pipe")
    (workspace.root / "round").symlink_to("about")
    (workspace.root / "about").symlink_to("round")
    assert failure(lambda: workspace.read("pipe")).kind == "not_a_file"
    assert failure(lambda: workspace.write("pipe", b"")).kind == "not_a_file"
    assert failure(lambda: workspace.read("round")).kind == "invalid_path"
    assert failure(lambda: workspace.write("round", b"")).kind == "invalid_path"


@pytest.mark.parametrize("path", ["", "a\x00b", "\ud800"])
def test_what_cannot_be_a_path_is_refused(workspace: Workspace, path: str) -> None:
    assert failure(lambda: workspace.read(path)).kind == "invalid_path"
    assert failure(lambda: workspace.write(path, b"")).kind == "invalid_path"


def test_each_way_to_fail_has_a_kind_of_its_own(workspace: Workspace) -> None:
    workspace.write("folder/file.txt", b"12345")
    assert failure(lambda: workspace.read("folder")).kind == "is_a_directory"
    assert failure(lambda: workspace.write("folder", b"")).kind == "is_a_directory"
    assert failure(lambda: workspace.write(".", b"")).kind == "is_a_directory"
    assert failure(lambda: workspace.read("folder/file.txt/x")).kind == "not_a_directory"
    assert failure(lambda: workspace.read("folder/file.txt", limit=4)).kind == "too_large"
    assert failure(lambda: workspace.delete("folder")).kind == "not_empty"
    assert failure(lambda: workspace.rename("folder/file.txt", "folder")).kind == "already_exists"
    assert failure(lambda: workspace.read("x" * 300)).kind == "invalid_path"
    missing = failure(lambda: workspace.read("folder/flie.txt"))
    assert (missing.kind, missing.recovery_hint) == ("not_found", "Did you mean 'folder/file.txt'?")
    (workspace.root / "folder" / "file.txt").chmod(0o444)
    assert failure(lambda: workspace.write("folder/file.txt", b"")).kind == "permission_denied"


def test_a_write_keeps_the_permission_bits_and_leaves_nothing_beside(workspace: Workspace) -> None:
    (workspace.root / "run.sh").write_text("old")
    (workspace.root / "run.sh").chmod(0o751)
    workspace.write("run.sh", b"new")
    assert stat.S_IMODE((workspace.root / "run.sh").stat().st_mode) == 0o751
    workspace.write("deep/er/run.sh", b"new", 0o755)
    assert stat.S_IMODE((workspace.root / "deep/er/run.sh").stat().st_mode) == 0o755
    assert sorted(everything(workspace.root)) == ["deep", "deep/er", "deep/er/run.sh", "run.sh"]


def test_what_is_staged_is_seen_by_nobody_until_it_is_placed(workspace: Workspace) -> None:
    workspace.write("a", b"old")
    workspace.stage("a", b"new", "tag")
    assert (workspace.read("a").data, workspace.staged("a", "tag")) == (b"old", True)
    workspace.stage("a", b"newer", "tag")
    workspace.place("a", "tag")
    assert (workspace.read("a").data, workspace.staged("a", "tag")) == (b"newer", False)
    workspace.stage("a", b"never", "tag")
    workspace.unstage("a", "tag")
    assert everything(workspace.root) == {"a": b"newer"}


def test_files_are_listed_moved_and_deleted(workspace: Workspace) -> None:
    workspace.write("a/b", b"1")
    workspace.rename("a/b", "c/d")
    assert [(entry.path, entry.kind) for entry in workspace.list()] == [("a", "directory"), ("c", "directory")]
    assert workspace.stat("a/b") is None
    workspace.delete("c/d")
    workspace.delete("c")
    assert [entry.path for entry in workspace.list()] == ["a"]


def test_a_link_is_deleted_and_moved_itself(workspace: Workspace, tmp_path: Path) -> None:
    (workspace.root / "out").symlink_to("../outside/secret")
    workspace.rename("out", "still_out")
    workspace.delete("still_out")
    assert (tmp_path / "outside" / "secret").read_text() == "secret"
    assert everything(workspace.root) == {}


# --- protected names ----------------------------------------------------------------------------------------------


PROTECTED_PATHS = [
    ".git/hooks/pre-commit",
    ".git/config",
    ".git",
    "module/.git",
    "module/.git/hooks/post-checkout",
    ".GIT/config",
    ".g\u200cit/config",
    ".wakeful/edits/x.json",
    "wakeful.toml",
    "sub/wakeful.db-wal",
    "to_git/hooks/pre-commit",
    "to_hook",
    "a/../.git/config",
]


@pytest.mark.parametrize("path", PROTECTED_PATHS)
def test_a_protected_name_is_neither_written_nor_made_nor_moved(workspace: Workspace, path: str) -> None:
    (workspace.root / ".git" / "hooks").mkdir(parents=True)
    (workspace.root / "a").mkdir()
    (workspace.root / ".git" / "config").write_text("[core]")
    (workspace.root / "to_git").symlink_to(".git")
    (workspace.root / "to_hook").symlink_to(".git/hooks/pre-push")
    (workspace.root / "mine").write_text("x")
    before = everything(workspace.root)
    assert failure(lambda: workspace.write(path, b"x")).kind == "protected_path"
    assert failure(lambda: workspace.locate(path)).kind == "protected_path"
    if path != "to_hook":  # the link is nobody's; only what it leads to is
        assert failure(lambda: workspace.rename("mine", path)).kind == "protected_path"
        assert failure(lambda: workspace.delete(path)).kind in ("protected_path", "not_found")
    assert everything(workspace.root) == before


def test_without_its_list_the_same_names_are_written(workspace: Workspace) -> None:
    bare = workspace.unprotected()
    bare.write(".git/hooks/pre-commit", b"planted")
    assert (workspace.root / ".git/hooks/pre-commit").read_bytes() == b"planted"
    assert workspace.read(".git/hooks/pre-commit").data == b"planted", "reading is not what is protected"


def test_the_runtimes_own_files_are_covered_wherever_they_are(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    patterns = covering(tmp_path, [tmp_path / "data" / "my[1].db", Path("/elsewhere/store.db")])
    workspace = Workspace.at(tmp_path, (*PROTECTED, *patterns))
    assert failure(lambda: workspace.write("data/my[1].db", b"")).kind == "protected_path"
    assert failure(lambda: workspace.write("data/my[1].db-wal", b"")).kind == "protected_path"
    assert failure(lambda: workspace.rename("data", "other")).kind == "protected_path"
    workspace.write("data/my1.db", b"another")
    workspace.write("sub/data/my[1].db", b"another")


# --- the root itself -------------------------------------------------------------------------------------------------


def test_a_workspace_is_an_existing_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in ("missing", "file"):
        with pytest.raises(InvalidConfig, match="name an existing folder"):
            Workspace.at(tmp_path / place)


def test_a_root_that_was_replaced_is_not_used(workspace: Workspace, tmp_path: Path) -> None:
    workspace.write("a", b"1")
    workspace.root.rename(tmp_path / "moved")
    assert failure(lambda: workspace.read("a")).kind == "no_workspace"
    workspace.root.symlink_to("outside")
    assert failure(lambda: workspace.read("secret")).kind == "no_workspace"
    workspace.root.unlink()
    workspace.root.mkdir()
    assert failure(lambda: workspace.write("a", b"2")).kind == "no_workspace"
    assert everything(workspace.root) == {}
