"""The blocks of code in the documents that users read: programs, settings, JSON, and lines to type."""

import ast
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

Kind = Literal["python", "toml", "json", "words"]
_FENCED = re.compile(r"^```\w*\n(.*?)^```$", re.S | re.M)
_INDENTED = re.compile(r"(?<=\n\n)(?: {4}.*\n(?:\n(?= {4}))*)+")


class Snippet(NamedTuple):
    """A block, or a paragraph of one that is of several kinds."""

    kind: Kind
    text: str


def documents(root: Path) -> list[Path]:
    """What users read; records of decisions and generated lists of events have no programs."""
    explained = sorted((root / "docs" / "explain").glob("*.md"))
    return [
        root / "README.md",
        root / "docs" / "hosts.md",
        *sorted((root / "docs" / "guides").glob("*.md")),
        *explained,
        root / "docs" / "reference" / "providers.md",
    ]


def snippets(file: Path) -> Iterator[Snippet]:
    text = file.read_text()
    fenced = [match[1] for match in _FENCED.finditer(text)]
    indented = [textwrap.dedent(match[0]) for match in _INDENTED.finditer(_FENCED.sub("", text))]
    for block in [*fenced, *indented]:
        whole = _kind(block)
        parts = [block] if whole in ("python", "toml") else block.split("\n\n")
        yield from (Snippet(_kind(part), part.strip("\n") + "\n") for part in parts)


def _kind(text: str) -> Kind:
    if text.startswith("["):
        return "toml"
    if text.startswith("{"):
        return "json"
    return "words" if compiled(text) is None else "python"


def compiled(text: str) -> Any:
    """A program whose bare expressions are kept in `shown`; None where it is no program."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return None
    for number, each in enumerate(tree.body):
        if isinstance(each, ast.Expr):
            keep = ast.Attribute(ast.Name("shown", ast.Load()), "append", ast.Load())
            tree.body[number] = ast.Expr(ast.Call(keep, [each.value], []))
    fixed = ast.fix_missing_locations(tree)
    return compile(fixed, "<snippet>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
