"""Programs that are killed: each runs in a process of its own, forked from one that has imported its module.

A new interpreter takes a second to import wakeful, ten times as long as most of these programs live.
"""

import asyncio
import inspect
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wakeful.testing.crash_children import nursery_for

SECONDS = 240.0
STATUS = {"done": 0, "killed": -9, "raised": 1}


@dataclass(frozen=True)
class Ended:
    """How a program ended, and everything it said."""

    returncode: int
    said: str


def run_forked(program: Callable[..., Any], *arguments: object) -> Ended:
    """Run a function from the top of a module, or a coroutine function, to its end, whatever that is."""
    with tempfile.TemporaryDirectory() as folder, nursery_for(program) as nursery:
        output = Path(folder) / "output"
        ending = nursery.run(_run, program, *arguments, output=output, seconds=SECONDS)
        assert ending.how != "hung", ending.words
        return Ended(STATUS[ending.how], output.read_text())


def _run(program: Callable[..., Any], *arguments: object) -> None:
    try:
        outcome = program(*arguments)
        if inspect.iscoroutine(outcome):
            asyncio.run(outcome)
    except SystemExit as end:
        if end.code:
            raise
