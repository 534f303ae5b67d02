"""Where the home's database is."""

from pathlib import Path

import pytest

from wakeful.contracts.errors import InvalidConfig
from wakeful.settings.home import home
from wakeful.surfaces.cli.places import any_place, store_to_write


def test_the_home_is_what_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WAKEFUL_HOME", str(tmp_path / "mine"))
    assert home() == tmp_path / "mine"
    assert store_to_write(None) == (str(tmp_path / "mine/wakeful.db"), True, None)
    assert (tmp_path / "mine").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("platform", "place"),
    [("linux", ".local/share/wakeful"), ("darwin", "Library/Application Support/wakeful")],
)
def test_without_it_the_home_is_where_the_system_keeps_a_users_data(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, platform: str, place: str
) -> None:
    monkeypatch.delenv("WAKEFUL_HOME", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", platform)
    assert home() == tmp_path / place


def test_the_store_is_the_one_that_is_named_nearest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home_folder, here = tmp_path / "home", tmp_path / "here"
    home_folder.mkdir()
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("WAKEFUL_HOME", str(home_folder))
    monkeypatch.delenv("WAKEFUL_STORE", raising=False)
    monkeypatch.delenv("WAKEFUL_CONFIG", raising=False)
    (here / "wakeful.toml").write_text('store = "taken-from-a-checkout.db"')
    assert any_place(None).path == str(home_folder / "wakeful.db"), "nothing of the current folder"
    (home_folder / "wakeful.toml").write_text('store = "kept/runs.db"')
    assert any_place(None) == (str(home_folder / "kept" / "runs.db"), True, None)
    monkeypatch.setenv("WAKEFUL_STORE", "mine.db")
    assert any_place(None) == ("mine.db", True, None)
    assert any_place(Path("other.db")) == ("other.db", False, None)
    monkeypatch.delenv("WAKEFUL_STORE")
    (home_folder / "wakeful.toml").write_text("store = 7")
    with pytest.raises(InvalidConfig, match="store is 7"):
        any_place(None)


def test_commands_name_the_store_unless_it_is_found_without(tmp_path: Path) -> None:
    assert any_place(None).flag == ""
    assert any_place(Path("my runs.db")).flag == " --store 'my runs.db'"
