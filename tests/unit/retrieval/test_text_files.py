"""A collection of text files: what is found, as the files are now."""

import contextlib
from pathlib import Path

import apsw
import pytest

from wakeful import TextFiles
from wakeful.contracts.errors import InvalidConfig
from wakeful.ports import Collection


def docs(root: Path, **files: str) -> Path:
    root.mkdir(exist_ok=True)
    for name, text in files.items():
        (root / f"{name}.md").write_text(text)
    return root


async def refs(collection: TextFiles, question: str) -> list[str]:
    return [passage.ref for passage in await collection.search(question)]


async def test_a_question_in_anybodys_words_finds_the_passage_with_its_lines(tmp_path: Path) -> None:
    root = docs(
        tmp_path / "docs",
        refunds="# Refunds\n\nMoney goes back within 30 days.\n\n## Fees\n\nThere are none.\n",
        ships="# Shipping\n\nBy boat.\n",
    )
    handbook = TextFiles("handbook", root)
    assert isinstance(handbook, Collection)
    (first, *_) = await handbook.search("How many days until the money of a refund is back?")
    assert (first.ref, first.title) == ("handbook:refunds.md#L1-L4", "Refunds")
    assert "within 30 days" in first.text and first.digest is not None and first.score > 0
    assert await refs(handbook, "zebra") == [] and await refs(handbook, " ?! ") == []
    assert await refs(handbook, 'a "quoted" OR NEAR( boat*') == ["handbook:ships.md#L1-L3"], "no syntax, only words"
    handbook.close()


async def test_the_index_follows_the_files(tmp_path: Path) -> None:
    root = docs(tmp_path / "docs", one="apples", two="pears")
    for collection in (TextFiles("c", root), TextFiles("c", root, index=tmp_path / "index.sqlite")):
        docs(root, one="apples", two="pears")
        assert await refs(collection, "apples pears") == ["c:one.md#L1-L1", "c:two.md#L1-L1"]
        (root / "two.md").unlink()
        docs(root, one="plums and peaches")
        assert await refs(collection, "apples pears") == []
        assert await refs(collection, "plums") == ["c:one.md#L1-L1"]
        collection.close()
        assert await refs(collection, "plums") == ["c:one.md#L1-L1"], "closed is not gone"
        collection.close()


async def test_an_index_of_another_version_is_made_again_from_the_files(tmp_path: Path) -> None:
    root, place = docs(tmp_path / "docs", one="\uff21\uff30\uff29"), tmp_path / "index.sqlite"
    collection = TextFiles("c", root, index=place)
    assert await refs(collection, "API") == ["c:one.md#L1-L1"]
    collection.close()
    with contextlib.closing(apsw.Connection(str(place))) as connection:
        connection.execute("DELETE FROM words; PRAGMA user_version = 0")
    assert await refs(collection, "API") == ["c:one.md#L1-L1"]
    collection.close()


@pytest.mark.parametrize(
    ("question", "finds"),
    [("東京", True), ("東京の天気は?", True), ("京東", False), ("天気", True), ("환불", True), ("大阪", False)],
)
async def test_scripts_without_spaces_are_found_by_what_stands_together(
    tmp_path: Path, question: str, finds: bool
) -> None:
    root = docs(tmp_path / "docs", one="今日の東京の天気は晴れ。 환불은 30일.", two="Nothing of the kind.")
    collection = TextFiles("c", root)
    assert await refs(collection, question) == (["c:one.md#L1-L1"] if finds else [])
    collection.close()


async def test_what_is_hidden_binary_of_another_kind_or_elsewhere_is_no_part_of_it(tmp_path: Path) -> None:
    root = docs(tmp_path / "docs", one="needle")
    (tmp_path / "private.md").write_text("needle")
    (root / "link.md").symlink_to(tmp_path / "private.md")
    (root / ".hidden.md").write_text("needle")
    (root / "code.py").write_text("needle")
    (root / "odd.txt").write_bytes(b"needle\x00")
    docs(root / ".git", config="needle")
    collection = TextFiles("c", root)
    assert await refs(collection, "needle") == ["c:one.md#L1-L1"]
    collection.close()
    code = TextFiles("code", root, patterns=["*.py"])
    assert await refs(code, "needle") == ["code:code.py#L1-L1"]
    code.close()


def test_what_cannot_be_a_collection_is_refused(tmp_path: Path) -> None:
    for name in ("", "a:b", "a\nb"):
        with pytest.raises(InvalidConfig, match="cannot be a collection's name"):
            TextFiles(name, tmp_path)
    with pytest.raises(InvalidConfig, match="cannot be used"):
        TextFiles("a", tmp_path / "gone")
    with pytest.raises(InvalidConfig, match="patterns"):
        TextFiles("a", tmp_path, patterns="*.md")
