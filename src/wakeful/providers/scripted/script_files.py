"""Scripts from files. A mistake is told with its file, its line, and what was probably meant.

A YAML file is read as the JSON it stands for, so that both formats hold the same things.
"""

import json
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from wakeful.contracts.errors import MalformedScript
from wakeful.providers.scripted.problems import Place, in_file
from wakeful.providers.scripted.schema import ScriptFile

SHIPPED = files("wakeful.providers.scripted") / "scripts"
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def shipped_scripts() -> list[str]:
    """The names that need no path."""
    return sorted(entry.name.removesuffix(".yaml") for entry in SHIPPED.iterdir() if entry.name.endswith(".yaml"))


def load(name: str) -> ScriptFile:
    """The script called `name`: one that ships with the package, or a file."""
    if name in shipped_scripts():
        return parse((SHIPPED / f"{name}.yaml").read_text("utf-8"), f"scripted:{name}")
    path = Path(name)
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        raise _missing(path) from None
    except UnicodeDecodeError as error:
        raise MalformedScript(f"{path}: byte {error.start} is not UTF-8", "Save the script as UTF-8.") from None
    except OSError as error:
        raise MalformedScript(f"{path}: cannot be read: {error.strerror or error}") from None
    return parse(text, str(path), is_json=path.suffix == ".json")


def parse(text: str, where: str, *, is_json: bool = False) -> ScriptFile:
    """A script from its text."""
    data = _from_json(text, where) if is_json else _from_yaml(text, where)
    if data is None:
        raise MalformedScript(f"{where}: the file is empty", "Write a list of steps, or a mapping with `steps`.")
    wrapped = isinstance(data, list)
    if not isinstance(data, dict | list):
        raise MalformedScript(
            f"{where}: a script is a list of steps, or a mapping with `steps`; this is a {type(data).__name__}",
            "For a single reply write one step: `- the reply`.",
        )
    try:
        as_json = json.dumps({"steps": data} if wrapped else data, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise MalformedScript(
            f"{where}: {error}", "A script holds only what JSON can: put the value in quotes."
        ) from None

    def line_of(place: Place) -> int | None:
        return None if is_json else _line(text, place[1:] if wrapped else place)

    try:
        return ScriptFile.model_validate_json(as_json)
    except ValidationError as error:
        raise in_file(where, error, line_of) from None


def _from_json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise MalformedScript(f"{where}: line {error.lineno}, column {error.colno}: {error.msg}") from None


def _from_yaml(text: str, where: str) -> Any:
    try:
        return yaml.load(text, Loader=_LOADER)  # the loader is a safe one: no tag makes an object
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise MalformedScript(f"{where}: {at}{error.problem or error.context or 'this is not YAML'}") from None
    except yaml.YAMLError as error:
        raise MalformedScript(f"{where}: {error}") from None


def _line(text: str, place: Place) -> int | None:
    """The line of a place in a YAML text; of the nearest thing around it when it is not there itself."""
    node = yaml.compose(text, Loader=_LOADER)
    line = None
    for part in place:
        if isinstance(node, yaml.MappingNode):
            found = [(key, value) for key, value in node.value if key.value == part]
            if not found:
                break
            line, node = found[-1][0].start_mark.line + 1, found[-1][1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
        else:
            break
    return line


def _missing(path: Path) -> MalformedScript:
    nearby = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    near = [str(path.parent / name) for name in get_close_matches(path.name, nearby, n=3, cutoff=0.6)]
    if not path.suffix and len(path.parts) == 1:
        near += get_close_matches(path.name, shipped_scripts(), n=1, cutoff=0.6)
    shipped = ", ".join(f"scripted:{name}" for name in shipped_scripts())
    return MalformedScript(
        f"{path}: there is no such script (looked for {path.absolute()})",
        (f"Did you mean {' or '.join(near)}? " if near else "") + f"Scripts that need no file: {shipped}.",
    )
