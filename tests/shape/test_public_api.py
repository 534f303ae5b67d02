"""The small public API: one tree of errors, and signatures that say what they take."""

import inspect
import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from types import FunctionType
from typing import Any

import wakeful
from wakeful import errors, providers, testing

INTERNAL = {
    "AlreadyNoticed", "RestRefused", "WindowFull",  # caught by the loop, which decides again
    "ArgumentsRefused", "ResultRefused", "ToolAsks", "ToolReported",  # told to the model
    "Failure", "NeedsPerson", "WrongRequest",  # of the command line
    "ControlRefused", "DaemonConflict", "DaemonProblem", "NoAnswer", "NobodyThere", "NotNow",  # about a daemon
    "AnswerCutOff", "HomeServed", "NotABackup",  # of a daemon that ends, or runs already; of wakeful restore
}  # fmt: skip
"""Errors of ours that no program sees."""
ANYTHING = {
    "Agent.deps", "Agent.deps_type", "Agent.instructions", "Agent.output_type", "Agent.unknown",
    "Answer.content", "Budget.changed.changes", "Budget.unknown",
    "CompactionPolicy.given", "Happened.result",
    "ModelSettings.given", "Text.data", "Tool.deps_type.return", "Tool.invoke.return",
    "hook.point", "hook.return", "resume.deps",
    "retry.deps", "resume_all.deps", "run.deps",
    "run_sync.options", "run_workflow.deps", "stream.options", "submit_result.result", "tool.fn", "tool.return",
}  # fmt: skip
"""What may be anything: values of users, and implementations whose overloads say more. This list only shrinks."""
ROOMS = (wakeful, errors, providers, testing)
"""Those of hosts are looked at in `tests/unit/hosts/test_public_names.py`."""
_ANY = re.compile(r"Any( \| None)?|Any \| .*|.* \| Any")


def every_error() -> set[type[Exception]]:
    for found in pkgutil.walk_packages(wakeful.__path__, "wakeful."):
        if not found.name.endswith("__main__"):
            import_module(found.name)
    known: set[type[Exception]] = set()
    left: list[type[Exception]] = [errors.WakefulError]
    while left:
        one = left.pop()
        known.add(one)
        left += one.__subclasses__()
    return {each for each in known if each.__module__.startswith("wakeful.")}


def drawn() -> dict[str, str | None]:
    """The tree of the docstring: each name with its parent."""
    above: list[str] = []
    found: dict[str, str | None] = {}
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"([│├└─ ]*)([A-Z]\w+) {3,}\S", line)
        if match is not None:
            depth = len(match[1]) // 4
            del above[depth:]
            found[match[2]] = above[-1] if above else None
            above.append(match[2])
    return found


def test_every_error_a_program_may_catch_is_exported() -> None:
    assert {each.__name__ for each in every_error()} == set(errors.__all__) | INTERNAL


def test_the_tree_of_errors_is_drawn_as_it_is() -> None:
    bases = {name: {base.__name__ for base in getattr(errors, name).__bases__} for name in errors.__all__}
    tree = drawn()
    assert set(tree) == set(errors.__all__)
    assert [name for name, parent in tree.items() if parent is not None and parent not in bases[name]] == []
    assert [name for name, parent in tree.items() if parent is None] == ["WakefulError"]


def signatures() -> Iterator[tuple[str, FunctionType]]:
    """Every public function of `wakeful`, its models and its tests, and the public methods of their classes."""
    for name, thing in ((name, getattr(room, name)) for room in ROOMS for name in room.__all__):
        if isinstance(thing, FunctionType):
            yield name, thing
        elif inspect.isclass(thing):
            for attribute, value in list(vars(thing).items()):
                function = getattr(value, "__func__", getattr(value, "fget", value))
                if isinstance(function, FunctionType) and (attribute == "__init__" or not attribute.startswith("_")):
                    yield name if attribute == "__init__" else f"{name}.{attribute}", function


def test_public_signatures_say_what_they_take() -> None:
    found = {
        f"{name}.{parameter}"
        for name, function in signatures()
        for parameter, said in function.__annotations__.items()
        if _ANY.fullmatch(_words(said))
    }
    assert found == ANYTHING


def _words(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return text.replace("typing.", "")
