"""Cutting a text into passages, and a question into a search."""

from hypothesis import given
from hypothesis import strategies as st

from wakeful.retrieval.index import MAX_CHARS, cut, query, spaced


@given(st.lists(st.text(alphabet="ab #\n", max_size=3_000), max_size=4).map("\n".join))
def test_every_word_is_in_exactly_one_passage_and_none_is_too_long(text: str) -> None:
    passages = cut(text)
    joined = "".join("".join(passage.text.split()) for passage in passages)
    assert joined == "".join(text.split())
    assert all(len(passage.text) <= MAX_CHARS + 1 for passage in passages)
    lines = text.splitlines()
    for passage in passages:
        assert 1 <= passage.first_line <= passage.last_line <= len(lines)


def test_a_heading_begins_a_passage_and_names_it() -> None:
    found = cut("intro\n# One\n\nfirst\n## Two\nsecond\n")
    assert [(each.first_line, each.last_line, each.title) for each in found] == [
        (1, 1, ""),
        (2, 4, "One"),
        (5, 6, "Two"),
    ]


def test_a_search_is_made_of_quoted_words_and_pairs() -> None:
    assert query("Was ist das? 7 x") == '"was" OR "ist" OR "das" OR "7"'
    assert query("東京都 tower") == '"東 京" OR "京 都" OR "tower"'
    assert query("京") == '"京"' and query('"(*)') == ""
    assert spaced("a京b").split() == ["a", "京", "b"]
