"""`wakeful template`: which there are, what one says, and one more from a folder of this machine."""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from kit.surfaces.command_line import Wakeful
from kit.surfaces.served_home import ServedHome, served


@pytest.fixture(autouse=True)
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder of its own: templates are kept there."""
    folder = tmp_path / "user"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    folder = tmp_path / "desk"
    folder.mkdir()
    (folder / "AGENTS.md").write_text("Be kind.\n")
    (folder / "notes.txt").write_text("not of the template")
    return folder


@pytest.mark.spec("HOL-INIT-03", "HOL-INIT-11")
def test_templates_are_listed_shown_and_added_without_a_daemon_and_without_a_store(
    wakeful: Wakeful, desk: Path, user: Path, folder: Path
) -> None:
    there = json.loads(wakeful("template", "list", "--json").out)
    assert [(each["template"], each["origin"], each["skills"]) for each in there] == [
        ("wakeful-default", "builtin", []),
        ("wakeful-developer", "builtin", ["builtin:wakeful-notes"]),
    ]
    assert not (user / ".agents").exists(), "a list writes nothing"
    added = json.loads(wakeful("template", "add", "desk", "--json").out)
    kept = user / ".agents" / "templates" / "desk"
    assert added == {"template": "desk", "path": str(kept), "origin": "own", "skills": [], "problem": ""}
    assert [path.name for path in kept.iterdir()] == ["AGENTS.md"]
    assert wakeful("template", "show", "desk").out == "Be kind.\n"
    assert wakeful("template", "show", "./desk").out == "Be kind.\n"
    assert json.loads(wakeful("template", "show", "desk", "--json").out) == {**added, "text": "Be kind.\n"}
    assert wakeful("agent", "create", "ana", "--model", "scripted:demo", "--template", "desk").code == 0
    assert (folder / "home" / "agents" / "ana" / "AGENTS.md").read_text().startswith("Be kind.\n")
    assert not (folder / "home" / "agents" / "ana" / "notes.txt").exists()


@pytest.mark.spec("HOL-INIT-13", "HOL-INIT-04")
def test_a_template_that_is_there_is_never_written_over_and_a_bad_one_is_refused(
    wakeful: Wakeful, desk: Path, user: Path
) -> None:
    again = [wakeful("template", "add", str(desk)) for _ in range(2)]
    assert again[0] == again[1] and again[0].code == 0, "the same twice is the same once"
    (desk / "AGENTS.md").write_text("Be quick.\n")
    other = wakeful("template", "add", str(desk))
    assert other.code == 2 and "another template is called" in other.err
    assert (user / ".agents" / "templates" / "desk" / "AGENTS.md").read_text() == "Be kind.\n"
    assert wakeful("template", "add", str(desk), "--name", "quick").code == 0
    for arguments, why in (
        (("https://github.com/o/r/tree/main/desk",), "nothing is fetched from there"),
        (("http://elsewhere.example/desk",), "is not the name of a template"),
        ((str(desk), "--name", "wakeful-mine"), "are the runtime's"),
        ((str(desk), "--name", "a b"), "cannot be the id"),
        ((str(user),), "has no AGENTS.md"),
        (("missing",), "is not a folder"),
    ):
        refused = wakeful("template", "add", *arguments)
        assert (refused.code, refused.out) == (2, "") and why in refused.err and "Hint: " in refused.err, refused
    (user / ".agents" / "templates" / "quick" / "skills.json").write_text("[]")
    listed = wakeful("template")
    assert "quick cannot be used: " in listed.err and "desk" in listed.out
    assert wakeful("template", "shwo").code == 2


def test_a_builtin_that_somebody_changed_is_said_to_be_so(wakeful: Wakeful, user: Path) -> None:
    wakeful("agent", "create", "ana", "--model", "scripted:demo", "--template", "wakeful-default")
    assert json.loads(wakeful("template", "--json").out)[0]["origin"] == "builtin"
    (user / ".agents" / "templates" / "wakeful-default" / "AGENTS.md").write_text("Be mine.\n")
    assert json.loads(wakeful("template", "--json").out)[0]["origin"] == "changed"


@pytest.fixture
def home(tmp_path: Path, user: Path) -> Iterator[ServedHome]:
    with served(tmp_path / "home") as found:
        yield found


def test_a_daemon_has_templates_of_its_own_machine(wakeful: Wakeful, home: ServedHome, desk: Path, user: Path) -> None:
    assert wakeful("template", "add", str(desk)).code == 0
    by_daemon = wakeful("template", "--json").out
    assert [each["template"] for each in home.client.get("/templates").body] == [
        each["template"] for each in json.loads(by_daemon)
    ]
    assert home.client.get("/templates/desk").body["text"] == "Be kind.\n"
    assert home.client.get(f"/templates/{quote(str(desk), safe='')}").status == 404, "a path is no id"
    relative = home.client.post("/control/templates", {"path": "desk"})
    assert (relative.status, relative.code) == (422, "invalid_request")
    assert wakeful("template", "show", "nothing").code == 2
