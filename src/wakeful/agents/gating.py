"""What an agent says about its own gate, checked when the agent is made: workspace, profile, policy, people, hooks."""

import math
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, get_args

from wakeful.contracts.errors import InvalidConfig, UnknownTool
from wakeful.contracts.policies import GatePolicy, ToolPolicy
from wakeful.decisions.policy.patterns import any_named
from wakeful.sandbox.settings import SandboxSettings
from wakeful.tools.function import Tool
from wakeful.tools.hooks import Hook, hook_of
from wakeful.tools.local.names import Profile


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


def checked_skills(who: str, skills: Any) -> tuple[Path, ...]:
    """Folders that are there, as absolute paths: skills, or roots of skills."""
    if isinstance(skills, str | PathLike) or not isinstance(skills, Iterable):
        raise InvalidConfig(f"{who}: skills={skills!r}", "give a list of folders: skills=['skills']")
    found = []
    for each in skills:
        try:
            folder = Path(each).expanduser().absolute()
        except TypeError:
            raise InvalidConfig(f"{who}: skills has {each!r}", "give the paths of folders") from None
        if not folder.is_dir():
            raise InvalidConfig(f"{who}: skills names {folder}, which is not a folder", "give a folder with a SKILL.md")
        found.append(folder)
    return tuple(found)


def checked_collections(who: str, collections: Any) -> tuple[Any, ...]:
    """What can be searched, each under a name of its own."""
    if isinstance(collections, str) or not isinstance(collections, Iterable):
        raise InvalidConfig(f"{who}: collections={collections!r}", "give a list: collections=[TextFiles(...)]")
    listed = tuple(collections)
    names: set[str] = set()
    for each in listed:
        if not callable(getattr(each, "search", None)) or not isinstance(getattr(each, "name", None), str):
            raise InvalidConfig(f"{who}: collections has {each!r}", "give a TextFiles, or what has a name and a search")
        if each.name in names:
            raise InvalidConfig(f"{who}: two collections are called {each.name!r}", "give one of them another name")
        names.add(each.name)
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


def checked_flag(who: str, field: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidConfig(f"{who}: {field}={value!r}", "give True or False")
    return value


def checked_hitl(who: str, names: Any, tools: Sequence[Tool[Any]], *, has_sources: bool) -> tuple[str, ...]:
    """Names of tools that never run without a person. What a source has is known only when a turn is taken up."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise InvalidConfig(f"{who}: hitl_tools={names!r}", "give a list of names")
    listed = tuple(names)
    for name in listed:
        if not isinstance(name, str) or not name:
            raise InvalidConfig(f"{who}: hitl_tools has {name!r}", "give names of tools")
        if not has_sources and not any(any_named((name,), tool.name) for tool in tools):
            known = ", ".join(tool.name for tool in tools) or "none"
            raise UnknownTool(
                f"{who}: hitl_tools names {name!r}, which is not among its tools", f"its tools are: {known}"
            )
    return listed


def checked_hooks(who: str, hooks: Any) -> tuple[Hook, ...]:
    """Hooks as they were given, and plain functions as hooks before every call."""
    if isinstance(hooks, str) or not isinstance(hooks, Iterable):
        raise InvalidConfig(f"{who}: hooks={hooks!r}", "give a list: hooks=[...]")
    try:
        return tuple(hook_of(each) for each in hooks)
    except InvalidConfig as wrong:
        raise InvalidConfig(f"{who}: {wrong.message}", wrong.hint) from None
