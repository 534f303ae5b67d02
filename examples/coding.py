"""An agent that works in a repository: it is told the project's AGENTS.md, edits a file, runs the tests, and reports.

    python examples/coding.py [FOLDER]

Without a folder it makes a small project with a bug in `shop/`. Runs offline with a scripted model. Commands are held
to the folder and have no network where this machine can do that; `wakeful tools` says what holds them.
For a real model put `model="anthropic:claude-opus-4-7"` (or another) in the place of `scripted(...)`.
"""

import sys
from pathlib import Path

from wakeful import Agent, Approval, run_sync
from wakeful.testing import scripted

PRICES = """def total(prices: list[int]) -> int:
    return sum(prices[1:])
"""
TEST = """from prices import total

assert total([3, 4]) == 7, total([3, 4])
print("1 passed")
"""


def project(folder: Path) -> Path:
    """A project with a bug, unless there is something already."""
    folder.mkdir(exist_ok=True)
    for name, text in {
        "AGENTS.md": "Run `python3 test_prices.py` after every change.\n",
        "prices.py": PRICES,
        "test_prices.py": TEST,
    }.items():
        if not (folder / name).exists():
            (folder / name).write_text(text)
    return folder


async def allow(approval: Approval) -> bool:
    """Who is asked when a rule says so: here, whoever watches the terminal would be."""
    print(f"asked about {approval.tool}: {approval.reason}")
    return True


def agent(folder: Path) -> Agent[None, str]:
    return Agent(
        name="coder",
        model=scripted(
            [
                {"calls": [{"name": "wakeful/read_file", "arguments": {"path": "prices.py"}}]},
                {
                    "calls": [
                        {
                            "name": "wakeful/edit_file",
                            "arguments": {
                                "path": "prices.py",
                                "old_text": "sum(prices[1:])",
                                "new_text": "sum(prices)",
                            },
                        }
                    ]
                },
                {"calls": [{"name": "wakeful/exec_command", "arguments": {"cmd": "python3 test_prices.py"}}]},
                "The first price was left out of the sum. Fixed in prices.py; test_prices.py passes.",
            ]
        ),
        instructions="Fix what is asked for and nothing else.",
        workspace=folder,
        profile="coding",
    )


if __name__ == "__main__":
    root = project(Path(sys.argv[1] if len(sys.argv) > 1 else "shop"))
    result = run_sync(agent(root), "total() is wrong by the first price.", store="coding.db", approver=allow)
    print(result.output if result.completed else f"{result.status}: {result.message}")
    for call in result.calls("wakeful/exec_command"):
        print(call.result or call.error)
