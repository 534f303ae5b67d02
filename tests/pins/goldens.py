"""Goldens: text files below `tests/pins/goldens` that a person reads in a diff.

A test compares what it found with its golden. With WAKEFUL_RECORD_PINS=1 (`make pins`) it writes the golden instead.
"""

import os
from collections.abc import Mapping
from difflib import unified_diff
from pathlib import Path

FOLDER = Path(__file__).parent / "goldens"
RECORDING = bool(os.environ.get("WAKEFUL_RECORD_PINS"))
_MOST_LINES = 60
"""Of a difference; the rest is in the diff after `make pins`."""


def check_golden(name: str, found: str) -> None:
    """Compare with the golden of this name, or record it."""
    check_goldens({name: found})


def check_goldens(found: Mapping[str, str], *, alone_in: str | None = None) -> None:
    """The same for several, all of whose differences are told; `alone_in` is a folder that holds no others."""
    others = {name for name in recorded() if alone_in and name.startswith(f"{alone_in}/")} - set(found)
    if RECORDING:
        _record(found, others)
        return
    kept = {name: (FOLDER / name).read_text() if (FOLDER / name).exists() else "" for name in found}
    wrong = [difference(name, kept[name], text) for name, text in found.items() if kept[name] != text]
    wrong += [f"tests/pins/goldens/{name} is recorded, and nothing makes it any more: make pins" for name in others]
    if wrong:
        raise AssertionError("\n\n".join(wrong))


def difference(name: str, kept: str, found: str) -> str:
    """What changed, and what to do about it."""
    lines = [*unified_diff(kept.splitlines(), found.splitlines(), "recorded", "now", lineterm="", n=2)]
    more = [f"... and {len(lines) - _MOST_LINES} lines more"] if len(lines) > _MOST_LINES else []
    advice = "If this is what you want: make pins, read the diff, and name the change with its reason in CHANGELOG.md."
    return "\n".join([f"tests/pins/goldens/{name} is not what comes out now", *lines[:_MOST_LINES], *more, advice])


def recorded() -> set[str]:
    """The names of all goldens there are."""
    return {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*") if path.is_file()}


def _record(found: Mapping[str, str], others: set[str]) -> None:
    for name in others:
        (FOLDER / name).unlink()
    for name, text in found.items():
        (FOLDER / name).parent.mkdir(parents=True, exist_ok=True)
        (FOLDER / name).write_text(text)
