"""`wakeful debug prompt`: what an agent is told, and where each part is from, without asking a model."""

import json
from pathlib import Path

import pytest

from kit.surfaces.command_line import Wakeful
from wakeful.surfaces.cli.screen import short


@pytest.fixture
def home(folder: Path) -> Path:
    return folder / "home"


@pytest.fixture
def project(folder: Path, home: Path) -> Path:
    """A project in the current folder, and an agent's home for the agent of a bare run."""
    (folder / "AGENTS.md").write_text("Use tabs.\n")
    skill = folder / ".agents/skills/notes"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: notes\ndescription: Writes notes.\n---\nBODY\n")
    of_agent = home / "agents/assistant"
    of_agent.mkdir(parents=True)
    (of_agent / "AGENTS.md").write_text("Be careful.\n")
    return folder


@pytest.mark.spec("HOL-PROMPT-13")
def test_it_shows_the_folders_the_policy_and_the_sources_of_both_roots(
    wakeful: Wakeful, project: Path, home: Path
) -> None:
    done = wakeful("debug", "prompt")
    assert done.code == 0
    shown = dict(line.strip().split(None, 1) for line in done.out.splitlines() if line.startswith("  "))
    assert shown["agent_home"] == str(home / "agents/assistant")
    assert shown["workspace_id"].startswith("ws_")
    assert shown["workspace_anchor"] == shown["execution_root"] == shown["cwd"] == str(project)
    assert f"{home / 'agents/assistant/AGENTS.md'} (agents_md)" in done.out
    assert f"{project / 'AGENTS.md'} (agents_md)" in done.out
    report = json.loads(wakeful("debug", "prompt", "--json").out)
    assert report["execution_policy"]["profile"] == "coding" and report["execution_policy"]["network"] == "none"
    assert "execution policy" in done.out and 'profile="coding"' in done.out and 'network="none"' in done.out
    sources = report["loaded_agents_md"]
    assert {name: (each["path"], each["kind"], each["scope"]) for name, each in sources.items()} == {
        "agent_source": (str(home / "agents/assistant/AGENTS.md"), "agents_md", "agent"),
        "workspace_source": (str(project / "AGENTS.md"), "agents_md", "workspace"),
    }
    for name in ("agent_home", "workspace_id", "workspace_anchor", "execution_root", "cwd"):
        assert report[name] == shown[name]
    kinds = ["runtime_policy", "agent_guidance", "workspace_guidance", "skills", "tools"]
    assert [block["kind"] for block in report["blocks"]] == kinds
    assert not (home / "wakeful.db").exists(), "no store is made for the question"


def test_the_prompt_itself_is_what_a_run_is_told_and_a_turn_keeps_its_own(wakeful: Wakeful, project: Path) -> None:
    now = wakeful("debug", "prompt", "--text").out
    assert "Use tabs." in now and "Be careful." in now and "- notes: Writes notes." in now and "BODY" not in now
    turn = json.loads(wakeful("run", "hello", "--json").out)["turn_id"]
    (project / "AGENTS.md").write_text("Use spaces.\n")
    assert "Use spaces." in wakeful("debug", "prompt", "--text").out
    assert wakeful("debug", "prompt", "--turn", turn, "--text").out == now
    assert f"in turn {short(turn)}" in wakeful("debug", "prompt", "--turn", turn).out


def test_a_plain_agent_is_told_its_instructions(wakeful: Wakeful, folder: Path, project: Path) -> None:
    (folder / "plain.json").write_text(
        json.dumps({"name": "plain", "model": "scripted:demo", "instructions": "Be \u001b[31mbrief."})
    )
    assert wakeful("debug", "prompt", "--agent", "plain.json", "--text").out == "Be \\x1b[31mbrief.\n"
    report = json.loads(wakeful("debug", "prompt", "--agent", "plain.json", "--json").out)
    assert report["loaded_agents_md"] == {"agent_source": None, "workspace_source": None}
    missing = wakeful("debug", "prompt", "--turn", "turn_nowhere")
    assert missing.code == 2 and "Traceback" not in missing.err
