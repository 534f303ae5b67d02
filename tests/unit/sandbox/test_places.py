"""Places that are covered: which they are, and how stand-ins come and go."""

from pathlib import Path

import pytest

from wakeful.sandbox.places import (
    SandboxPlace,
    StandIns,
    Unprotectable,
    guarded,
    is_below,
    known_secrets,
    secrets,
    store_files,
)


def test_known_secrets_that_exist_are_hidden_under_the_name_they_really_have(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".aws").symlink_to(tmp_path / "elsewhere")
    (tmp_path / ".netrc").write_text("")
    found = secrets(known_secrets({"HOME": str(tmp_path)}), ["/not/there/yet/"])
    assert SandboxPlace(str(tmp_path / "elsewhere"), True) in found
    assert SandboxPlace(str(tmp_path / ".netrc"), False) in found
    assert SandboxPlace("/not/there/yet", True) in found
    assert not any(place.path.endswith(".ssh") for place in found if place.path.startswith(str(tmp_path)))


def test_an_empty_git_folder_is_held_whole_and_a_repository_by_its_parts(tmp_path: Path) -> None:
    root = str(tmp_path)
    whole = [SandboxPlace(f"{root}/.wakeful", True), SandboxPlace(f"{root}/.git", True)]
    assert guarded(root, ()) == whole
    (tmp_path / ".git").mkdir()
    assert guarded(root, ()) == whole
    (tmp_path / ".git/config").write_text("[extensions]\n\tworktreeConfig = true\n")
    parts = {place.path.removeprefix(f"{root}/.git/") for place in guarded(root, ())} - {f"{root}/.wakeful"}
    assert parts == {"hooks", "config", "commondir", "config.worktree"}


def test_the_git_file_of_a_worktree_is_held(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: elsewhere\n")
    assert SandboxPlace(f"{tmp_path}/.git", False) in guarded(str(tmp_path), ())


def test_a_link_cannot_be_held(tmp_path: Path) -> None:
    (tmp_path / ".git").symlink_to(tmp_path / "other")
    with pytest.raises(Unprotectable, match="is a link"):
        guarded(str(tmp_path), ())


def test_a_stand_in_goes_with_the_last_who_needs_it(tmp_path: Path) -> None:
    place = SandboxPlace(str(tmp_path / ".git"), True)
    first, second = StandIns(), StandIns()
    first.ensure([place])
    second.ensure([place])
    first.close()
    assert Path(place.path).is_dir()
    second.close()
    assert not Path(place.path).exists()


def test_what_somebody_put_into_a_stand_in_stays(tmp_path: Path) -> None:
    place = SandboxPlace(str(tmp_path / ".git"), True)
    stand_ins = StandIns()
    stand_ins.ensure([place])
    (tmp_path / ".git/HEAD").write_text("ref: refs/heads/main\n")
    stand_ins.close()
    assert (tmp_path / ".git/HEAD").exists()


def test_a_stand_in_that_was_taken_away_is_made_again(tmp_path: Path) -> None:
    place = SandboxPlace(str(tmp_path / ".git"), True)
    stand_ins = StandIns()
    stand_ins.ensure([place])
    (tmp_path / ".git").rmdir()
    stand_ins.ensure([place])
    assert (tmp_path / ".git").is_dir()
    stand_ins.close()


def test_an_empty_file_beside_a_database_stays_and_a_real_one_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_text("data")
    places = [SandboxPlace(path.rstrip("/"), path.endswith("/")) for path in store_files(str(tmp_path / "a.db"))]
    stand_ins = StandIns()
    stand_ins.ensure(places)
    stand_ins.close()
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "a.db": "data",
        "a.db-wal": "",
        "a.db-shm": "",
        "a.db-journal": "",
        "a.db-anchor": "",
    }


def test_a_passing_file_goes_unless_it_was_changed(tmp_path: Path) -> None:
    place = SandboxPlace(str(tmp_path / "commondir"), False, b".\n", passing=True)
    stand_ins = StandIns()
    stand_ins.ensure([place])
    assert (tmp_path / "commondir").read_bytes() == b".\n"
    stand_ins.close()
    assert not (tmp_path / "commondir").exists()
    (tmp_path / "commondir").write_text("../real\n")
    stand_ins.ensure([place])
    stand_ins.close()
    assert (tmp_path / "commondir").read_text() == "../real\n"


@pytest.mark.parametrize(
    ("path", "roots", "below"),
    [("/a/b", ["/a"], True), ("/a", ["/a"], True), ("/ab", ["/a"], False), ("/a", ["/"], True), ("/a", [], False)],
)
def test_below_means_below(path: str, roots: list[str], below: bool) -> None:
    assert is_below(path, roots) is below


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    before = len(list(Path("/dev/fd").iterdir()))
    stand_ins = StandIns()
    stand_ins.ensure([SandboxPlace(str(tmp_path / name), True) for name in "abc"])
    stand_ins.close()
    assert len(list(Path("/dev/fd").iterdir())) == before
