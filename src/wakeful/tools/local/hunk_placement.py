"""Where hunks belong in a file, and the file with them in it. Pure.

A hunk is found by what it says of the old file (its context and the lines it removes), wherever that stands: the line
numbers of a diff are written by those who cannot count. It has to stand there exactly once; a hunk that fits in two
places is refused, whatever number it gives, because the wrong one of them would look like success. All hunks are placed
in the file as it was before any of them.

What a hunk does not touch stays byte for byte. Line ends: a diff that has the file's own line ends is followed to the
letter; one that has others (a model that was shown LF) adds lines that end like their neighbours.
"""

from collections import Counter
from collections.abc import Mapping
from itertools import islice
from typing import NamedTuple

from wakeful.tools.local.text_lines import ProcessEnd, TextFile, TextLine, excerpt
from wakeful.tools.local.unified_diff import Hunk, HunkLine, bad_patch

_MOST_COMPARISONS = 2_000_000
"""How hard the nearest place is looked for, for a message."""
_MOST_NAMED = 8


class PlacedHunks(NamedTuple):
    """A file with its hunks in it, and where each of them was."""

    file: TextFile
    at: list[int]
    """The first old line of each hunk, from 1."""


class _Added(NamedTuple):
    line: TextLine
    open_end: bool


def place_hunks(path: str, file: TextFile, hunks: list[Hunk]) -> PlacedHunks:
    """The file after all its hunks. Raises ToolReported, naming file, hunk and line."""
    where: dict[str, list[int]] = {}
    for number, present in enumerate(file.lines):
        where.setdefault(present.text, []).append(number)
    at = [_find(path, file, where, hunk) for hunk in hunks]
    removed: dict[int, int] = {}
    kept: dict[int, int] = {}
    added: dict[int, tuple[int, list[_Added]]] = {}
    stated_end = False
    for hunk, start in zip(hunks, at, strict=True):
        exact = _same_endings(file, hunk, start)
        index = start
        for line in hunk.lines:
            if line.sign == "+":
                first, lines = added.setdefault(index, (hunk.number, []))
                if first != hunk.number:
                    raise _overlap(path, first, hunk.number, index)
                lines.append(_Added(TextLine(line.text, _ending(file, line, index, start, exact)), line.open_end))
                continue
            owner = removed.get(index) or (kept.get(index) if line.sign == "-" else None)
            if owner is not None and owner != hunk.number:
                raise _overlap(path, owner, hunk.number, index)
            (kept if line.sign == " " else removed)[index] = hunk.number
            stated_end = stated_end or line.open_end
            index += 1
    return PlacedHunks(_assembled(path, file, removed, added, stated_end), [start + 1 for start in at])


def _assembled(
    path: str,
    file: TextFile,
    removed: dict[int, int],
    added: dict[int, tuple[int, list[_Added]]],
    stated_end: bool,
) -> TextFile:
    pieces: list[tuple[TextLine, bool, bool]] = []  # the line, whether it was added, whether it is said to end openly
    for index in range(len(file.lines) + 1):
        _, lines = added.get(index, (0, []))
        pieces += [(each.line, True, each.open_end) for each in lines]
        if index < len(file.lines) and index not in removed:
            pieces.append((file.lines[index], False, False))
    result = [
        TextLine(line.text, line.ending or file.ending) if number < len(pieces) - 1 else line
        for number, (line, _, _) in enumerate(pieces)
    ]
    for number, (_, _, open_end) in enumerate(pieces):
        if open_end and number < len(pieces) - 1:
            raise bad_patch(
                f"{path}: the patch says that there is no newline at the end of the file after "
                f"{excerpt(pieces[number][0].text)}, which is not the last line",
                "Put `\\ No newline at end of file` only after the last line of the file.",
                kind="context_not_found",
                path=path,
            )
    if pieces:
        line, is_added, open_end = pieces[-1]
        # The file ended without a newline and the diff does not speak of that: it still does.
        silent = file.ends_open and not stated_end and is_added and (len(file.lines) - 1) in removed
        silent = silent or (file.ends_open and not stated_end and is_added and len(file.lines) in added)
        if open_end or silent:
            result[-1] = TextLine(line.text, "")
    return TextFile(file.mark, result)


# --- finding --------------------------------------------------------------------------------------------------------


def _find(path: str, file: TextFile, where: Mapping[str, list[int]], hunk: Hunk) -> int:
    old = hunk.old
    if not old:
        if not file.lines:
            return 0
        raise bad_patch(
            f"{_which(path, hunk)} has only added lines: nothing says where they belong",
            "Give the lines before and after them as context.",
            kind="ambiguous_context",
            path=path,
            hunk=hunk.number,
        )
    places = _places(file, where, old)
    if len(places) == 1:
        return places[0]
    if places:
        shown = ", ".join(str(place + 1) for place in places[:_MOST_NAMED])
        many = f"more than {_MOST_NAMED}" if len(places) > _MOST_NAMED else str(len(places))
        raise bad_patch(
            f"{_which(path, hunk)} fits in {many} places, at lines {shown}",
            "Give more context lines, so that only one place fits. Line numbers do not decide.",
            kind="ambiguous_context",
            path=path,
            hunk=hunk.number,
            lines=[place + 1 for place in places[:_MOST_NAMED]],
        )
    raise _not_found(path, file, where, hunk, old)


