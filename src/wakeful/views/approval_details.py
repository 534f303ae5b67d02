"""What stands round an approval or a question: who was told of it, what its turn had read, what waits. Pure."""

import json
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Any, Final

from wakeful.contracts.approvals import Approval
from wakeful.contracts.notices import NoticeState
from wakeful.contracts.values import Value
from wakeful.views.agent_status import MessageBehind
from wakeful.views.tree import ExecutionTreeNode

MOST_READ: Final = 12
"""How much of what a turn read is named: the newest."""
DECIDED: Final = {
    "approve": "approved",
    "reject": "rejected",
    "edit": "edited and approved",
    "answer": "answered",
    "always": "approved for always",
}
"""What was decided, in words."""
_FILES: Final = ("path", "file_path", "file")
_COMMANDS: Final = ("cmd", "command")


class ApprovalNotice(Value):
    """The notice that tells people of an approval or a question."""

    notice_id: str
    state: NoticeState
    to: str = ""
    """Where it went, without what may be secret in it; blank: nowhere yet."""
    settled_at: float | None = None
    """When it was delivered or given up, in Unix seconds."""
    error: str = ""
    """What went wrong at the last try."""


class ApprovalDetails(Approval):
    """An approval or a question with what a person wants to know before deciding."""

    told: ApprovalNotice | None = None
    """None: its agent belongs to no runtime, so nobody is told."""
    had_read: tuple[str, ...] = ()
    """What the turn had the result of when it asked: files and commands by their names, of other calls the tool."""
    behind: tuple[MessageBehind, ...] = ()
    """The first messages of the same thread that no turn takes before this one is decided."""
    waits_behind: int = 0
    """How many those are."""


def read_before(nodes: Iterable[ExecutionTreeNode], call_id: str) -> tuple[str, ...]:
    """What succeeded before a call of the same turn, each name once."""
    found: dict[str, None] = {}
    for node in nodes:
        if node.id == call_id:
            break
        if node.is_error is False:
            found[_named(node)] = None
    return tuple(found)[-MOST_READ:]


def _named(node: ExecutionTreeNode) -> str:
    """`policy.md` of a file, `du` of a command, else the name of the tool."""
    arguments = _arguments(node)
    if path := _text(arguments, _FILES):
        return PurePosixPath(path).name or path
    words = _text(arguments, _COMMANDS).split()
    return PurePosixPath(words[0]).name if words else node.name.rpartition("/")[2]


def _text(arguments: dict[str, Any], names: tuple[str, ...]) -> str:
    return next((value for value in map(arguments.get, names) if isinstance(value, str)), "")


def _arguments(node: ExecutionTreeNode) -> dict[str, Any]:
    try:
        found = json.loads(node.args_preview or "{}")
    except ValueError:  # it was cut
        return {}
    return found if isinstance(found, dict) else {}
