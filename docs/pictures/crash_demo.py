"""Draw `crash-demo.svg` from a real run of `wakeful demo crash`: `make picture`."""

import io
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

PICTURE = Path(__file__).with_name("crash-demo.svg")
STEPS = 3
"""The picture ends before the step with this number plus one: killed, run again, run once more."""
FRAME = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, monospace; font-size: {char_height}px;
line-height: {line_height}px; }} .{unique_id}-title {{ font-size: 18px; font-family: sans-serif; }} {styles}</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>{lines}</defs>{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">{backgrounds}
<g class="{unique_id}-matrix">{matrix}</g></g></svg>
"""
"""Like rich's own frame, without a font that a browser would have to fetch."""


def demo_output() -> str:
    """The words of a real run, up to the steps that the picture shows. Folder and key are different each time."""
    command = [sys.executable, "-m", "wakeful.surfaces.cli", "demo", "crash", "--no-keep"]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=240).stdout
    shown = said.partition(f"\n{STEPS + 1}. ")[0]
    return re.sub(r"\S*wakeful-demo-\w+/", "", re.sub(r"wk-[0-9a-f]{32}", "wk-c9a757cf...", shown))


def draw(words: str) -> str:
    """The words as a terminal shows them, in the colours of the demo."""
    console = Console(record=True, width=88, file=io.StringIO(), force_terminal=True)
    console.print(Text("$ wakeful demo crash", style="bold"))
    for line in words.splitlines():
        style = (
            "bold" if re.match(r"\d\. ", line) else "red" if "killed" in line else "cyan" if line[:2] == "$ " else ""
        )
        console.print(Text(line, style=style, no_wrap=True, overflow="ellipsis"))
    return console.export_svg(title="wakeful demo crash", theme=MONOKAI, code_format=FRAME, unique_id="demo")


if __name__ == "__main__":
    PICTURE.write_text(draw(demo_output()))
