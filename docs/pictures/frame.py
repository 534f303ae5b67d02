"""Lines of a terminal as a picture."""

import io
from collections.abc import Iterable

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

FRAME = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, monospace; font-size: {char_height}px;
line-height: {line_height}px; }} .{unique_id}-title {{ font-size: 18px; font-family: sans-serif; }} {styles}</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>{lines}</defs>{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">{backgrounds}
<g class="{unique_id}-matrix">{matrix}</g></g></svg>
"""
"""Like rich's own frame, without a font that a browser would have to fetch."""


def drawn(lines: Iterable[Text], title: str, width: int) -> str:
    """The SVG of so many columns."""
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    for line in lines:
        console.print(line)
    return console.export_svg(title=title, theme=MONOKAI, code_format=FRAME, unique_id="demo")
