"""A list whose beginning stands in pages that are decoded when somebody looks at them, and not before.

A thread's next turn adds to the end of what is there, and seldom looks at the beginning. To whoever uses it, it is a
list: only what it costs differs.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, MutableSequence, Sequence
from typing import Generic, NamedTuple, TypeVar, cast, overload

T = TypeVar("T")


class PagedPart(NamedTuple, Generic[T]):
    """Values that stand in a page."""

    length: int
    read: Callable[[], Sequence[T]]
    """Gives the same values each time. Keeps them itself where reading costs something."""


class PagedList(MutableSequence[T]):
    """Parts, and after them what was added since."""

    __slots__ = ("_ends", "_parts", "_tail")

    def __init__(self, parts: Iterable[PagedPart[T]] = (), tail: Iterable[T] = ()) -> None:
        self._parts = [part for part in parts if part.length]
        self._ends: list[int] = []
        """Where each part ends among the values."""
        for part in self._parts:
            self._ends.append(self._paged + part.length)
        self._tail = list(tail)

    @property
    def _paged(self) -> int:
        return self._ends[-1] if self._ends else 0

    def snapshot(self) -> "PagedList[T]":
        """The same values, whatever happens to this list later. Nothing is decoded."""
        return PagedList(self._parts, self._tail)

    def __len__(self) -> int:
        return self._paged + len(self._tail)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, int):
            place = index if index >= 0 else len(self) + index
            if place >= self._paged:
                return self._tail[place - self._paged]
            if place < 0:
                raise IndexError("list index out of range")
            part, begins = self._part_at(place)
            return self._parts[part].read()[place - begins]
        start, stop, step = index.indices(len(self))
        if step != 1:
            return list(self)[index]
        return self._between(start, stop)

    def _part_at(self, place: int) -> tuple[int, int]:
        """The part in which a place is, and where that part begins."""
        part = bisect_right(self._ends, place)
        return part, self._ends[part - 1] if part else 0

    def _between(self, start: int, stop: int) -> list[T]:
        paged = self._paged
        found: list[T] = []
        while start < min(stop, paged):
            part, begins = self._part_at(start)
            found += self._parts[part].read()[start - begins : stop - begins]
            start = self._ends[part]
        if stop > paged:
            found += self._tail[max(start - paged, 0) : stop - paged]
        return found

    def __iter__(self) -> Iterator[T]:
        for part in self._parts:
            yield from part.read()
        yield from self._tail

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PagedList | list) and list(self) == list(other)

    def __repr__(self) -> str:
        return f"<{len(self)} values, {self._paged} of them in {len(self._parts)} pages>"

    # --- changes ------------------------------------------------------------------------------------------------------

    def append(self, value: T) -> None:
        self._tail.append(value)

    def insert(self, index: int, value: T) -> None:
        place = max(0, len(self) + index) if index < 0 else min(index, len(self))
        self._read_from(place)
        self._tail.insert(place - self._paged, value)

    @overload
    def __setitem__(self, index: int, value: T) -> None: ...
    @overload
    def __setitem__(self, index: slice, value: Iterable[T]) -> None: ...
    def __setitem__(self, index: int | slice, value: T | Iterable[T]) -> None:
        if isinstance(index, slice):
            start, stop, _ = index.indices(len(self))
            self._read_from(min(start, stop))
            self._tail[start - self._paged : max(start, stop) - self._paged] = cast(Iterable[T], value)
            return
        place = index if index >= 0 else len(self) + index
        if place >= self._paged:
            self._tail[place - self._paged] = cast(T, value)
            return
        part, begins = self._part_at(place)
        values = list(self._parts[part].read())
        values[place - begins] = cast(T, value)
        self._parts[part] = PagedPart(len(values), lambda: values)

    def __delitem__(self, index: int | slice) -> None:
        start, stop, _ = (index if isinstance(index, slice) else slice(index, index + 1 or None)).indices(len(self))
        self[start:stop] = ()

    def _read_from(self, place: int) -> None:
        """Have everything from this place on among what was added."""
        while place < self._paged:
            self._tail[:0] = self._parts.pop().read()
            self._ends.pop()
