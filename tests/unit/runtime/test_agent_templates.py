"""Homes from templates, through `Runtime`: what is made, what is refused, and what is left alone."""

import json
from pathlib import Path

import pytest

from wakeful import Agent, Runtime
from wakeful.errors import AgentNotFound, InvalidRequest
from wakeful.runtime import agent_templates, builtin_templates

DESK = {"name": "desk", "model": "scripted:demo"}


@pytest.fixture(autouse=True)
def user_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's home of its own: templates are kept there."""
    folder = tmp_path / "user"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("WAKEFUL_AGENT_ID", raising=False)
    return folder


def template(folder: Path, words: str = "Be brief.", skills: object = None) -> Path:
    folder.mkdir(parents=True)
    (folder / "AGENTS.md").write_text(words)
    if skills is not None:
        (folder / "skills.json").write_text(json.dumps(skills))
    return folder


def skill(folder: Path, words: str = "# Sums") -> Path:
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text(words)
    (folder / "scripts" / "add.sh").write_text("echo 3\n")
    return folder


@pytest.mark.spec("HOL-INIT-02", "HOL-INIT-07", "HOL-INIT-09")
async def test_a_home_from_a_template_has_its_files_its_folders_and_its_provenance(tmp_path: Path) -> None:
    async with Runtime(tmp_path / "rt") as rt:
        made = await rt.create(DESK, template="wakeful-default")
        home = Path(made.agent_home)
        assert made.agent_home == str(tmp_path / "rt" / "agents" / "desk")
        told = (home / "AGENTS.md").read_text()
        assert told.startswith(builtin_templates.BUILTIN_TEMPLATES["wakeful-default"]["AGENTS.md"])
        assert told.endswith(builtin_templates.HOME_GUIDANCE)
        assert {path.name for path in home.iterdir()} == {"AGENTS.md", "memory", "notes", "work", "skills", ".wakeful"}
        assert {path.name for path in (home / "memory").iterdir()} == {"self.md", "operator.md"}
        kept = json.loads((home / ".wakeful" / "state" / "template.json").read_text())
        assert (kept["template"], kept["skills"]) == ("wakeful-default", [])
        assert kept["source"].endswith(".agents/templates/wakeful-default")


@pytest.mark.spec("HOL-INIT-03", "HOL-INIT-04", "HOL-INIT-05")
async def test_a_template_is_an_id_or_an_absolute_path_and_brings_skills(tmp_path: Path, user_home: Path) -> None:
    own = skill(tmp_path / "sums")
    refs = {"skill_refs": ["builtin:wakeful-notes", str(own)]}
    template(user_home / ".agents" / "templates" / "clerk", skills=refs)
    folder = template(tmp_path / "kept", "By path.")
    async with Runtime(tmp_path / "rt") as rt:
        home = Path((await rt.create(DESK, template="clerk")).agent_home)
        assert (home / "AGENTS.md").read_text().startswith("Be brief.\n")
        assert (home / "skills" / "sums" / "scripts" / "add.sh").read_text() == "echo 3\n"
        assert (home / "skills" / "wakeful-notes" / "SKILL.md").read_text().startswith("---\nname: wakeful-notes\n")
        by_path = await rt.create({**DESK, "name": "other"}, template=str(folder))
        assert (Path(by_path.agent_home) / "AGENTS.md").read_text().startswith("By path.\n")


REFUSED = [
    ("nobody-has-it", "there is no template 'nobody-has-it'"),
    ("../clerk", "'../clerk' is not the name of a template"),
    ("kept", "there is no template 'kept'"),
    ("http://example.org/x", "is not the name of a template"),
    ("https://github.com/ada/agents/tree/main/clerk", "is on GitHub, and nothing is fetched from there yet"),
    ("https://example.org/ada/agents/tree/main/clerk", "is not the name of a template"),
]


@pytest.mark.spec("HOL-INIT-03", "HOL-INIT-08")
@pytest.mark.parametrize(("selector", "words"), REFUSED)
async def test_a_template_that_cannot_be_had_makes_neither_an_agent_nor_a_home(
    tmp_path: Path, selector: str, words: str
) -> None:
    async with Runtime(tmp_path / "rt") as rt:
        with pytest.raises(InvalidRequest, match=words):
            await rt.create(DESK, template=selector)
        with pytest.raises(AgentNotFound):
            await rt.agent("desk")
        assert not (tmp_path / "rt" / "agents").exists()
        assert (await rt.create(DESK)).agent == "desk", "the name is free"


BAD_SKILLS = [
    ({"skill_refs": ["builtin:nobody-wrote-it"]}, "is not a builtin skill"),
    ({"skill_refs": ["sums"]}, "is not a reference to a skill"),
    ({"skill_refs": ["/nowhere/sums"]}, "has no SKILL.md"),
    ({"skill_refs": ["https://github.com/ada/skills/tree/main/sums"]}, "is on GitHub"),
    ({"skill_refs": ["builtin:wakeful-notes", "builtin:wakeful-notes"]}, "two skills are called 'wakeful-notes'"),
    ({"skills": []}, "must hold a list, skill_refs"),
]


