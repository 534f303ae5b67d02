"""Which files of guidance are read, from where, and how much of them."""

from pathlib import Path

import pytest

from kit.runs.engine_runs import calls
from wakeful import Agent, run
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.prompts import ExecutionRoots
from wakeful.guidance import LoadedGuidance, load_guidance
from wakeful.guidance.guidance_files import MAX_BYTES, MAX_FILE_BYTES
from wakeful.service.queries.prompt_report import prompt_of_agent
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted
from wakeful.tools.context import RunContext
from wakeful.tools.local.source import LocalTools


def loaded(home: Path | None, anchor: Path | None, execution_root: Path | None = None) -> LoadedGuidance:
    root = execution_root or anchor
    return load_guidance(
        ExecutionRoots(
            agent_home=str(home) if home else None,
            workspace_anchor=str(anchor) if anchor else None,
            execution_root=str(root) if root else None,
            cwd=str(root) if root else None,
        )
    )


def folder(path: Path, **files: str) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (path / f"{name}.md").write_text(text)
    return path


def said(found: LoadedGuidance) -> tuple[str | None, str | None]:
    return (found.agent.text if found.agent else None, found.workspace.text if found.workspace else None)


@pytest.mark.spec("HOL-GUIDE-01")
def test_guidance_comes_from_the_agents_home_and_from_the_workspace(tmp_path: Path) -> None:
    home = folder(tmp_path / "home", AGENTS="Be careful.")
    anchor = folder(tmp_path / "repo", AGENTS="Use tabs.\n")
    found = loaded(home, anchor)
    assert said(found) == ("Be careful.", "Use tabs.")
    assert found.agent is not None and found.workspace is not None
    assert (found.agent.source.scope, found.agent.source.path) == ("agent", str(home / "AGENTS.md"))
    assert (found.workspace.source.scope, found.workspace.source.path) == ("workspace", str(anchor / "AGENTS.md"))
    assert said(loaded(None, None)) == (None, None)
    assert said(loaded(tmp_path / "gone", tmp_path / "gone too")) == (None, None)


@pytest.mark.spec("HOL-GUIDE-02")
def test_claude_md_stands_in_for_a_workspace_without_agents_md_and_for_no_agent(tmp_path: Path) -> None:
    home = folder(tmp_path / "home", CLAUDE="from the home")
    anchor = folder(tmp_path / "repo", CLAUDE="from the project")
    found = loaded(home, anchor)
    assert said(found) == (None, "from the project")
    assert found.workspace is not None and found.workspace.source.kind == "claude_md"
    folder(anchor, AGENTS="the real one")
    assert said(loaded(home, anchor)) == (None, "the real one")


@pytest.mark.spec("HOL-GUIDE-03")
def test_the_current_folder_is_never_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    anchor = folder(tmp_path / "repo")
    here = folder(anchor / "src", AGENTS="I am here", CLAUDE="me too")
    monkeypatch.chdir(here)
    found = load_guidance(ExecutionRoots(workspace_anchor=str(anchor), execution_root=str(anchor), cwd=str(here)))
    assert said(found) == (None, None)


async def test_a_worktree_changes_where_files_are_and_not_whose_guidance_holds(tmp_path: Path) -> None:
    home = folder(tmp_path / "home", AGENTS="of the agent")
    anchor = folder(tmp_path / "repo", AGENTS="of the project")
    worktree = folder(tmp_path / "worktrees" / "one", AGENTS="of the branch")
    before, inside = loaded(home, anchor), loaded(home, anchor, worktree)
    assert inside == before and said(inside) == ("of the agent", "of the project")
    tools = {tool.name: tool for tool in (await LocalTools(worktree, "coding").offer()).tools}
    read = await tools["wakeful/read_file"].invoke(RunContext(None), {"path": "AGENTS.md", "numbered": False})
    assert read == "of the branch"
    assert tools["wakeful/exec_command"].working_directory({}) == str(worktree.resolve())


def test_a_file_of_a_home_that_is_the_workspace_too_is_the_agents_and_counts_once(tmp_path: Path) -> None:
    home = folder(tmp_path / "home", AGENTS="mine")
    (tmp_path / "same").symlink_to(home)
    for anchor in (home, tmp_path / "same"):
        assert said(loaded(home, anchor)) == ("mine", None)


def test_what_is_too_large_is_cut_at_a_line_and_says_so(tmp_path: Path) -> None:
    anchor = folder(tmp_path / "repo", AGENTS="line ö\n" * 10_000)
    found = loaded(None, anchor)
    assert found.workspace is not None and found.workspace.source.truncated
    *kept, notice = found.workspace.text.split("\n")
    assert set(kept) == {"line ö"} and notice.startswith("[cut here: AGENTS.md has 80,000 bytes")
    assert len("\n".join(kept).encode()) <= MAX_BYTES
    assert [(each.ref, each.reason, each.high_impact) for each in found.omissions] == [
        (str(anchor / "AGENTS.md"), "too_large", True)
    ]
    folder(anchor, AGENTS="x" * (MAX_FILE_BYTES + 1), CLAUDE="instead?")
    found = loaded(None, anchor)
    assert said(found) == (None, None), "what is there and cannot be used is not replaced in silence"
    assert [each.reason for each in found.omissions] == ["too_large"]


