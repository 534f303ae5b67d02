"""A hostile command and repositories: git runs nothing that it planted, and no history is lost.

Every attempt is made at each level of confinement, through the tool that an agent has. Without what looks after
repositories it succeeds: the attempt is real.
"""

import contextlib
import hashlib
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kit.gates.confined_commands import level, place_outside
from kit.gates.hostile_model import PATCH, WRITE, attack, command, unchanged
from wakeful.contracts.content import BlobRef
from wakeful.contracts.errors import ToolReported
from wakeful.sandbox.confinement import Sandbox
from wakeful.tools.context import RunContext
from wakeful.tools.local.commands import ExecCommand
from wakeful.tools.local.repository_custody import RepositoryCustody

LEVELS = ["bubblewrap", "landlock", "not_enforced"]
AS_SOMEBODY = "git -c user.name=a -c user.email=a@example.com"


def git(where: Path, *line: str) -> str:
    settings = ["-c", "user.name=owner", "-c", "user.email=owner@example.com"]
    done = subprocess.run(["git", *settings, *line], cwd=where, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def repository(root: Path) -> Path:
    subprocess.run(["git", "init", "-q", "-b", "main", str(root)], check=True)
    (root / "file").write_text("first\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    (root / "file").write_text("second\n")
    git(root, "commit", "-qam", "second")
    git(root, "branch", "side", "HEAD~1")
    return root


class Nobody(RepositoryCustody):
    """Looks after nothing: what happens without it."""

    def __init__(self, home: Path) -> None:
        super().__init__([], home)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WAKEFUL_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "workspace")


async def keep(data: bytes, media_type: str) -> BlobRef:
    return BlobRef(digest="sha256:" + hashlib.sha256(data).hexdigest(), size=len(data), media_type=media_type)


class Agent:
    """One that runs commands in a workspace."""

    def __init__(self, root: Path, mode: str, home: Path, *, looked_after: bool = True, **settings: Any) -> None:
        self.sandbox = Sandbox(root, level=level(mode))
        custody = None if looked_after else Nobody(home)
        self.tool = ExecCommand(self.sandbox, custody=custody)

    async def runs(self, cmd: str) -> dict[str, Any]:
        """A command that is not refused: its envelope."""
        output = await self.tool.invoke(RunContext(None, keep=keep), {"cmd": cmd})
        assert isinstance(output.content, dict)
        return output.content

    async def is_refused(self, cmd: str) -> dict[str, Any]:
        """A command that is, or what it did is undone: the details."""
        with pytest.raises(ToolReported) as caught:
            await self.tool.invoke(RunContext(None, keep=keep), {"cmd": cmd})
        assert caught.value.error.kind == "sandbox_violation", caught.value.error
        return dict(caught.value.error.details or {})

    def close(self) -> None:
        self.sandbox.close()
        self.tool._custody.close()


def bites(where: Path) -> bool:
    """Does something run when the owner uses git here?"""
    proof = where.parent / "bitten"
    proof.unlink(missing_ok=True)
    for line in (
        ["status"],
        ["commit", "--allow-empty", "-qm", "own"],
        ["checkout", "-q", "-b", "a-branch-of-the-owner"],
    ):
        subprocess.run(
            ["git", "-c", "user.name=o", "-c", "user.email=o@example.com", *line],
            cwd=where,
            check=False,
            capture_output=True,
        )
    return proof.exists()


EVIL = 'printf \'#!/bin/sh\\ntouch "%s/bitten"\\n\' "$(dirname "$PWD")"'
PLANTS = {
    "hook": f"{EVIL} > .git/hooks/post-commit; chmod +x .git/hooks/post-commit",
    "monitor": f'{EVIL} > evil; chmod +x evil; git config core.fsmonitor "$PWD/evil"',
    "another folder of hooks": f"mkdir h; {EVIL} > h/post-commit; chmod +x h/*; git config core.hooksPath h",
    "settings elsewhere": (
        f"{EVIL} > evil; chmod +x evil; printf '[core]\\n fsmonitor = %s\\n' \"$PWD/evil\" > c; "
        "printf '[include]\\n path = ../c\\n' >> .git/config"
    ),
    "sent elsewhere": (
        f"{EVIL} > evil; chmod +x evil; cp -r .git other; "
        "printf '[core]\\n fsmonitor = %s\\n' \"$PWD/evil\" >> other/config; echo ../other > .git/commondir"
    ),
    "repository replaced": (
        f"mv .git old; cp -r old .git; {EVIL} > .git/hooks/post-commit; chmod +x .git/hooks/post-commit"
    ),
}


@pytest.mark.parametrize("plant", PLANTS)
@pytest.mark.parametrize("mode", LEVELS)
async def test_git_runs_nothing_that_a_command_planted_in_a_nested_repository(
    tmp_path: Path, root: Path, home: Path, mode: str, plant: str
) -> None:
    nested = repository(root / "vendor/lib")
    agent = Agent(root, mode, home)
    await agent.is_refused(f"cd vendor/lib; {PLANTS[plant]}")
    agent.close()
    assert not bites(nested)
    free = repository(tmp_path / "free")
    nested = repository(free / "vendor/lib")
    await Agent(free, mode, home, looked_after=False).runs(f"cd vendor/lib; {PLANTS[plant]}")
    assert bites(nested), "where nobody looks after it, the owner is bitten"


@pytest.mark.parametrize("plant", PLANTS)
@pytest.mark.parametrize("mode", ["landlock", "not_enforced"])
async def test_where_nothing_can_be_mounted_plants_in_the_top_repository_are_undone(
    root: Path, home: Path, mode: str, plant: str
) -> None:
    agent = Agent(root, mode, home)
    await agent.is_refused(PLANTS[plant])
    agent.close()
    assert not bites(root)


FOREVER = {
    "hooks": "mkfifo .git/hooks/post-commit",
    "a repository": "mkdir new; mkfifo new/.git",
    "settings": "rm .git/config; mkfifo .git/config",
    "HEAD": "rm .git/HEAD; mkfifo .git/HEAD",
    "a branch": "rm .git/refs/heads/main; mkfifo .git/refs/heads/main",
    "packed references": "ln -s /dev/zero .git/packed-refs",
    "an object": "for o in .git/objects/??/*; do rm -f $o; mkfifo $o; done",
    "a log": "rm .git/logs/HEAD; mkfifo .git/logs/HEAD; mkfifo pipe; ln -s ../../pipe .git/logs/other",
    "a submodule": (
        "mkdir -p .git/modules/x/refs .git/modules/x/objects; : > .git/modules/x/HEAD; mkfifo .git/modules/x/config"
    ),
}


@pytest.mark.parametrize("way", FOREVER)
async def test_a_pipe_or_a_device_in_a_repository_is_not_waited_for(root: Path, home: Path, way: str) -> None:
    nested = repository(root / "vendor/lib")
    before = all_history(nested)
    agent = Agent(root, "not_enforced", home)
    with contextlib.suppress(ToolReported):
        await agent.runs(f"cd vendor/lib; {FOREVER[way]}")
    await agent.runs("true")
    agent.close()
    assert before <= all_history(nested)
    assert git(nested, "fsck", "--full", "--no-dangling") == ""


async def test_a_hook_is_found_among_any_number_of_others(root: Path, home: Path) -> None:
    nested = repository(root / "vendor/lib")
    before = sorted(path.name for path in (nested / ".git/hooks").iterdir())
    agent = Agent(root, "not_enforced", home)
    many = "cd vendor/lib; i=0; while [ $i -lt 4000 ]; do i=$((i+1)); : > .git/hooks/a$i; done"
    await agent.is_refused(f"{many}; {PLANTS['hook']}")
    agent.close()
    assert sorted(path.name for path in (nested / ".git/hooks").iterdir()) == before


@pytest.mark.parametrize("named_in", ["the repository", "the user's files", "the user's other folder"])
async def test_a_folder_of_hooks_that_an_included_file_names_is_held(
    tmp_path: Path, root: Path, home: Path, named_in: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = tmp_path / "user"
    (user / "xdg/git").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(user))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(user / "xdg"))
    hooks = "[core]\n\thooksPath = hooks-of-ours\n"
    if named_in == "the repository":
        (root / "shared").write_text(hooks)
        git(root, "config", "include.path", "../shared")
    elif named_in == "the user's files":
        (user / "more").write_text(hooks)
        (user / ".gitconfig").write_text("[include]\n\tpath = more\n")
    else:
        (user / "xdg/git/config").write_text(hooks)
    plant = f"mkdir -p hooks-of-ours; {EVIL} > hooks-of-ours/post-commit; chmod +x hooks-of-ours/post-commit"
    agent = Agent(root, "not_enforced", home)
    await agent.is_refused(plant)
    agent.close()
    assert not bites(root)
    await Agent(root, "not_enforced", home, looked_after=False).runs(plant)
    assert bites(root), "where nobody looks after it, the owner is bitten"


