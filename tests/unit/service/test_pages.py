"""Pages of lists that are read as a whole: cut behind a place, which stays where it is."""

from types import SimpleNamespace
from typing import Any

import pytest

from wakeful.contracts.errors import CursorGone
from wakeful.service.operations.pages import ByKey, ByLine, cut, place_of


def line(name: str, at: float | None = 0.0) -> Any:
    return SimpleNamespace(name=name, at=at, inner=SimpleNamespace(name=name))


def names(lines: list[Any]) -> str:
    return "".join(each.name for each in lines)


LINES = [line("c", 1.0), line("a", 2.0), line("d", None), line("b", 1.0)]


def test_lines_are_put_in_order_and_cut_behind_a_place_that_may_be_gone() -> None:
    newest = ByKey(("-at", "inner.name"))
    assert names(cut(LINES, newest, None, 9)) == "abcd"
    assert names(cut(LINES, ByKey(("at", "name")), None, 9)) == "dbca", "nothing comes before something"
    first = cut(LINES, newest, None, 2)
    place = place_of(first[-1], newest)
    assert place == [1.0, "b"]
    without = [each for each in LINES if each.name != "b"]
    assert names(cut([*without, line("e", 3.0), line("bb", 1.0)], newest, place, 9)) == "bbcd"
    assert cut([], newest, place, 9) == []


def test_a_list_in_an_order_of_its_own_goes_on_behind_a_line_as_long_as_it_is_there() -> None:
    nearest = ByLine("name")
    assert names(cut(LINES, nearest, None, 2)) == "ca"
    assert names(cut(LINES, nearest, "a", 2)) == "db"
    with pytest.raises(CursorGone, match="is gone"):
        cut(LINES, nearest, "z", 2)
