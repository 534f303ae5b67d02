"""Names inside a workspace that no tool may write, create, move or delete.

A name is protected wherever it stands in the tree, with everything beneath it. Names are compared the way a careless
file system would: without case, and without characters that some file systems do not see. `.git` is protected whole,
not only its hooks and its configuration: a file named `.git` points elsewhere, `.git/modules` holds more hooks, and
`.git/info` names filters; each of them is a way to have a program run later. The same goes for a folder that has the
shape of one, and for hooks that are files of the project (`.husky`). Commands such as `git commit` write there under
the rules of commands.
"""

import unicodedata
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

GUIDANCE: tuple[str, ...] = ("AGENTS.md", "CLAUDE.md", ".agents/skills", ".codex/skills", ".claude/skills")
"""What tells agents what to do: file tools do not write it. A command may, and then the owner has to accept it anew."""
TRUSTED_FILE = "wakeful-trusted.json"
"""Where a user's home says which of them were accepted."""
PROTECTED: tuple[str, ...] = (
    *GUIDANCE,
    TRUSTED_FILE,
    ".git",
    ".husky",
    ".wakeful",
    ".wakeful-*.tmp",
    "wakeful.toml",
    "wakeful.db",
    "wakeful.db-*",
    "wakeful.db.blobs",
    "wakeful.db.owners",
)
"""Patterns, one part of a path each (`name`) or several (`folder/name`); one that begins with `/` holds at the root
only."""

_DATABASE_COMPANIONS = ("", "-wal", "-shm", "-journal", "-anchor", ".owners", ".blobs")
_OF_A_REPOSITORY = frozenset({"HEAD", "objects", "refs", "commondir", "config", "config.worktree", "hooks"})
_UNSEEN = {*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF}
"""Code points that some file systems leave out when they compare names."""


def covering(root: Path, paths: Iterable[Path]) -> tuple[str, ...]:
    """Patterns for databases of the runtime that happen to be inside this root, and what stands beside them."""
    return tuple(f"{name}{ending}" for name in exactly(root, paths) for ending in _DATABASE_COMPANIONS)


def exactly(root: Path, paths: Iterable[Path]) -> tuple[str, ...]:
    """Patterns for these paths, as far as they are inside this root."""
    patterns = []
    for path in paths:
        try:
            within = path.resolve().relative_to(root.resolve())
        except ValueError:
            continue
        if within.parts:
            patterns.append("/" + "/".join(_literal(part) for part in within.parts))
    return tuple(patterns)


def completes_repository(root: Path, parts: tuple[str, ...]) -> bool:
    """Would a folder on the way to this path have the shape of a git directory, with it? Git takes one for a repository
    wherever it stands, and obeys the settings in it."""
    for place, name in enumerate(parts):
        if name in _OF_A_REPOSITORY:
            folder = root.joinpath(*parts[:place])
            try:
                names = {entry.name for entry in folder.iterdir()} | {name}
            except OSError:
                names = {name}
            if "HEAD" in names and ("commondir" in names or {"objects", "refs"} <= names):
                return True
    return False


def protecting(parts: tuple[str, ...], patterns: Iterable[str]) -> str | None:
    """The pattern that forbids writing the path, if there is one. `parts` is where the path really leads."""
    seen = [_seen(part) for part in parts]
    for pattern in patterns:
        wanted = [_seen(part) for part in pattern.strip("/").split("/")]
        starts = [0] if pattern.startswith("/") else range(len(seen) - len(wanted) + 1)
        for start in starts:
            here = seen[start : start + len(wanted)]
            if len(here) == len(wanted) and all(map(fnmatchcase, here, wanted)):
                return pattern
    return None


def holding(parts: tuple[str, ...], patterns: Iterable[str]) -> str | None:
    """The root pattern that the path is a folder above of: to move that folder would move what is protected."""
    seen = [_seen(part) for part in parts]
    for pattern in patterns:
        wanted = [_seen(part) for part in pattern.strip("/").split("/")]
        if pattern.startswith("/") and len(seen) < len(wanted) and all(map(fnmatchcase, seen, wanted)):
            return pattern
    return None


def _seen(name: str) -> str:
    kept = "".join(letter for letter in name if ord(letter) not in _UNSEEN)
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", kept).casefold())


def _literal(part: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in part)