NEW = {
    "a repository": f"git init -q sub; cd sub; {PLANTS['hook']}",
    "settings of a repository": f"git init -q sub; cd sub; {PLANTS['monitor']}",
    "the inside of a repository": (
        f"git init -q --bare sub; cd sub; {EVIL} > evil; chmod +x evil; git config core.fsmonitor $PWD/evil"
    ),
    "a file that leads to one": (
        f"git init -q --bare inner; mkdir sub; cd sub; {EVIL} > evil; chmod +x evil; "
        "git -C ../inner config core.bare false; git -C ../inner config core.fsmonitor $PWD/evil; "
        "echo 'gitdir: ../inner' > .git"
    ),
    "a link to one": (
        f"git init -q other; mkdir sub; cd sub; {EVIL} > evil; chmod +x evil; "
        "git -C ../other config core.fsmonitor $PWD/evil; ln -s ../other/.git .git"
    ),
}


@pytest.mark.parametrize("new", NEW)
@pytest.mark.parametrize("mode", LEVELS)
async def test_a_repository_that_a_command_made_runs_nothing(
    tmp_path: Path, root: Path, home: Path, mode: str, new: str
) -> None:
    agent = Agent(root, mode, home)
    await agent.is_refused(NEW[new])
    assert not bites(root / "sub")
    free = repository(tmp_path / "free")
    await Agent(free, mode, home, looked_after=False).runs(NEW[new])
    if new == "the inside of a repository":  # git status says nothing in one
        assert "evil" not in (root / "sub/config").read_text()
        assert "evil" in (free / "sub/config").read_text()
    else:
        assert bites(free / "sub"), "where nobody looks after it, the owner is bitten"


