"""Built-in tools for files of a workspace, and the profiles that say which of them an agent gets.

Here live read_file, write_file, edit_file and apply_patch, the patch engine, and the way several files are changed
together so that a kill in the middle neither loses nor doubles anything. Not here: the workspace itself, commands and
their sandbox, and whether a call may run.
"""

from wakeful.tools.local.profiles import PROFILES, Profile, local_tools

__all__ = ["PROFILES", "Profile", "local_tools"]