@pytest.mark.spec("HOL-INIT-05", "HOL-INIT-08")
@pytest.mark.parametrize(("skills", "words"), BAD_SKILLS)
async def test_a_skill_that_cannot_be_installed_leaves_nothing_behind(
    tmp_path: Path, skills: object, words: str
) -> None:
    folder = template(tmp_path / "kept", skills=skills)
    async with Runtime(tmp_path / "rt") as rt:
        with pytest.raises(InvalidRequest, match=words):
            await rt.create(DESK, template=str(folder))
        assert await rt.agents() == []
        assert not (tmp_path / "rt" / "agents").exists()


@pytest.mark.spec("HOL-INIT-04", "HOL-INIT-08")
async def test_a_folder_without_guidance_is_no_template_and_a_name_that_is_taken_keeps_its_home(tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    async with Runtime(tmp_path / "rt") as rt:
        with pytest.raises(InvalidRequest, match=r"has no AGENTS\.md"):
            await rt.create(DESK, template=str(tmp_path / "bare"))
        made = await rt.create(DESK, template="wakeful-developer")
        (Path(made.agent_home) / "notes" / "mine.md").write_text("kept")
        with pytest.raises(InvalidRequest, match="there is an agent called 'desk' already"):
            await rt.create(DESK, template="wakeful-default")
        assert (Path(made.agent_home) / "notes" / "mine.md").read_text() == "kept"


@pytest.mark.spec("HOL-INIT-10")
async def test_what_stands_in_the_home_is_what_the_agent_is_told_and_the_record_is_only_a_record(
    tmp_path: Path,
) -> None:
    script = tmp_path / "script.yaml"
    script.write_text("- text: one\n- text: two\n")
    async with Runtime(tmp_path / "rt") as rt:
        made = await rt.create({"name": "desk", "model": f"scripted:{script}"}, template="wakeful-default")
        home = Path(made.agent_home)
        (home / "AGENTS.md").write_text("Only whisper.")
        (home / ".wakeful" / "state" / "template.json").write_text('{"template": "/somewhere/else"}')
        result = await rt.answer(await rt.send("desk", "Hello."))
        assert result.output == "one"
    from wakeful import open_store

    async with open_store(tmp_path / "rt" / "wakeful.db") as store:
        (turn,) = await store.turns()
        report = await store.prompt(turn.turn_id)
    assert "Only whisper." in report.system_prompt
    assert "Answer first" not in report.system_prompt, "neither the template nor what the record names"


@pytest.mark.spec("HOL-INIT-11", "HOL-INIT-12", "HOL-INIT-13")
async def test_templates_of_the_runtime_are_seeded_refreshed_and_never_taken_from_their_owner(
    tmp_path: Path, user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = user_home / ".agents" / "templates"
    async with Runtime(tmp_path / "rt"):
        assert {path.name for path in folder.iterdir()} == {"wakeful-default", "wakeful-developer"}
    (folder / "wakeful-developer" / "AGENTS.md").write_text("My own words.")
    newer = {name: {"AGENTS.md": "Newer words."} for name in ("wakeful-default", "wakeful-developer")}
    monkeypatch.setattr(agent_templates, "BUILTIN_TEMPLATES", newer)
    async with Runtime(tmp_path / "rt"):
        assert (folder / "wakeful-default" / "AGENTS.md").read_text() == "Newer words.", "nobody had changed it"
        assert (folder / "wakeful-developer" / "AGENTS.md").read_text() == "My own words."


@pytest.mark.spec("HOL-INIT-14")
async def test_the_default_agent_gets_guidance_unless_it_has_some(tmp_path: Path) -> None:
    own = tmp_path / "two" / "agents" / "main"
    own.mkdir(parents=True)
    (own / "AGENTS.md").write_text("My own words.")
    for name in ("one", "two"):
        async with Runtime(
            tmp_path / name, agents=[Agent("main", "scripted:demo"), Agent("desk", "scripted:demo")]
        ) as rt:
            told = (Path((await rt.agent("main")).agent_home) / "AGENTS.md").read_text()
            assert told == "My own words." if name == "two" else told.startswith("# How you work")
            assert not Path((await rt.agent("desk")).agent_home).exists(), "the others have what they are given"


@pytest.mark.spec("HOL-AGENT-06", "HOL-AGENT-08")
async def test_the_default_agent_is_made_on_first_use_and_no_other_one_is(tmp_path: Path) -> None:
    async with Runtime(tmp_path / "rt", model="scripted:demo") as rt:
        assert await rt.agents() == []
        sent = await rt.send(None, "Hello.")
        assert sent.agent == "main"
        made = await rt.agent()
        assert (made.agent, made.kind, made.visibility, made.ownership) == ("main", "default", "public", "self_owned")
        assert made.profile_preset == "public_named"
        assert (Path(made.agent_home) / "AGENTS.md").exists()
        with pytest.raises(AgentNotFound):
            await rt.send("desk", "Hello.")
        await rt.answer(sent)
    async with Runtime(tmp_path / "other") as rt:
        with pytest.raises(AgentNotFound, match="the runtime has no agent 'main'"):
            await rt.send(None, "Hello.")
