"""A screen: what stands on it after a command has written to it, line by line, with its colours as marks.

Lines that were drawn over are gone, as they are for a person. `«bold red»failed«»` is bold and red; nothing else is
marked.
"""

import io
import re

_SENT = re.compile(r"\x1b\[(?P<private>\??)(?P<numbers>[\d;]*)(?P<letter>[A-Za-z])|(?P<text>[^\x1b])")
_WORDS = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse"}
_COLOURS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_MARK = re.compile("«[^»]*»")

Cell = tuple[str, str]
"""A character and its style."""


class Screen(io.StringIO):
    """A file that says it is a terminal, and knows what a person sees of what was written to it."""

    def isatty(self) -> bool:
        return True

    def lines(self) -> list[str]:
        """The lines that are left, with marks where the style changes."""
        return [_marked(row) for row in _played(self.getvalue())]


def unmarked(line: str) -> str:
    """A line without its marks: as wide as it is on the screen."""
    return _MARK.sub("", line)


def _played(sent: str) -> list[list[Cell]]:
    rows: list[list[Cell]] = [[]]
    row = column = 0
    style = ""
    for found in _SENT.finditer(sent):
        match found["letter"] or found["text"]:
            case "\n":
                row, column = row + 1, 0
                if row == len(rows):
                    rows.append([])
            case "\r":
                column = 0
            case "m" if found["letter"]:
                style = _style(style, found["numbers"])
            case "A" if found["letter"]:
                row = max(0, row - int(found["numbers"] or 1))
            case "K" if found["letter"]:
                rows[row] = []
            case "h" | "l" if found["private"]:
                pass  # the cursor is shown or hidden
            case other if found["letter"]:
                raise AssertionError(f"a control sequence that no screen here knows: {found[0]!r} ({other})")
            case text:
                rows[row] += [(" ", "")] * (column + 1 - len(rows[row]))
                rows[row][column] = (text, style)
                column += 1
    while rows and not rows[-1]:
        rows.pop()
    return rows


def _style(before: str, numbers: str) -> str:
    words = before.split()
    for number in map(int, numbers.split(";") if numbers else ["0"]):
        if number == 0:
            words = []
        elif number in _WORDS:
            words.append(_WORDS[number])
        elif 30 <= number < 38:
            words.append(_COLOURS[number - 30])
        elif 90 <= number < 98:
            words.append(f"bright-{_COLOURS[number - 90]}")
        else:
            raise AssertionError(f"a style that no screen here knows: {numbers}")
    return " ".join(words)


def _marked(row: list[Cell]) -> str:
    text, style = "", ""
    for character, own in row:
        if own != style and character != " ":
            text, style = text + (f"«{own}»" if own else "«»"), own
        text += character
    return text.rstrip() + ("«»" if style else "")
