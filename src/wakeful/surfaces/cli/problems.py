"""Errors as a person gets them: what happened, what to do next, and no traceback. A bug of ours keeps its traceback."""

import sys

from wakeful.contracts.errors import WakefulError
from wakeful.surfaces.cli.shown_values import plain


class NeedsPerson(WakefulError):
    """Nothing is lost, and somebody has to do something first."""

    exit_code = 3


class WrongRequest(WakefulError):
    """What was typed cannot be done as it stands."""

    exit_code = 2


def unreadable(file: object, error: Exception, hint: str) -> WrongRequest:
    """A file that could not be read, and why: the system's words, without its numbers."""
    return WrongRequest(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}", hint)


def exit_code_of(error: Exception) -> int:
    """Show an error and give the code to end with. What is no error of ours is raised again."""
    if not isinstance(error, WakefulError):
        raise error
    complain(error.message, error.hint)
    return error.exit_code


def complain(message: str, hint: str = "") -> None:
    """`error: ...`, with what to do next below it."""
    lines = [f"error: {plain(message)}", *(f"  {line}" for line in plain(hint).splitlines())]
    sys.stderr.write("\n".join(lines) + "\n")


def note(message: str) -> None:
    """A word on the side: stdout belongs to results."""
    sys.stderr.write(plain(message) + "\n")
