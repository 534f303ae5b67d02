"""What an agent could plant: programs on a PATH, an environment in the workspace, and programs that run from it."""

import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from kit.gates.confined_commands import level, place_outside

SOURCES = Path(__file__).parents[3] / "src"
SPOILT = "#!/bin/sh\ntouch {mark}\n"


def plant(folder: Path, name: str, mark: Path) -> Path:
    """A program that leaves a mark when anybody starts it."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text(SPOILT.format(mark=mark))
    program.chmod(0o755)
    return program


@contextmanager
def path_without_bubblewrap() -> Iterator[str]:
    """A PATH with every program of this one but `bwrap`: what holds commands is then Landlock."""
    level("landlock")
    with place_outside() as folder:
        for place in os.environ["PATH"].split(":"):
            for program in Path(place).iterdir() if Path(place).is_dir() else ():
                if program.name != "bwrap" and not (folder / program.name).is_symlink():
                    (folder / program.name).symlink_to(program)
        yield str(folder)


def environment_in(root: Path) -> Path:
    """A virtual environment in the workspace from which wakeful runs; its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(root / ".venv")], check=True)
    packages = next((root / ".venv/lib").glob("python*/site-packages"))
    (packages / "here.pth").write_text(f"{SOURCES}\n{sysconfig.get_paths()['purelib']}\n")
    return root / ".venv/bin/python"


def run_program(
    python: Path | str, program: str, cwd: Path, path: str, more: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """A program of an owner's: written to a file and started in its folder, as one does."""
    (cwd / "program.py").write_text(program)
    environ = {"PATH": path, "HOME": os.environ["HOME"], **(more or {})}
    return subprocess.run(
        [str(python), "program.py"], cwd=cwd, env=environ, capture_output=True, text=True, timeout=240, check=False
    )
