"""Where things stand in a file that a person wrote: the line of a field, for the words about a mistake in it."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

FieldPath: TypeAlias = tuple[str | int, ...]
"""Names of fields and places in lists, from the top of a file."""
_HEADER = re.compile(r"^\s*(\[\[?)\s*(.+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""^\s*((?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+)(?:\s*\.\s*(?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+))*)\s*=""")
_PART = re.compile(r""""([^"]*)"|'([^']*)'|([A-Za-z0-9_-]+)""")
_INLINE = re.compile(r"""(?:"([^"]*)"|'([^']*)'|([A-Za-z0-9_-]+))\s*=""")


class FileLines(NamedTuple):
    """The lines of a file's fields, from 1 on."""

    lines: Mapping[FieldPath, int]
    twice: tuple[FieldPath, ...] = ()
    """Fields that stand there a second time."""

    def line(self, field: FieldPath) -> int | None:
        """The line of a field, or of the nearest one around it that has one."""
        for length in range(len(field), 0, -1):
            found = self.lines.get(field[:length])
            if found is not None:
                return found
        return None


NO_LINES = FileLines({})


def yaml_lines(text: str) -> FileLines:
    """Of YAML, and of JSON as far as it is YAML; of anything else none."""
    import yaml  # an agent that is never read from a file must not pay for it

    try:
        root = yaml.compose(text, yaml.SafeLoader)
    except yaml.YAMLError:
        return NO_LINES
    lines: dict[FieldPath, int] = {}
    twice: list[FieldPath] = []
    above: set[int] = set()

    def walk(node: Any, path: FieldPath) -> None:
        if id(node) in above:  # an anchor that holds itself
            return
        above.add(id(node))
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                place = (*path, key.value)
                if place in lines and key.value != "<<":
                    twice.append(place)
                lines[place] = key.start_mark.line + 1
                walk(value, place)
        elif isinstance(node, yaml.SequenceNode):
            for number, each in enumerate(node.value):
                lines[(*path, number)] = each.start_mark.line + 1
                walk(each, (*path, number))
        above.discard(id(node))

    if root is not None:
        walk(root, ())
    return FileLines(lines, tuple(twice))


def toml_lines(text: str) -> FileLines:
    """Of TOML that was parsed already: headers and keys, line by line. What a line holds inside of braces is on it."""
    lines: dict[FieldPath, int] = {}
    table: FieldPath = ()
    counted: dict[FieldPath, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        header = _HEADER.match(line)
        if header is not None and "=" not in header[2]:
            table = _parts(header[2])
            if header[1] == "[[":
                counted[table] = counted.get(table, -1) + 1
                lines.setdefault(table, number)
                table = (*table, counted[table])
            for length in range(1, len(table) + 1):
                lines.setdefault(table[:length], number)
            continue
        key = _KEY.match(line)
        if key is None:
            continue
        place = (*table, *_parts(key[1]))
        for length in range(len(table) + 1, len(place) + 1):
            lines.setdefault(place[:length], number)
        for inner in _INLINE.finditer(line, key.end()):
            lines.setdefault((*place, next(part for part in inner.groups() if part is not None)), number)
    return FileLines(lines)


def _parts(dotted: str) -> FieldPath:
    return tuple(
        next(part for part in found if part is not None) for found in (m.groups() for m in _PART.finditer(dotted))
    )
