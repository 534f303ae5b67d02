"""A call as a person reads it before they decide about it: whole, and as it was written.

A short call is one line. A longer one has a line for each argument, and its texts keep their line breaks and their
indentation, each line behind a mark: `|` where a line begins, `:` where one that was too long goes on. No letter is
left out, whatever the width. What `edit_file` and `write_file` would change is shown as a diff, made from the arguments
themselves. A value that nobody may see is `[secret NAME]`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from wakeful.contracts.sensitive_names import REDACTED
from wakeful.views.presentation.plain_text import columns_of, json_text, plain

Tone: TypeAlias = Literal["plain", "added", "removed"]
TAB: Final = 4
MOST_LINES: Final = 24
"""Lines of a call that a list shows. A longer one has to be opened before it can be decided about."""
LEAST: Final = 20
"""Columns that a text is given, however deep it stands."""
MOST_COMPARED: Final = 2_000
"""Lines of an edit in which common ones are looked for."""
_PREVIEW: Final = {"preview", "digest", "size_chars", "truncated"}


class CallLine(NamedTuple):
    """One line of a screen."""

    text: str
    tone: Tone = "plain"


class CallExcerpt(NamedTuple):
    """As much of a call as a list has room for."""

    lines: Sequence[CallLine]
    left_out: int
    """How many lines it goes on for."""
    is_whole: bool
    """Was all of the call shown? Only then may it be approved from here."""


def call_lines(tool: str, arguments: Mapping[str, Any], width: int, *, on_one_line: bool = False) -> list[CallLine]:
    """The whole call, in lines of at most so many columns; on one line the line breaks of its texts are written out."""
    name = plain(tool).replace("\n", "\\n")
    written = ", ".join(f"{_key(key)}={_value(key, value)}" for key, value in arguments.items())
    short = f"{name}({written})"
    if on_one_line or (columns_of(short) <= width and not any(map(_has_lines, arguments.values()))):
        return [CallLine(short)]
    return [*(CallLine(part) for part in pieces(name, width)), *_long(tool, arguments, 2, width)]


def argument_lines(tool: str, arguments: Mapping[str, Any], width: int) -> list[CallLine]:
    """The same without the name of the tool."""
    short = ", ".join(f"{_key(key)}={_value(key, value)}" for key, value in arguments.items())
    if columns_of(short) <= width and not any(map(_has_lines, arguments.values())):
        return [CallLine(short)]
    return _long(tool, arguments, 0, width)


def excerpt_of(lines: Sequence[CallLine], arguments: Mapping[str, Any], most: int | None = MOST_LINES) -> CallExcerpt:
    """The beginning of a call with these arguments, or all of it where that is not long."""
    left_out = max(0, len(lines) - most) if most is not None else 0
    return CallExcerpt(lines[:most] if left_out else lines, left_out, not left_out and is_recorded_whole(arguments))


def is_recorded_whole(arguments: Mapping[str, Any]) -> bool:
    """False where the record has a preview in the place of arguments that are too long for it."""
    return not (set(arguments) == _PREVIEW and arguments["truncated"] is True)


def text_lines(text: str, width: int, indent: int = 0) -> list[CallLine]:
    """A text, line by line, each behind its mark."""
    return list(_marked([("|", "plain", line) for line in _lines(text)], indent, width))


def prompt_lines(text: str, width: int) -> list[CallLine]:
    """A question without line breaks, as it stands where it fits, else in lines behind their marks."""
    return [CallLine(plain(text))] if columns_of(plain(text)) <= width else text_lines(text, width)


def pieces(line: str, room: int) -> Iterator[str]:
    """One line in pieces of at most so many columns, broken behind spaces where that is possible. Nothing is lost."""
    while len(line) > room or columns_of(line) > room:
        end = room
        while end > 1 and columns_of(line[:end]) > room:
            end -= 1
        space = line.rfind(" ", room // 2, end)
        end = space + 1 if space >= 0 else end
        yield line[:end]
        line = line[end:]
    yield line


# --- arguments --------------------------------------------------------------------------------------------------------


def _long(tool: str, arguments: Mapping[str, Any], indent: int, width: int) -> list[CallLine]:
    shown, change = _edit(tool, arguments)
    found = [line for key, value in shown.items() for line in _argument(key, value, indent, width)]
    for label, lines in change:
        found += [CallLine(f"{' ' * indent}{label}:"), *_marked(lines, indent + 2, width)]
    return found


def _argument(key: str, value: Any, indent: int, width: int) -> Iterator[CallLine]:
    before = " " * indent + _key(key)
    short = f"{before}: {_value(key, value)}"
    if not _has_lines(value) and columns_of(short) <= width:
        yield CallLine(short)
        return
    yield from (CallLine(part) for part in pieces(f"{before}:", width))
    deeper = indent + 2
    if isinstance(value, dict | list) and width - deeper > 2 * LEAST:
        named = value.items() if isinstance(value, dict) else ((f"[{at}]", each) for at, each in enumerate(value))
        for name, each in named:
            yield from _argument(name, each, deeper, width)
    else:
        text = value if isinstance(value, str) else _value(key, value)
        yield from text_lines(text, width, deeper)


def _key(key: str) -> str:
    return key if key.isidentifier() or (key.startswith("[") and key[1:-1].isdigit()) else json_text(key)


def _value(name: str, value: Any) -> str:
    """JSON on one line, but for what was redacted."""
    if value == REDACTED:
        return f"[secret {_key(name)}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json_text(key)}: {_value(key, each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_value(name, each) for each in value) + "]"
    return json_text(value)


def _has_lines(value: Any) -> bool:
    """Is there a text with line breaks in it?"""
    if isinstance(value, dict):
        return any(map(_has_lines, value.values()))
    if isinstance(value, list):
        return any(map(_has_lines, value))
    return isinstance(value, str) and "\n" in value


# --- texts and changes ------------------------------------------------------------------------------------------------

_Marked: TypeAlias = "tuple[str, Tone, str]"
"""Its mark, its tone, the line."""
_MARKS: Final[Mapping[Tone, str]] = {"plain": "|", "added": "+", "removed": "-"}


def _marked(lines: Sequence[_Marked], indent: int, width: int) -> Iterator[CallLine]:
    room = max(width - indent - 2, LEAST)
    for mark, tone, line in lines:
        for piece in pieces(plain(line.expandtabs(TAB)), room):
            yield CallLine(f"{' ' * indent}{mark} {piece}".rstrip(), tone)
            mark = ":"


def _lines(text: str) -> list[str]:
    """Without what comes after the last line break, where that is nothing."""
    found = text.split("\n")
    return found[:-1] if len(found) > 1 and not found[-1] else found


def _edit(tool: str, arguments: Mapping[str, Any]) -> tuple[Mapping[str, Any], Sequence[tuple[str, Sequence[_Marked]]]]:
    """The arguments that are shown as they are, and what is shown as a change."""
    texts = {key: value for key, value in arguments.items() if isinstance(value, str) and value != REDACTED}
    if tool == "wakeful/edit_file" and {"old_text", "new_text"} <= set(texts):
        rest = {key: value for key, value in arguments.items() if key not in ("old_text", "new_text")}
        return rest, [("change", _difference(texts["old_text"], texts["new_text"]))]
    if tool == "wakeful/write_file" and "content" in texts:
        rest = {key: value for key, value in arguments.items() if key != "content"}
        return rest, [("content", _all_of("added", texts["content"]))]
    if tool == "wakeful/apply_patch" and "patch" in texts:
        rest = {key: value for key, value in arguments.items() if key != "patch"}
        return rest, [("patch", [("|", _of_diff(line), line) for line in _lines(texts["patch"])])]
    return arguments, []


def _difference(old: str, new: str) -> list[_Marked]:
    """Both texts, with what they share once. Texts that differ in their last line break alone differ in that line."""
    before, after = (re.findall(r"[^\n]*\n|[^\n]+", text) for text in (old, new))
    if len(before) + len(after) > MOST_COMPARED:
        return [*_all_of("removed", old), *_all_of("added", new)]
    found: list[_Marked] = []
    for kind, old_from, old_to, new_from, new_to in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind == "equal":
            found += _all_of("plain", "".join(before[old_from:old_to]))
        else:
            found += _all_of("removed", "".join(before[old_from:old_to])) if old_to > old_from else []
            found += _all_of("added", "".join(after[new_from:new_to])) if new_to > new_from else []
    if old.endswith("\n") != new.endswith("\n"):
        found.append(
            ("|", "plain", f"(the new text ends {'with' if new.endswith(chr(10)) else 'without'} a line break)")
        )
    return found


def _all_of(tone: Tone, text: str) -> list[_Marked]:
    return [(_MARKS[tone], tone, line) for line in _lines(text)] if text else []


def _of_diff(line: str) -> Tone:
    if line.startswith(("+++", "---")):
        return "plain"
    return "added" if line.startswith("+") else "removed" if line.startswith("-") else "plain"
