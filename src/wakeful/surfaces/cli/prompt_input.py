"""A prompt as it is typed: the words, then piped text, then pictures and files.

Text is read from stdin when something is piped into the command or when the prompt is `-`. A terminal, `/dev/null`, a
closed stdin and one that is no pipe or file are left alone. A pipe that stays open and silent holds a prompt up for a
few seconds only: programs hand such pipes on without meaning to.
"""

import io
import os
import select
import stat
import sys
from collections.abc import Sequence
from pathlib import Path

from wakeful.contracts.content import File, Image, Prompt, Text
from wakeful.surfaces.cli.problems import WrongRequest, note, unreadable

FROM_STDIN = "-"
PATIENCE = 10.0
"""Seconds in which the first piped text has to come, where there is a prompt without it."""
UNTOLD = 1.0
"""Seconds after which a person is told what the command waits for."""


def prompt_of(words: str | None, images: Sequence[Path], files: Sequence[Path], command: str = "run") -> Prompt:
    """The prompt. Raises WrongRequest when there is none, or a file cannot be read."""
    if words == FROM_STDIN:
        text = _read() if sys.stdin is not None else ""
    else:
        piped = _piped(has_words=bool(words and words.strip()))
        text = "\n\n".join(each for each in (words, piped) if each is not None and each.strip())
    if not text.strip():
        raise WrongRequest("the prompt is empty", f'say something: wakeful {command} "hello"')
    attached: list[Image | File] = [*(_image(path) for path in images), *(_file(path) for path in files)]
    return [Text(text), *attached] if attached else text


def _piped(*, has_words: bool) -> str | None:
    """Everything that is piped in; None where nothing is."""
    try:
        descriptor = sys.stdin.fileno()
        kind = os.fstat(descriptor).st_mode
    except (AttributeError, ValueError, OSError, io.UnsupportedOperation):
        return None
    if not (stat.S_ISFIFO(kind) or stat.S_ISREG(kind)):
        return None
    if stat.S_ISFIFO(kind) and not _has_come(descriptor, UNTOLD):
        note("Waiting for piped input. To run without it: wakeful run ... </dev/null")
        if has_words and not _has_come(descriptor, PATIENCE - UNTOLD):
            note(f"Nothing was piped in for {PATIENCE:.0f} seconds. The run goes on without it.")
            return None
    return _read()


def _has_come(descriptor: int, seconds: float) -> bool:
    """Is there text, or the end of it, within this time?"""
    return bool(select.select([descriptor], [], [], seconds)[0])


def _read() -> str:
    try:
        text = sys.stdin.read()
        text.encode()  # in some locales bytes that are no text are read as halves of letters
    except UnicodeError:
        raise WrongRequest("the piped input is not text", "attach it: --image photo.png or --file report.pdf") from None
    return text


def _image(path: Path) -> Image:
    try:
        image = Image.from_path(path)
    except OSError as error:
        raise unreadable(path, error, "give a picture: --image photo.png") from None
    if not image.media_type.startswith("image/"):
        raise WrongRequest(f"{path} is not a picture but {image.media_type}", f"attach it as a file: --file {path}")
    return image


def _file(path: Path) -> File:
    try:
        return File.from_path(path)
    except OSError as error:
        raise unreadable(path, error, "give a file: --file report.pdf") from None
