"""The page `api.md`: every name that a program may import, with its signature and its docstring, read from the source.

The source is parsed, not imported, so the page is the same on every version of Python.
"""

import ast
import importlib
import importlib.util
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

MODULES = ("wakeful", "wakeful.events", "wakeful.errors", "wakeful.testing", "wakeful.providers", "wakeful.hosts")
INTRO = """\
# Public names

Every name that a program may import, by module. Other names are internal and may change. The options of an agent are
in [agents.md](agents.md). This page is generated.
"""
LIBRARY = "wakeful.surfaces.library."
Callable = ast.FunctionDef | ast.AsyncFunctionDef


def api_page() -> str:
    """All modules, with their names in alphabetical order."""
    return INTRO + "".join(_module(name) for name in MODULES)


def _module(name: str) -> str:
    module = importlib.import_module(name)
    names = sorted(each for each in module.__all__ if not each.startswith("__"))
    return f"\n## {name}\n" + "".join(_entry(module, each) for each in names)


def _entry(module: ModuleType, name: str) -> str:
    nodes = _definitions(_home(module, name), name)
    if not nodes:  # a value, a union or a type variable
        return f"\n### {name}\n"
    node = nodes[0]
    if isinstance(node, ast.ClassDef):
        return f"\n### {name}\n\n{_class(node, _other_parts(_home(module, name), node))}"
    shown, documented = nodes[0], next((each for each in nodes if ast.get_docstring(each)), node)
    return f"\n### {name}\n\n```python\n{_signature(shown)}\n```\n\n{_words(documented)}"


def _other_parts(module: str, node: ast.ClassDef) -> list[ast.ClassDef]:
    """Classes of the library that a class is put together from: their methods are its own to whoever uses it."""
    named = {ast.unparse(base) for base in node.bases}
    imported = (each for each in _tree(module).body if isinstance(each, ast.ImportFrom))
    homes = [(each.module or "", alias.name) for each in imported for alias in each.names if alias.name in named]
    found = (part for home, name in homes if home.startswith(LIBRARY) for part in _definitions(home, name))
    return [part for part in found if isinstance(part, ast.ClassDef)]


def _class(node: ast.ClassDef, other_parts: list[ast.ClassDef]) -> str:
    parts_of_it = {part.name for part in other_parts}
    bases = ", ".join(name for base in node.bases if (name := ast.unparse(base)) not in parts_of_it)
    parts = [f"```python\nclass {node.name}{f'({bases})' if bases else ''}\n```\n\n{_words(node)}"]
    fields = list(_fields(node))
    if fields:
        parts.append("\n| field | type | meaning |\n|---|---|---|\n" + "".join(fields))
    parts += [
        f"\n- `{_signature(method)}`: {' '.join(_words(method).split())}\n"
        for part in (node, *other_parts)
        for method in part.body
        if isinstance(method, Callable) and not method.name.startswith("_") and ast.get_docstring(method)
    ]
    return "".join(parts)


def _fields(node: ast.ClassDef) -> Iterator[str]:
    """Annotated fields; the line under a field is its meaning."""
    for each, following in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and not each.target.id.startswith("_"):
            told = following.value if isinstance(following, ast.Expr) else None
            words = told.value if isinstance(told, ast.Constant) and isinstance(told.value, str) else ""
            yield f"| `{each.target.id}` | `{_in_cell(ast.unparse(each.annotation))}` | {_in_cell(words)} |\n"


def _in_cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _signature(node: Callable) -> str:
    start = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    returned = f" -> {ast.unparse(node.returns)}" if node.returns is not None else ""
    return f"{start} {node.name}({ast.unparse(node.args)}){returned}"


def _words(node: ast.ClassDef | Callable) -> str:
    told = ast.get_docstring(node) or ""
    return f"{told}\n" if told else ""


def _home(module: ModuleType, name: str) -> str:
    """The module in which a name is defined."""
    lazy: dict[str, str] = getattr(module, "_WHERE", None) or {}
    homes: dict[str, str] = getattr(module, "_HOMES", None) or {}
    if name in homes:
        return f"{module.__name__}.{homes[name]}"
    defined = getattr(getattr(module, name), "__module__", None)
    is_ours = isinstance(defined, str) and defined.startswith("wakeful")
    return str(defined) if is_ours else lazy.get(name, module.__name__)


def _definitions(module: str, name: str) -> list[ast.ClassDef | Callable]:
    """The class or the function of that name; of an overloaded one, every form."""
    nodes = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return [node for node in _tree(module).body if isinstance(node, nodes) and node.name == name]


@cache
def _tree(module: str) -> ast.Module:
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise ValueError(f"{module} has no source")
    return ast.parse(Path(spec.origin).read_text())
