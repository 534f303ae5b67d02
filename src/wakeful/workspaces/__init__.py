"""A folder with a root that holds: what the file tools read and write through.

Here live opening beneath a handle, atomic writes, and the names that tools may not write. Not here: what a tool says
to a model about a file, and whether a call may run at all.
"""

from wakeful.workspaces.protection import PROTECTED, covering
from wakeful.workspaces.workspace import Content, Entry, Workspace

__all__ = ["Content", "Entry", "PROTECTED", "Workspace", "covering"]
