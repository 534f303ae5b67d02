"""Built-in tools that work on this machine: commands and files of a workspace, and the profiles that offer them.

Here live exec_command and its batch, read_file, write_file, edit_file and apply_patch, the patch engine, and the way
several files are changed together so that a kill in the middle neither loses nor doubles anything. Not here: what holds
a command (`sandbox`), how a folder holds against links (`workspaces`), and whether a call may run (`gate`).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from wakeful.tools.local.names import Profile

if TYPE_CHECKING:
    from wakeful.tools.local.profiles import PROFILES, local_tools

__all__ = ["PROFILES", "Profile", "local_tools"]


def __getattr__(name: str) -> Any:
    # An agent names a profile; the tools behind it are loaded by those who get one.
    if name in ("PROFILES", "local_tools"):
        return getattr(import_module("wakeful.tools.local.profiles"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
