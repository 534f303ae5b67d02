"""A folder with a root that holds: what the file tools read and write through.

Here live opening beneath a handle, atomic writes, the names that tools may not write, and git as the runtime itself
runs it. Not here: what a tool says to a model about a file, what holds a command (`sandbox`), whether a call may run.
"""

from wakeful.workspaces.protection import PROTECTED, covering, exactly
from wakeful.workspaces.workspace import Entry, FileContent, Workspace, workspace_id

__all__ = ["FileContent", "Entry", "PROTECTED", "Workspace", "covering", "exactly", "workspace_id"]