def test_a_link_out_of_the_workspace_brings_no_private_file_into_a_prompt(tmp_path: Path) -> None:
    private = tmp_path / "id_ed25519"
    private.write_text("PRIVATE KEY")
    anchor = folder(tmp_path / "repo")
    (anchor / "AGENTS.md").symlink_to(private)
    found = loaded(None, anchor)
    assert said(found) == (None, None)
    assert [(each.ref, each.reason) for each in found.omissions] == [(str(anchor / "AGENTS.md"), "policy_blocked")]
    assert (anchor / "AGENTS.md").read_text() == "PRIVATE KEY", "without the boundary it would have been read"
    (anchor / "AGENTS.md").unlink()
    folder(anchor, CLAUDE="within")
    (anchor / "AGENTS.md").symlink_to("CLAUDE.md")
    assert said(loaded(None, anchor)) == (None, "within"), "a link that stays inside is a file like any other"


@pytest.mark.spec("HOL-PROMPT-14")
def test_what_a_summary_says_of_guidance_has_no_content(tmp_path: Path) -> None:
    home, anchor = folder(tmp_path / "home", AGENTS="SECRET ONE"), folder(tmp_path / "repo", CLAUDE="SECRET TWO")
    sources = loaded(home, anchor).sources
    assert sources.agent_source is not None and sources.workspace_source is not None
    assert sources.model_dump(exclude={"agent_source": {"digest"}, "workspace_source": {"digest"}}) == {
        "agent_source": {
            "scope": "agent",
            "kind": "agents_md",
            "path": str(home / "AGENTS.md"),
            "size_bytes": 10,
            "truncated": False,
        },
        "workspace_source": {
            "scope": "workspace",
            "kind": "claude_md",
            "path": str(anchor / "CLAUDE.md"),
            "size_bytes": 10,
            "truncated": False,
        },
    }
    assert "SECRET" not in sources.model_dump_json()


def test_empty_and_odd_files_say_nothing(tmp_path: Path) -> None:
    assert said(loaded(None, folder(tmp_path / "a", AGENTS=" \n\n"))) == (None, None)
    (tmp_path / "b" / "AGENTS.md").mkdir(parents=True)
    found = loaded(None, tmp_path / "b")
    assert said(found) == (None, None) and [each.reason for each in found.omissions] == ["custom"]
    (folder(tmp_path / "c") / "AGENTS.md").write_bytes(b"a\x00b \xff")
    assert said(loaded(None, tmp_path / "c")) == (None, "ab \ufffd")


@pytest.mark.spec("HOL-GUIDE-05")
async def test_each_root_decides_about_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = folder(tmp_path / "here", AGENTS="of the shell")
    monkeypatch.chdir(here)
    monkeypatch.setenv("WAKEFUL_HOME", str(tmp_path / "wakeful"))
    home = folder(tmp_path / "wakeful" / "agents" / "coder", AGENTS="of the agent")
    anchor = folder(tmp_path / "repo", AGENTS="of the project")
    folder(anchor / "sub", AGENTS="of the folder")
    read = ("wakeful/read_file", {"path": "AGENTS.md", "numbered": False})
    shell = [("wakeful/exec_command", {"cmd": "cat AGENTS.md", **more}) for more in ({}, {"workdir": "sub"})]
    agent = Agent("coder", scripted([calls(read, *shell), "done"]), workspace=anchor, profile="coding")
    report = await prompt_of_agent(new_engine(MemoryStore()), agent)
    assert (report.agent_home, report.workspace_anchor) == (str(home), str(anchor))
    assert (report.execution_root, report.cwd) == (str(anchor), str(anchor))
    sources = report.loaded_agents_md
    assert sources.agent_source is not None and sources.workspace_source is not None
    assert sources.agent_source.path == str(home / "AGENTS.md")
    assert sources.workspace_source.path == str(anchor / "AGENTS.md")
    result = await run(agent, "go", store=MemoryStore())
    file, at_root, below = (item.text for item in result.history() if item.role == "tool")
    assert file == "of the project" and "of the project" in at_root and "of the folder" in below
    # Roots that are not one folder: guidance stays, files and commands follow the execution root and the folder in it.
    worktree = folder(tmp_path / "worktree", AGENTS="of the branch")
    folder(worktree / "sub")
    assert said(loaded(home, anchor, worktree)) == ("of the agent", "of the project")
    tools = {tool.name: tool for tool in (await LocalTools(worktree, "coding").offer()).tools}
    assert await tools["wakeful/read_file"].invoke(RunContext(None), read[1]) == "of the branch"
    shell_tool = tools["wakeful/exec_command"]
    assert shell_tool.working_directory({}) == str(worktree.resolve())
    assert shell_tool.working_directory({"workdir": "sub"}) == str((worktree / "sub").resolve())
