"""What an agent is made of, checked when it is made: models, tools, folders, policy, people, hooks, spending.

Each check takes what was given and gives what the agent holds. `where` names the agent and the field, for the error.
Checks that need nothing but the value stand in `contracts/controls`.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast, get_args

from pydantic import ValidationError

from wakeful.contracts.budgets import Budget, SpendWindow
from wakeful.contracts.children import SpawnPreset
from wakeful.contracts.controls import MAX_PARALLEL_SUBAGENTS, is_model_reference
from wakeful.contracts.errors import InvalidConfig, UnknownTool, inside
from wakeful.contracts.notices import NotifyTarget
from wakeful.contracts.policies import GatePolicy, ToolPolicy
from wakeful.contracts.triggers import TriggerEntry
from wakeful.contracts.values import Value
from wakeful.contracts.waking import WakeEntry
from wakeful.decisions.policy.patterns import any_named
from wakeful.decisions.waking.due_times import NoDueTime, schedule_of
from wakeful.sandbox.settings import SandboxSettings
from wakeful.settings.spend_windows import zone_named
from wakeful.tools.hooks import Hook, hook_of
from wakeful.tools.local.names import Profile
from wakeful.tools.runtime_tools import runtime_tools
from wakeful.tools.source import ToolSource
from wakeful.tools.tool import Tool

if TYPE_CHECKING:
    from wakeful.ports import Collection, Model

MISSING = "is missing"
"""The end of the words about a field that has to be there."""
ModelChoice: TypeAlias = "str | Model"
"""`provider:model`, or a model object."""


def checked_model(where: str, choice: Any) -> Any:
    """A model's name, or what answers like a model."""
    if isinstance(choice, str):
        if not is_model_reference(choice):
            raise InvalidConfig(
                f"{where}={choice!r} does not name a provider",
                "write provider:model, such as anthropic:claude-opus-4-7 (`wakeful models` lists them)",
            )
        return choice
    if not callable(getattr(choice, "respond", None)):
        raise InvalidConfig(f"{where}={choice!r} is not a model", "give provider:model or a model object")
    return choice


def checked_fallbacks(where: str, choices: Any) -> tuple[ModelChoice, ...]:
    return tuple(checked_model(where, choice) for choice in _listed(where, "fallbacks", choices))


def _listed(where: str, field: str, values: Any) -> tuple[Any, ...]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InvalidConfig(f"{where}={values!r}", f"give a list: {field}=[...]")
    return tuple(values)


def checked_tools(who: str, tools: Any) -> tuple[tuple[Tool[Any], ...], tuple[ToolSource, ...]]:
    """What was given as tools: tools, and where tools come from."""
    listed = _listed(f"{who}: tools", "tools", tools)
    sources = tuple(each for each in listed if isinstance(each, ToolSource))
    own = tuple(each for each in listed if not isinstance(each, ToolSource))
    seen: set[str] = set()
    for tool in own:
        if not isinstance(tool, Tool):
            called = getattr(tool, "__name__", None) or repr(tool)
            raise InvalidConfig(
                f"{who}: {called} in tools= is not a tool",
                f'decorate it with @tool(effect=...), or give tool({called}, effect="pure")'
                if callable(tool)
                else "give tools made by @tool(...)",
            )
        if tool.name in seen:
            raise InvalidConfig(
                f"{who}: two tools are called {tool.name!r}", "give one of them another name: @tool(name=...)"
            )
        if tool.declaration.effect == "probeable" and not tool.has_probe:
            raise InvalidConfig(
                f'{who}: {tool.name} says effect="probeable" and has no probe', f"add one with @{tool.name}.probe"
            )
        seen.add(tool.name)
    return own, sources


def checked_budget(where: str, budget: Any) -> Budget | None:
    if budget is not None and not isinstance(budget, Budget):
        raise InvalidConfig(f"{where}={budget!r} is not a Budget", "write Budget(model_calls=8, seconds=60)")
    return budget


