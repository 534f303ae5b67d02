"""The front matter of a `SKILL.md`: flat keys with plain, quoted and block scalars, and nothing else of YAML.

Every value is text. There are no types, tags, anchors, aliases or merges, and what is nested is passed over: reading
takes one pass over the lines, whatever they hold, and never fails.
"""

import re
from collections.abc import Iterator, Sequence

_KEY = re.compile(r"""(?:"([^"\\]*)"|'([^']*)'|([A-Za-z0-9_][A-Za-z0-9_.-]*))[ \t]*:(?:[ \t]+(.*)|)$""")
_BLOCK = re.compile(r"[|>][0-9+-]{0,2}(?:[ \t]+#.*)?$")
_COMMENT = re.compile(r"(?:^|[ \t])#.*")
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_ESCAPED = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "0": "",
    "a": "",
    "b": "",
    "e": "",
    "f": " ",
    "v": " ",
    "_": " ",
    "N": " ",
    "\n": "",
}
_NO_SCALAR = ("[", "{", "&", "*", "!")
"""A value that begins like this is a list, a mapping, or needs what is not supported here."""


def front_matter(text: str) -> dict[str, str]:
    """Keys to values, each on one line. Empty where there is no front matter, or it does not end."""
    lines = re.split(r"\r\n?|\n", text.removeprefix("\ufeff"))
    if lines[0].rstrip() != "---":
        return {}
    end = next((place for place, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), None)
    if end is None:
        return {}
    found: dict[str, str] = {}
    for key, first, more in _entries(lines[1:end]):
        value = _scalar(first, more)
        if value is not None:
            found[key] = " ".join(value.split())
    return found


def _entries(lines: Sequence[str]) -> Iterator[tuple[str, str, list[str]]]:
    """Each key at the left edge, what stands behind it, and the lines below it that belong to it."""
    key, first, more = "", "", list[str]()
    for line in lines:
        if not line.strip() or line.startswith((" ", "\t", "- ")):
            more.append(line.strip())
            continue
        if key:
            yield key, first, more
        match = _KEY.match(line.rstrip())
        key, first, more = "", "", []
        if match is not None:
            key, first = next(filter(None, match.groups()[:3]), ""), (match[4] or "").strip()
    if key:
        yield key, first, more


def _scalar(first: str, more: Sequence[str]) -> str | None:
    """The text of a value; None: it is no scalar."""
    if _BLOCK.match(first):
        return " ".join(more)
    if first[:1] in ('"', "'"):
        return _quoted("\n".join([first, *more]))
    first = _COMMENT.sub("", first)
    if first.startswith(_NO_SCALAR):
        return None
    if not first:
        return None if any(_is_nested(line) for line in more) else " ".join(_COMMENT.sub("", line) for line in more)
    return " ".join([first, *(_COMMENT.sub("", line) for line in more)])


def _is_nested(line: str) -> bool:
    return line.startswith(("- ", *_NO_SCALAR)) or line == "-" or _KEY.match(line) is not None


def _quoted(text: str) -> str | None:
    """What stands between the quotes; None where they are not closed."""
    if text[0] == "'":
        closed = re.match(r"'((?:[^']|'')*)'", text)
        return closed[1].replace("''", "'") if closed is not None else None
    closed = re.match(r'"((?:[^"\\]|\\.)*)"', text, re.DOTALL)
    return _ESCAPE.sub(_unescaped, closed[1]) if closed is not None else None


def _unescaped(match: "re.Match[str]") -> str:
    number = match[1] or match[2] or match[3]
    if number is None:
        return _ESCAPED.get(match[4], match[4])
    point = int(number, 16)
    return chr(point) if point < 0xD800 or 0xE000 <= point <= 0x10FFFF else "\ufffd"
