"""`MODULE:NAME` to code. The person who types, or the owner's file, names what is imported; the store never does."""

import inspect
import shlex
import sys
import traceback
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from wakeful.contracts.errors import UnknownTool
from wakeful.engine.agent import Agent
from wakeful.tools.decorator import tool
from wakeful.tools.tool import Tool


class LoadedCode:
    """The code that `--tools` named."""

    def __init__(self) -> None:
        self.tools: list[Tool[Any]] = []
        self.agents: list[Agent[Any, Any]] = []
        self.notes: list[str] = []
        """Notes for the person who typed the command."""

    def add(self, named: str, value: Any) -> None:
        if isinstance(value, Agent):
            self.agents.append(value)
        elif isinstance(value, Tool):
            self.tools.append(value)
        elif isinstance(value, list | tuple):
            for each in value:
                self.add(named, each)
        elif inspect.isfunction(value):
            self.tools.append(tool(value))
            self.notes.append(
                f'{value.__name__} is a plain function, so it is treated as effect="irreversible" and never retried. '
                f'Declare another effect with @tool(effect="pure").'
            )
        else:
            raise UnknownTool(
                f"{named} is not a tool but of type {type(value).__name__}",
                "name a function, a tool made with @tool(...), a list of them, or an Agent",
            )


def load(names: Sequence[str], folder: str = "") -> LoadedCode:
    """Import what is named. Modules are found in the folder, too; blank: in the current one. Raises UnknownTool with
    what was probably meant."""
    loaded = LoadedCode()
    if names and folder not in sys.path:
        sys.path.append(folder)  # after what is installed: no file in it takes the place of a library
    for named in names:
        module_name, _, name = named.partition(":")
        if not module_name or not name:
            raise UnknownTool(f"--tools {named} is not MODULE:NAME", f"write it like this: --tools {_example(named)}")
        loaded.add(named, _attribute(_module(module_name, name, folder), module_name, name))
    return loaded


def code_options(tools: Sequence[str] | None, agent: Path | None) -> str:
    """The options that load the same code again."""
    options = [f" --tools {shlex.quote(each)}" for each in tools or ()]
    options += [f" --agent {shlex.quote(str(agent))}"] if agent is not None else []
    return "".join(options)


def _example(named: str) -> str:
    stem = Path(named.rstrip(":")).stem or "tools"
    return f"{stem}:refund"


def _module(module_name: str, name: str, folder: str) -> ModuleType:
    if module_name.endswith(".py"):
        dotted = ".".join(Path(module_name).with_suffix("").parts)
        raise UnknownTool(f"--tools takes a module, not the file {module_name}", f"write --tools {dotted}:{name}")
    try:
        return import_module(module_name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if missing != module_name and not module_name.startswith(f"{missing}."):
            raise _broken(module_name, error) from error  # it is there, and misses something itself
        here = sorted(file.stem for file in Path(folder).glob("*.py"))
        near = get_close_matches(module_name, here, n=3, cutoff=0.5)
        hint = (
            f"did you mean {_ways(near, name)}?"
            if near
            else f"looked in {folder or Path.cwd()} and the installed packages"
        )
        raise UnknownTool(f"there is no module {missing!r} (from --tools {module_name}:{name})", hint) from None
    except Exception as error:
        raise _broken(module_name, error) from error


def _broken(module_name: str, error: Exception) -> UnknownTool:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return UnknownTool(
        f"the module {module_name} cannot be imported: {type(error).__name__}: {error}",
        f"raised at {last.filename}:{last.lineno}; try it alone: python -c 'import {module_name}'",
    )


def _attribute(module: ModuleType, module_name: str, name: str) -> Any:
    value: Any = module
    for part in name.split("."):
        if not hasattr(value, part):
            found = {each: known for each, known in vars(module).items() if not each.startswith("_")}
            usable = [each for each, known in found.items() if _is_usable(known, module)]
            near = get_close_matches(name, usable, n=3, cutoff=0.5) or usable[:5]
            hint = f"did you mean {_ways([module_name] * len(near), *near)}?" if near else "it has nothing to use"
            raise UnknownTool(f"the module {module_name!r} has no {name!r}", hint)
        value = getattr(value, part)
    return value


def _is_usable(value: Any, module: ModuleType) -> bool:
    """Is it a tool, an agent, a list of them, or a function of the module itself?"""
    if isinstance(value, list | tuple):
        return bool(value) and all(_is_usable(each, module) for each in value)
    own = inspect.isfunction(value) and value.__module__ == module.__name__
    return isinstance(value, Tool | Agent) or own


def _ways(modules: Iterable[str], *names: str) -> str:
    listed = list(modules)
    each = names if len(names) == len(listed) else [names[0]] * len(listed)
    return " or ".join(f"--tools {module}:{name}" for module, name in zip(listed, each, strict=True))