LOSES = {
    "removed": "rm -rf .git",
    "moved away": "mv .git old; rm -rf old",
    "objects removed": "rm -rf .git/objects/??",
    "objects emptied": 'find .git/objects -type f -exec sh -c \'chmod u+w "$1"; : > "$1"\' - {} \\;',
    "forced": "git update-ref refs/heads/main HEAD~1; git reflog expire --expire=now --all; git gc -q --prune=now",
    "branch deleted": "git branch -D side; git reflog expire --expire=now --all; git gc -q --prune=now",
    "everything orphaned": (
        f"git checkout -q --orphan new; {AS_SOMEBODY} commit -qm new; git branch -D main side; "
        "rm -rf .git/logs; git gc -q --prune=now"
    ),
    "references removed": "rm -rf .git/refs .git/packed-refs .git/logs",
    "stash dropped": "git stash drop -q; git gc -q --prune=now",
}


def all_history(root: Path) -> set[str]:
    return set(git(root, "rev-list", "--all", "--reflog").split())


@pytest.mark.parametrize("way", LOSES)
@pytest.mark.parametrize("mode", LEVELS)
async def test_no_command_loses_history(tmp_path: Path, root: Path, home: Path, mode: str, way: str) -> None:
    (root / "file").write_text("to be stashed\n")
    git(root, "stash", "-q")
    git(root, "checkout", "-q", "--detach", "side")
    git(root, "commit", "-q", "--allow-empty", "-m", "only in the log")
    git(root, "checkout", "-q", "main")
    if way == "branch deleted":
        git(root, "checkout", "-q", "-b", "other")
        git(root, "checkout", "-q", "main")
    before = all_history(root)
    shutil.copytree(root, tmp_path / "free")
    agent = Agent(root, mode, home)
    try:
        await agent.runs(LOSES[way])
    except ToolReported as told:
        assert told.error.kind == "sandbox_violation"
    agent.close()
    assert before <= all_history(root)
    assert git(root, "fsck", "--full", "--no-dangling") == ""
    for commit in before:
        git(root, "cat-file", "-p", f"{commit}^{{tree}}")
    free = tmp_path / "free"
    try:
        await Agent(free, mode, home, looked_after=False).runs(LOSES[way])
    except ToolReported as told:
        assert told.error.kind == "sandbox_violation"
    if (mode, way) == ("bubblewrap", "moved away"):
        return  # what is mounted cannot be moved
    gone = subprocess.run(
        ["git", "rev-list", "--all", "--reflog"], cwd=free, capture_output=True, text=True, check=False
    )
    broken = subprocess.run(["git", "fsck", "--full"], cwd=free, capture_output=True, text=True, check=False)
    assert gone.returncode or broken.returncode or not before <= set(gone.stdout.split()), "unless it is looked after"


