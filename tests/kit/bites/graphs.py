"""What a workflow is made of, field by field; and the bounds of the loop that nobody sets, at the bound and beyond."""

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kit.bites import Bites
from kit.bites.chats import ADD, DRAFT, weigh
from kit.bites.declared import side_by_side
from kit.hosts.chat_server import BUILDING, EDITOR, Client, Server, designing
from kit.runs.asked_runs import World, agent
from wakeful import Agent, run, tool
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.errors import InvalidValue, InvalidWorkflow
from wakeful.contracts.tools import PREVIEW_CHARS
from wakeful.contracts.workflows import MAX_EDGES, MAX_NODES, WorkflowGraph
from wakeful.decisions.workflows.graph_planner import MAX_CORRECTIONS
from wakeful.engine.run_request import RunRequest
from wakeful.engine.workflow_parts import workflow_registry
from wakeful.engine.workflow_registry import WorkflowRegistry
from wakeful.hosts.chat.client_manifest import TIMEOUT_SECONDS
from wakeful.providers.scripted import ScriptedModel
from wakeful.service.queries.views import wire_messages
from wakeful.service.workflows.runs import WorkflowOutcome, run_workflow
from wakeful.store.memory import MemoryStore
from wakeful.views.wire_messages import TaskUpdate

GRAPHS = Bites()
BOUNDS = Bites()
TOOL_FIELDS = Bites()
"""What a tool says of itself."""


@tool(effect="pure")
def order(order: str, pieces: int = 1) -> dict[str, Any]:
    """An order."""
    return {"order": order, "pieces": pieces}


BASE: dict[str, Any] = {
    "name": "weighing",
    "inputs": {"order": {"type": "string", "default": "A"}, "other": {"type": "string", "default": "B"}},
    "nodes": [{"id": "find", "kind": "tool", "ref": "order"}, {"id": "say", "kind": "tool", "ref": "weigh"}],
    "edges": [
        {"source": "$input", "source_output": "order", "target": "find", "target_input": "order"},
        {"source": "find", "source_output": "result.order", "target": "say", "target_input": "order"},
    ],
    "outputs": {"said": {"node": "say"}},
}


def drawn(**changes: Any) -> dict[str, Any]:
    return {**BASE, **changes}


def with_node(**changes: Any) -> dict[str, Any]:
    first, last = BASE["nodes"]
    return drawn(nodes=[first, {**last, **changes}])


def with_edge(place: int = 0, **changes: Any) -> dict[str, Any]:
    return drawn(edges=[{**edge, **(changes if at == place else {})} for at, edge in enumerate(BASE["edges"])])


async def registry_of() -> tuple[Any, Agent[Any, Any], WorkflowRegistry]:
    system, desk = new_engine(MemoryStore()), Agent("desk", ScriptedModel(["x"]), tools=[order, weigh])
    return system, desk, await workflow_registry(system, desk)


async def came(graph: dict[str, Any], **inputs: Any) -> Any:
    """What a run of it gives; or the words for what is wrong with it."""
    try:
        result = (await ran(graph, **inputs))[1].result
        assert result is not None
        return result.outputs
    except InvalidWorkflow as refused:
        return [problem.code for problem in refused.problems]
    except (InvalidValue, ValidationError) as refused:
        return type(refused)


async def ran(graph: dict[str, Any], **inputs: Any) -> tuple[Any, WorkflowOutcome]:
    system, desk, registry = await registry_of()
    made = WorkflowGraph.model_validate(graph)
    return system, await run_workflow(system, registry, made, RunRequest(desk, ""), inputs)


SAID, OTHER = {"said": "A weighs 7"}, {"said": "B weighs 7"}


@GRAPHS.of("graph.schema_name", ("wakeful.workflow", SAID), ("other", ValidationError))
async def _schema(value: str, folder: Path) -> Any:
    return await came(drawn(schema=value))


@GRAPHS.of("graph.version", (1, SAID), (2, ValidationError))
async def _version(value: int, folder: Path) -> Any:
    return await came(drawn(version=value))


@GRAPHS.of("graph.id", (None, 2), ("saved", 1))
async def _id(value: str | None, folder: Path) -> Any:
    """One with an id is a revision of what has it, whatever its name; how many are there then?"""
    _, _, registry = await registry_of()
    first = await registry.save(WorkflowGraph.model_validate(BASE))
    await registry.save(WorkflowGraph.model_validate(drawn(name="renamed", id=first if value else None)))
    return len(await registry.list())


