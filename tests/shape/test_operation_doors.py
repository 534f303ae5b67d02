"""The table of operations beside its doors: routes, the OpenAPI document, commands, the pages of the reference.

Nothing is missing anywhere; exceptions are named here, with the reason.
"""

import ast
import asyncio
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from wakeful.bootstrap.engines import new_engine
from wakeful.service.operations.operation import OpenStore, Operation
from wakeful.service.operations.routes import ROUTES, WITHOUT_ROUTE
from wakeful.service.operations.table import FAMILIES, OPERATIONS
from wakeful.store.memory import MemoryStore
from wakeful.surfaces.cli.command_table import COMMANDS, GROUPS
from wakeful.surfaces.http.application import application

NO_OPERATION: Mapping[str, str] = {
    "GET /health": "it answers before anything else can be asked",
    "POST /callbacks/{mode}/{token}": "triggers.deliver, at a secret address",
}
"""Routes that no line of the table has."""
NO_COMMAND: Mapping[str, str] = {
    "approvals.decide": "each way to decide has a command of its own, over approvals.decision and its siblings",
    "approvals.list": "wakeful approvals asks approvals.search, which also takes a status",
    "runtime.briefs": "wakeful transcript and wakeful tail show briefs among what was said",
    "runtime.chat": "the stream of a chat client; wakeful chat asks runtime.send and runtime.answer",
    "runtime.definition": "wakeful agent show and agent diff show the definition",
    "runtime.doctor": "wakeful doctor examines this installation, also where no daemon can start",
    "runtime.entries": "the short list of a screen; wakeful agent shows more of each",
    "runtime.events": "an agent's stream for programs; wakeful tail shows it to people",
    "runtime.imported_agent": "wakeful package import says what it registered",
    "runtime.imported_agents": "wakeful package import says what it registered",
    "runtime.metrics": "text for Prometheus",
    "runtime.process": "wakeful daemon status asks by the client of the daemon's own commands",
    "runtime.say": "the door of chat clients; wakeful send, prompt and chat ask runtime.send",
    "runtime.shutdown": "wakeful daemon stop asks by the client of the daemon's own commands",
    "runtime.snapshot": "what a screen starts from; wakeful agent show is for people",
    "runtime.summary": "the report of one agent for scripts over HTTP; wakeful agent show has all of it",
    "runtime.update": "an agent is changed in its file, or wakeful agent model for what changes most",
    "runtime.waits": "wakeful why AGENT names each wait",
    "threads.messages": "wakeful transcript --thread",
    "turns.wire": "wakeful events --as wire asks turns.lines",
}
"""Operations that no command asks, and where a person finds the same."""


@cache
def operations_by_constant() -> Mapping[str, str]:
    return {
        where: each.name for family in FAMILIES for where, each in vars(family).items() if isinstance(each, Operation)
    }


def asked_by(module: str, folder: Path, seen: set[str]) -> set[str]:
    """Operations that a module of the command line names, and those that modules name which it imports."""
    path = folder / f"{module}.py"
    if module in seen or not path.is_file():
        return set()
    seen.add(module)
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ImportFrom) or node.module is None:
            continue
        if node.module.startswith("wakeful.service.operations"):
            found |= {
                operations_by_constant()[each.name] for each in node.names if each.name in operations_by_constant()
            }
        elif node.module.startswith("wakeful.surfaces.cli."):
            found |= asked_by(node.module.rpartition(".")[2], folder, seen)
    return found


def openapi_routes() -> set[str]:
    async def document() -> set[str]:
        store = MemoryStore()
        app = application(OpenStore(store, new_engine, frozenset), asyncio.Event())
        await store.close()
        return {f"{method.upper()} {path}" for path, item in app.openapi()["paths"].items() for method in item}

    return asyncio.run(document())


def test_every_operation_has_a_route_or_a_reason_why_not() -> None:
    routed = {route.operation.name for route in ROUTES}
    assert routed | set(WITHOUT_ROUTE) == set(OPERATIONS)
    assert not routed & set(WITHOUT_ROUTE)


def test_the_openapi_document_has_every_route_of_the_table_and_no_other() -> None:
    assert openapi_routes() == {f"{route.method} {route.path}" for route in ROUTES} | set(NO_OPERATION)


def test_every_operation_is_asked_by_a_command_or_it_is_said_where_a_person_finds_it(root: Path) -> None:
    folder = root / "src/wakeful/surfaces/cli"
    asked = {name for command in COMMANDS.values() for name in asked_by(command.module, folder, set())}
    assert asked | set(NO_COMMAND) == set(OPERATIONS)
    assert not asked & set(NO_COMMAND), "a command asks it now"
    firsts = {name.split()[0] for name in COMMANDS}
    assert set(re.findall(r"wakeful (\w+)", " ".join(NO_COMMAND.values()))) <= firsts


def test_the_reference_has_every_route_and_every_command(root: Path) -> None:
    http, commands = ((root / "docs/reference" / name).read_text() for name in ("http.md", "cli.md"))
    rows = {f"| {route.method} | `{route.path}` | {route.scope} | {route.operation.name}" for route in ROUTES}
    assert sorted(row for row in rows if row not in http) == []
    listed = [name for names in GROUPS.values() for name in names]
    assert [name for name in listed if f"### wakeful {name}\n" not in commands] == []
