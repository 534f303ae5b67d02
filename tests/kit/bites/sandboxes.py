"""What commands are held to, setting by setting: by what they see, and by what bubblewrap is told, on any machine."""

import os
from pathlib import Path
from typing import Any

import pytest

from kit.bites import Bites
from kit.gates.confined_commands import said, sandbox, sh
from wakeful.sandbox.command_start import SpawnFailed
from wakeful.sandbox.confinement import NotConfined, Sandbox
from wakeful.sandbox.level_probe import ConfinementLevel
from wakeful.sandbox.settings import MachineLimits, SandboxSettings

SANDBOX = Bites()
LIMITS = Bites()
MEBIBYTE = 1024 * 1024


async def bare(root: Path, script: str, **settings: Any) -> str:
    """What a command says that runs under these settings where nothing confines it: limits and variables hold there."""
    environ = {"PATH": os.environ["PATH"], "COLOUR": "blue"}
    where = sandbox(root, "not_enforced", environ, **settings)
    return said(await sh(where, script)).strip()


async def told(root: Path, **settings: Any) -> list[str]:
    """What bubblewrap is told, by one that writes it down and does nothing else."""
    program = root / "bwrap"
    program.write_text(f'#!/bin/sh\nfor word in "$@"; do echo "$word" >> "{root}/told"; done\n')
    program.chmod(0o700)
    (root / "work").mkdir()
    level = ConfinementLevel("bubblewrap", program=str(program), version=(0, 8, 0))
    where = Sandbox(root / "work", SandboxSettings(**settings), level=level, environ={"PATH": os.environ["PATH"]})
    with pytest.raises(SpawnFailed):
        await sh(where, "true")
    return (root / "told").read_text().splitlines()


def after(line: list[str], *words: str) -> bool:
    """Do these words follow each other in it?"""
    return any(line[place : place + len(words)] == list(words) for place in range(len(line)))


@SANDBOX.of("sandbox.confinement", ("preferred", "ran"), ("required", NotConfined))
async def _required(value: Any, folder: Path) -> Any:
    try:
        return await bare(folder, "echo ran", confinement=value)
    except NotConfined:
        return NotConfined


@SANDBOX.of("sandbox.network", ("none", True), ("full", False))
async def _network(value: Any, folder: Path) -> Any:
    return "--unshare-net" in await told(folder, network=value)


@SANDBOX.of("sandbox.read_roots", (False, False), (True, True))
async def _readable(given: bool, folder: Path) -> Any:
    (other := folder / "other").mkdir()
    (root := folder / "work").mkdir()
    settings = SandboxSettings(read_roots=(str(other),) if given else ())
    where = Sandbox(root, settings, level=ConfinementLevel("landlock"), environ={"PATH": "/bin"})
    return os.path.realpath(other) in where.confinement(where.root).read_roots


@SANDBOX.of("sandbox.write_roots", (False, False), (True, True))
async def _writable(given: bool, folder: Path) -> Any:
    (other := folder / "other").mkdir()
    real = os.path.realpath(other)
    return after(await told(folder, write_roots=(str(other),) if given else ()), "--bind", real, real)


@SANDBOX.of("sandbox.hidden", (False, False), (True, True))
async def _hidden(given: bool, folder: Path) -> Any:
    (other := folder / "letters").mkdir()
    line = await told(folder, hidden=(f"{other}/",) if given else ())
    return after(line, "--tmpfs", os.path.realpath(other))


@SANDBOX.of("sandbox.protected", (False, False), (True, True))
async def _protected(given: bool, folder: Path) -> Any:
    place = os.path.join(os.path.realpath(folder), "work", "rules")  # noqa: PTH118  (as a command is told it)
    line = await told(folder, protected=(f"{place}/",) if given else ())
    return after(line, "--ro-bind", place, place)


@SANDBOX.of("sandbox.environment", ((), "none"), (("COLOUR",), "blue"))
async def _environment(value: tuple[str, ...], folder: Path) -> Any:
    return await bare(folder, "echo ${COLOUR:-none}", environment=value)


@LIMITS.of("sandbox.limits.processes", (4, "processes"), (64, "all"))
async def _processes(value: int, folder: Path) -> Any:
    seconds = 15 if value < 20 else 0.1  # where they are too many they are stopped, however long they would take
    twenty = f"i=0; while [ $i -lt 20 ]; do i=$((i+1)); sleep {seconds} & done; wait; echo all"
    ended = await sh(sandbox(folder, "not_enforced", limits=MachineLimits(processes=value)), twenty)
    return ended.stopped or said(ended).strip()


@LIMITS.of("sandbox.limits.memory_bytes", (256 * MEBIBYTE, "262144"), (512 * MEBIBYTE, "524288"))
async def _memory(value: int, folder: Path) -> Any:
    return await bare(folder, "ulimit -d", limits=MachineLimits(memory_bytes=value))


@LIMITS.of("sandbox.limits.file_bytes", (1024, "2"), (4096, "8"))
async def _largest_file(value: int, folder: Path) -> Any:
    return await bare(folder, "ulimit -f", limits=MachineLimits(file_bytes=value))


@LIMITS.of("sandbox.limits.temporary_bytes", (MEBIBYTE, True), (2 * MEBIBYTE, False))
async def _temporary(value: int, folder: Path) -> Any:
    return after(await told(folder, limits=MachineLimits(temporary_bytes=value)), "--size", str(MEBIBYTE))


@LIMITS.of("sandbox.limits.cpu_seconds", (7, "7"), (9, "9"))
async def _cpu(value: int, folder: Path) -> Any:
    return await bare(folder, "ulimit -t", limits=MachineLimits(cpu_seconds=value))


@LIMITS.of("sandbox.limits.growth_bytes", (4 * MEBIBYTE, "growth"), (1024 * MEBIBYTE, "all"))
async def _growth(value: int, folder: Path) -> Any:
    fill = "i=0; while [ $i -lt 24 ]; do i=$((i+1)); head -c 1000000 /dev/urandom > fill$i; done; sync"
    waits = "sleep 50" if value < 24 * MEBIBYTE else "true"  # until somebody has looked
    ended = await sh(
        sandbox(folder, "not_enforced", limits=MachineLimits(growth_bytes=value)), f"{fill}; {waits}; echo all"
    )
    return ended.stopped or said(ended).strip()
