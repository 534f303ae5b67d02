"""Edits made by a seeded generator, with their diffs and what must come of them, made without the code under test.

A file has LF, CRLF or both, may end without a newline, holds Unicode and repeated blocks. An edit replaces, removes and
adds lines. The diff is difflib's, with the marks that difflib leaves out.
"""

import difflib
import random
from dataclasses import dataclass

WORDS = [
    "alpha",
    "beta",
    "  gamma = 1",
    "\tdelta()",
    "größe",
    "日本語",
    "emoji 🎉",
    "e\u0301",
    "a\u2028b",
    "",
    "",
    "}",
    "return",
]
REPEATED = ["def same():", "    pass", ""]


@dataclass(frozen=True)
class Edit:
    """One edit of one file."""

    seed: int
    before: list[str]
    """Lines with their ends."""
    after: list[str]

    @property
    def old(self) -> bytes:
        return "".join(self.before).encode()

    @property
    def new(self) -> bytes:
        return "".join(self.after).encode()

    def diff(self, context: int = 3) -> str:
        return diff_of(self.before, self.after, context)


def diff_of(before: list[str], after: list[str], context: int = 3, path: str = "file.txt") -> str:
    lines = difflib.unified_diff(before, after, f"a/{path}", f"b/{path}", n=context)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def ambiguous(before: list[str], diff: str) -> bool:
    """Is there a hunk whose old side stands in the file not once but several times?"""
    lines = [line.removesuffix("\n").removesuffix("\r") for line in before]
    hunks: list[list[str]] = []
    ends: set[int] = set()
    old_side = False
    for line in diff.split("\n")[2:]:
        if line.startswith("@@"):
            hunks.append([])
        elif hunks and line[:1] in (" ", "-"):
            hunks[-1].append(line[1:].removesuffix("\r"))
        elif line.startswith("\\") and old_side:
            ends.add(len(hunks) - 1)  # it says that it stands at the end
        old_side = line[:1] in (" ", "-")
    counted = [
        1 if number in ends else sum(lines[at : at + len(hunk)] == hunk for at in range(len(lines) - len(hunk) + 1))
        for number, hunk in enumerate(hunks)
    ]
    return any(count > 1 for count in counted)


def edits(count: int, first: int = 0) -> list[Edit]:
    return [edit(seed) for seed in range(first, first + count)]


def edit(seed: int) -> Edit:
    rng = random.Random(seed)
    ending = rng.choice(["\n", "\n", "\r\n", "mixed"])

    def end() -> str:
        return rng.choice(["\n", "\r\n"]) if ending == "mixed" else ending

    def line(number: int) -> str:
        word = rng.choice(WORDS)
        return f"{word} {number}" if rng.random() < 0.7 else word

    texts: list[str] = []
    for number in range(rng.randint(1, 40)):
        texts += REPEATED if rng.random() < 0.15 else [line(number)]
    before = [text + end() for text in texts]
    after: list[str] = []
    changed = rng.randint(1, 4)
    touched = set(rng.sample(range(len(before)), min(changed, len(before))))
    for index, text in enumerate(before):
        kind = rng.choice(["replace", "remove", "add", "add_after"]) if index in touched else "keep"
        if kind == "add":
            after += [f"new {seed} {index}{end()}" for _ in range(rng.randint(1, 3))]
        if kind == "replace":
            after.append(f"{rng.choice(WORDS)} changed {index}{end()}")
        elif kind != "remove":
            after.append(text)
        if kind == "add_after":
            after += [f"--- later {index}{end()}", f"++ added {index}{end()}"]
    if rng.random() < 0.3:
        before[-1] = before[-1].rstrip("\r\n") or "last"
    if after and rng.random() < 0.3:
        after[-1] = after[-1].rstrip("\r\n") or "last"
    if after == before or not after:
        after = [*before[:-1], f"end {seed}\n"]
    return Edit(seed, before, after)
