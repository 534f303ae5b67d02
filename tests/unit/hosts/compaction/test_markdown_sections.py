"""A Markdown document in pieces, and whole again."""

import pytest

from wakeful.contracts.errors import InvalidValue
from wakeful.hosts.compaction.compaction_items import byte_count, made
from wakeful.hosts.compaction.markdown_sections import (
    POINTER,
    PREAMBLE,
    SECTION,
    SUMMARY,
    join_markdown,
    point_to_section,
    split_markdown,
    split_markdown_overflow,
    summarise_section,
)

DOCUMENT = """before

# One
text
## Two ##
```sh
# not a heading
```
### Three
deep
# One
again
## Two
x"""


def keys(document: str, level: int = 6) -> list[str]:
    return [item.metadata["key"] for item in split_markdown(document, level) if item.type != PREAMBLE]


@pytest.mark.spec("API-CNS-05")
@pytest.mark.parametrize(
    "document",
    [
        DOCUMENT,
        DOCUMENT.replace("\n", "\r\n"),
        "",
        "\n\n",
        "no heading",
        "# only",
        "#",
        "# a\n\x0b# b\u2028# c\n",
        "~~~\n# a\n",
        "# a\n```\n# b",
    ],
)
def test_a_document_is_split_by_heading_path_and_rebuilt_byte_for_byte(document: str) -> None:
    for level in range(1, 7):
        assert join_markdown(split_markdown(document, level)).encode() == document.encode()
    items = split_markdown(DOCUMENT)
    assert [item.type for item in items] == [PREAMBLE, *[SECTION] * 5]
    assert items[0].content == "before\n\n"
    assert [item.metadata["path"] for item in items[1:]] == [
        ["One"],
        ["One", "Two"],
        ["One", "Two", "Three"],
        ["One"],
        ["One", "Two"],
    ]


@pytest.mark.spec("API-CNS-06")
def test_what_stands_for_a_section_keeps_its_heading_line_and_a_pointer_points_somewhere() -> None:
    first, two, *_ = split_markdown(DOCUMENT)[1:]
    folded, moved = summarise_section(two, "short"), point_to_section(two, "vault://7")
    assert (split_markdown(DOCUMENT)[0].type, first.type) == ("markdown_preamble", "markdown_section")
    assert (folded.type, moved.type) == ("markdown_section_summary", "markdown_section_pointer") == (SUMMARY, POINTER)
    for item in (folded, moved):
        assert str(item.content).startswith("## Two ##\n")
        assert item.metadata["key"] == two.metadata["key"]
    assert "short" in folded.content and "# not a heading" not in folded.content
    assert "vault://7" in moved.content and moved.metadata["destination"] == "vault://7"
    assert len(set(keys(DOCUMENT))) == 5, "repeated headings have keys of their own"
    assert keys("# a\n# a\n# a (2)\n# a\n") == ["a", "a (2)", "a (2) (2)", "a (3)"]
    for nowhere in ("", "  "):
        with pytest.raises(InvalidValue, match=r"^invalid_compaction_item: metadata\.destination"):
            point_to_section(two, nowhere)


def test_a_summary_that_says_nothing_and_a_piece_that_is_none_are_refused() -> None:
    section = split_markdown("# a\n")[0]
    with pytest.raises(InvalidValue, match="must not be empty"):
        summarise_section(section, " ")
    with pytest.raises(InvalidValue, match="is not a section"):
        point_to_section(made(PREAMBLE, "x", 0), "there")
    with pytest.raises(InvalidValue, match=r"items\[0\]\.type"):
        join_markdown([made("message:text", "x", 0)])


def test_a_section_without_a_line_end_still_keeps_its_heading_on_a_line_of_its_own() -> None:
    assert point_to_section(split_markdown("# end")[0], "there").content == "# end\n\n[moved to there]\n\n"


@pytest.mark.spec("API-CNS-07")
def test_sections_are_grouped_by_level_and_the_earliest_are_moved_out_when_it_is_too_long() -> None:
    assert keys(DOCUMENT, 1) == ["One", "One (2)"]
    assert keys(DOCUMENT, 2) == ["One", "One > Two", "One (2)", "One > Two (2)"]
    for wrong in (0, 7):
        with pytest.raises(InvalidValue, match="heading level from 1 to 6"):
            split_markdown(DOCUMENT, wrong)
    long = "intro\n# a\n" + "x" * 200 + "\n# b\n" + "y" * 200 + "\n# c\n" + "z" * 200
    items = split_markdown(long, 1)
    done = split_markdown_overflow(items, 500, "vault")
    assert done == split_markdown_overflow(items, 500, "vault")
    assert [item.type for item in done.items] == [PREAMBLE, POINTER, SECTION, SECTION]
    assert done.archived == (items[1],)
    assert byte_count(done.items) <= 500
    assert split_markdown_overflow(items, 10_000, "vault").items == items
    everything = split_markdown_overflow(items, 1, "vault")
    assert [item.type for item in everything.items] == [PREAMBLE, POINTER, POINTER, POINTER]


def test_a_section_no_longer_than_its_pointer_stays() -> None:
    items = split_markdown("# a\nx\n# b\n" + "y" * 200)
    done = split_markdown_overflow(items, 1, "somewhere far away")
    assert [item.type for item in done.items] == [SECTION, POINTER]


@pytest.mark.spec("API-CNS-08")
@pytest.mark.parametrize(
    "fenced",
    [
        "```\n# x\n```\n",
        "~~~\n# x\n~~~\n",
        "````\n```\n# x\n````\n",
        "```\n~~~\n# x\n```\n",
        "   ```py\n# x\n   ```\n",
        "```\n``` still open\n# x\n```\n",
    ],
)
def test_a_line_in_a_fenced_block_is_no_heading(fenced: str) -> None:
    assert keys(f"# a\n{fenced}# b\n") == ["a", "b"]
    assert keys(fenced.replace("`", "'").replace("~", "'") + "# b\n") == ["x", "b"], "without the fence it is one"


def test_what_only_looks_like_a_fence_or_a_heading_is_neither() -> None:
    assert keys("# a\n``` not ` a fence\n# b\n") == ["a", "b"]
    assert keys("# a\n    # code\n#hash\n####### seven\n#\n") == ["a", ""]
