"""Pages of lists that are read as a whole: cut behind a place, which stays where it is."""

from types import SimpleNamespace
from typing import Any

from wakeful.service.operations.pages import ByKey, ByPlace, cut, place_of


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


def test_a_place_may_be_one_part_of_a_line_or_several() -> None:
    assert place_of(LINES[0], ByPlace("after", "inner.name")) == "c"
    assert place_of(LINES[0], ByPlace("after", ("at", "name"))) == [1.0, "c"]
