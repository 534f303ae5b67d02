"""The command as its users call it: in this process where a process adds nothing, in one of its own where it does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kit.surfaces.command_line import FAIL, REFUND, SHIP, SHOP, WAIT, Done, Wakeful, command_line
from kit.surfaces.journey_calls import CALLS, Call
from wakeful.surfaces.cli.main import main


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folder: a module with tools, a few scripts; the home is in it, too."""
    (tmp_path / "shop.py").write_text(SHOP)
    for name, script in {"refund": REFUND, "ship": SHIP, "wait": WAIT, "fail": FAIL}.items():
        (tmp_path / f"{name}.yaml").write_text(script)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WAKEFUL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


@pytest.fixture
def wakeful(folder: Path, capsys: pytest.CaptureFixture[str]) -> Wakeful:
    """The command, in this process."""

    def call(*arguments: str) -> Done:
        capsys.readouterr()
        sys.modules.pop("shop", None)
        with pytest.raises(SystemExit) as end:
            main(list(arguments))
        shown = capsys.readouterr()
        assert isinstance(end.value.code, int)
        CALLS.append(Call(arguments, end.value.code))
        return Done(end.value.code, shown.out, shown.err)

    return call


@pytest.fixture
def process(folder: Path) -> Wakeful:
    """The command, in a process of its own."""

    def call(*arguments: str, crash: bool = False, stdin: str = "") -> Done:
        done = subprocess.run(
            command_line(*arguments),
            cwd=folder,
            env={**os.environ, "CRASH": "1" if crash else ""},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return call
