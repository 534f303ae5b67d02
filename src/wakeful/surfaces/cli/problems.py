"""Errors as a person gets them: what happened, what to do next, and no traceback. A bug of ours keeps its traceback.

    Error: there is no turn 'turn_01M7' in runs.db
    Hint: list the turns: wakeful events --store runs.db

A program that asked for JSON gets the same words as JSON on stdout, with the same exit code.
"""

import re
import sys
from typing import Any

from wakeful.contracts.errors import WakefulError
from wakeful.surfaces.cli.screen import wrapped
from wakeful.surfaces.cli.shown_values import json_text, plain

_SENTENCE = re.compile(r"^[A-Z][a-z]+(?=[ :,'])")
"""A word that is only capital because a sentence begins with it."""


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


def usage_problem(error: Any, name: str) -> WrongRequest:
    """A word that the command does not take, in our own voice. `error` is one of the argument parser's."""
    words = " ".join(str(error.format_message()).split()).rstrip(".")
    return WrongRequest(words[:1].lower() + words[1:], f"options and an example: wakeful {name} --help")


def exit_code_of(error: Exception, *, as_json: bool = False) -> int:
    """Show an error and give the code to end with. What is no error of ours is raised again."""
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
    text = wrapped(plain(message), sys.stderr, first="Error: ", rest="  ")
    if hint:
        text += "\n" + wrapped(_one_voice(hint), sys.stderr, first="Hint: ", rest="  ")
    sys.stderr.write(text + "\n")


def note(message: str) -> None:
    """A word on the side: stdout belongs to results."""
    sys.stderr.write(wrapped(plain(message), sys.stderr) + "\n")


def _one_voice(words: str) -> str:
    return _SENTENCE.sub(lambda found: found[0].lower(), plain(words))
