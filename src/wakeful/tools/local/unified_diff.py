"""A unified diff as values. Pure.

What is understood: `---`/`+++` headers with or without `a/` and `b/`, `/dev/null` for a file that is made or deleted,
git's extended headers (new, deleted, rename, mode), quoted names, several files, `\\ No newline at end of file`, an
empty context line whose one space was lost on the way, and a diff that travelled with CRLF.

The numbers in `@@ -1,3 +1,4 @@` are hints. When they count the lines of the hunk rightly they say where it ends; when
they do not, or are absent, the hunk ends where the next header begins. What cannot be understood is refused with the
number of the line; nothing is skipped that could have been meant as a change.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from wakeful.contracts.errors import ToolReported
from wakeful.contracts.tools import ToolError
from wakeful.tools.local.text_lines import excerpt

Sign: TypeAlias = Literal[" ", "-", "+"]
NOWHERE = "/dev/null"

_SIGNS: dict[str, Sign] = {" ": " ", "-": "-", "+": "+"}

_HUNK = re.compile(r"^@@(?: -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@.*|(?: .*)?)$")
_GIT = re.compile(r"^diff --git (.+)$")
_EXTENDED = re.compile(
    r"^(index |similarity index |dissimilarity index |old mode |new mode |new file mode |deleted file mode "
    r"|rename from |rename to |copy from |copy to )"
)
_STAMP = re.compile(r"\t.*$")
_OCTAL = re.compile(rb'\\([0-7]{3}|[abfnrtv"\\])')
_ESCAPES = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
_MODES = {"100644": 0o644, "100755": 0o755}


class HunkLine(NamedTuple):
    """One line of a hunk."""

    sign: Sign
    text: str
    crlf: bool = False
    """It ended with CRLF in the diff."""
    open_end: bool = False
    """`\\ No newline at end of file` followed."""
    lost_space: bool = False
    """An empty line, taken for an empty context line."""


@dataclass(frozen=True, slots=True)
class Hunk:
    """What to find, and what to put there."""

    number: int
    at: int
    """The line of the diff in which its header stands."""
    start: int | None
    """The hint: the first old line, counted from 1."""
    lines: tuple[HunkLine, ...]

    @property
    def old(self) -> list[HunkLine]:
        return [line for line in self.lines if line.sign != "+"]

    @property
    def new(self) -> list[HunkLine]:
        return [line for line in self.lines if line.sign != "-"]


@dataclass(slots=True)
class FileDiff:
    """What becomes of one file."""

    at: int
    old: str | None = None
    """None: the file is made."""
    new: str | None = None
    """None: the file is deleted."""
    hunks: list[Hunk] = field(default_factory=list)
    mode: int | None = None
    is_rename: bool = False
    """Said in so many words."""


def bad_patch(message: str, hint: str, *, kind: str = "malformed_patch", **details: object) -> ToolReported:
    """A diff that cannot be carried out, in the shared form."""
    return ToolReported(
        ToolError(kind=kind, message=message, details={"field": "patch", **details}, recovery_hint=hint)
    )


def parse(patch: str) -> list[FileDiff]:
    """The files of a diff, in order. Raises ToolReported (`malformed_patch`)."""
    return _Reader(patch).files()


class _Reader:
    def __init__(self, patch: str) -> None:
        self.lines = patch.split("\n")
        if self.lines and self.lines[-1] in ("", "\r"):
            self.lines.pop()
        self.at = 0
        headers = [line for line in self.lines if line.startswith(("--- ", "+++ ", "@@", "diff --git "))]
        self.crlf_travelled = bool(headers) and all(line.endswith("\r") for line in headers)
        """The diff as a whole has CRLF: that says nothing about the files."""

    def files(self) -> list[FileDiff]:
        found = []
        while self.at < len(self.lines):
            line = self.header()
            if _GIT.match(line):
                found.append(self.git_file())
            elif self.at_plain_header():
                diff = FileDiff(self.at + 1)
                self.names(diff)
                self.hunks(diff)
                found.append(diff)
            elif line.startswith("@@"):
                raise self.wrong("a hunk without a file before it", "Write `--- a/path` and `+++ b/path` before it.")
            elif line[:1] in ("+", "-") and found and not self.is_signature(self.at):
                raise self.wrong(
                    "a changed line that belongs to no hunk", "Write an `@@ ... @@` line before the changes."
                )
            else:
                self.at += 1  # words before, between and after files: commit messages, `Index:`
        if not found:
            raise bad_patch(
                "the patch names no file",
                "Send a unified diff: `--- a/path`, `+++ b/path`, then hunks that begin with `@@`.",
            )
        return found

    # --- headers ------------------------------------------------------------------------------------------------

    def git_file(self) -> FileDiff:
        diff = FileDiff(self.at + 1)
        git = self.header()
        self.at += 1
        made = deleted = False
        while self.at < len(self.lines) and (found := _EXTENDED.match(self.header())):
            word, value = found[1].strip(), self.header()[found.end() :]
            if word in ("new file mode", "new mode"):
                diff.mode = self.mode(value)
                made = made or word == "new file mode"
            elif word == "deleted file mode":
                self.mode(value)
                deleted = True
            elif word == "old mode":
                self.mode(value)
            elif word in ("rename from", "rename to"):
                diff.is_rename = True
                if word == "rename from":
                    diff.old = _unquoted(value)
                else:
                    diff.new = _unquoted(value)
            elif word in ("copy from", "copy to"):
                raise self.wrong("a copy, which is not supported", "Write the new file as a whole, from /dev/null.")
            self.at += 1
        if self.at < len(self.lines) and self.header().startswith(("GIT binary patch", "Binary files ")):
            raise self.wrong("a binary change", "Only text can be patched.")
        renamed = (diff.old, diff.new)
        if self.at_plain_header():
            self.names(diff)
            if diff.is_rename:
                diff.old, diff.new = renamed
            self.hunks(diff)
        elif not diff.is_rename:
            path = self.git_name(git)
            diff.old, diff.new = None if made else path, None if deleted else path
            if not (made or deleted or diff.mode is not None):
                raise self.wrong("a file without any change", "Write its `---` and `+++` lines and its hunks.")
        if diff.is_rename and (diff.old is None or diff.new is None):
            raise self.wrong("half a rename", "Write both `rename from` and `rename to`.")
        return diff

    def git_name(self, line: str) -> str:
        """The one name in `diff --git a/x b/x`: its two halves are the same."""
        rest = line[len("diff --git ") :]
        quoted = re.fullmatch(r'("(?:[^"\\]|\\.)*") ("(?:[^"\\]|\\.)*")', rest)
        halves = quoted.groups() if quoted else (rest[: len(rest) // 2], rest[len(rest) // 2 + 1 :])
        old, new = _unquoted(halves[0]), _unquoted(halves[1])
        if not (old.startswith("a/") and new.startswith("b/") and old[2:] == new[2:]):
            raise self.wrong(
                "a header with two names", "Write `---` and `+++` lines, or `rename from` and `rename to`."
            )
        return old[2:]

    def mode(self, value: str) -> int:
        if value not in _MODES:
            raise self.wrong(
                f"the mode {value}", "Only plain files (100644, 100755) can be made: no links, no modules."
            )
        return _MODES[value]

    def at_plain_header(self) -> bool:
        return (
            self.at + 1 < len(self.lines)
            and self.lines[self.at].startswith("--- ")
            and self.lines[self.at + 1].startswith("+++ ")
        )

    def names(self, diff: FileDiff) -> None:
        old, new = _named(self.header()[4:]), _named(self.lines[self.at + 1].rstrip("\r")[4:])
        if old == NOWHERE and new == NOWHERE:
            raise self.wrong("a file from nowhere to nowhere", "Name the file on one side.")
        if (old == NOWHERE or old.startswith("a/")) and (new == NOWHERE or new.startswith("b/")):
            old, new = (old if old == NOWHERE else old[2:]), (new if new == NOWHERE else new[2:])
        if not old or not new:
            raise self.wrong("a file without a name", "Write the path after `--- a/` and `+++ b/`.")
        diff.old, diff.new = None if old == NOWHERE else old, None if new == NOWHERE else new
        self.at += 2

    # --- hunks --------------------------------------------------------------------------------------------------

    def hunks(self, diff: FileDiff) -> None:
        while self.at < len(self.lines):
            line = self.header()
            if not line.startswith("@@"):
                break
            found = _HUNK.match(line)
            if found is None:
                raise self.wrong(
                    "a hunk header that cannot be read", "Write `@@ -start,count +start,count @@`, or `@@`."
                )
            at = self.at + 1
            self.at += 1
            start = int(found[1]) if found[1] else None
            counts = (int(found[2] or 1), int(found[4] or 1)) if found[1] else None
            lines = (self.counted(*counts) if counts else None) or self.delimited()
            if not any(each.sign != " " for each in lines):
                raise bad_patch(
                    f"hunk {len(diff.hunks) + 1} of {diff.new or diff.old} (line {at} of the patch) changes nothing",
                    "Every hunk needs a line that begins with + or -.",
                    line=at,
                )
            diff.hunks.append(Hunk(len(diff.hunks) + 1, at, start, tuple(lines)))

    def counted(self, old: int, new: int) -> list[HunkLine] | None:
        """The hunk as its header counts it; None when what follows then is no place for a hunk to end."""
        at, lines = self.at, []
        while old > 0 or new > 0:
            line = self.body(at)
            if line is None:
                return None
            old -= line.sign != "+"
            new -= line.sign != "-"
            lines.append(line)
            at += 1
            at += self.marked(at, lines)
        if old < 0 or new < 0 or not lines:
            return None
        following = self.lines[at].rstrip("\r") if at < len(self.lines) else ""
        if following[:1] in ("+", "-", " ") and not self.is_boundary(at):
            return None
        self.at = at
        return lines

    def delimited(self) -> list[HunkLine]:
        """The hunk up to the next header."""
        lines: list[HunkLine] = []
        while self.at < len(self.lines) and not self.is_boundary(self.at):
            line = self.body(self.at)
            if line is None:
                raise self.wrong(
                    "a line of a hunk that begins with none of ' ', '+', '-'",
                    "Begin context lines with a space, removed lines with -, added lines with +.",
                )
            lines.append(line)
            self.at += 1
            self.at += self.marked(self.at, lines)
        while lines and lines[-1].lost_space:
            lines.pop()  # empty lines before the next header are more likely to be for the eye
        return lines

    def body(self, at: int) -> HunkLine | None:
        if at >= len(self.lines):
            return None
        raw = self.lines[at]
        crlf = raw.endswith("\r")
        line = raw[:-1] if crlf else raw
        crlf = crlf and not self.crlf_travelled
        if line == "":
            return HunkLine(" ", "", crlf, lost_space=True)
        sign = _SIGNS.get(line[0])
        return None if sign is None else HunkLine(sign, line[1:], crlf)

    def marked(self, at: int, lines: list[HunkLine]) -> int:
        """Take `\\ No newline at end of file` to the line before it. How many lines that were."""
        if at < len(self.lines) and self.lines[at].startswith("\\ "):
            lines[-1] = lines[-1]._replace(open_end=True)
            return 1
        return 0

    def is_boundary(self, at: int) -> bool:
        line = self.lines[at]
        if line.startswith(("@@", "diff --git ", "Index: ", "From ")) or self.is_signature(at):
            return True
        following = self.lines[at + 1] if at + 1 < len(self.lines) else ""
        return line.startswith("--- ") and following.startswith("+++ ")

    def is_signature(self, at: int) -> bool:
        """The `-- ` and a version with which a mailed patch ends."""
        return self.lines[at].rstrip("\r") == "-- " and 0 < len(self.lines) - at - 1 <= 2 and "." in self.lines[at + 1]

    # --- words --------------------------------------------------------------------------------------------------

    def header(self) -> str:
        return self.lines[self.at].rstrip("\r")

    def wrong(self, what: str, hint: str) -> ToolReported:
        line = self.lines[self.at].rstrip("\r") if self.at < len(self.lines) else ""
        return bad_patch(f"line {self.at + 1} of the patch is {what}: {excerpt(line)}", hint, line=self.at + 1)


def _named(written: str) -> str:
    written = written.rstrip(" ")
    return _unquoted(written) if written.startswith('"') else _STAMP.sub("", written)


def _unquoted(written: str) -> str:
    """git quotes names with C escapes, byte by byte."""
    if not (len(written) >= 2 and written.startswith('"') and written.endswith('"')):
        return written

    def plain(found: re.Match[bytes]) -> bytes:
        escape = found[1]
        return bytes([int(escape, 8) & 0xFF]) if escape.isdigit() else _ESCAPES.get(escape, escape)

    return _OCTAL.sub(plain, written[1:-1].encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")


def paths_of(files: list[FileDiff]) -> Iterator[str]:
    """Every path a diff names, once."""
    yield from dict.fromkeys(path for file in files for path in (file.old, file.new) if path is not None)
