"""Where a conversation is cut when its beginning is folded: one rule for an agent's own and for a host's transcript.

    tail_start      the newest entries stay, as many as there is room for
    untied          no call is parted from its result, and nothing that waits for somebody is folded
    newest_place    what was asked last stays word for word, in front of the rest

Entries are known by their places; whoever cuts says what they are. After a fold there is the summary, then the pinned
entry where there is one, then everything from the cut on.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

EntryT = TypeVar("EntryT")


def tail_start(
    count: int,
    size: Callable[[int], int],
    *,
    most: int | None = None,
    most_entries: int | None = None,
    may_begin: Callable[[int], bool] = lambda place: True,
) -> int:
    """The place from which on entries stay: the oldest at which they may begin and still fit.

    The newest beginning stays however large it is; `count`: there is none.
    """
    used, best = 0, count
    for place in range(count - 1, -1, -1):
        used += size(place)
        fits = (most is None or used <= most) and (most_entries is None or count - place <= most_entries)
        if not fits and best < count:
            break
        if may_begin(place):
            best = place
    return best


def untied(cut: int, pairs: Iterable[tuple[int, int]], waiting: Iterable[int]) -> int:
    """The cut, moved back until no pair (a call, its result) is on both sides and nothing that waits is folded."""
    cut = min([cut, *waiting])
    for begin, end in sorted(pairs, reverse=True):  # the latest first: moving back over one may part an earlier one
        if begin < cut <= end:
            cut = begin
    return max(0, cut)


def newest_place(count: int, is_asked: Callable[[int], bool]) -> int | None:
    """The place of the newest entry in which a person asks for something."""
    return next((place for place in range(count - 1, -1, -1) if is_asked(place)), None)


def folded_part(entries: Sequence[EntryT], cut: int, pinned: int | None) -> list[EntryT]:
    """What a summary stands for."""
    return [entry for place, entry in enumerate(entries[:cut]) if place != pinned]


def kept_part(entries: Sequence[EntryT], cut: int, pinned: int | None) -> list[EntryT]:
    """What stands behind the summary."""
    return [*(() if pinned is None else (entries[pinned],)), *entries[cut:]]


def place_after(place: int, cut: int, pinned: int | None) -> int | None:
    """Where an entry stands once a summary is in place; None: it is folded."""
    if place >= cut:
        return place - cut + (1 if pinned is None else 2)
    return 1 if place == pinned else None