def _places(file: TextFile, where: Mapping[str, list[int]], wanted: list[HunkLine]) -> list[int]:
    """Where these lines stand; not many more than can be named. The rarest of them says where to look."""
    last = len(file.lines) - len(wanted)
    anchors = [(where.get(line.text, []), offset) for offset, line in enumerate(wanted) if not line.lost_space]
    if anchors:
        indexes, offset = min(anchors, key=lambda anchor: len(anchor[0]))
        starts = (index - offset for index in indexes if 0 <= index - offset <= last)
    else:
        starts = (start for start in range(last + 1))
    return list(islice((start for start in starts if _fits(file, wanted, start)), _MOST_NAMED + 1))


def _fits(file: TextFile, old: list[HunkLine], start: int) -> bool:
    return all(_same(file, start + offset, line) for offset, line in enumerate(old))


def _same(file: TextFile, index: int, line: HunkLine) -> bool:
    found = file.lines[index]
    if line.open_end and not (index == len(file.lines) - 1 and not found.ending):
        return False
    return found.text == line.text or (line.lost_space and not found.text.strip())


def _not_found(path: str, file: TextFile, where: Mapping[str, list[int]], hunk: Hunk, old: list[HunkLine]) -> Exception:
    which = _which(path, hunk)
    details = {"path": path, "hunk": hunk.number, "patch_line": hunk.at}
    new = hunk.new
    if new and len(_places(file, where, new)) == 1:
        return bad_patch(
            f"{which} does not fit; the file already reads as the hunk would make it",
            "Leave this hunk out.",
            kind="already_applied",
            **details,
        )
    start = _nearest(file, old)
    if start is None:
        first = next((line.text for line in old if line.text.strip()), old[0].text)
        return bad_patch(
            f"{which} is nowhere in the file: not one of its lines is, beginning with {excerpt(first)}"
            + ("" if file.lines else " (the file is empty)"),
            "Read the file again and write the hunk from what is there.",
            kind="context_not_found",
            **details,
            expected=first[:200],
        )
    offset = next(
        offset
        for offset, line in enumerate(old)
        if start + offset >= len(file.lines) or not _same(file, start + offset, line)
    )
    at = start + offset
    line = old[offset]
    found = file.lines[at].text if at < len(file.lines) else None
    if found is None:
        words = f"line {offset + 1} of the hunk expects {excerpt(line.text)} and the file ends after line {at}"
    elif found == line.text:
        words = (
            f"the hunk says that there is no newline at the end of the file after {excerpt(line.text)}, "
            f"and line {at + 1} of the file has one"
        )
    else:
        words = (
            f"line {offset + 1} of the hunk expects {excerpt(line.text)}, line {at + 1} of the file is {excerpt(found)}"
        )
        if found.split() == line.text.split():
            words += " (they differ only in white space)"
    return bad_patch(
        f"{which} does not fit. Nearest place, line {start + 1}: {words}",
        "Read the file there and write the hunk's context and removed lines exactly as they are.",
        kind="context_not_found",
        **details,
        file_line=at + 1,
        expected=line.text[:200],
        found=None if found is None else found[:200],
    )


def _nearest(file: TextFile, old: list[HunkLine]) -> int | None:
    """The place where most lines of the hunk fit; blank ones say little."""
    if len(file.lines) * len(old) > _MOST_COMPARISONS:
        old = old[: max(1, _MOST_COMPARISONS // len(file.lines))]
    wanted: dict[str, list[int]] = {}
    for offset, line in enumerate(old):
        if line.text.strip():
            wanted.setdefault(line.text.strip(), []).append(offset)
    votes: Counter[int] = Counter()
    for index, found in enumerate(file.lines):
        for offset in wanted.get(found.text.strip(), ()):
            if index - offset >= 0:
                votes[index - offset] += 1
    return min(votes, key=lambda start: (-votes[start], start)) if votes else None


# --- line ends ------------------------------------------------------------------------------------------------------


def _same_endings(file: TextFile, hunk: Hunk, start: int) -> bool | None:
    """Does the diff have the line ends of the file? None when it shows no line of the file that has one."""
    seen = [
        (found.ending == "\r\n") == line.crlf
        for found, line in zip(file.lines[start : start + len(hunk.old)], hunk.old, strict=True)
        if found.ending and not line.lost_space
    ]
    return all(seen) if seen else None


def _ending(file: TextFile, line: HunkLine, index: int, start: int, exact: bool | None) -> ProcessEnd:
    if exact or (exact is None and line.crlf):
        return "\r\n" if line.crlf else "\n"
    around = file.lines[index - 1 : index] if index > start else file.lines[index : index + 1]
    return next((found.ending for found in around if found.ending), file.ending)


def _which(path: str, hunk: Hunk) -> str:
    return f"{path}: hunk {hunk.number} (line {hunk.at} of the patch)"


def _overlap(path: str, one: int, other: int, index: int) -> Exception:
    return bad_patch(
        f"{path}: hunks {one} and {other} both change line {index + 1}, or one changes what the other leaves as it is",
        "Make one hunk of the two.",
        kind="overlapping_hunks",
        path=path,
        hunk=other,
    )
