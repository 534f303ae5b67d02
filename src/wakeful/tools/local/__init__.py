"""Built-in tools that work on this machine: commands and files of a workspace, and the profiles that offer them.

Here live exec_command and its batch, read_file, write_file, edit_file and apply_patch, the patch engine, and the way
several files are changed together so that a kill in the middle neither loses nor doubles anything. Not here: what holds
a command (`sandbox`), how a folder holds against links (`workspaces`), and whether a call may run (`mediation`).
"""

from wakeful.tools.local.names import Profile
from wakeful.tools.local.profiles import PROFILES, local_tools

__all__ = ["PROFILES", "Profile", "local_tools"]
