"""A list in pages is a list: whatever is done to it, and nothing is read before somebody looks."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.decisions.paged_list import PagedList, PagedPart

Numbers = list[int]


def paged(*parts: Numbers, tail: Numbers = [], read: Numbers | None = None) -> PagedList[int]:  # noqa: B006
    def reading(place: int, values: Numbers) -> Callable[[], Numbers]:
        def look() -> Numbers:
            if read is not None:
                read.append(place)
            return values

        return look

    return PagedList((PagedPart(len(part), reading(place, part)) for place, part in enumerate(parts)), tail)


def test_only_the_parts_that_are_looked_at_are_read() -> None:
    read: Numbers = []
    values = paged([0, 1, 2], [3, 4], tail=[5], read=read)
    values.append(6)
    assert (len(values), values[-1], values[5:], values[5], read) == (7, 6, [5, 6], 5, [])
    values[-1:-1] = [7]
    kept = values.snapshot()
    values.append(8)
    assert (values[-3:], len(kept), read) == ([7, 6, 8], 8, [])
    assert (values[4], read) == (4, [1])
    assert (list(kept), read) == ([0, 1, 2, 3, 4, 5, 7, 6], [1, 0, 1])


def test_a_change_to_a_snapshot_leaves_the_list_as_it_is() -> None:
    values = paged([0, 1], tail=[2])
    copy = values.snapshot()
    copy[0], copy[2] = 9, 8
    copy[:2] = []
    assert (list(values), list(copy)) == ([0, 1, 2], [8])
    values[:2] = [7]
    assert (values == [7, 2], values != paged([7, 2]), values[1]) == (True, False, 2)


def test_a_place_that_is_not_there_is_an_error() -> None:
    for place in (3, -4):
        with pytest.raises(IndexError):
            paged([0, 1], tail=[2])[place]


places = st.integers(-12, 12) | st.none()


@given(st.lists(st.lists(st.integers(), max_size=4), max_size=3), st.lists(st.integers(), max_size=4), st.data())
def test_it_does_what_a_list_does(parts: list[Numbers], tail: Numbers, data: st.DataObject) -> None:
    values, plain = paged(*parts, tail=tail), [each for part in [*parts, tail] for each in part]
    for _ in range(4):
        cut = slice(data.draw(places), data.draw(places))
        assert values[cut] == plain[cut]
        match data.draw(st.integers(0, 4)):
            case 0:
                new = data.draw(st.lists(st.integers(), max_size=3))
                values[cut] = new
                plain[cut] = new
            case 1:
                del values[cut]
                del plain[cut]
            case 2:
                at = data.draw(st.integers(-12, 12))
                values.insert(at, 5)
                plain.insert(at, 5)
            case 3 if plain:
                assert values.pop() == plain.pop()
            case _:
                values.append(1)
                plain.append(1)
        assert (list(values), len(values), list(reversed(values))) == (plain, len(plain), plain[::-1])