def checked_steps(where: str, steps: Any) -> int | None:
    if steps is not None and (isinstance(steps, bool) or not isinstance(steps, int) or steps < 1):
        raise InvalidConfig(f"{where}={steps!r}", "give a whole number, at least 1, or None")
    return steps if steps is None else int(steps)


class NamedFolder(str):
    """A folder as a definition in force names it. It may be away for a while: the turn that needs it says so."""


def checked_workspace(where: str, workspace: "str | PathLike[str] | None") -> Path | None:
    """A folder that is there, as an absolute path."""
    if workspace is None:
        return None
    try:
        root = Path(workspace).expanduser().absolute()
    except (TypeError, RuntimeError):  # no path, or the home of nobody
        raise InvalidConfig(f"{where}={workspace!r}", "give the path of a folder") from None
    if not isinstance(workspace, NamedFolder) and not is_folder(root):
        raise InvalidConfig(f"{where}: {root} is not a folder", "make it first, or give another one")
    return root


def is_folder(path: Path) -> bool:
    """What nobody can look at is none: its name is too long, say, or it is in a folder that is closed to this user."""
    try:
        return path.is_dir()
    except OSError:
        return False


def checked_collections(where: str, collections: Any) -> "tuple[str | Collection, ...]":
    """What can be searched, by name or as it is; each name once."""
    if isinstance(collections, str | bytes | Mapping) or not isinstance(collections, Iterable):
        raise InvalidConfig(f"{where}={collections!r}", "give a list: collections=[TextFiles(...)]")
    listed = tuple(collections)
    names: set[str] = set()
    for each in listed:
        name = each if isinstance(each, str) else getattr(each, "name", None)
        searches = isinstance(each, str) or callable(getattr(each, "search", None))
        if not searches or not isinstance(name, str) or not name.strip():
            raise InvalidConfig(
                f"{where} has {each!r}", "give TextFiles(...), an object with name and search(), or a name"
            )
        if name in names:
            raise InvalidConfig(f"{where}: two collections are called {name!r}", "give one of them another name")
        names.add(name)
    return listed


def default_profile(workspace: Path | None) -> Profile:
    """`chat` unless there is a workspace, then `coding`."""
    return "coding" if workspace is not None else "chat"


def checked_profile(where: str, profile: Any) -> Profile | None:
    """One of the profiles; None: the one that goes with the workspace."""
    if profile is not None and profile not in get_args(Profile):
        raise InvalidConfig(f"{where}={profile!r}", f"give one of: {', '.join(get_args(Profile))}")
    chosen: Profile | None = profile
    return chosen


def fitting_profile(who: str, profile: Profile | None, workspace: Path | None) -> Profile:
    """The profile of an agent: all but `chat` need a workspace."""
    if profile is None:
        return default_profile(workspace)
    if profile != "chat" and workspace is None:
        wrong = InvalidConfig(f"{who}: profile={profile!r} works on files, and no workspace was given", "workspace='.'")
        raise wrong.within("profile")
    return profile


def checked_sandbox(where: str, sandbox: Any) -> SandboxSettings:
    """What commands are held to: settings, or the same as data."""
    if sandbox is None:
        return SandboxSettings()
    if isinstance(sandbox, SandboxSettings):
        return sandbox
    if not isinstance(sandbox, Mapping):
        raise InvalidConfig(f"{where}={sandbox!r}", 'give SandboxSettings(network="full") or the like')
    return SandboxSettings.read(sandbox)


def checked_policy(where: str, policy: Any) -> GatePolicy | None:
    """None: what the surface gives by default."""
    if policy is None or isinstance(policy, GatePolicy):
        return policy
    if isinstance(policy, ToolPolicy):
        return GatePolicy(tools=policy)
    raise InvalidConfig(f"{where}={policy!r}", "give a ToolPolicy or a GatePolicy")


