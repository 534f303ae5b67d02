"""Sandboxes for tests: one for each level that this machine has, and looking for processes that were left behind."""

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kit.runs.replayed_stores import check_stores_below
from wakeful.sandbox import level_probe
from wakeful.sandbox.command_process import CommandEnd
from wakeful.sandbox.confinement import Sandbox
from wakeful.sandbox.settings import SandboxSettings

BARE = level_probe.bare("this test wants none")
PYTHON = os.path.realpath(sys.executable)
"""An interpreter that a confined command finds too: an environment of its own may lie in a folder that is hidden."""


@cache
def level(mode: str) -> level_probe.ConfinementLevel:
    """The level by its name, or a skip that says why this machine does not have it."""
    if mode == "not_enforced":
        return BARE
    found = level_probe.bubblewrap() if mode == "bubblewrap" else level_probe.landlocked()
    if found.mode != mode:
        pytest.skip(f"no {mode} here: {found.reason}")
    return found


@contextmanager
def place_outside() -> Iterator[Path]:
    """A folder outside every workspace that a command would see: not below the temporary folder, which is its own.

    The turns of stores that are left there are decided again before it goes.
    """
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        yield Path(folder)
        check_stores_below(Path(folder))


def sandbox(root: Path, mode: str, environ: dict[str, str] | None = None, **settings: Any) -> Sandbox:
    given = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")} if environ is None else environ
    return Sandbox(root, SandboxSettings(**settings), level=level(mode), environ=given, keys=("OPENAI_API_KEY",))


async def sh(where: Sandbox, script: str, *, timeout: float = 60, **more: Any) -> CommandEnd:
    return await where.run(["sh", "-c", script], where.root, timeout=timeout, **more)


def said(ended: CommandEnd) -> str:
    return (ended.stdout.data + ended.stderr.data).decode(errors="replace")


def alive(marker: str) -> list[int]:
    """Processes with this in their arguments."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            is_zombie = b") Z " in (folder / "stat").read_bytes()
        except OSError:
            continue
        if marker.encode() in words and not is_zombie:
            found.append(int(folder.name))
    return found


async def until(question: Any, seconds: float = 30) -> bool:
    """Wait for something to become true."""
    end = time.monotonic() + seconds
    while not question():
        if time.monotonic() > end:
            return False
        await asyncio.sleep(0.02)
    return True


def marker() -> str:
    """A number of seconds that nobody else sleeps for."""
    return f"97{os.getpid()}.{time.monotonic_ns() % 1_000_000_000}"
