"""Public text is plain English: the subject comes first, so no sentence opens with "What", "Whoever" or "Nobody".

Public text is README, docs, every string of the command line, messages of errors, words that models read, and
docstrings of public names and of their fields. A sentence that ends with a question mark is a question and may open as
it likes.
"""

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OPENERS = "What|Whatever|Who|Whoever|Whom|Whose|Whichever|Nobody|Somebody|Anybody|That"
_OPENS = re.compile(rf"^(?:{OPENERS})\b(?!')", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*\"'(])")
_CODE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_PARAGRAPH_END = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*|#>]|\d+\.)\s)|\|")
_MARKUP = re.compile(r"^[\s#>*`_(\"'|-]*(?:\d+\.\s+)?")
_INDENTED = re.compile(r"^(?: {4}|\t).*$", re.MULTILINE)
RECORDED = (
    "docs/explain/decisions",
    "docs/reference/api.md",
    "docs/reference/events.md",
    "docs/reference/conversation.md",
    "docs/spec-waivers.md",
)
"""Pages that record what was decided, and pages made of docstrings that are looked at where they stand."""
ROOMS = ("wakeful", "wakeful.providers", "wakeful.testing", "wakeful.errors", "wakeful.events", "wakeful.hosts")
"""The modules that a program imports from."""
PROMPTS = "src/wakeful/decisions/prompt_words.py"
"""Words for models: every string of it."""


def riddles(text: str) -> list[str]:
    """The sentences of a text that open with one of the words."""
    found = []
    for paragraph in _PARAGRAPH_END.split(text):
        for sentence in _SENTENCE_END.split(" ".join(paragraph.split())):
            bare = _MARKUP.sub("", sentence)
            if _OPENS.match(bare) and not bare.rstrip("*_`\"' ").endswith("?"):
                found.append(bare)
    return found


def of_page(text: str) -> list[str]:
    """Of a Markdown page, without its code."""
    return riddles(_INDENTED.sub("", _CODE.sub("", text)))


def of_module(source: str, *, is_command: bool, public: frozenset[str] = frozenset()) -> list[str]:
    """Of a module: what its errors say, the docstrings of public names, and every string where it is a command's."""
    tree = ast.parse(source)
    texts = list(_texts_of_errors(tree))
    if is_command:
        inside = {id(each) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for each in node.values}
        texts += [_text(node) for node in ast.walk(tree) if _is_text(node) and id(node) not in inside]
        texts = [text for text in texts if text != ast.get_docstring(tree, clean=False)]
    else:
        texts += [doc for node in tree.body if getattr(node, "name", "") in public for doc in _docstrings(node)]
    return [riddle for text in dict.fromkeys(texts) for riddle in riddles(text)]


def _docstrings(node: ast.stmt) -> Iterator[str]:
    """Of a class or a function, of its public methods, and those that stand under its fields."""
    if isinstance(node, ast.ClassDef):
        below = zip(node.body, node.body[1:], strict=False)
        yield from (_text(doc.value) for field, doc in below if _is_field(field) and _is_doc(doc))  # type: ignore[attr-defined]
    for each in ast.walk(node):
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and (
            not each.name.startswith("_") or each.name == "__init__"
        ):
            yield ast.get_docstring(each) or ""


def _is_field(node: ast.stmt) -> bool:
    return isinstance(node, ast.AnnAssign | ast.Assign)


def _is_doc(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and _is_text(node.value)


def _texts_of_errors(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield from (_text(each) for each in node.exc.args if _is_text(each))


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(each.value if isinstance(each, ast.Constant) else "…" for each in node.values)  # type: ignore[misc]
    assert isinstance(node, ast.Constant)
    return str(node.value)


def _public_names() -> dict[str, frozenset[str]]:
    """The public names, by the path of the module that has them."""
    found: dict[str, frozenset[str]] = {}
    for room in map(import_module, ROOMS):
        for name in room.__all__:
            module = str(getattr(getattr(room, name), "__module__", ""))
            path = f"src/{module.replace('.', '/')}.py"
            found[path] = found.get(path, frozenset()) | {name}
    return found


def everything() -> dict[str, list[str]]:
    """By file, the sentences of its public text that have to be read twice."""
    found = {}
    for page in [ROOT / "README.md", ROOT / "AGENTS.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        name = page.relative_to(ROOT).as_posix()
        if not name.startswith(RECORDED):
            found[name] = of_page(page.read_text("utf-8"))
    public = _public_names()
    for module in sorted((ROOT / "src" / "wakeful").rglob("*.py")):
        name = module.relative_to(ROOT).as_posix()
        is_command = name.startswith("src/wakeful/surfaces/cli/") or name == PROMPTS
        found[name] = of_module(module.read_text("utf-8"), is_command=is_command, public=public.get(name, frozenset()))
    return {name: riddles for name, riddles in found.items() if riddles}


def test_every_sentence_of_public_text_begins_with_its_subject() -> None:
    assert everything() == {}, "begin these sentences with their subject (the usual word for it)"


def test_a_sentence_is_found_wherever_it_stands() -> None:
    page = "# What it does\n\nIt runs. Whoever reads this wonders.\n\n- Nobody knows\n\n"
    page += "```\nWhat is code\n```\nWhat is it?"
    assert of_page(page) == ["What it does", "Whoever reads this wonders.", "Nobody knows"]
    module = 'def f(x):\n    """What f is."""\n    raise ValueError(f"nobody has {x}", "give one")\n'
    assert of_module(module, is_command=False) == ["nobody has …"]
    assert of_module(module, is_command=False, public=frozenset({"f"})) == ["nobody has …", "What f is."]
    fields = 'class F:\n    """F."""\n    x: int = 1\n    """Who did it."""\n'
    assert of_module(fields, is_command=False, public=frozenset({"F"})) == ["Who did it."]
    assert of_module('SAY = "what waits"\nSO = f"that {SAY}"', is_command=True) == ["what waits", "that …"]