def checked_wake(where: str, value: Any) -> tuple[WakeEntry | TriggerEntry, ...]:
    """Cron lines that will be due, in time zones that this machine knows, and triggers; each once."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise InvalidConfig(f"{where}={value!r}", 'give a list: [{"cron": "0 7 * * 1-5", "say": "Check the backups."}]')
    entries: list[WakeEntry | TriggerEntry] = []
    for place, given in enumerate(value):
        with inside(place):
            entry = given if isinstance(given, WakeEntry | TriggerEntry) else _wake_entry(where, given)
            if isinstance(entry, TriggerEntry):
                if any(isinstance(each, TriggerEntry) and each.trigger == entry.trigger for each in entries):
                    raise InvalidConfig(f"{where} has the trigger {entry.trigger!r} twice", "give each its own name")
            else:
                _check_due(where, entry)
                if entry in entries:
                    raise InvalidConfig(f"{where} has the same entry twice: {entry.cron!r}", "write it once")
        entries.append(entry)
    return tuple(entries)


def checked_notify(where: str, value: Any) -> NotifyTarget | None:
    """Where notices go. Raises InvalidConfig with the field."""
    if value is None or isinstance(value, NotifyTarget):
        target = value
    else:
        try:
            target = NotifyTarget.model_validate(value)
        except ValidationError as error:
            hint = f'give {{"to": "https://ntfy.example/topic"}}; it has: {", ".join(NotifyTarget.model_fields)}'
            raise misfit(where, error, NotifyTarget, "notify", hint) from None
    if target is not None:
        with inside("timezone"):
            zone_named(target.timezone, f"{where}:")
    return target


def misfit(where: str, error: ValidationError, kind: type[Value], whole: str, hint: str) -> InvalidConfig:
    """What does not fit the shape of a part of an agent, with near names for a field that it has not."""
    wrong = error.errors()[0]
    place = tuple(wrong["loc"])
    if wrong["type"] == "extra_forbidden":
        near = get_close_matches(str(place[-1]), kind.model_fields, n=2, cutoff=0.6)
        hint = f"did you mean {' or '.join(near)}? {hint}" if near else hint
        return InvalidConfig(f"{where}: there is no field {place[-1]!r}", hint).within(*place)
    if wrong["type"] == "missing":
        return InvalidConfig(f"{where}: {place[-1]} {MISSING}", hint)
    said = wrong["msg"].removeprefix("Value error, ")
    return InvalidConfig(f"{where}: {'.'.join(map(str, place)) or whole}: {said}", hint).within(*place)


def check_wake_checks(who: str, entries: Iterable[WakeEntry | TriggerEntry], profile: Profile) -> None:
    """A check is a command: an agent that runs none could never be woken by it. Raises InvalidConfig."""
    for place, entry in enumerate(entries):
        if isinstance(entry, WakeEntry) and entry.check is not None and profile == "chat":
            raise InvalidConfig(
                f"{who}: the wake entry {entry.cron!r} has a check, and this agent runs no commands",
                "give it a workspace, or take the check out",
            ).within("wake", place, "check")


def _check_due(where: str, entry: WakeEntry) -> None:
    with inside("timezone"):
        zone = zone_named(entry.timezone, f"{where}:")
    try:
        schedule_of(entry.cron, zone, 0)
    except NoDueTime as error:
        wrong = InvalidConfig(f"{where}: cron {error}", 'for example "0 7 * * 1-5": weekdays at 7')
        raise wrong.within("cron") from None


def _wake_entry(where: str, given: Any) -> WakeEntry | TriggerEntry:
    if not isinstance(given, Mapping):
        raise InvalidConfig(f"{where} has {given!r}", 'an entry is an object: {"cron": "0 7 * * *", "say": "..."}')
    kind: type[WakeEntry | TriggerEntry] = TriggerEntry if "trigger" in given else WakeEntry
    try:
        return kind.model_validate(dict(given))
    except ValidationError as error:
        raise misfit(where, error, kind, "entry", f"an entry has: {', '.join(kind.model_fields)}") from None


def checked_expiry(where: str, seconds: Any) -> float:
    good = isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 < seconds < math.inf
    if not good:
        raise InvalidConfig(f"{where}={seconds!r}", "give a positive number of seconds")
    return float(seconds)


def checked_spawn(where: str, value: Any) -> SpawnPreset | None:
    """Which agents an agent may make; True: private children."""
    if value is None or value is False:
        return None
    if value is True:
        return "private_child"
    if value == "private_child" or value == "public_named":
        return cast(SpawnPreset, value)
    raise InvalidConfig(f"{where}={value!r}", "give True, False, 'private_child' or 'public_named'")


def tools_of_the_runtime(
    *, subtasks: bool, allow_parallel_subagents: bool, work_items: bool, memory: bool, spawn: SpawnPreset | None = None
) -> tuple[str, ...]:
    """The tools that an agent has because its configuration says so, by name. No code stands behind them."""
    parallel = MAX_PARALLEL_SUBAGENTS if allow_parallel_subagents else None
    given = runtime_tools(subtasks=subtasks, parallel=parallel, work_items=work_items, memory=memory, spawn=spawn)
    return tuple(tool.name for tool in given)


def check_hitl(
    who: str, names: Sequence[str], tools: Sequence[Tool[Any]], given: Sequence[str], *, has_sources: bool
) -> None:
    """What never runs without a person has to be there: among the tools, or among those the configuration gives.

    What a source has is known only when a turn is taken up, and checked then.
    """
    there = [*(tool.name for tool in tools), *given]
    for place, name in enumerate(names):
        if not has_sources and not any(any_named((name,), known) for known in there):
            raise UnknownTool(
                f"{who}: hitl_tools names {name!r}, which is not among its tools",
                f"its tools are: {', '.join(there) or 'none'}",
            ).within("hitl_tools", place)


def checked_skills(where: str, skills: Any) -> tuple[str, ...]:
    """Folders in which skills are looked for, as absolute paths; each has to be there."""
    if isinstance(skills, str | bytes | PathLike) or not isinstance(skills, Iterable):
        raise InvalidConfig(f"{where}={skills!r}", "give a list of folders")
    found = []
    for each in skills:
        try:
            folder = Path(each).expanduser().absolute()
        except TypeError:
            raise InvalidConfig(f"{where} has {each!r}", "give the paths of folders") from None
        if not folder.is_dir():
            raise InvalidConfig(f"{where}: {folder} is not a folder", "make it first, or leave it out")
        found.append(str(folder))
    return tuple(found)


def checked_windows(where: str, windows: Any) -> tuple[SpendWindow, ...]:
    """What the agent may spend over all its runs, one window for each period."""
    if not isinstance(windows, Iterable) or isinstance(windows, str | Mapping):
        raise InvalidConfig(f"{where}={windows!r}", 'give a list: [SpendWindow("day", 2)]')
    listed = tuple(windows)
    for each in listed:
        if not isinstance(each, SpendWindow):
            raise InvalidConfig(f"{where} has {each!r}", 'give SpendWindow("day", 2) or the like')
    if len({each.period for each in listed}) < len(listed):
        raise InvalidConfig(f"{where} has two windows for the same period", "give one per period")
    return listed


def checked_hooks(where: str, hooks: Any) -> tuple[Hook, ...]:
    """Hooks as they were given, and plain functions as hooks before every call."""
    if isinstance(hooks, str) or not isinstance(hooks, Iterable):
        raise InvalidConfig(f"{where}={hooks!r}", "give a list: hooks=[...]")
    try:
        return tuple(hook_of(each) for each in hooks)
    except InvalidConfig as wrong:
        raise InvalidConfig(f"{where}: {wrong.message}", wrong.hint) from None
