"""What an agent says about its surroundings, checked when the agent is made: folders, policy, people, hooks, spending.

The fields that need no look at anything else are checked in `contracts/controls`."""

import math
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from wakeful.contracts.budgets import SpendWindow
from wakeful.contracts.controls import MAX_PARALLEL_SUBAGENTS
from wakeful.contracts.errors import InvalidConfig, UnknownTool
from wakeful.contracts.policies import GatePolicy, ToolPolicy
from wakeful.decisions.policy.patterns import any_named
from wakeful.sandbox.settings import SandboxSettings
from wakeful.tools.function import Tool
from wakeful.tools.hooks import Hook, hook_of
from wakeful.tools.local.names import Profile
from wakeful.tools.runtime_tools import runtime_tools

if TYPE_CHECKING:
    from wakeful.ports import Collection


def checked_workspace(who: str, workspace: "str | PathLike[str] | None") -> Path | None:
    """A folder that is there, as an absolute path."""
    if workspace is None:
        return None
    try:
        root = Path(workspace).expanduser().absolute()
    except TypeError:
        raise InvalidConfig(f"{who}: workspace={workspace!r}", "give the path of a folder") from None
    if not root.is_dir():
        raise InvalidConfig(f"{who}: the workspace {root} is not a folder", "make it first, or give another one")
    return root


def checked_collections(who: str, collections: Any) -> "tuple[str | Collection, ...]":
    """What can be searched, by name or as it is; each name once."""
    if isinstance(collections, str | bytes | Mapping) or not isinstance(collections, Iterable):
        raise InvalidConfig(f"{who}: collections={collections!r}", "give a list: collections=[TextFiles(...)]")
    listed = tuple(collections)
    names: set[str] = set()
    for each in listed:
        name = each if isinstance(each, str) else getattr(each, "name", None)
        searches = isinstance(each, str) or callable(getattr(each, "search", None))
        if not searches or not isinstance(name, str) or not name.strip():
            raise InvalidConfig(
                f"{who}: collections has {each!r}", "give a TextFiles, what has a name and a search, or a name"
            )
        if name in names:
            raise InvalidConfig(f"{who}: two collections are called {name!r}", "give one of them another name")
        names.add(name)
    return listed


def default_profile(workspace: Path | None) -> Profile:
    """`chat` unless there is a workspace, then `coding`."""
    return "coding" if workspace is not None else "chat"


def checked_profile(who: str, profile: Any, workspace: Path | None) -> Profile:
    """One of the profiles; all but `chat` need a workspace."""
    if profile is None:
        return default_profile(workspace)
    if profile not in get_args(Profile):
        raise InvalidConfig(f"{who}: profile={profile!r}", f"give one of: {', '.join(get_args(Profile))}")
    if profile != "chat" and workspace is None:
        raise InvalidConfig(f"{who}: profile={profile!r} works on files, and no workspace was given", "workspace='.'")
    chosen: Profile = profile
    return chosen


def checked_sandbox(who: str, sandbox: Any) -> SandboxSettings:
    """What commands are held to: settings, or the same as data."""
    if sandbox is None:
        return SandboxSettings()
    if isinstance(sandbox, SandboxSettings):
        return sandbox
    if not isinstance(sandbox, Mapping):
        raise InvalidConfig(f"{who}: sandbox={sandbox!r}", 'give SandboxSettings(network="full") or the like')
    return SandboxSettings.read(sandbox)


def checked_policy(who: str, policy: Any) -> GatePolicy | None:
    """None: what the surface gives by default."""
    if policy is None or isinstance(policy, GatePolicy):
        return policy
    if isinstance(policy, ToolPolicy):
        return GatePolicy(tools=policy)
    raise InvalidConfig(f"{who}: policy={policy!r}", "give a ToolPolicy or a GatePolicy")


def checked_expiry(who: str, seconds: Any) -> float:
    good = isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 < seconds < math.inf
    if not good:
        raise InvalidConfig(f"{who}: approval_expiry={seconds!r}", "give a positive number of seconds")
    return float(seconds)


def tools_of_the_runtime(*, subtasks: bool, allow_parallel_subagents: bool) -> tuple[str, ...]:
    """The tools that an agent has because its configuration says so, by name. No code stands behind them."""
    parallel = MAX_PARALLEL_SUBAGENTS if allow_parallel_subagents else None
    return tuple(tool.name for tool in runtime_tools(subtasks=subtasks, parallel=parallel))


def check_hitl(
    who: str, names: Sequence[str], tools: Sequence[Tool[Any]], given: Sequence[str], *, has_sources: bool
) -> None:
    """What never runs without a person has to be there: among the tools, or among those the configuration gives.

    What a source has is known only when a turn is taken up, and checked then.
    """
    there = [*(tool.name for tool in tools), *given]
    for name in names:
        if not has_sources and not any(any_named((name,), known) for known in there):
            raise UnknownTool(
                f"{who}: hitl_tools names {name!r}, which is not among its tools",
                f"its tools are: {', '.join(there) or 'none'}",
            )


def checked_skills(who: str, skills: Any) -> tuple[str, ...]:
    """Folders in which skills are looked for, as absolute paths; each has to be there."""
    if isinstance(skills, str | bytes | PathLike) or not isinstance(skills, Iterable):
        raise InvalidConfig(f"{who}: skills={skills!r}", "give a list of folders")
    found = []
    for each in skills:
        try:
            folder = Path(each).expanduser().absolute()
        except TypeError:
            raise InvalidConfig(f"{who}: skills has {each!r}", "give the paths of folders") from None
        if not folder.is_dir():
            raise InvalidConfig(f"{who}: skills: {folder} is not a folder", "make it first, or leave it out")
        found.append(str(folder))
    return tuple(found)


def checked_windows(who: str, windows: Any) -> tuple[SpendWindow, ...]:
    """What the agent may spend over all its runs, one window for each period."""
    if not isinstance(windows, Iterable) or isinstance(windows, str | Mapping):
        raise InvalidConfig(f"{who}: spend_windows={windows!r}", 'give a list: [SpendWindow("day", 2)]')
    listed = tuple(windows)
    for each in listed:
        if not isinstance(each, SpendWindow):
            raise InvalidConfig(f"{who}: spend_windows has {each!r}", 'give SpendWindow("day", 2) or the like')
    if len({each.period for each in listed}) < len(listed):
        raise InvalidConfig(f"{who}: spend_windows has two windows of one period", "give one for each period")
    return listed


def checked_hooks(who: str, hooks: Any) -> tuple[Hook, ...]:
    """Hooks as they were given, and plain functions as hooks before every call."""
    if isinstance(hooks, str) or not isinstance(hooks, Iterable):
        raise InvalidConfig(f"{who}: hooks={hooks!r}", "give a list: hooks=[...]")
    try:
        return tuple(hook_of(each) for each in hooks)
    except InvalidConfig as wrong:
        raise InvalidConfig(f"{who}: {wrong.message}", wrong.hint) from None
