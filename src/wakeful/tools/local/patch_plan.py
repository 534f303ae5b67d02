"""What a whole diff would make of the files it names. Pure: it is given their bytes and gives back bytes.

Files are taken in the order of the diff, each as the ones before left it. Nothing is left half: the first thing that
does not fit refuses the whole diff.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from wakeful.tools.local.hunk_placement import place_hunks
from wakeful.tools.local.text_lines import TextFile, bytes_of, is_binary, text_file
from wakeful.tools.local.unified_diff import FileDiff, bad_patch


@dataclass(frozen=True, slots=True)
class Change:
    """One file, before and after. None: it is not there."""

    path: str
    before: bytes | None
    after: bytes | None
    mode: int | None = None
    """Permission bits it should have; None leaves them, or takes them from `bits_of`."""
    bits_of: str | None = None
    """The path it was renamed from."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Every change of a diff, and a line for each file that says what was done."""

    changes: list[Change]
    told: list[str]


def plan(files: list[FileDiff], contents: Mapping[str, bytes | None]) -> Plan:
    """The changes. `contents` has every path the diff names. Raises ToolReported."""
    return _Planner(contents).planned(files)


class _Planner:
    def __init__(self, contents: Mapping[str, bytes | None]) -> None:
        self.before = contents
        self.now = dict(contents)
        self.modes: dict[str, int] = {}
        self.origin: dict[str, str] = {}
        self.told: list[str] = []

    def planned(self, files: list[FileDiff]) -> Plan:
        for file in files:
            self.one(file)
        changes = [
            Change(path, self.before[path], after, self.modes.get(path), self.origin.get(path))
            for path, after in self.now.items()
            if after != self.before[path] or (after is not None and path in self.modes)
        ]
        if not changes:
            raise bad_patch(
                "the patch would change nothing: every file is as it was", "Leave it out.", kind="no_change"
            )
        return Plan(changes, self.told)

    def one(self, file: FileDiff) -> None:
        old, new = self.names(file)
        if old is None:
            assert new is not None
            self.make(file, new)
        elif new is None:
            self.delete(file, old)
        else:
            self.change(file, old, new)

    def names(self, file: FileDiff) -> tuple[str | None, str | None]:
        """Which file is meant: `x.orig` and `x` are one file if only one of them is there."""
        old, new = file.old, file.new
        if old is None or new is None or old == new:
            made = old is not None and old == new and self.now[old] is None and self.only_adds(file)
            return (None if made else old), new
        if file.is_rename or self.now[new] is None:
            return old, new
        if self.now[old] is None:
            return new, new
        raise bad_patch(
            f"the patch names {old} and {new}, and both exist",
            "Use the same name on both sides, or `rename from` and `rename to` with a name that is free.",
            path=new,
        )

    @staticmethod
    def only_adds(file: FileDiff) -> bool:
        return len(file.hunks) == 1 and not file.hunks[0].old and file.hunks[0].start in (0, None)

    def make(self, file: FileDiff, path: str) -> None:
        if self.now[path] is not None:
            raise bad_patch(
                f"{path} exists already, and the patch would make it",
                f"To change it, write `--- a/{path}` instead of `--- /dev/null`, with context lines.",
                kind="already_exists",
                path=path,
            )
        self.now[path] = bytes_of(place_hunks(path, TextFile("", []), file.hunks).file)
        if file.mode == 0o755:  # the plain mode is whatever new files get here
            self.modes[path] = file.mode
        self.told.append(f"A {path}")

    def delete(self, file: FileDiff, path: str) -> None:
        left = place_hunks(path, self.text(path), file.hunks).file.lines
        if left:
            raise bad_patch(
                f"{path}: the patch deletes the file and leaves {len(left)} of its lines, beginning with "
                f"{left[0].text[:100]!r}",
                "Remove every line of a file that is deleted.",
                kind="context_not_found",
                path=path,
            )
        self.now[path] = None
        self.told.append(f"D {path}")

    def change(self, file: FileDiff, old: str, new: str) -> None:
        placed = place_hunks(old, self.text(old), file.hunks) if file.hunks else None
        after = bytes_of(placed.file) if placed else self.now[old]
        if self.now[old] is None:
            self.text(old)
        if new != old:
            if self.now[new] is not None:
                raise bad_patch(
                    f"{old} cannot be renamed to {new}, which exists", "Choose a free name.", kind="already_exists"
                )
            self.now[old] = None
            self.origin[new] = self.origin.pop(old, old)
            if old in self.modes:
                self.modes[new] = self.modes.pop(old)
        self.now[new] = after
        if file.mode is not None:
            self.modes[new] = file.mode
        words = f"R {old} -> {new}" if new != old else f"M {new}"
        if placed:
            moved = [
                f"hunk {hunk.number} was found at line {at}, not {hunk.start}"
                for hunk, at in zip(file.hunks, placed.at, strict=True)
                if hunk.start not in (None, at) and hunk.old
            ]
            words += f" ({'; '.join(moved)})" if moved else ""
        self.told.append(words)

    def text(self, path: str) -> TextFile:
        data = self.now[path]
        if data is None:
            raise bad_patch(
                f"{path}: there is no such file",
                "Check the path; it is relative to the workspace root. For a new file write `--- /dev/null`.",
                kind="not_found",
                path=path,
            )
        if is_binary(data):
            raise bad_patch(f"{path} is a binary file", "Only text can be patched.", kind="binary_file", path=path)
        return text_file(data)
