"""What a file operation says when it cannot be done: one shape, with the field that was wrong and what to do next.

Every OSError becomes one of these. A kind is stable and a program may switch on it; the message names the path as the
model gave it; the hint is a next step that can be taken without asking anybody.
"""

import contextlib
import errno
import os
from collections.abc import Iterator
from typing import Any

from wakeful.contracts.errors import ToolReported
from wakeful.contracts.tools import ToolError

_KINDS: dict[int, tuple[str, str, str]] = {
    errno.ENOENT: ("not_found", "there is no {path!r}", "Check the spelling, or list the folder first."),
    errno.EISDIR: ("is_a_directory", "{path!r} is a directory", "Name a file inside it."),
    errno.ENOTDIR: ("not_a_directory", "a part of {path!r} is a file, not a directory", "Check the path."),
    errno.EEXIST: ("already_exists", "{path!r} exists already", "Choose another name, or delete it first."),
    errno.ENOTEMPTY: ("not_empty", "{path!r} is a directory that is not empty", "Delete what is in it first."),
    errno.ELOOP: ("invalid_path", "{path!r} leads through links that do not end", "Name the file itself."),
    errno.EMLINK: (
        "invalid_path",
        "{path!r} is a link, or leads through one, and none is followed there",
        "A plain file in plain folders has to stand there.",
    ),
    errno.ENAMETOOLONG: ("invalid_path", "{path!r} is too long", "Choose a shorter name."),
    errno.EACCES: ("permission_denied", "{path!r} may not be used this way", "It needs other permissions."),
    errno.EPERM: ("permission_denied", "{path!r} may not be used this way", "It needs other permissions."),
    errno.EROFS: ("permission_denied", "{path!r} is on a read-only file system", "Nothing can be written there."),
    errno.ENOSPC: ("no_space", "there is no room to write {path!r}", "Space has to be made first."),
    errno.EDQUOT: ("no_space", "there is no room to write {path!r}", "Space has to be made first."),
}


def refused(
    kind: str, message: str, hint: str, *, field: str = "path", retryable: bool = False, **details: Any
) -> ToolReported:
    """A failed call in the shared form."""
    return ToolReported(
        ToolError(
            kind=kind,
            message=message,
            details={"field": field, **details},
            recovery_hint=hint,
            retryable=retryable,
        )
    )


def outside(path: str, root: str) -> ToolReported:
    """The path leads out of the workspace."""
    return refused(
        "outside_workspace",
        f"{path!r} leads out of the workspace",
        f"Give a path inside the workspace {root}, relative to it, such as 'src/main.py'. "
        f"Links are followed only as long as they are relative and stay inside.",
        path=path,
        root=root,
    )


@contextlib.contextmanager
def explained(path: str, root: str) -> Iterator[None]:
    """OSErrors that come up inside are told in the shared form."""
    try:
        yield
    except OSError as error:
        raise told(error, path, root) from error


def told(error: OSError, path: str, root: str) -> ToolReported:
    """What went wrong, in the shared form."""
    number = error.errno or 0
    if number == errno.EXDEV:
        return outside(path, root)
    if number in _KINDS:
        kind, message, hint = _KINDS[number]
        return refused(kind, message.format(path=path), hint, path=path)
    return refused(
        "io_error",
        f"{path!r} could not be used: {os.strerror(number) if number else error}",
        "The same call may work later; otherwise use another file.",
        retryable=True,
        path=path,
    )
