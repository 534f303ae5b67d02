r"""Regular expressions that others wrote, matched in time that grows with the text and not with the pattern's tricks.

The rule: a pattern of a schema, a server or a client never meets an engine that backtracks. RE2 matches it; what RE2
cannot take is refused with the reason, when the pattern is read and not when a call waits. Two forms are rewritten,
because real schemas have them: the escapes `\uXXXX` and `\cX`, and lookaheads at the very beginning
(`^(?!\.)(?=.*\d)`), each of which is matched as a pattern of its own.
"""

from functools import lru_cache
from typing import Any, NamedTuple

MAX_PATTERN_CHARS = 4_096
MAX_MEMORY_BYTES = 8 * 1024 * 1024
"""What one pattern may take: RE2 slows down or refuses before it takes more."""
_HEX = frozenset("0123456789abcdefABCDEF")
_LOOKAROUND = ("(?=", "(?!", "(?<=", "(?<!")


class PatternRefused(ValueError):
    """A pattern that cannot be matched in bounded time; the message says why."""


class _Ahead(NamedTuple):
    """A lookahead at the beginning of a pattern."""

    inside: str
    wanted: bool


class Pattern:
    """A pattern that is ready to be searched for."""

    __slots__ = ("_tests", "size")

    def __init__(self, tests: list[tuple[Any, bool]]) -> None:
        self._tests = tests
        self.size: int = sum(compiled.programsize for compiled, _ in tests)
        """Of RE2's program. Where its memory runs out, a search takes the length of the text times this."""

    def __call__(self, text: str) -> bool:
        plain = text.encode("utf-8", "replace").decode()  # a lone surrogate is no text to RE2
        return all((compiled.search(plain) is not None) is wanted for compiled, wanted in self._tests)


@lru_cache(maxsize=1024)
def found_by(pattern: str) -> Pattern:
    """Does the pattern occur in a text, as JSON Schema means it? Raises PatternRefused."""
    if len(pattern) > MAX_PATTERN_CHARS:
        raise PatternRefused(f"the pattern has {len(pattern):,} characters; the limit is {MAX_PATTERN_CHARS:,}")
    aheads, rest = _leading(pattern)
    return Pattern([(_compiled(rest), True), *((_compiled(f"^(?:{each.inside})"), each.wanted) for each in aheads)])


def _compiled(pattern: str) -> Any:
    # Loaded with the first pattern: most programs never meet one.
    import re2

    options = re2.Options()
    options.max_mem = MAX_MEMORY_BYTES
    options.log_errors = False
    try:
        return re2.compile(_respelled(pattern), options)
    except re2.error as error:
        said = error.args[0] if error.args else ""
        words = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
        more = "; lookaround is supported at the beginning only" if any(word in pattern for word in _LOOKAROUND) else ""
        raise PatternRefused(f"{pattern[:100]!r} cannot be matched without backtracking: {words[:100]}{more}") from None
    except UnicodeEncodeError:
        raise PatternRefused(f"{pattern[:100]!a} is not a text") from None


def _respelled(pattern: str) -> str:
    r"""Escapes of JavaScript and Python as RE2 writes them: `\u00e4`, `\cJ`, `\Z`."""
    if "\\" not in pattern:
        return pattern
    out: list[str] = []
    at = 0
    while at < len(pattern):
        if pattern[at] != "\\":
            out.append(pattern[at])
            at += 1
            continue
        kind, four = pattern[at + 1 : at + 2], pattern[at + 2 : at + 6]
        if kind == "u" and len(four) == 4 and _HEX.issuperset(four):
            out.append(f"\\x{{{four}}}")
            at += 6
        elif kind == "c" and four[:1].isalpha() and four[:1].isascii():
            out.append(f"\\x{{{ord(four[0].upper()) - 64:x}}}")
            at += 3
        else:
            out.append("\\z" if kind == "Z" else pattern[at : at + 2])
            at += 2
    return "".join(out)


def _leading(pattern: str) -> tuple[list[_Ahead], str]:
    """The lookaheads right after `^`, and the pattern without them. None are split off where `|` parts the pattern."""
    aheads: list[_Ahead] = []
    at = 1 if pattern.startswith("^") else 0
    while at and pattern.startswith(("(?=", "(?!"), at):
        end = _group_end(pattern, at)
        if end is None:
            return [], pattern
        aheads.append(_Ahead(pattern[at + 3 : end], pattern[at + 2] == "="))
        at = end + 1
    if not aheads or _has_alternatives(pattern[at:]):
        return [], pattern
    return aheads, "^" + pattern[at:]


def _has_alternatives(pattern: str) -> bool:
    return any(sign == "|" and depth == 0 for _, sign, depth in _signs(pattern))


def _group_end(pattern: str, start: int) -> int | None:
    """Where the group that begins here ends."""
    return next((start + at for at, sign, depth in _signs(pattern[start:]) if sign == ")" and depth == 0), None)


def _signs(pattern: str) -> list[tuple[int, str, int]]:
    """Every `(`, `)` and `|` that is one, outside sets and escapes, with how deep it stands."""
    found: list[tuple[int, str, int]] = []
    depth, at, in_set = 0, 0, False
    while at < len(pattern):
        sign = pattern[at]
        if sign == "\\":
            at += 1
        elif in_set:
            in_set = sign != "]"
        elif sign == "[":
            in_set = True
            if pattern[at + 1 : at + 2] == "^":
                at += 1
        elif sign in "(|)":
            depth -= sign == ")"
            found.append((at, sign, depth))
            depth += sign == "("
        at += 1
    return found
