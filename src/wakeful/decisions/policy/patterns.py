"""Names and texts with `*` in them, compiled once.

`*` stands for any run of characters, and nothing else is special. A pattern without a slash is *bare*: it means the
last part of a name, wherever the tool comes from (`exec_command` is `wakeful/exec_command`). Where a list names a tool,
it also means the tool that takes several calls of it at once (`command_tools`).
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TypeAlias

from wakeful.decisions.policy.command_tools import single_of

Test: TypeAlias = Callable[[str], bool]

BEGINS_ANOTHER_COMMAND = frozenset(";&|<>`$(){}\\\r\n")
"""What `*` stops at where a text is a command that would be let through unasked."""


def bare(name: str) -> str:
    """The last part of a namespaced name."""
    return name.rpartition("/")[2]


@lru_cache(maxsize=4096)
def text_test(pattern: str, *, shell: bool = False) -> Test:
    """Does a text look so? With `shell`, `*` does not reach over anything that begins another command."""
    first, *others = pattern.split("*")
    if not others:
        return pattern.__eq__
    if others == [""] and not shell:
        return lambda text: text.startswith(first)
    *middle, last = others
    stops = BEGINS_ANOTHER_COMMAND if shell else frozenset()
    return lambda text: _matches(text, first, middle, last, stops)


def _matches(text: str, first: str, middle: list[str], last: str, stops: frozenset[str]) -> bool:
    """Piece after piece from the left. It takes as long as reading the text, whatever the pattern."""
    end = len(text) - len(last)
    if not text.startswith(first) or not text.endswith(last) or end < len(first):
        return False
    at = len(first)
    for piece in middle:
        found = text.find(piece, at, end)
        if found < 0 or not stops.isdisjoint(text[at:found]):
            return False
        at = found + len(piece)
    return stops.isdisjoint(text[at:end])


@lru_cache(maxsize=4096)
def name_test(pattern: str) -> Test:
    """Is this the name of a tool that the pattern means? A bare pattern means the last part."""
    test = text_test(pattern)
    if "/" in pattern:
        return test
    if "*" not in pattern:
        suffix = f"/{pattern}"
        return lambda name: name == pattern or name.endswith(suffix)
    return lambda name: test(bare(name)) or test(name)


def in_full(patterns: Iterable[str], name: str) -> bool:
    """Is the whole name meant? For lists that let something in, where a bare name could be anybody's."""
    return any(text_test(pattern)(name) for pattern in patterns)


def any_named(patterns: Iterable[str], name: str) -> str | None:
    """The first pattern that means this tool, or the one whose calls it takes several of."""
    single = single_of(name)
    for pattern in patterns:
        means = name_test(pattern)
        if means(name) or (single is not None and means(single)):
            return pattern
    return None
