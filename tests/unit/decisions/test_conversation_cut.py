"""Where a conversation is cut: for every compaction, an agent's own and a host's."""

from hypothesis import given
from hypothesis import strategies as st

from wakeful.decisions.conversation_cut import (
    folded_part,
    kept_part,
    newest_place,
    place_after,
    tail_start,
    untied,
)

SIZES = st.lists(st.integers(0, 50), max_size=20)


@given(SIZES, st.integers(0, 200), st.integers(1, 20))
def test_the_tail_is_the_longest_that_fits_and_never_empty(sizes: list[int], most: int, entries: int) -> None:
    begins = tail_start(len(sizes), sizes.__getitem__, most=most, most_entries=entries)
    fitting = [place for place in range(len(sizes)) if sum(sizes[place:]) <= most and len(sizes) - place <= entries]
    assert begins == min([*fitting, max(0, len(sizes) - 1)])


def test_the_tail_begins_only_where_it_may() -> None:
    rounds = {1, 4}
    sizes = [1] * 6
    for most, begins in ((9, 1), (4, 4), (1, 4)):
        assert tail_start(6, sizes.__getitem__, most=most, may_begin=rounds.__contains__) == begins
    assert tail_start(6, sizes.__getitem__, may_begin=lambda place: False) == 6, "there is no place to begin"


@given(st.integers(0, 12), st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=6))
def test_no_pair_is_parted_and_nothing_that_waits_is_folded(at: int, ends: list[tuple[int, int]]) -> None:
    pairs = [(min(pair), max(pair)) for pair in ends]
    for waiting in ([], [5]):
        cut = untied(at, pairs, waiting)
        assert cut <= min([at, *waiting])
        assert not any(begin < cut <= end for begin, end in pairs)


def test_what_was_asked_last_stays_in_front_of_the_rest() -> None:
    entries = ["old", "a", "new", "b", "c"]
    asked = newest_place(5, lambda place: entries[place] in ("old", "new"))
    assert asked == 2
    assert (folded_part(entries, 4, asked), kept_part(entries, 4, asked)) == (["old", "a", "b"], ["new", "c"])
    assert [place_after(place, 4, asked) for place in range(5)] == [None, None, 1, None, 2]
    assert [place_after(place, 2, None) for place in range(5)] == [None, None, 1, 2, 3]
    assert newest_place(5, lambda place: False) is None
