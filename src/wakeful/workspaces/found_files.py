"""Files that are found in a workspace or an agent's home and read before anything is asked: guidance, skills, servers.

Anybody may have written them, an agent among them. So there is one reader: it opens beneath the root, reads a plain
file of a bounded size, and hands the bytes to whoever knows their format. Whatever goes wrong, in reading or in the
format, is an omission with its reason: no file that is put somewhere ends a turn.
"""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

from wakeful.contracts.errors import InvalidConfig, ToolReported
from wakeful.contracts.events import ContextOmission
from wakeful.contracts.events.context import OmissionReason
from wakeful.workspaces.workspace import Workspace

T = TypeVar("T")
MAX_DETAIL = 200
_REASONS: dict[str, OmissionReason] = {"too_large": "too_large", "outside_workspace": "policy_blocked"}


class FoundFile(NamedTuple):
    """A file as it was read."""

    path: str
    data: bytes

    @property
    def digest(self) -> str:
        return "sha256:" + hashlib.sha256(self.data).hexdigest()


def read_found(root: Path, name: str, limit: int, parse: Callable[[FoundFile], T]) -> T | ContextOmission | None:
    """What `parse` makes of the file `name` beneath `root`; None where there is none. Does not raise."""
    path = f"{os.path.abspath(root)}/{name}"  # noqa: PTH100  (Path.absolute keeps `..`)
    try:
        folder = Workspace.at(root)
    except InvalidConfig:  # the folder is not there
        return None
    except Exception as problem:
        return omission(path, "custom", _words(problem))
    try:
        if folder.stat(name) is None:
            return None
        if not is_text(path):
            return omission(path, "custom", "its path holds control characters or bytes that are no text")
        return parse(FoundFile(path, folder.read(name, limit).data))
    except ToolReported as report:
        return omission(path, _REASONS.get(report.error.kind, "custom"), report.error.message)
    except Exception as problem:
        return omission(path, "custom", _words(problem))


def omission(path: str, reason: OmissionReason, detail: str = "") -> ContextOmission:
    """What was there and is not used, in words that can be written down whatever the path is made of."""
    return ContextOmission(ref=as_text(path), reason=reason, detail=as_text(detail)[:MAX_DETAIL])


def is_text(words: str) -> bool:
    """Can it be stored and shown as it is?"""
    return as_text(words) == words


def as_text(words: str) -> str:
    """The same with a mark in the place of what is no text, and of control characters."""
    return "".join("\ufffd" if _is_no_text(ord(each)) else each for each in words)


def _is_no_text(point: int) -> bool:
    return point < 0x20 or 0x7F <= point < 0xA0 or 0xD800 <= point < 0xE000


def _words(problem: Exception) -> str:
    return f"{type(problem).__name__}: {problem}"
