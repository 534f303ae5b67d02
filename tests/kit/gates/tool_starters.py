"""Who begins tools, read from the source: every place from which code behind a tool could be started.

A tool is begun with `start(ctx, arguments)`. What else is called `start` takes another number of arguments; what is
not called on the spot, or is found by its name, could be anything and counts.
"""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

HOW_MANY = {"start": (2, 3), "invoke": (2, 3)}
"""Arguments of the methods that begin a tool: on the tool, or on its class with the tool first."""
WORDS = re.compile(
    r"\.(start|invoke|execute)\b|[\"'](start|invoke|tool)[\"']|\.tool\b.*=|Admission\(|RunningCall|tools\.call_runner"
)
"""A module without any of these has nothing to look at."""
BY_NAME = ("getattr", "attrgetter", "methodcaller")
NUMBERS = ("tier.start",)
"""What is called the same and is a number. What is compared or put into a text is no method, and needs no name here."""
THE_DOOR = {
    "gate/running_call.py": ["at.tool.start"],
    "tools/tool.py": ["self.start"],
}
"""The running of a call that passed the gate; and `invoke` of a tool itself, which nothing of the runtime calls."""


def check_one_door(root: Path) -> None:
    """Nothing but the gate begins a tool, and it begins only what the gate let through."""
    package = root / "src" / "wakeful"
    texts = {str(path.relative_to(package)): path.read_text() for path in sorted(package.rglob("*.py"))}
    trees = {module: ast.parse(text) for module, text in texts.items() if WORDS.search(text)}

    def found(find: Callable[[ast.AST], Iterator[str]]) -> dict[str, list[str]]:
        return {module: each for module, tree in trees.items() if (each := list(find(tree)))}

    assert found(_starts_of_tools) == THE_DOOR
    made = {module: set(names) for module, names in found(_makers_of_calls).items()}
    assert made == {
        "gate/preparation.py": {"tool"},
        "gate/passage.py": {"Admission"},
        "gate/answered_calls.py": {"Admission"},
        "engine/calls.py": {"RunningCall"},
    }
    assert {module.partition("/")[0] for module in found(_starts_of_functions)} == {"tools"}
    executors = [module for module in found(_starts_of_executors) if not module.startswith("store/")]
    assert executors == ["hosts/tools/tool_execution.py"]


def _starts_of_tools(tree: ast.AST) -> Iterator[str]:
    """The expressions with which a tool may be begun."""
    called = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    numbers = {id(child) for node in ast.walk(tree) for child in _compared(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in HOW_MANY:
            call = called.get(id(node))
            if id(node) in numbers or ast.unparse(node) in NUMBERS:
                continue
            if call is None or len(call.args) + len(call.keywords) in HOW_MANY[node.attr] or _is_open(call):
                yield ast.unparse(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in BY_NAME:
            named = [each.value for each in node.args if isinstance(each, ast.Constant)]
            yield from (ast.unparse(node) for name in named if name in HOW_MANY)


def _compared(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    return [node.value] if isinstance(node, ast.FormattedValue) else []


def _is_open(call: ast.Call) -> bool:
    starred = any(isinstance(each, ast.Starred) for each in call.args)
    return starred or any(each.arg is None for each in call.keywords)


def _makers_of_calls(tree: ast.AST) -> Iterator[str]:
    """Where a call gets the tool it can be run with, where one is let through, and where one that runs is made."""
    for node in ast.walk(tree):
        is_set = isinstance(node, ast.Attribute) and node.attr == "tool" and isinstance(node.ctx, ast.Store)
        if is_set and ast.unparse(node) != "self.tool":  # a class's own field
            yield "tool"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            lets_through = len(node.args) > 1 or any(each.arg == "dispatch" for each in node.keywords)
            if name in ("setattr", "__setattr__") and any(
                isinstance(each, ast.Constant) and each.value == "tool" for each in node.args
            ):
                yield "tool"
            if name == "RunningCall" or (name == "Admission" and (lets_through or _is_open(node))):
                yield name


def _starts_of_functions(tree: ast.AST) -> Iterator[str]:
    """Who has what starts a function for a tool."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "wakeful.tools.call_runner":
            yield from (each.name for each in node.names if each.name == "begin")


def _starts_of_executors(tree: ast.AST) -> Iterator[str]:
    """Who hands a host's executor on to be called: it is named and not called, because a thread may have to do it."""
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "execute" and id(node) not in called:
            yield ast.unparse(node)
