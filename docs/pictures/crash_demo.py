"""Draw `crash-demo.svg` from a real run of `wakeful demo crash`: `make picture`."""

import re
import subprocess
import sys
from pathlib import Path

from frame import drawn
from rich.text import Text

PICTURE = Path(__file__).with_name("crash-demo.svg")
STEPS = 3
"""The picture ends before the step with this number plus one: killed, run again, run once more."""


def demo_output() -> str:
    """The words of a real run, up to the steps that the picture shows. Folder and key are different each time."""
    command = [sys.executable, "-m", "wakeful.surfaces.cli", "demo", "crash", "--no-keep"]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=240).stdout
    shown = said.partition(f"\n{STEPS + 1}. ")[0]
    return re.sub(r"\S*wakeful-demo-\w+/", "", re.sub(r"wk-[0-9a-f]{32}", "wk-c9a757cf...", shown))


def draw(words: str) -> str:
    """The words as a terminal shows them, in the colours of the demo."""
    lines = [Text("$ wakeful demo crash", style="bold")]
    for line in words.splitlines():
        style = (
            "bold" if re.match(r"\d\. ", line) else "red" if "killed" in line else "cyan" if line[:2] == "$ " else ""
        )
        lines.append(Text(line, style=style, no_wrap=True, overflow="ellipsis"))
    return drawn(lines, "wakeful demo crash", width=88)


if __name__ == "__main__":
    PICTURE.write_text(draw(demo_output()))
