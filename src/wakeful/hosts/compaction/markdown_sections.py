"""A Markdown document as items: a preamble and sections, each known by the path of its headings.

Split and joined again, a document is what it was, byte for byte: every line belongs to exactly one item. A line that
looks like a heading inside a fenced code block is code. What is folded or moved away keeps its heading line, so that a
reader still finds where it stood.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from wakeful.contracts.errors import InvalidValue
from wakeful.hosts.compaction.compaction_items import INVALID, CompactionItem, byte_count, made, normalise_item

PREAMBLE = "markdown_preamble"
SECTION = "markdown_section"
SUMMARY = "markdown_section_summary"
POINTER = "markdown_section_pointer"
DEEPEST = 6

_HEADING = re.compile(r" {0,3}(#{1,6})(?=[ \t\r\n]|\Z)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


@dataclass(slots=True, frozen=True)
class MarkdownSplit:
    """A document that was too long: what stays in it, and what was taken out."""

    items: tuple[CompactionItem, ...]
    """The document's items, pointers in the place of what was taken out."""
    archived: tuple[CompactionItem, ...]


def split_markdown(document: str, level: int = DEEPEST) -> tuple[CompactionItem, ...]:
    """The items of a document. Headings deeper than `level` (1 to 6) stay inside the section above them."""
    if not 1 <= level <= DEEPEST:
        raise InvalidValue(INVALID, "level", f"is a heading level from 1 to {DEEPEST}, not {level!r}")
    preamble, sections = _cut(document, level)
    items: list[CompactionItem] = []
    if preamble:
        items.append(made(PREAMBLE, preamble, 0))
    path: list[tuple[int, str]] = []
    used: dict[str, int] = {}
    for depth, title, text in sections:
        path = [*(step for step in path if step[0] < depth), (depth, title)]
        titles = [step[1] for step in path]
        key = " > ".join(titles)
        used[key] = used.get(key, 0) + 1
        if used[key] > 1:
            key = f"{key} ({used[key]})"
            while key in used:
                key += "'"
            used[key] = 1
        heading = text.partition("\n")
        metadata = {"key": key, "path": titles, "level": depth, "heading": heading[0] + heading[1]}
        items.append(made(SECTION, text, len(items), metadata=metadata, group=titles[0]))
    return tuple(items)


def join_markdown(items: Iterable[CompactionItem]) -> str:
    """The document of these items. Raises InvalidValue for an item that is no piece of one."""
    pieces = []
    for place, item in enumerate(items):
        if item.type not in (PREAMBLE, SECTION, SUMMARY, POINTER) or not isinstance(item.content, str):
            raise InvalidValue(INVALID, f"items[{place}].type", f"{item.type!r} is not a piece of a Markdown document")
        pieces.append(item.content)
    return "".join(pieces)


def summarise_section(section: CompactionItem, summary: str) -> CompactionItem:
    """The section with a summary in the place of its text."""
    if not summary.strip():
        raise InvalidValue(INVALID, "content", "a summary must not be empty")
    return _in_its_place(section, SUMMARY, summary, {})


def point_to_section(section: CompactionItem, destination: str) -> CompactionItem:
    """The section with a word about where its text is now. The meaning of a destination is up to its owner."""
    if not destination.strip():
        raise InvalidValue(INVALID, "metadata.destination", "is empty; a pointer has to point somewhere")
    return _in_its_place(section, POINTER, f"[moved to {destination}]", {"destination": destination})


def split_markdown_overflow(items: Iterable[CompactionItem], most_bytes: int, destination: str) -> MarkdownSplit:
    """Take sections out, the earliest first, until the rest fits `most_bytes` or only pointers are left.

    A section that is no longer than its pointer stays: taking it out would gain nothing.
    """
    kept = list(items)
    archived = []
    total = byte_count(kept)
    for place, item in enumerate(kept):
        if total <= most_bytes:
            break
        if item.type not in (SECTION, SUMMARY):
            continue
        stands = point_to_section(item, destination)
        if stands.byte_count >= item.byte_count:
            continue
        total += stands.byte_count - item.byte_count
        kept[place] = stands
        archived.append(item)
    return MarkdownSplit(tuple(kept), tuple(archived))


def _in_its_place(section: CompactionItem, kind: str, words: str, more: dict[str, Any]) -> CompactionItem:
    if section.type not in (SECTION, SUMMARY, POINTER):
        raise InvalidValue(INVALID, "type", f"{section.type!r} is not a section")
    heading = str(section.metadata.get("heading", ""))
    gap = "" if heading.endswith("\n") else "\n"
    content = f"{heading}{gap}\n{words.strip()}\n\n"
    return normalise_item(
        {
            "type": kind,
            "content": content,
            "metadata": {**section.metadata, "stands_for": section.id, **more},
            "group": section.group,
            "boundary": section.boundary,
        }
    )


def _cut(document: str, level: int) -> tuple[str, list[tuple[int, str, str]]]:
    """The preamble, and (level, title, text) of each section."""
    preamble: list[str] = []
    sections: list[tuple[int, str, list[str]]] = []
    fence = ""
    for line in _lines(document):
        mark = _FENCE.match(line)
        heading = None
        if fence:
            if mark and mark[1][0] == fence[0] and len(mark[1]) >= len(fence) and not line[mark.end() :].strip():
                fence = ""
        elif mark and not (mark[1][0] == "`" and "`" in line[mark.end() :]):
            fence = mark[1]
        else:
            heading = _HEADING.match(line)
        if heading is not None and len(heading[1]) <= level:
            sections.append((len(heading[1]), _title(line[heading.end() :]), [line]))
        else:
            (sections[-1][2] if sections else preamble).append(line)
    return "".join(preamble), [(depth, title, "".join(lines)) for depth, title, lines in sections]


def _title(rest: str) -> str:
    """A heading's words, without the marks that may close it."""
    words = rest.strip()
    open_end = words.rstrip("#")
    return open_end.strip() if open_end != words and open_end[-1:] in ("", " ", "\t") else words


def _lines(document: str) -> list[str]:
    """Lines with their ends. Only a line feed ends one: nothing else does in every reader."""
    lines = document.split("\n")
    ended = [line + "\n" for line in lines[:-1]]
    return [*ended, lines[-1]] if lines[-1] else ended