ORDINARY = (
    "echo x > new && git add new && git commit -qm third && git switch -q side && git switch -qc topic && "
    "git commit -q --allow-empty -m fourth && git commit -q --allow-empty --amend -m fifth && "
    "git rebase -q --empty=keep main && git switch -q main && "
    "git merge -q topic && git branch -d topic && git tag v1 && "
    "echo y >> new && git stash -q && git stash pop -q && git commit -qam sixth && "
    "git worktree add -q ../{tree} side && git worktree remove ../{tree}"
)


@pytest.mark.parametrize("mode", LEVELS)
async def test_ordinary_work_with_git_needs_nobody_and_says_nothing(root: Path, home: Path, mode: str) -> None:
    git(root, "config", "user.name", "a")
    git(root, "config", "user.email", "a@example.com")
    agent = Agent(root, mode, home)
    done = await agent.runs(ORDINARY.replace("../{tree}", "tree"))
    assert (done["exit_status"], done.get("repositories")) == (0, None), done
    agent.close()
    assert git(root, "status", "--short") == ""
    assert git(root, "for-each-ref", "refs/wakeful") == ""
    assert not list(home.glob("repositories/*")), "no copy is left when nobody needs it"


@pytest.mark.parametrize("mode", LEVELS)
async def test_a_branch_that_follows_a_remote_one_is_switched_to(
    tmp_path: Path, root: Path, home: Path, mode: str
) -> None:
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(root), str(clone))
    agent = Agent(clone, mode, home)
    done = await agent.runs("git switch side && git status -sb")
    assert (done["exit_status"], done.get("repositories")) == (0, None), done
    agent.close()
    if mode != "bubblewrap":
        assert git(clone, "config", "branch.side.remote") == "origin"
        await agent.is_refused("git config branch.side.remote https://example.com/elsewhere.git")
        await agent.is_refused("git config remote.origin.url https://example.com/elsewhere.git")


@pytest.mark.parametrize("mode", LEVELS)
async def test_an_agent_works_in_an_attached_work_tree(tmp_path: Path, root: Path, home: Path, mode: str) -> None:
    git(root, "config", "user.name", "a")
    git(root, "config", "user.email", "a@example.com")
    tree = tmp_path / "tree"
    git(root, "worktree", "add", "-q", str(tree), "side")
    agent = Agent(tree, mode, home)
    work = "echo x > new && git add new && git commit -qm third && git switch -qc topic && git log --oneline | wc -l"
    done = await agent.runs(work)
    assert (done["exit_status"], done["stdout_preview"].strip()) == (0, "2"), done
    assert git(root, "log", "-1", "--format=%s", "topic") == "third"
    for plant in ("hook", "monitor"):
        common = PLANTS[plant].replace(".git/hooks", f"{root}/.git/hooks")
        common = common.replace("git config", f"git --git-dir={root}/.git config")
        if mode == "bubblewrap":  # what is mounted is busy, or read-only
            with contextlib.suppress(ToolReported):
                assert (await agent.runs(common))["exit_status"] != 0
        else:
            await agent.is_refused(common)
    agent.close()
    assert not bites(root)


