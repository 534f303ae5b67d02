"""The file of an agent, YAML or JSON: read with the lines of its fields, and written.

A file names things and loads none. Its instructions may stand in another file beside it; what is read is one
definition with the words in it, so that a revision is the whole of what an agent was told.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from wakeful.contracts.errors import InvalidConfig
from wakeful.settings.file_lines import FileLines, yaml_lines

HINT = "Name a YAML or JSON file with name, model and instructions; `wakeful schema agent` has every field."
WORDS_FIELD = "instructions_file"
MOST_BYTES = 1_000_000
"""Of one file. What is longer was not meant for a prompt."""
_PATHS = ("workspace", "skills")


class AgentFile(NamedTuple):
    """What an agent's file says."""

    path: Path
    data: dict[str, Any]
    lines: FileLines


def read_agent_file(path: Path, base: Path | None = None) -> AgentFile:
    """The definition in a file, with the words of `instructions_file` in it. Raises InvalidConfig.

    `base` is the folder where a relative workspace, or a folder of skills, begins. None: the current folder.
    """
    text = _text(path)
    data = _parsed(path, text)
    lines = yaml_lines(text)
    for field in lines.twice:
        named = ".".join(map(str, field))
        raise _unreadable(f"{path}: {named} is given twice", "Write it once.", lines.line(field))
    if WORDS_FIELD in data:
        data = _with_words(path, data, lines.line((WORDS_FIELD,)))
    if base is not None:
        data |= {name: _from(base, data[name]) for name in _PATHS if name in data}
    return AgentFile(path, data, lines)


def write_agent_file(path: Path, data: Mapping[str, Any]) -> None:
    """YAML, or JSON when the name says so."""
    if path.suffix == ".json":
        text = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    else:
        import yaml  # an agent that is never written must not pay for it

        text = yaml.safe_dump(dict(data), sort_keys=False, allow_unicode=True)
    path.write_text(text, encoding="utf-8")


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise _unreadable(f"{path} cannot be read: {error.strerror}", HINT) from None
    if len(content) > MOST_BYTES:
        raise _unreadable(
            f"{path} has more than {MOST_BYTES:,} bytes", "Shorten it, or refer to a file of the workspace."
        )
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.args[2]) + 1
        raise _unreadable(f"{path} is not UTF-8 text", "Save it as UTF-8.", line) from None


def _parsed(path: Path, text: str) -> dict[str, Any]:
    if path.suffix == ".json":
        try:
            data = json.loads(text)
        except json.JSONDecodeError as error:
            raise _unreadable(f"{path}: is not JSON: {error}", HINT, error.lineno) from None
        except RecursionError:
            raise _unreadable(f"{path}: is not JSON: it is nested too deep", HINT) from None
    else:
        data = _parsed_yaml(path, text)
    if not isinstance(data, dict):
        raise _unreadable(f"{path} holds a {type(data).__name__}, not an agent's configuration", HINT, 1)
    return data


def _parsed_yaml(path: Path, text: str) -> Any:
    import yaml

    class Loader(yaml.SafeLoader):
        """Names of fields are texts: YAML 1.1 would read the field `on` as true."""

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
                if isinstance(key, yaml.ScalarNode) and key.tag == "tag:yaml.org,2002:bool":
                    key.tag = "tag:yaml.org,2002:str"
            return super().construct_mapping(node, deep)

    try:
        return yaml.load(text, Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        words = ", ".join(part for part in (error.context, error.problem) if part)
        line = None if mark is None else mark.line + 1
        where = "" if mark is None else f" (line {line}, column {mark.column + 1})"
        raise _unreadable(f"{path}: is not YAML: {words}{where}", HINT, line) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _unreadable(f"{path}: is not YAML: {error}", HINT) from None


def _with_words(path: Path, data: dict[str, Any], line: int | None) -> dict[str, Any]:
    """The same definition with the words of the file that it names."""
    named = data[WORDS_FIELD]
    if "instructions" in data:
        raise _unreadable(f"{path} has instructions and {WORDS_FIELD}", "Keep one of them.", line)
    if not isinstance(named, str) or not named:
        hint = "Name a file beside this one, such as ops.AGENTS.md."
        raise _unreadable(f"{path}: {WORDS_FIELD} is {named!r}", hint, line)
    try:
        words = _text(path.parent / _of_somebody(named))
    except InvalidConfig as problem:
        hint = f"The path is relative to the folder of {path.name}."
        raise _unreadable(f"{WORDS_FIELD}: {problem.message}", hint, line) from None
    return {("instructions" if name == WORDS_FIELD else name): value for name, value in data.items()} | {
        "instructions": words
    }


def _of_somebody(named: str) -> Path:
    """A path; `~` is the home of somebody. Where nobody is called so, there is no such folder."""
    try:
        return Path(named).expanduser()
    except RuntimeError:
        return Path(named)


def _from(base: Path, value: Any) -> Any:
    if isinstance(value, str):
        return str(base.absolute() / _of_somebody(value))
    if isinstance(value, list):
        return [_from(base, each) for each in value]
    return value


def _unreadable(message: str, hint: str, line: int | None = None) -> InvalidConfig:
    problem = InvalidConfig(message, hint)
    problem.line = line
    return problem
