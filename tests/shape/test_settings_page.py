"""The page of settings has every setting that the code reads."""

import re
import runpy
import tomllib
from pathlib import Path
from typing import Any

import pytest

from wakeful.contracts.errors import InvalidConfig
from wakeful.settings.owner_file import SECTIONS, owner_file


@pytest.fixture
def made(root: Path) -> dict[str, Any]:
    return runpy.run_path(str(root / "docs/reference/settings_page.py"))


def test_every_variable_that_the_code_names_is_on_the_page(root: Path) -> None:
    page = (root / "docs/reference/settings.md").read_text()
    named = {
        name
        for module in (root / "src/wakeful").rglob("*.py")
        for name in re.findall(r"\bWAKEFUL_[A-Z_]*[A-Z]\b", module.read_text())
    }
    assert named and [name for name in sorted(named) if f"`{name}`" not in page] == []


def test_every_name_has_its_words_and_no_words_are_left_over(made: dict[str, Any]) -> None:
    for title, names in made["NAMES"].items():
        if title != "[providers.NAME]":  # its words are those of providers.md
            assert set(made["WORDS"][title]) == set(names), title


def test_the_file_on_the_page_has_every_table_and_is_accepted(
    made: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = re.search(r"```toml\n(.*?)```", made["FILE"], re.DOTALL)
    assert shown is not None
    assert set(tomllib.loads(shown[1])) == set(SECTIONS)
    (tmp_path / "wakeful.toml").write_text(shown[1])
    assert set(owner_file({"WAKEFUL_HOME": str(tmp_path)}).data) == set(SECTIONS)


def test_a_table_that_nothing_reads_is_an_error_with_the_name_that_was_meant(tmp_path: Path) -> None:
    (tmp_path / "wakeful.toml").write_text("[provider.vllm]\nbase_url = 'http://127.0.0.1:8000'\n")
    with pytest.raises(InvalidConfig, match="there is no setting 'provider'") as told:
        owner_file({"WAKEFUL_HOME": str(tmp_path)})
    assert told.value.hint == "Did you mean providers?"
