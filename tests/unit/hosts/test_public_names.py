"""`wakeful.hosts` and `wakeful.hosts.chat`: every name is there, for type checkers too, and importing loads none."""

import ast
import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import wakeful
from wakeful import hosts
from wakeful.hosts import chat

DOORS = (wakeful, hosts, chat)


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_a_type_checker_finds_what_a_program_finds(door: Any) -> None:
    tree = ast.parse(Path(door.__file__).read_text())
    (only_typed,) = (node for node in tree.body if isinstance(node, ast.If))
    typed = {
        each.asname: getattr(import_module(str(node.module)), each.name)
        for node in only_typed.body
        if isinstance(node, ast.ImportFrom)
        for each in node.names
    }
    assert typed == {name: getattr(door, name) for name in door.__all__ if name != "__version__"}
    assert dir(door) == sorted(door.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        door.nothing  # noqa: B018


@pytest.mark.parametrize("door", [each.__name__ for each in DOORS])
def test_importing_a_door_loads_nothing_behind_it(door: str) -> None:
    program = f"import sys, {door}; print(*(name for name in sys.modules if name.startswith('wakeful')))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    parents = {".".join(door.split(".")[:count]) for count in range(1, len(door.split(".")) + 1)}
    assert set(loaded) == {*parents, "wakeful._version"}


@pytest.mark.parametrize(
    "first", ["abilities.registry", "ports", "tools.tool_execution", "dispatch.dispatcher", "chat.turns"]
)
def test_any_room_of_the_hosts_may_be_imported_first(first: str) -> None:
    subprocess.run([sys.executable, "-c", f"import wakeful.hosts.{first}"], check=True)


ANYTHING = {
    "Abilities.call",
    "ActionOutcome.__init__",
    "HookRegistry.observe",
    "HookRegistry.resolve",
    "HookRegistry.value",
    "dispatch_ability",
}
"""What takes or gives a value of any type: JSON of an ability, what a hook says, what is checked. It only shrinks."""


def signatures(door: Any) -> dict[str, inspect.Signature]:
    found: dict[str, Any] = {}
    for name in door.__all__:
        value = getattr(door, name)
        if inspect.isfunction(value):
            found[name] = value
        elif inspect.isclass(value):
            own = {each: getattr(method, "__func__", method) for each, method in list(vars(value).items())}
            found |= {f"{name}.{each}": method for each, method in own.items() if inspect.isfunction(method)}
    return {
        name: inspect.signature(function)
        for name, function in found.items()
        if not name.rpartition(".")[2].startswith("_") or name.endswith(".__init__")
    }


@pytest.mark.parametrize("door", [hosts, chat], ids=lambda door: door.__name__)
def test_no_public_signature_says_any_where_there_is_a_type(door: Any) -> None:
    vague = {
        name
        for name, signature in signatures(door).items()
        if Any in [signature.return_annotation, *(each.annotation for each in signature.parameters.values())]
    }
    assert vague == (ANYTHING if door is hosts else set())
