"""Public import addresses: what documents and examples print, and what public modules export.

An address is public when a user was told of it. Of each thing its kind is told: what it is, what it takes, and, for a
class of this package, the names it has.
"""

import ast
import enum
import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from kit.surfaces.doc_snippets import snippets

_PRINTED = re.compile(r"from (wakeful[\w.]*) import (?:\(([^)]*)\)|([\w, ]+))")
_DOTTED = re.compile(r"(?<![\w/.-])wakeful(?:\.[A-Za-z_]\w*)+")
_NAME = re.compile(r"[A-Za-z_]\w*")
PUBLIC = (
    "wakeful",
    "wakeful.errors",
    "wakeful.events",
    "wakeful.hosts",
    "wakeful.hosts.chat",
    "wakeful.providers",
    "wakeful.testing",
)
"""Modules whose every export is public."""


def readers_files(root: Path) -> list[Path]:
    """What users read and copy from: not what generates it, and not what is for people who work on wakeful."""
    documents = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    return [*documents, *sorted((root / "examples").glob("*.py"))]


def printed_addresses(root: Path) -> dict[str, list[str]]:
    """By address (`wakeful.testing.scripted`), the files that print it."""
    found: dict[str, set[str]] = {}
    for file in readers_files(root):
        for address in _imported(file) | _named(file):
            found.setdefault(address, set()).add(file.relative_to(root).as_posix())
    return {address: sorted(files) for address, files in sorted(found.items())}


def _imported(file: Path) -> set[str]:
    """Import lines: of programs as Python reads them, of words as they stand there."""
    text = file.read_text()
    programs = [text] if file.suffix == ".py" else [each.text for each in snippets(file) if each.kind == "python"]
    found = set()
    for program in programs:
        for node in ast.walk(ast.parse(program)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "wakeful":
                found |= {f"{node.module}.{each.name}" for each in node.names}
            elif isinstance(node, ast.Import):
                found |= {each.name for each in node.names if each.name.split(".")[0] == "wakeful"}
    for match in _PRINTED.finditer(text):
        found |= {f"{match[1]}.{name}" for name in _NAME.findall(re.sub(r"#.*| as \w+", "", match[2] or match[3]))}
    return found


def _named(file: Path) -> set[str]:
    """Addresses in words, such as `wakeful.testing.record`; names of schemas and files look alike and are none."""
    return {match[0] for match in _DOTTED.finditer(file.read_text()) if _there(match[0])}


def _there(address: str) -> bool:
    try:
        resolved(address)
    except (ImportError, AttributeError):
        return False
    return True


def resolved(address: str) -> Any:
    """What an address leads to: a module, or a name in one, or a name of that."""
    parts = address.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            value: Any = import_module(".".join(parts[:cut]))
        except ModuleNotFoundError as missing:
            if missing.name is None or not address.startswith(missing.name):
                raise
            continue
        for name in parts[cut:]:
            value = getattr(value, name)
        return value
    raise ImportError(address)


def exported_addresses() -> list[str]:
    """Every name that a public module exports."""
    return [f"{module}.{name}" for module in PUBLIC for name in sorted(import_module(module).__all__)]


def address_book(root: Path) -> str:
    """All public addresses: what each is, what it takes and has, and who prints it."""
    printed = printed_addresses(root)
    lines = []
    for address in sorted({*printed, *exported_addresses()}):
        lines += [address, *(f"    {line}" for line in kind_of(resolved(address)))]
        lines += [f"    printed in {file}" for file in printed.get(address, ())]
    return "\n".join(lines) + "\n"


def kind_of(value: Any) -> list[str]:
    """What it is, what it takes, and the names it has, in lines."""
    if inspect.ismodule(value):
        return ["is a module"]
    if inspect.isclass(value):
        return [f"is {_class_kind(value)}", *_parameters(value), *_members(value)]
    if inspect.isroutine(value):
        return [
            f"is {'an async function' if inspect.iscoroutinefunction(value) else 'a function'}",
            *_parameters(value),
        ]
    return [f"is a {type(value).__name__}"]


def _class_kind(value: type) -> str:
    if issubclass(value, BaseException):
        parents = [base.__name__ for base in value.__mro__[1:] if base not in (object, BaseException)]
        return f"an error: {', '.join(parents)}"
    return "an enum" if issubclass(value, enum.Enum) else "a class"


def _parameters(value: Any) -> list[str]:
    if inspect.isclass(value) and issubclass(value, BaseModel):
        value.model_rebuild()  # built when first used: until then its signature names no field
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return []
    shown = []
    for each in parameters:
        kind = {each.KEYWORD_ONLY: "keyword ", each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        shown.append(f"takes {kind}{each.name}{'' if each.default is each.empty else '='}")
    return shown


def _members(value: type) -> list[str]:
    """The names without underscore that classes of this package give it."""
    ours = [each for each in value.__mro__ if each.__module__.split(".")[0] == "wakeful"]
    names = {name for each in ours for name in (*vars(each), *inspect.get_annotations(each))}
    return [f"has {name}" for name in sorted(names - {"model_config"}) if not name.startswith("_")]
