"""Settings that bite: each with values, and what a run under each of them comes to. No two of them come to the same.

A runtime that passed a setting over would come to the same with every value, so that its entry fails. What there is to
set is read from the code, and a setting without an entry is named.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import BaseModel

Observe: TypeAlias = Callable[[Any, Path], Awaitable[Any]]
"""What a run comes to under a value; the folder is its own."""


class Bites(dict[str, tuple[Observe, tuple[tuple[Any, Any], ...]]]):
    """A table: setting to how it is observed, and pairs of a value and what is seen under it."""

    def of(self, setting: str, *cases: tuple[Any, Any]) -> Callable[[Observe], Observe]:
        def entered(observe: Observe) -> Observe:
            assert setting not in self, f"{setting} is entered twice"
            self[setting] = observe, cases
            return observe

        return entered

    async def check(self, setting: str, folder: Path) -> None:
        observe, cases = self[setting]
        assert len(cases) > 1, "one value shows nothing"
        seen = []
        for place, (value, expected) in enumerate(cases):
            (own := folder / str(place)).mkdir()
            found = await observe(value, own)
            assert found == expected, f"{setting}={value!r} comes to {found!r}, not {expected!r}"
            assert found not in seen, f"{setting}={value!r} comes to the same as another value"
            seen.append(found)

    def check_whole(self, settings: Iterable[str]) -> None:
        """Every setting there is has an entry, and every entry is about one that there is."""
        named = set(settings)
        assert named, "nothing was found to set"
        assert named - set(self) == set(), "settings that no test looks at"
        assert set(self) - named == set(), "tests of settings that are none"


def fields_of(kind: Any, prefix: str = "") -> Iterator[str]:
    """The fields of a value's class, by name."""
    named: Iterable[str]
    if is_dataclass(kind):
        named = [each.name for each in fields(kind)]
    else:
        assert issubclass(kind, BaseModel)
        named = kind.model_fields
    return (prefix + name for name in named)


def joined(*tables: Bites) -> Bites:
    """All of them as one table."""
    whole = Bites()
    for table in tables:
        assert not whole.keys() & table.keys()
        whole.update(table)
    return whole
