"""Where skills are found, which of two wins, and what is said about them."""

import hashlib
from pathlib import Path

import pytest

from wakeful.contracts.prompts import ExecutionRoots
from wakeful.contracts.skills import AgentKind
from wakeful.skills import SkillCatalogue, discover
from wakeful.skills.discovery import MAX_SKILLS


def skill(root: Path, name: str, text: str = "") -> Path:
    (root / name).mkdir(parents=True)
    (root / name / "SKILL.md").write_text(
        text or f"---\nname: {name}\ndescription: Does {name}.\n---\nBODY of {name}\n"
    )
    return root / name


class Machine:
    """A user's home, an agent's home and a workspace."""

    def __init__(self, root: Path) -> None:
        self.user, self.agent, self.workspace = root / "user", root / "agent", root / "repo"
        for folder in (self.user, self.agent, self.workspace):
            folder.mkdir()
        self.roots = ExecutionRoots(
            user_home=str(self.user), agent_home=str(self.agent), workspace_anchor=str(self.workspace)
        )

    def found(self, kind: AgentKind = "default") -> SkillCatalogue:
        return discover(self.roots, kind)

    def names(self, kind: AgentKind = "default") -> dict[str, str]:
        return {entry.name: entry.scope for entry in self.found(kind).skills}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.spec("HOL-SKILL-01")
def test_a_skill_is_a_folder_with_a_skill_md(machine: Machine) -> None:
    root = machine.workspace / ".agents/skills"
    place = skill(root, "notes")
    (root / "empty").mkdir()
    (root / "SKILLS.txt").write_text("not one")
    (entry,) = machine.found().skills
    assert entry.model_dump() == {
        "name": "notes",
        "description": "Does notes.",
        "scope": "workspace",
        "root": str(place),
        "entrypoint_path": str(place / "SKILL.md"),
        "digest": "sha256:" + hashlib.sha256((place / "SKILL.md").read_bytes()).hexdigest(),
    }
    assert "BODY" not in machine.found().skills[0].model_dump_json()


SHARED = (".agents/skills", ".codex/skills", ".claude/skills")


@pytest.mark.spec("HOL-SKILL-02", "HOL-SKILL-03", "HOL-SKILL-04", "HOL-SKILL-05")
@pytest.mark.parametrize(("scope", "places"), [("user", SHARED), ("agent", ("skills", *SHARED)), ("workspace", SHARED)])
def test_of_a_scopes_places_the_first_that_exists_is_its_root_and_the_others_are_not_merged(
    machine: Machine, scope: str, places: tuple[str, ...]
) -> None:
    folder: Path = getattr(machine, scope)
    for number in reversed(range(len(places))):
        skill(folder / places[number], f"from-{number}")
        assert machine.names() == {f"from-{number}": scope}, "an earlier place takes over; nothing of the later is left"
    for path in (folder / places[0]).iterdir():
        (path / "SKILL.md").unlink()
    assert machine.names() == {}, "an empty root is a root all the same"


@pytest.mark.spec("HOL-SKILL-06", "HOL-SKILL-07")
def test_the_default_agent_sees_three_scopes_and_every_other_two(machine: Machine) -> None:
    for scope in ("user", "agent", "workspace"):
        skill(getattr(machine, scope) / ".agents/skills", f"of-{scope}")
    assert machine.names("default") == {"of-workspace": "workspace", "of-agent": "agent", "of-user": "user"}
    for kind in ("named", "child"):
        assert machine.names(kind) == {"of-workspace": "workspace", "of-agent": "agent"}


def test_the_nearer_scope_wins_and_the_shadowed_are_listed_as_such(machine: Machine, tmp_path: Path) -> None:
    for scope in ("user", "agent", "workspace"):
        skill(getattr(machine, scope) / ".agents/skills", "notes")
    found = machine.found()
    assert [(entry.name, entry.scope) for entry in found.skills] == [("notes", "workspace")]
    assert [entry.scope for entry in found.shadowed] == ["agent", "user"]
    assert [(each.ref, each.reason) for each in found.omissions] == [
        (entry.entrypoint_path, "duplicate") for entry in found.shadowed
    ]
    given = skill(tmp_path / "mine", "notes")
    for place in (given, given.parent):
        assert [entry.scope for entry in discover(machine.roots, "named", [place]).skills] == ["given"]


def test_an_agent_that_works_in_its_home_has_one_set_of_skills(tmp_path: Path) -> None:
    skill(tmp_path / "skills", "one")
    skill(tmp_path / ".agents/skills", "two")
    found = discover(ExecutionRoots(agent_home=str(tmp_path), workspace_anchor=str(tmp_path)))
    assert [(entry.name, entry.scope) for entry in found.skills] == [("one", "agent")]


def test_a_skill_of_a_workspace_or_of_an_agent_that_leads_out_of_it_is_left_out(
    machine: Machine, tmp_path: Path
) -> None:
    elsewhere = skill(tmp_path / "private", "secret")
    for scope in ("workspace", "agent", "user"):
        root = getattr(machine, scope) / ".agents/skills"
        root.mkdir(parents=True)
        (root / "linked").symlink_to(elsewhere)
    found = machine.found()
    assert [(entry.name, entry.scope) for entry in found.skills] == [("secret", "user")], (
        "a user may link where they like"
    )
    assert [each.reason for each in found.omissions] == ["policy_blocked"] * 2


def test_a_root_with_very_many_skills_says_what_is_not_listed(machine: Machine) -> None:
    for number in range(MAX_SKILLS + 2):
        skill(machine.workspace / ".agents/skills", f"s{number:04}", "no front matter")
    found = machine.found()
    assert len(found.skills) == MAX_SKILLS and found.skills[0].name == "s0000"
    (left,) = found.omissions
    assert (left.ref, left.reason) == (str(machine.workspace / ".agents/skills"), "budget_limit")
    assert left.detail.startswith("2 more folders: ")
