"""A prompt as it is typed: the words, then piped text, then pictures and files.

Text is read from stdin when something is piped into the command or when the prompt is `-`. A terminal, `/dev/null` and
a stdin that is no pipe or file are left alone.
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
PATIENCE = 2.0
"""Seconds after which a person is told that the command still waits for its stdin to end."""


def prompt_of(words: str | None, images: Sequence[Path], files: Sequence[Path]) -> Prompt:
    """The prompt. Raises WrongRequest when there is none, or a file cannot be read."""
    if words == FROM_STDIN:
        text = sys.stdin.read()
    else:
        piped = _piped()
        text = "\n\n".join(each for each in (words, piped) if each is not None and each.strip())
    if not text.strip():
        raise WrongRequest("the prompt is empty", 'say something: wakeful run "hello"')
    attached: list[Image | File] = [*(_image(path) for path in images), *(_file(path) for path in files)]
    return [Text(text), *attached] if attached else text


def _piped() -> str | None:
    """Everything that is piped in; None where nothing is."""
    try:
        descriptor = sys.stdin.fileno()
        kind = os.fstat(descriptor).st_mode
    except (AttributeError, ValueError, OSError, io.UnsupportedOperation):
        return None
    if not (stat.S_ISFIFO(kind) or stat.S_ISREG(kind)):
        return None
    if stat.S_ISFIFO(kind) and not select.select([descriptor], [], [], PATIENCE)[0]:
        note("Waiting for the end of piped input. To run without it: wakeful run ... </dev/null")
    return sys.stdin.read()


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