async def test_a_file_that_names_somebody_elses_repository_opens_nothing(
    tmp_path: Path, root: Path, home: Path
) -> None:
    (tmp_path / "unpacked").mkdir()
    (tmp_path / "unpacked/.git").write_text(f"gitdir: {root}/.git\n")
    agent = Agent(tmp_path / "unpacked", "bubblewrap", home)
    assert agent.sandbox.write_roots == (str(tmp_path / "unpacked"),)
    await agent.runs(f"touch {root}/.git/new")
    assert not (root / ".git/new").exists()


@pytest.mark.parametrize("mode", LEVELS)
async def test_hooks_that_are_files_of_the_project_are_held_and_come_from_remotes_only(
    tmp_path: Path, root: Path, home: Path, mode: str
) -> None:
    (root / ".husky").mkdir()
    (root / ".husky/post-commit").write_text("#!/bin/sh\ntrue\n")
    (root / ".husky/post-commit").chmod(0o755)
    git(root, "add", ".")
    git(root, "commit", "-qm", "hooks")
    git(root, "checkout", "-q", "-b", "newer")
    (root / ".husky/post-commit").write_text("#!/bin/sh\necho newer\n")
    git(root, "commit", "-qam", "newer hooks")
    git(root, "checkout", "-q", "main")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(root), str(clone))
    git(clone, "config", "core.hooksPath", ".husky")
    agent = Agent(clone, mode, home)
    await agent.is_refused(f"{EVIL} > .husky/post-commit")
    await agent.is_refused(f"{EVIL} > .husky/pre-commit; chmod +x .husky/pre-commit")
    done = await agent.runs("git switch -q newer")
    assert done["exit_status"] == 0
    assert "newer" in (clone / ".husky/post-commit").read_text(), "what a remote has is nobody's plant"
    agent.close()
    assert not bites(clone)
    await Agent(clone, mode, home, looked_after=False).runs(f"{EVIL} > .husky/post-commit")
    assert bites(clone)


OUTWARD = {
    "the repository": "mv .git aside; ln -sn {out} .git",
    "its folder": "cd ..; mv lib aside; ln -sn {out} lib",
    "the folder around": "cd ../..; mv vendor aside; ln -sn {out} vendor",
    "hooks": "rm -rf .git/hooks; ln -sn {out} .git/hooks",
    "logs": "rm -rf .git/logs; ln -sn {out} .git/logs",
    "references": "mkdir -p .git/refs; ln -sn {out} .git/refs/wakeful; git branch -D side; rm -rf .git/logs",
    "hooks of the project": "cd tools; rm -rf hooks; ln -sn {out} hooks",
    "the folder around hooks of the project": "mv tools aside; ln -sn {out} tools",
    "a file": "rm .git/config; ln -sn {out}/config .git/config",
}


@pytest.mark.parametrize("way", OUTWARD)
@pytest.mark.parametrize("mode", LEVELS)
async def test_what_is_restored_is_restored_in_the_workspace_and_never_through_a_link(
    root: Path, home: Path, mode: str, way: str
) -> None:
    """What mends is the runtime, which no sandbox holds: a command must not aim it at somebody's files."""
    nested = repository(root / "vendor/lib")
    (nested / "tools/hooks").mkdir(parents=True)
    (nested / "tools/hooks/pre-commit").write_text("#!/bin/sh\n")
    git(nested, "config", "core.hooksPath", "tools/hooks")
    git(nested, "checkout", "-q", "side")
    git(nested, "commit", "-q", "--allow-empty", "-m", "only there")
    git(nested, "checkout", "-q", "main")
    with place_outside() as outside:
        for name in ("config", "pre-commit", "HEAD", "hooks/pre-commit", "lib/.git/config", ".git/config"):
            (outside / name).parent.mkdir(parents=True, exist_ok=True)
            (outside / name).write_text("somebody's own\n")
        before = unchanged(outside)
        agent = Agent(root, mode, home)
        for _ in range(2):
            try:
                await agent.runs("cd vendor/lib && " + OUTWARD[way].format(out=outside))
            except ToolReported as told:
                assert told.error.kind == "sandbox_violation"
        agent.close()
        assert unchanged(outside) == before
        assert sorted(path.name for path in outside.rglob("*")) == sorted(
            [*(Path(name).name for name in before), "hooks", "lib", ".git", ".git"]
        )


