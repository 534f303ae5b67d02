"""A user's folder and the commands typed in it, in this process: what was shown, and the shape of each `--json`.

What was shown is kept as a transcript: the command after `$`, stdout as it is, stderr after `! `, the exit code in
brackets where it is not 0. `$turn` in a command stands for the newest id of that kind that was shown. At a screen
(`has_screen`) stdout and stderr are one terminal with colours, and what is left on it is kept.
"""

import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from kit.surfaces.command_line import command_line
from pins.placeholders import Placeholders
from pins.screen import Screen, unmarked
from pins.shapes import shape_of
from wakeful.sandbox.import_guard import ImportGuard
from wakeful.surfaces.cli.main import main

_ID = re.compile(r"\b([a-z][a-z-]*?)[_-]((?:[0-9A-HJKMNP-TV-Z]{26})|(?:[0-9A-HJKMNP-TV-Z]{16})|[0-9a-f]{64})\b")
_WANTED = re.compile(r"\$([a-z-]+)")
_KEPT = {"PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "TMPDIR", "LANG", "LC_ALL", "TZ", "PYTEST_CURRENT_TEST"}
"""Variables that a command is given as they are."""
_WIDTHS = re.compile(r"(?<=\S) {2,}")
_OF_THE_MACHINE = [
    (re.compile(r"(?m)^(sandbox {6}).*$(?:\n {13}.*$)*"), r"\1<how commands are held here>"),
    (re.compile(r"(?m)^(wakeful/exec_command\w*) .*$"), r"\1  <how commands are held here>"),
    (re.compile(r"(?m)^(wakeful +)\S+, Python .*$"), r"\1<versions>"),
    (re.compile(r"\b[\d.]+ (?:bytes|kB|MB)\b"), "<size>"),
    (re.compile(r"\S*/wakeful-demo-\w+"), "<demo>"),
    (re.compile(r"(<size>, version )\d+"), r"\1<n>"),
    (re.compile(r"(?m)(<took>).*…(?:«»)?$"), r"\1  <cut>"),
    (re.compile(r"genai-prices [\d.]+ of <date>"), "<price list>"),
    (re.compile(r"(?m)^(price +)[\d.].*$"), r"\1<prices>"),
    (re.compile(r"(?m)^( {13}above ).* tokens in: .*$"), r"\1<more prices>"),
]


COLUMNS = 80


@contextmanager
def users_folder(folder: Path, files: dict[str, str], *, has_colours: bool = False) -> Iterator[None]:
    """Be in a folder with these files, whose home is in it too, at 80 columns, with or without colours."""
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in set(os.environ) - _KEPT:
            patch.delenv(name)  # keys, colours, settings of whoever runs the tests
        settings = {"WAKEFUL_HOME": str(folder / "home"), "HOME": str(folder), "COLUMNS": str(COLUMNS)}
        settings |= {"TERM": "xterm-256color"} if has_colours else {"NO_COLOR": "1"}
        for name, value in settings.items():
            patch.setenv(name, value)
        patch.setattr(sys, "stdin", io.StringIO())
        yield


class Terminal:
    """Takes commands as a person types them."""

    def __init__(self, folder: Path, *, has_screen: bool = False) -> None:
        self.folder = folder
        self.too_wide: list[str] = []
        """Lines that do not fit the screen, but for those with a command to copy or a path."""
        self.shapes: dict[str, list[str]] = {}
        """By document, the lines of its shape."""
        self._has_screen = has_screen
        self._shown: list[str] = []
        self._newest: dict[str, str] = {}
        self._placeholders = Placeholders(folder=folder, home=folder / "home")

    @property
    def transcript(self) -> str:
        return "\n".join(self._shown)

    def __call__(self, typed: str, *, killed: bool = False) -> None:
        """Type a command, and keep what it shows."""
        code, out, err = self._done(self._named(typed), killed=killed, on_screen=self._has_screen)
        self.too_wide += [line for line in map(unmarked, out.splitlines()) if self._is_too_wide(line)]
        shown = [f"$ wakeful {self._placeholders.text(self._named(typed))}\n", self._normal(out)]
        shown += [f"! {line}".rstrip() + "\n" for line in self._normal(err).splitlines()]
        self._shown.append("".join(shown) + (f"[exit {code}]\n" if code else ""))

    def shape(self, typed: str, document: str) -> Any:
        """Type a command with `--json`, keep the shape of what it prints, and give the data."""
        _, out, err = self._done(f"{self._named(typed)} --json")
        assert out, f"wakeful {typed} --json printed nothing: {err}"
        try:
            told = json.loads(out)
        except json.JSONDecodeError:
            told = [json.loads(line) for line in out.splitlines()]
        self.shapes[document] = sorted(map(self._placeholders.text, shape_of([told])))
        return told

    def _normal(self, words: str) -> str:
        words = self._placeholders.words(words)
        for pattern, instead in _OF_THE_MACHINE:
            words = pattern.sub(instead, words)
        return "\n\n".join(map(_without_widths, words.split("\n\n")))

    def _named(self, typed: str) -> str:
        return _WANTED.sub(lambda found: self._newest[found[1]], typed)

    def _done(self, typed: str, *, killed: bool = False, on_screen: bool = False) -> tuple[int, str, str]:
        run = _in_a_process if killed else _at_a_screen if on_screen else _in_this_process
        code, out, err = run(typed, self.folder)
        for found in _ID.finditer(out + err):
            self._newest[found[1]] = found[0]
        return code, out, err

    def _is_too_wide(self, line: str) -> bool:
        return (
            self._has_screen
            and len(line) > COLUMNS
            and "wakeful " not in line
            and "/wakeful-demo-" not in line
            and str(self.folder) not in line
        )


def _without_widths(paragraph: str) -> str:
    """Columns are as wide as what is in them: where that varies, so do the spaces behind it."""
    if not any(varies in paragraph for varies in ("<took>", "<size>", "<how ")):
        return paragraph
    return "\n".join(_WIDTHS.sub("  ", line) for line in paragraph.split("\n"))


def _in_a_process(typed: str, folder: Path) -> tuple[int, str, str]:
    """Killed by the tool that it runs."""
    environ = {**os.environ, "CRASH": "1"}
    done = subprocess.run(
        command_line(*shlex.split(typed)),
        cwd=folder,
        env=environ,
        input="",
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def _forget_write_roots() -> None:
    """Each command is a process of its own to whoever types it: what an earlier agent could write is not held here."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, ImportGuard)]


def _at_a_screen(typed: str, folder: Path) -> tuple[int, str, str]:
    """Where both streams are the same terminal."""
    screen = Screen()
    code = _ended(typed, folder, screen, screen)
    return code, "".join(line + "\n" for line in screen.lines()), ""


def _in_this_process(typed: str, folder: Path) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    return _ended(typed, folder, out, err), out.getvalue(), err.getvalue()


def _ended(typed: str, folder: Path, out: io.StringIO, err: io.StringIO) -> int:
    """With modules of this folder alone: another journey has others of the same name."""
    _forget_write_roots()
    for name in {each.stem for each in folder.glob("*.py")}:
        sys.modules.pop(name, None)  # a test before this one may have left a module of the same name
    path, modules = list(sys.path), set(sys.modules)
    sys.path[:] = [each for each in path if each]  # a command does not find modules in the current folder
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main(shlex.split(typed))
    except SystemExit as end:
        assert isinstance(end.code, int)
        return end.code
    finally:
        sys.path[:] = path
        for name in set(sys.modules) - modules:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
                del sys.modules[name]
    raise AssertionError("a command ends with an exit code")
