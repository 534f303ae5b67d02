"""A coding agent in a git folder: it edits a file, runs the tests with the folder's own Python, and commits.

    python examples/coding.py [FOLDER]

Without a folder it makes a small git project with a bug and a virtual environment in `shop/`. Commands are confined to
the folder, without network. For a real model put `"anthropic:claude-opus-4-7"` in the place of `scripted(...)`.
"""

import subprocess
import sys
import venv
from pathlib import Path

from wakeful import Agent, Approval, run_sync
from wakeful.testing import scripted

COMMIT = "git -c user.name=You -c user.email=you@example.com commit -qam"
FILES = {
    "AGENTS.md": "Run `python test_prices.py` after every change, then commit.\n",
    "prices.py": "def total(prices: list[int]) -> int:\n    return sum(prices[1:])\n",
    "test_prices.py": "from prices import total\n\nassert total([3, 4]) == 7, total([3, 4])\nprint('1 passed')\n",
    ".gitignore": ".venv/\n__pycache__/\n",
}


def project(folder: Path) -> Path:
    """A git project with a bug and a virtual environment, unless there is one already."""
    if not folder.exists():
        folder.mkdir()
        for name, text in FILES.items():
            (folder / name).write_text(text)
        venv.create(folder / ".venv", symlinks=True)
        subprocess.run(f"git init -q && git add . && {COMMIT} Start", shell=True, cwd=folder, check=True)
    return folder


async def approve(approval: Approval) -> bool:
    print(f"asked about {approval.tool}: {approval.reason}")
    return True


def step(name: str, **arguments: str) -> dict[str, object]:
    return {"calls": [{"name": name, "arguments": arguments}]}


SCRIPT = [
    step("read_file", path="prices.py"),
    step("edit_file", path="prices.py", old_text="sum(prices[1:])", new_text="sum(prices)"),
    step("exec_command", cmd="python test_prices.py"),
    step("exec_command", cmd=f"{COMMIT} 'Count the first price' && git log --oneline"),
    "The first price was left out of the sum. Fixed and committed; the test passes.",
]

if __name__ == "__main__":
    root = project(Path(sys.argv[1] if len(sys.argv) > 1 else "shop"))
    coder = Agent("coder", scripted(SCRIPT), "Fix what is asked for and nothing else.", workspace=root)
    result = run_sync(coder, "total() is wrong by the first price.", store="coding.db", approver=approve)
    print(result.output if result.completed else f"{result.status}: {result.message}")
    for call in result.calls("exec_command"):
        print(call.result or call.error)
