"""Exact replacement in a text. Pure.

The old text has to stand in the file exactly once (or, asked for, everywhere). A model sees LF whatever the file has,
so line ends are compared as line ends; the new text takes those of the place it goes to. Everything else is exact:
white space, case, characters.
"""

import re
from bisect import bisect_left
from collections import Counter
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from wakeful.tools.local.text_lines import MARK, excerpt
from wakeful.workspaces.refusals import refused
from wakeful.workspaces.workspace import MAX_READ_BYTES

_MOST_LINES = 5_000
"""How many lines are compared when the nearest one is looked for."""
_MOST_NAMED = 8
_MOST_COUNTED = 1_000


class Replacement(NamedTuple):
    """The new bytes, and the lines (from 1) at which something was replaced."""

    data: bytes
    lines: list[int]


def replace_exactly(path: str, data: bytes, old: str, new: str, *, everywhere: bool = False) -> Replacement:
    """The file with `old` replaced by `new`. Raises ToolReported: `no_match`, `several_matches`, `no_change`."""
    old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    if not old:
        raise refused(
            "invalid_parameters",
            "old_text is empty",
            "Give the text that is to be replaced. To make a file, or to replace all of it, use write_file.",
            field="old_text",
        )
    if old == new:
        raise refused("no_change", "old_text and new_text are the same", "Give another new_text.", field="new_text")
    raw = data.decode("utf-8", "surrogateescape")
    returns = [found.start() for found in re.finditer("\r\n", raw)]
    text = raw.replace("\r\n", "\n")
    found = _all(text, old) if everywhere else _overlapping(text, old)
    if not found:
        raise _no_match(path, text, old)
    lines = _line_numbers(text, found[:_MOST_COUNTED])
    if len(found) > 1 and not everywhere:
        shown = ", ".join(map(str, lines[:_MOST_NAMED])) + (" ..." if len(found) > _MOST_NAMED else "")
        times = f"{len(found)} times" if len(found) < _MOST_COUNTED else f"{_MOST_COUNTED:,} times or more"
        raise refused(
            "several_matches",
            f"old_text stands {times} in {path!r}, at lines {shown}",
            "Give more of the text around the one you mean, so that it is found once, or set replace_all.",
            field="old_text",
            path=path,
            count=len(found),
            lines=lines[:_MOST_NAMED],
        )
    size = len(data) + len(found) * len(new.encode())
    if size > MAX_READ_BYTES:
        raise refused(
            "too_large",
            f"{path!r} would have up to {size:,} bytes; at most {MAX_READ_BYTES:,} are written",
            "Replace fewer occurrences, or by less.",
            field="new_text",
            path=path,
        )
    return Replacement(_spliced(raw, text, returns, found, len(old), new), lines)


def _all(text: str, old: str) -> list[int]:
    """Where the old text stands, each occurrence after the end of the one before."""
    return [found.start() for found in re.finditer(re.escape(old), text)]


def _overlapping(text: str, old: str) -> list[int]:
    """Where the old text stands, also where occurrences overlap: any of them could be meant."""
    found: list[int] = []
    at = text.find(old)
    while at >= 0 and len(found) < _MOST_COUNTED:
        found.append(at)
        at = text.find(old, at + 1)
    return found


def _line_numbers(text: str, places: list[int]) -> list[int]:
    numbers: list[int] = []
    line, last = 1, 0
    for at in places:
        line += text.count("\n", last, at)
        last = at
        numbers.append(line)
    return numbers


def _spliced(raw: str, text: str, returns: list[int], found: list[int], length: int, new: str) -> bytes:
    """Put the new text into the raw one: places in `text` are moved by the CRs that it does not have."""
    # The CR of the n-th CRLF stands, in the text without CRs, where its LF is: n places further left.
    where = [at - number for number, at in enumerate(returns)]
    usual = "\r\n" if len(returns) * 2 > text.count("\n") else "\n"
    pieces: list[str] = []
    last = 0
    for at in found:
        first, end = bisect_left(where, at), bisect_left(where, at + length)
        crlf, ends = end - first, text.count("\n", at, at + length)
        ending = usual if ends == 0 else "\r\n" if crlf * 2 > ends else "\n"
        pieces += [raw[last : at + first], new.replace("\n", ending)]
        last = at + length + end
    return "".join([*pieces, raw[last:]]).encode("utf-8", "surrogateescape")


# --- why not --------------------------------------------------------------------------------------------------------


def _no_match(path: str, text: str, old: str) -> Exception:
    lines = text.removeprefix(MARK).split("\n")
    wanted = old.split("\n")
    where, why = _nearest(lines, wanted)
    details: dict[str, Any] = {"path": path, "count": 0}
    if old.endswith("\n") and text.endswith(old[:-1]):
        return refused(
            "no_match",
            f"old_text is not in {path!r}: it ends with a newline, and the last line of the file has none",
            "Leave the last newline out of old_text, and of new_text.",
            field="old_text",
            **details,
            nearest_line=text.count("\n", 0, len(text) - len(old) + 1) + 1,
        )
    if where is None:
        return refused(
            "no_match",
            f"old_text is not in {path!r}, and no line of it is like {excerpt(wanted[0])}",
            "Read the file again and copy the text from it.",
            field="old_text",
            **details,
        )
    return refused(
        "no_match",
        f"old_text is not in {path!r}. Nearest: line {where + 1}, {excerpt(lines[where])}{why}",
        f"Read the file around line {where + 1} and copy the text exactly, without line numbers.",
        field="old_text",
        **details,
        nearest_line=where + 1,
        nearest=lines[where][:200],
    )


def _nearest(lines: list[str], wanted: list[str]) -> tuple[int | None, str]:
    """The line that differs from what was wanted, or the one most like its first words; and what is different."""
    votes: Counter[int] = Counter()
    known: dict[str, list[int]] = {}
    for offset, line in enumerate(wanted):
        if line.strip():
            known.setdefault(line.strip(), []).append(offset)
    for index, line in enumerate(lines):
        for offset in known.get(line.strip(), ()):
            votes[index - offset] += 1
    if votes:
        start = min(votes, key=lambda place: (-votes[place], place))
        for offset, line in enumerate(wanted):
            index = start + offset
            if not 0 <= index < len(lines):
                continue
            if lines[index] != line and not _cut(lines[index], line, offset, len(wanted)):
                space = lines[index].split() == line.split()
                words = " (only white space differs)" if space else ""
                return index, f", where {excerpt(line)} is expected{words}"
        return max(0, min(start, len(lines) - 1)), ""
    first = next((line.strip() for line in wanted if line.strip()), "")
    best, ratio = None, 0.6
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(first[:300])
    for index, line in enumerate(lines[:_MOST_LINES]):
        matcher.set_seq1(line.strip()[:300])
        if matcher.real_quick_ratio() > ratio and matcher.quick_ratio() > ratio and matcher.ratio() > ratio:
            best, ratio = index, matcher.ratio()
    return best, ""


def _cut(line: str, wanted: str, offset: int, count: int) -> bool:
    """The first and the last line of what is wanted may be parts of lines."""
    return (offset == 0 and line.endswith(wanted)) or (offset == count - 1 and line.startswith(wanted))
