"""What the file tools have in common: their class, their owner, their root, and that without a root nothing is done.

Input schemas come from the functions' own signatures. The policy decides whether a call may run; that it stays inside
the root is seen to here and below, at every call.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Literal

from wakeful.contracts.errors import ToolReported
from wakeful.contracts.tools import Effect, Freeform, ToolDeclaration
from wakeful.tools.function import FunctionTool
from wakeful.tools.local.text_lines import is_sound
from wakeful.tools.options import CheckedOptions
from wakeful.workspaces import Workspace
from wakeful.workspaces.refusals import refused

LOCK = "workspace_fs"
"""Held by whoever writes in the workspace."""


class FileTool(FunctionTool[..., Any, Any]):
    """A function on the files of a workspace, as a tool `wakeful/<its name>`."""

    def __init__(
        self,
        fn: Callable[..., Any],
        workspace: Workspace | None,
        *,
        access: Literal["read", "write"],
        effect: Effect,
        freeform: Freeform | None = None,
    ) -> None:
        self._freeform = freeform
        writes = access == "write"
        options = CheckedOptions(
            effect=effect,
            name=f"wakeful/{fn.__name__}",
            description=None,
            timeout=None,
            retries=2,
            locks=(LOCK,) if writes else (),
            reads_private=not writes,
            changes_state=writes,
            leaves_machine=False,
            child_safe=True,
        )
        super().__init__(fn, options)
        self._workspace = workspace
        self._access = access

    def _declare(self) -> ToolDeclaration:
        return (
            super()
            ._declare()
            .model_copy(
                update={
                    "permission_class": "workspace_write",
                    "capabilities": ("filesystem", self._access),
                    "categories": ("files",),
                    "parallel_safe": self._access == "read",
                    "freeform": self._freeform,
                    # A file that is half written is worse than one that is written late.
                    "interrupt_behavior": "block" if self._access == "write" else "cancel",
                }
            )
        )

    def working_directory(self, arguments: dict[str, Any]) -> str | None:
        return self.workspace_root

    @property
    def workspace_root(self) -> str | None:
        return None if self._workspace is None else str(self._workspace.root)


def given(workspace: Workspace | None) -> Workspace:
    """The workspace, for a call that needs one. Raises ToolReported (`no_workspace`)."""
    if workspace is None:
        raise refused(
            "no_workspace",
            "there is no workspace: files can neither be read nor written",
            "Do without files, or tell the person you work for that this agent has no workspace.",
        )
    return workspace


@contextlib.contextmanager
def in_field(field: str) -> Iterator[None]:
    """Failures inside are about this input of the tool."""
    try:
        yield
    except ToolReported as report:
        details = {**(report.error.details or {}), "field": field}
        raise ToolReported(report.error.model_copy(update={"details": details})) from report


def must_be_text(text: str, field: str) -> None:
    """Raises ToolReported for what no text file can hold."""
    if not is_sound(text):
        raise refused(
            "invalid_parameters",
            f"{field} has a NUL or half of a surrogate pair, which no text file can hold",
            "Send plain Unicode text.",
            field=field,
        )