@GRAPHS.of("graph.name", ("one", ["one"]), ("two", ["two"]))
async def _name(value: str, folder: Path) -> Any:
    return [each.name for each in await saved(drawn(name=value))]


@GRAPHS.of("graph.description", ("one", ["one"]), ("two", ["two"]))
async def _description(value: str, folder: Path) -> Any:
    return [each.graph.description for each in await saved(drawn(description=value))]


async def saved(graph: dict[str, Any]) -> Any:
    _, _, registry = await registry_of()
    await registry.save(WorkflowGraph.model_validate(graph))
    return await registry.list()


@GRAPHS.of("graph.inputs", ("A", SAID), ("B", OTHER))
async def _inputs(value: str, folder: Path) -> Any:
    return await came(drawn(inputs={"order": {"type": "string", "default": value}}))


@GRAPHS.of("graph.required_inputs", ([], SAID), (["day"], InvalidValue))
async def _required(value: list[str], folder: Path) -> Any:
    return await came(drawn(inputs={**BASE["inputs"], "day": {"type": "string"}}, required_inputs=value))


@GRAPHS.of("graph.nodes", (False, SAID), (True, ["unknown_node"]))
async def _nodes(one_less: bool, folder: Path) -> Any:
    found = await came(drawn(nodes=BASE["nodes"][1:]) if one_less else BASE)
    return sorted(set(found) & {"unknown_node"}) if one_less else found


@GRAPHS.of("graph.edges", (False, SAID), (True, ["missing_required_input"]))
async def _edges(one_less: bool, folder: Path) -> Any:
    return await came(drawn(edges=BASE["edges"][1:]) if one_less else BASE)


@GRAPHS.of("graph.outputs", ({"said": {"node": "say"}}, SAID), ({}, {}))
async def _outputs(value: dict[str, Any], folder: Path) -> Any:
    return await came(drawn(outputs=value))


@GRAPHS.of("node.id", ("say", SAID), ("tell", ["unknown_node", "unknown_output"]))
async def _node_id(value: str, folder: Path) -> Any:
    found = await came(with_node(id=value))
    return found if value == "say" else sorted(set(found) - {"missing_required_input"})


@GRAPHS.of("node.kind", ("tool", SAID), ("agent", ["unknown_ref"]))
async def _node_kind(value: str, folder: Path) -> Any:
    found = await came(with_node(kind=value))
    return found if value == "tool" else [code for code in found if code == "unknown_ref"]


@GRAPHS.of("node.ref", ("weigh", SAID), ("order", {"said": {"order": "A", "pieces": 1}}))
async def _node_ref(value: str, folder: Path) -> Any:
    return await came(with_node(ref=value))


@GRAPHS.of("node.title", ("Weigh it", {"Weigh it"}), ("Say it", {"Say it"}))
async def _node_title(value: str, folder: Path) -> Any:
    system, outcome = await ran(with_node(title=value))
    wire = await wire_messages(system.store, outcome.run.turn_id)
    told = [one for one in wire.messages if isinstance(one, TaskUpdate)]
    return {one.step.title for one in told if one.step is not None and one.step.id == "say"}


@GRAPHS.of(
    "node.inputs", ({}, {"said": {"order": "A", "pieces": 1}}), ({"pieces": 2}, {"said": {"order": "A", "pieces": 2}})
)
async def _node_inputs(value: dict[str, Any], folder: Path) -> Any:
    return await came(with_node(ref="order", inputs=value))


@GRAPHS.of("edge.source", ("$input", SAID), ("nobody", ["unknown_node"]))
async def _source(value: str, folder: Path) -> Any:
    found = await came(with_edge(source=value))
    return found if value == "$input" else [code for code in found if code == "unknown_node"]


@GRAPHS.of("edge.source_output", ("order", SAID), ("other", OTHER))
async def _source_output(value: str, folder: Path) -> Any:
    return await came(with_edge(source_output=value))


@GRAPHS.of("edge.target", ("find", SAID), ("say", ["duplicate_target_input", "missing_required_input"]))
async def _target(value: str, folder: Path) -> Any:
    found = await came(with_edge(target=value))
    return found if value == "find" else sorted(found)


@GRAPHS.of("edge.target_input", ("order", SAID), ("when", ["missing_required_input", "unknown_input"]))
async def _target_input(value: str, folder: Path) -> Any:
    found = await came(with_edge(target_input=value))
    return found if value == "order" else sorted(found)


