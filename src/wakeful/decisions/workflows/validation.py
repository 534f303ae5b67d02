"""Does a graph hold together? Every problem at once, each with its code, its path and what to do about it.

Asked before a graph is saved, given back or run. What only the values themselves can show is left to the gate.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from wakeful.contracts.workflows import (
    APPROVAL_REF,
    INPUT,
    MAX_EDGES,
    MAX_GRAPH_BYTES,
    MAX_NODES,
    NODE_INPUTS,
    RESULT,
    GraphCode,
    GraphProblem,
    NodeKind,
    NodeType,
    WorkflowEdge,
    WorkflowGraph,
    WorkflowNode,
)
from wakeful.decisions.workflows.order import cycles
from wakeful.decisions.workflows.schemas import (
    ParameterSchema,
    below,
    can_meet,
    is_schema,
    leads_nowhere,
    misfit,
    parameters,
)

Types: TypeAlias = Mapping[tuple[NodeKind, str], NodeType]

APPROVAL = NodeType(
    kind="approval",
    ref=APPROVAL_REF,
    description="A person decides. The result is their answer; when they refuse, the node fails.",
    input_schema=NODE_INPUTS["approval"],
    output_schema={"type": "string"},
)
_NOTED = 8
"""How many names a message lists."""


def by_ref(types: Iterable[NodeType]) -> Types:
    """Node types as they are looked up. Approvals are always among them."""
    return {(each.kind, each.ref): each for each in (APPROVAL, *types)}


def type_of(node: WorkflowNode, types: Types) -> NodeType | None:
    """What a node refers to; None when there is no such thing."""
    if node.kind == "approval" and not node.ref:
        return APPROVAL
    return types.get((node.kind, node.ref))


def validate(graph: WorkflowGraph, types: Types) -> tuple[GraphProblem, ...]:
    """What is wrong with the graph; empty when nothing is."""
    return tuple(_too_large(graph)) or tuple(_Check(graph, types).problems())


def _too_large(graph: WorkflowGraph) -> Iterator[GraphProblem]:
    for path, count, most in (("nodes", len(graph.nodes), MAX_NODES), ("edges", len(graph.edges), MAX_EDGES)):
        if count > most:
            yield _problem("too_large", path, f"{count} {path} are too many; a workflow has at most {most}")
    size = len(graph.model_dump_json())
    if size > MAX_GRAPH_BYTES:
        words = f"it is {size} bytes long as JSON, and a workflow has {MAX_GRAPH_BYTES} at most"
        yield _problem("too_large", "", words)


class _Check:
    """One graph, looked at from all sides."""

    def __init__(self, graph: WorkflowGraph, types: Types) -> None:
        self.graph = graph
        self.types = types
        self.nodes: dict[str, tuple[int, WorkflowNode]] = {}
        for index, node in enumerate(graph.nodes):
            self.nodes.setdefault(node.id, (index, node))
        self.kinds = {node.id: type_of(node, types) for _, node in self.nodes.values()}
        self.takes: dict[str, ParameterSchema] = {
            node: parameters(kind.input_schema) for node, kind in self.kinds.items() if kind is not None
        }

    def problems(self) -> Iterator[GraphProblem]:
        yield from self._inputs()
        for index, node in enumerate(self.graph.nodes):
            yield from self._node(index, node)
        given: dict[tuple[str, str], str] = {
            (node.id, name): f"nodes[{index}].inputs.{name}"
            for index, node in self.nodes.values()
            for name in node.inputs
        }
        for index, edge in enumerate(self.graph.edges):
            yield from self._edge(index, edge)
            taken = given.setdefault((edge.target, edge.target_input), f"edges[{index}]")
            if taken != f"edges[{index}]" and edge.target in self.nodes:
                words = f"{edge.target}.{edge.target_input} has a value from {taken} already; leave one of them out"
                yield _problem("duplicate_target_input", f"edges[{index}].target_input", words)
        for index, node in self.nodes.values():
            yield from self._missing(index, node)
        for cycle in cycles(self.graph):
            words = f"these nodes wait for each other: {' -> '.join((*cycle, cycle[0]))}; a workflow cannot have cycles"
            yield _problem("cycle", self._cycle_path(cycle), words, nodes=cycle)
        yield from self._outputs()

    def _inputs(self) -> Iterator[GraphProblem]:
        for name, schema in self.graph.inputs.items():
            wrong = is_schema(schema)
            if wrong is not None:
                yield _problem("type_mismatch", f"inputs.{name}", wrong)
        for index, name in enumerate(self.graph.required_inputs):
            if name not in self.graph.inputs:
                words = f"the workflow has no input {name!r}; it has {_names(self.graph.inputs)}"
                yield _problem("unknown_input", f"required_inputs[{index}]", words)

    def _node(self, index: int, node: WorkflowNode) -> Iterator[GraphProblem]:
        at = f"nodes[{index}]"
        first, _ = self.nodes[node.id]
        if first != index:
            words = f"nodes[{first}] is called {node.id!r} already; give one of them another id"
            yield _problem("duplicate_node_id", f"{at}.id", words)
            return
        if self.kinds[node.id] is None:
            there = _names(ref for kind, ref in self.types if kind == node.kind)
            yield _problem("unknown_ref", f"{at}.ref", f"there is no {node.kind} {node.ref!r}; there are: {there}")
            return
        takes = self.takes[node.id]
        for name, value in node.inputs.items():
            if not takes.knows(name):
                yield _unknown_input(f"{at}.inputs.{name}", node.id, name, takes)
                continue
            wrong = misfit(value, takes.named.get(name, {}), takes.root)
            if wrong is not None:
                yield _problem("type_mismatch", f"{at}.inputs.{name}", wrong)

    def _edge(self, index: int, edge: WorkflowEdge) -> Iterator[GraphProblem]:
        at = f"edges[{index}]"
        known = True
        for end in ("source", "target"):
            named = getattr(edge, end)
            if named not in self.nodes and not (end == "source" and named == INPUT):
                known = False
                words = f"there is no node {named!r}; there are: {_names(self.nodes)}"
                yield _problem("unknown_node", f"{at}.{end}", words)
        gives = None
        if edge.source == INPUT or edge.source in self.nodes:
            gives, wrong = self._given_by(edge)
            if wrong is not None:
                known = False
                yield _problem("unknown_output", f"{at}.source_output", wrong)
        takes = self.takes.get(edge.target)
        if takes is None:
            return
        if not takes.knows(edge.target_input):
            yield _unknown_input(f"{at}.target_input", edge.target, edge.target_input, takes)
        elif known and gives is not None:
            schema, root = gives
            wanted = takes.named.get(edge.target_input, {})
            if not can_meet(schema, root, wanted, takes.root):
                words = f"{edge.source}.{edge.source_output} never fits {edge.target}.{edge.target_input}"
                yield _problem("type_mismatch", at, f"{words}: their types have nothing in common")

    def _given_by(self, edge: WorkflowEdge) -> tuple[tuple[object, Mapping[str, object]] | None, str | None]:
        """The schema of what an edge brings, with the schema it is a part of; or what is wrong with its path."""
        if edge.source == INPUT:
            if edge.source_output not in self.graph.inputs:
                there = _names(self.graph.inputs)
                return None, f"the workflow has no input {edge.source_output!r}; it has {there}"
            schema = self.graph.inputs[edge.source_output]
            return (None if is_schema(schema) is not None else (schema, {})), None
        return self._at(edge.source, edge.source_output)

    def _at(self, node: str, path: str) -> tuple[tuple[object, Mapping[str, object]] | None, str | None]:
        first, *steps = path.split(".")
        if first != RESULT or "" in steps:
            return None, f"{path!r} is neither `{RESULT}` nor a path below it, such as `{RESULT}.title`"
        kind = self.kinds[node]
        if kind is None or kind.output_schema is None:
            return None, None
        if leads_nowhere(kind.output_schema, steps, kind.output_schema):
            return None, f"what {node} gives has nothing at {path!r}"
        return (below(kind.output_schema, steps, kind.output_schema), kind.output_schema), None

    def _missing(self, index: int, node: WorkflowNode) -> Iterator[GraphProblem]:
        takes = self.takes.get(node.id)
        if takes is None:
            return
        fed = {edge.target_input: edge for edge in self.graph.edges if edge.target == node.id}
        for name in sorted(takes.required - set(node.inputs)):
            edge = fed.get(name)
            at = f"nodes[{index}].inputs.{name}"
            if edge is None:
                yield _problem("missing_required_input", at, f"{node.id} needs {name}: give a value, or an edge to it")
            elif edge.source == INPUT and self._may_be_absent(edge.source_output):
                words = f"{node.id} needs {name}, and the input {edge.source_output!r} may be left out"
                hint = "put it into required_inputs, or give it a default"
                yield _problem("missing_required_input", at, f"{words}: {hint}")

    def _may_be_absent(self, name: str) -> bool:
        schema = self.graph.inputs.get(name)
        has_default = isinstance(schema, Mapping) and "default" in schema
        return name in self.graph.inputs and name not in self.graph.required_inputs and not has_default

    def _cycle_path(self, cycle: tuple[str, ...]) -> str:
        """Its edge that was written last."""
        steps = set(zip(cycle, (*cycle[1:], cycle[0]), strict=True))
        last = max(index for index, edge in enumerate(self.graph.edges) if (edge.source, edge.target) in steps)
        return f"edges[{last}]"

    def _outputs(self) -> Iterator[GraphProblem]:
        for name, output in self.graph.outputs.items():
            if output.node not in self.nodes:
                words = f"there is no node {output.node!r}; there are: {_names(self.nodes)}"
                yield _problem("unknown_output", f"outputs.{name}.node", words)
                continue
            _, wrong = self._at(output.node, output.path)
            if wrong is not None:
                yield _problem("unknown_output", f"outputs.{name}.path", wrong)


def _unknown_input(path: str, node: str, name: str, takes: ParameterSchema) -> GraphProblem:
    return _problem("unknown_input", path, f"{node} has no input {name!r}; it takes: {_names(takes.named)}")


def _problem(code: GraphCode, path: str, message: str, nodes: tuple[str, ...] = ()) -> GraphProblem:
    return GraphProblem(code=code, path=path, message=message, nodes=nodes)


def _names(names: Iterable[str]) -> str:
    listed = list(dict.fromkeys(names))
    more = f" and {len(listed) - _NOTED} more" if len(listed) > _NOTED else ""
    return f"{', '.join(listed[:_NOTED])}{more}" if listed else "none"