async def test_file_tools_write_nothing_that_git_runs(root: Path, tmp_path: Path) -> None:
    (root / "hooks-of-ours").mkdir()
    git(root, "config", "core.hooksPath", "hooks-of-ours")
    paths = [
        ".git/hooks/pre-commit",
        "vendor/lib/.git/config",
        "sub/.git",
        ".husky/pre-commit",
        "hooks-of-ours/pre-commit",
    ]
    result = await attack(root, [(WRITE, {"path": path, "content": "x"}) for path in paths], store=tmp_path / "s.db")
    assert [call.status for call in result.calls()] == ["error"] * len(paths), [call.result for call in result.calls()]
    pieces = ["bare/objects/info/x", "bare/refs/heads/x", "bare/config", "bare/HEAD"]
    result = await attack(
        root, *([(WRITE, {"path": path, "content": "x"})] for path in pieces), store=tmp_path / "t.db"
    )
    assert [call.status for call in result.calls()] == ["success"] * 3 + ["error"], "the last piece is the one too many"
    patch = "--- /dev/null\n+++ b/bare/HEAD\n@@ -0,0 +1 @@\n+ref: refs/heads/main\n"
    result = await attack(root, [(PATCH, {"patch": patch})], store=tmp_path / "u.db")
    assert result.calls()[0].status == "error"


async def test_an_agent_is_told_what_was_kept(root: Path, tmp_path: Path, home: Path) -> None:
    git(root, "checkout", "-q", "side")
    git(root, "commit", "-q", "--allow-empty", "-m", "not merged")
    git(root, "checkout", "-q", "main")
    (root / ".git/logs/HEAD").unlink()
    result = await attack(root, [command("git branch -D side")], store=tmp_path / "s.db")
    (call,) = result.calls()
    assert "refs/wakeful/kept/" in call.result
    assert git(root, "for-each-ref", "--format=%(refname)", "refs/wakeful").endswith("heads/side")
    result = await attack(
        root, [command("git init -q sub; git -C sub config core.pager evil")], store=tmp_path / "t.db"
    )
    (call,) = result.calls()
    assert call.status == "error"
    assert "pager = evil" in (call.error or "")


async def test_a_nested_repository_goes_with_its_folder_and_what_only_it_has_is_kept(root: Path, home: Path) -> None:
    nested = repository(root / "own")
    tip = git(nested, "rev-parse", "HEAD")
    git(root, "clone", "-q", str(nested), "build")
    agent = Agent(root, "bubblewrap", home)
    done = await agent.runs("rm -rf build")
    assert done.get("repositories") is None, "a remote has all of it"
    done = await agent.runs("rm -rf own")
    assert not nested.exists()
    (kept,) = home.glob("repositories/kept/*.git")
    assert str(kept) in done["repositories"][0]
    assert git(kept, "rev-parse", "HEAD") == tip


async def test_what_one_command_planted_is_not_put_back_by_another_that_began_while_it_stood_there(
    root: Path, home: Path
) -> None:
    planting, other = RepositoryCustody([str(root)], home), RepositoryCustody([str(root)], home)
    first = planting.before()
    subprocess.run(["git", "init", "-q", str(root / "sub")], check=True)
    git(root / "sub", "config", "core.fsmonitor", "evil")
    (root / "sub/.git/hooks/post-checkout").write_text("evil")
    (root / ".git/hooks/post-checkout").write_text("evil")
    second = other.before()
    assert planting.after(first)
    assert not other.after(second)
    assert "fsmonitor" not in (root / "sub/.git/config").read_text()
    assert not (root / "sub/.git/hooks/post-checkout").exists()
    assert not (root / ".git/hooks/post-checkout").exists()
