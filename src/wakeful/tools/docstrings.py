"""Docstrings as a tool's description and its parameters' descriptions: Google, NumPy and Sphinx styles.

What cannot be read as one of the three stays in the description, word for word.
"""

import inspect
import re
from collections.abc import Iterator
from typing import NamedTuple

_GOOGLE = re.compile(r"^(Args|Arguments|Parameters|Params):\s*$")
_NUMPY = re.compile(r"^(Parameters|Other Parameters)\s*$")
_UNDERLINE = re.compile(r"^-{3,}\s*$")
_GOOGLE_ENTRY = re.compile(r"^\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_NUMPY_ENTRY = re.compile(r"^(\w+(?:\s*,\s*\w+)*)\s*(?::.*)?$")
_SPHINX_ENTRY = re.compile(r"^:(?:param|parameter|arg|argument)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)$")
_SPHINX_OTHER = re.compile(r"^:(?:type|rtype|raises?)\b[^:]*:")


class DocstringParts(NamedTuple):
    """A docstring, taken apart."""

    description: str
    parameters: dict[str, str]


def read(docstring: str | None) -> DocstringParts:
    """The description without its parameter section, and what that section says."""
    if not docstring:
        return DocstringParts("", {})
    lines = inspect.cleandoc(docstring).splitlines()
    kept: list[str] = []
    found: dict[str, str] = {}
    index = 0
    while index < len(lines):
        line = lines[index]
        if _GOOGLE.match(line):
            index = _google(lines, index + 1, found)
        elif _NUMPY.match(line) and index + 1 < len(lines) and _UNDERLINE.match(lines[index + 1]):
            index = _numpy(lines, index + 2, found)
        elif entry := _SPHINX_ENTRY.match(line):
            index, rest = _indented(lines, index + 1)
            found[entry[1]] = _joined([entry[2], *rest])
        elif _SPHINX_OTHER.match(line):
            index, _ = _indented(lines, index + 1)
        else:
            kept.append(line)
            index += 1
    return DocstringParts(re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip(), found)


def _google(lines: list[str], start: int, found: dict[str, str]) -> int:
    end, block = _indented(lines, start)
    found.update(_entries(block, _GOOGLE_ENTRY))
    return end


def _numpy(lines: list[str], start: int, found: dict[str, str]) -> int:
    """Entries begin at the margin; the section ends at the next underlined heading."""
    end = start
    while end < len(lines) and not (end + 1 < len(lines) and _UNDERLINE.match(lines[end + 1])):
        end += 1
    names: list[str] = []
    text: list[str] = []
    for line in [*lines[start:end], "_"]:
        entry = _NUMPY_ENTRY.match(line)
        if entry is None:
            text.append(line)
            continue
        found.update(dict.fromkeys(names, _joined(text)))
        names, text = re.split(r"\s*,\s*", entry[1]), []
    return end


def _entries(block: list[str], pattern: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Entries stand at the block's own margin; what is further in belongs to the one above."""
    name, text = "", list[str]()
    for line in inspect.cleandoc("\n".join(["", *block])).splitlines():
        entry = None if line[:1].isspace() else pattern.match(line)
        if entry is None:
            text.append(line)
            continue
        if name:
            yield name, _joined(text)
        name, text = entry[1], [entry[2]]
    if name:
        yield name, _joined(text)


def _indented(lines: list[str], start: int) -> tuple[int, list[str]]:
    end = start
    while end < len(lines) and (not lines[end].strip() or lines[end][:1].isspace()):
        end += 1
    return end, lines[start:end]


def _joined(lines: list[str]) -> str:
    return " ".join(word for line in lines for word in line.split())
