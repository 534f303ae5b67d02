"""Errors as a person gets them: what happened, what to do next, and no traceback. A bug of ours keeps its traceback.

    Error: there is no turn 'turn_01M7' in runs.db
    Hint: list the turns: wakeful events --store runs.db

A program that asked for JSON gets the same words as JSON on stdout, with the same exit code.
"""

import errno
import os
import re
import shlex
import sys
from pathlib import Path
from typing import Any

from wakeful.contracts.errors import WakefulError
from wakeful.surfaces.cli.people import named_people
from wakeful.surfaces.cli.screen import coloured, wrapped
from wakeful.surfaces.cli.shown_values import json_text, plain

_SENTENCE = re.compile(r"^[A-Z][a-z]+(?=[ :,'])")
"""A word that is only capital because a sentence begins with it."""
_PARSER_WORDS = (
    (re.compile(r"Input should be greater than or equal to (\S+)"), r"it must be \1 or more"),
    (re.compile(r"Input should be a valid integer.*"), "it must be a whole number"),
    (re.compile(r"Input should be a valid number.*"), "it must be a number"),
    (re.compile(r"Input should be (?=')"), "it must be "),
    (re.compile(r"Value error, "), ""),
)
"""Messages of the argument parser, and plainer words for them."""


_NO_RIGHT = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT)
"""Refusals of the system that are told of any file."""
_NO_PLACE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)
"""Refusals that are told of a home that cannot be made; of any other file they are a bug of ours."""


class Failure(WakefulError):
    """The command was understood, and could not be carried out."""


class NeedsPerson(WakefulError):
    """Nothing is lost, and a person has to act first."""

    exit_code = 3


class WrongRequest(WakefulError):
    """The command cannot be carried out as it was typed."""

    exit_code = 2


def unreadable(file: object, error: Exception, hint: str) -> WrongRequest:
    """A file that could not be read, and why: the system's words, without its numbers."""
    return WrongRequest(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}", hint)


def file_problem(error: Exception) -> Exception:
    """A file or a folder that the system refuses, in a sentence; any other error as it is, with its traceback."""
    if not isinstance(error, OSError) or not isinstance(error.filename, str | bytes):
        return error
    from wakeful.service.serving.run_files import home_folder

    path, home = Path(os.fsdecode(error.filename)).absolute(), home_folder().absolute()
    is_of_home = path == home or home in path.parents or path in home.parents
    if error.errno not in (*_NO_RIGHT, *(_NO_PLACE if is_of_home else ())):
        return error
    look = f"see whose it is: ls -ld {shlex.quote(str(home if is_of_home else path))}"
    other = "; or name another home: WAKEFUL_HOME=FOLDER" if is_of_home else ""
    return Failure(f"{path} cannot be used: {error.strerror}", look + other)


def usage_problem(error: Any, name: str) -> WrongRequest:
    """A word that the command does not take, in our own voice. `error` is one of the argument parser's."""
    near = list(getattr(error, "possibilities", None) or ())
    words = " ".join(str(error.message if near else error.format_message()).split()).rstrip(".")
    for pattern, plainly in _PARSER_WORDS:
        words = pattern.sub(plainly, words)
    help_page = f"wakeful {name} --help"
    hint = f"did you mean {near[0]}? All options: {help_page}" if near else f"options and an example: {help_page}"
    return WrongRequest(words[:1].lower() + words[1:], hint)


def exit_code_of(error: Exception, *, as_json: bool = False) -> int:
    """Show an error and give the code to end with. An error that is not wakeful's is raised again."""
    if not isinstance(error, WakefulError):
        raise error
    if as_json:
        told = {
            "type": type(error).__name__,
            "message": error.message,
            "hint": error.hint,
            "exit_code": error.exit_code,
        }
        sys.stdout.write(json_text({"error": told}, indent=2) + "\n")
    else:
        complain(error.message, error.hint)
    return error.exit_code


def complain(message: str, hint: str = "") -> None:
    """`Error: ...`, and below it `Hint: ...`."""
    text = _labelled("Error:", plain(named_people(message)))
    if hint:
        text += "\n" + _labelled("Hint:", _one_voice(hint))
    sys.stderr.write(text + "\n")


def note(message: str) -> None:
    """A word on the side: stdout belongs to results."""
    sys.stderr.write(wrapped(plain(message), sys.stderr) + "\n")


def _labelled(label: str, words: str) -> str:
    text = wrapped(words, sys.stderr, first=f"{label} ", rest="  ")
    return coloured(label, sys.stderr) + text.removeprefix(label)


def _one_voice(words: str) -> str:
    return _SENTENCE.sub(lambda found: found[0].lower(), plain(words))
