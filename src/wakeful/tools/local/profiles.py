"""Which built-in tools an agent gets: a profile is a list of names, and one place makes the tools behind them.

coding        commands, and tools for reading and changing files
shell_first   commands for everything but changing files, which is `apply_patch`
chat          no local tools
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from wakeful.contracts.errors import InvalidConfig
from wakeful.tools.local.file_reads import read_file_tool
from wakeful.tools.local.file_writes import apply_patch_tool, edit_file_tool, write_file_tool
from wakeful.tools.local.names import Profile
from wakeful.tools.tool import Tool
from wakeful.workspaces import Workspace

_COMMANDS = ("wakeful/exec_command", "wakeful/exec_command_batch")
TASKS = ("wakeful/task_status", "wakeful/task_output", "wakeful/task_input", "wakeful/task_stop")
"""Of every profile that has commands, where commands may outlive their calls."""
PROFILES: Mapping[Profile, tuple[str, ...]] = MappingProxyType(
    {
        "coding": (
            *_COMMANDS,
            "wakeful/read_file",
            "wakeful/edit_file",
            "wakeful/write_file",
            "wakeful/apply_patch",
        ),
        "shell_first": (*_COMMANDS, "wakeful/apply_patch"),
        "chat": (),
    }
)
_FILE_TOOLS: Mapping[str, Callable[[Workspace | None], Tool[Any]]] = MappingProxyType(
    {
        "wakeful/edit_file": edit_file_tool,
        "wakeful/write_file": write_file_tool,
        "wakeful/apply_patch": apply_patch_tool,
    }
)


def local_tools(
    workspace: Workspace | None,
    profile: Profile = "coding",
    commands: Sequence[Tool[Any]] = (),
    readable: Sequence[Workspace] = (),
) -> list[Tool[Any]]:
    """The tools of a profile, in its order. `commands` are those that run programs, where this machine has them.

    `readable` are folders outside the workspace that may be read, by absolute path, and not written.

    Without a workspace the tools are there and refuse every call.
    """
    if profile not in PROFILES:
        raise InvalidConfig(f"there is no profile {profile!r}", f"give one of: {', '.join(PROFILES)}")
    runnable = {tool.name: tool for tool in commands}
    found: list[Tool[Any]] = []
    for name in PROFILES[profile]:
        if name == "wakeful/read_file":
            found.append(read_file_tool(workspace, readable))
        elif name in _FILE_TOOLS:
            found.append(_FILE_TOOLS[name](workspace))
        elif name in runnable:
            found.append(runnable[name])
    if any(name in PROFILES[profile] for name in _COMMANDS):
        found += [runnable[name] for name in TASKS if name in runnable]
    return found