@GRAPHS.of("output.node", ("say", SAID), ("find", {"said": {"order": "A", "pieces": 1}}))
async def _output_node(value: str, folder: Path) -> Any:
    return await came(drawn(outputs={"said": {"node": value}}))


@GRAPHS.of("output.path", ("result.order", {"said": "A"}), ("result.pieces", {"said": 1}))
async def _output_path(value: str, folder: Path) -> Any:
    return await came(drawn(outputs={"said": {"node": "find", "path": value}}))


# --- bounds ----------------------------------------------------------------------------------------------------------


def problems(nodes: int, edges: int = 0, text: str = "") -> list[str]:
    """What is wrong with a graph of this size, as to its size."""
    many = [{"id": f"n{at}", "kind": "tool", "ref": "weigh", "inputs": {"order": text}} for at in range(nodes)]
    lines = [{"source": "n0", "target": "n1", "target_input": f"x{at}"} for at in range(edges)]
    registry = WorkflowRegistry(MemoryStore(), new_engine(MemoryStore()).clock, new_engine(MemoryStore()).ids)
    found = registry.problems(WorkflowGraph.model_validate({"name": "g", "nodes": many, "edges": lines}))
    return [problem.path for problem in found if problem.code == "too_large"]


@BOUNDS.of("MAX_NODES", (64, []), (65, ["nodes"]))
async def _many_nodes(value: int, folder: Path) -> Any:
    assert MAX_NODES == 64
    return problems(value)


@BOUNDS.of("MAX_EDGES", (256, []), (257, ["edges"]))
async def _many_edges(value: int, folder: Path) -> Any:
    assert MAX_EDGES == 256
    return problems(2, value)


@BOUNDS.of("MAX_GRAPH_BYTES", (900_000, []), (1_000_000, [""]))
async def _large(value: int, folder: Path) -> Any:
    return problems(1, text="x" * value)


@BOUNDS.of("MAX_CORRECTIONS", (3, "There it is."), (4, "given up"))
async def _corrections(value: int, folder: Path) -> Any:
    assert MAX_CORRECTIONS == 3
    wrong = json.dumps({"name": "drawn", "nodes": [{"id": "w", "kind": "tool", "ref": "wiegh"}]})
    desk = Agent("desk", "scripted:demo", tools=[weigh])
    server = await Server(MemoryStore(), desk, designing(*[wrong] * value, DRAFT, then=BUILDING)).with_registry()
    result = await Client(server).say(chat_context=EDITOR)
    return result.output if await server.store.workflows() else "given up"


@BOUNDS.of("TIMEOUT_SECONDS", (30.0, True), (5.0, False))
async def _time_for_a_client(value: float, folder: Path) -> Any:
    assert TIMEOUT_SECONDS == 30
    server = await Server(MemoryStore(), Agent("desk", "scripted:demo"), lambda request: "done").with_registry()
    client = Client(server, ADD)
    client.bridge.timeout = value
    await client.say(chat_context=EDITOR)
    return [each.timeout for each in server.asked[0].tools if each.name == "client/ui_add"] == [TIMEOUT_SECONDS]


@BOUNDS.of("PREVIEW_CHARS", (400, 400), (900, 500))
async def _preview(value: int, folder: Path) -> Any:
    assert PREVIEW_CHARS == 500
    long = tool(lambda: "x" * value, name="long", effect="pure")
    result = await run(agent([long], ("long",)), "go", store=MemoryStore())
    return len(result.execution_tree.nodes[0].result_preview or "")


# --- what a tool says of itself --------------------------------------------------------------------------------------


@TOOL_FIELDS.of("tool.permission_class", ("safe", ["safe"]), ("editor_mutate", []))
async def _class(value: Any, folder: Path) -> Any:
    world = World()
    made = world.tool("safe", effect="pure", permission_class=value)
    await run(agent([made], ("safe",)), "go", store=MemoryStore())
    return world.names


@TOOL_FIELDS.of("tool.parallel_safe", (True, True), (False, False))
async def _beside(value: bool, folder: Path) -> Any:
    return await side_by_side(effect="pure", parallel_safe=value)


@TOOL_FIELDS.of("tool.requires_exclusive_lock", ((), True), (("workspace_fs",), False))
async def _locked(value: tuple[str, ...], folder: Path) -> Any:
    return await side_by_side(effect="pure", locks=value)
