"""Names inside a workspace that no tool may write, create, move or delete.

A name is protected wherever it stands in the tree, with everything beneath it. Names are compared the way a careless
file system would: without case, and without characters that some file systems do not see. `.git` is protected whole,
not only its hooks and its configuration: a file named `.git` points elsewhere, `.git/modules` holds more hooks, and
`.git/info` names filters; each of them is a way to have a program run later. Commands such as `git commit` write there
under the rules of commands.
"""

import unicodedata
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

PROTECTED: tuple[str, ...] = (
    ".git",
    ".wakeful",
    ".wakeful-*.tmp",
    "wakeful.toml",
    "wakeful.db",
    "wakeful.db-*",
    "wakeful.db.blobs",
)
"""Patterns, one part of a path each (`name`) or several (`folder/name`); one that begins with `/` holds at the root
only."""

_DATABASE_COMPANIONS = ("", "-wal", "-shm", "-journal", "-owners", ".blobs")
_UNSEEN = {*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF}
"""Code points that some file systems leave out when they compare names."""


def covering(root: Path, paths: Iterable[Path]) -> tuple[str, ...]:
    """Patterns for files of the runtime that happen to be inside this root: a store, a settings file, tokens."""
    patterns = []
    for path in paths:
        try:
            within = path.resolve().relative_to(root.resolve())
        except ValueError:
            continue
        escaped = "/".join(_literal(part) for part in within.parts)
        patterns += [f"/{escaped}{ending}" for ending in _DATABASE_COMPANIONS]
    return tuple(patterns)


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
