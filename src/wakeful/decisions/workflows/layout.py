"""A graph for people: as lines of text, or as Mermaid."""

import json
from typing import Any

from wakeful.contracts.workflows import APPROVAL_REF, INPUT, RESULT, WorkflowGraph, WorkflowNode
from wakeful.decisions.workflows.order import topological

_MAX_LITERAL = 60
_SHAPES = {"tool": ('["', '"]'), "agent": ('(["', '"])'), "approval": ('{{"', '"}}')}


def as_lines(graph: WorkflowGraph) -> list[str]:
    """Nodes in the order they may run, each with where its inputs come from."""
    lines = []
    for name, schema in graph.inputs.items():
        needed = "required" if name in graph.required_inputs else "optional"
        lines.append(f"{INPUT}.{name}  {_kind(schema)}, {needed}")
    for node in map(graph.node, topological(graph)):
        lines.append(f"{node.id}  {_what(node)}" + (f"  ({node.title})" if node.title else ""))
        lines += [
            f"    {edge.target_input} <- {_from(edge.source, edge.source_output)}"
            for edge in graph.edges
            if edge.target == node.id
        ]
        lines += [f"    {name} = {_literal(value)}" for name, value in node.inputs.items()]
    lines += [f"=> {name}  {_from(output.node, output.path)}" for name, output in graph.outputs.items()]
    return lines


def as_mermaid(graph: WorkflowGraph) -> str:
    """A Mermaid flowchart. Ids get a prefix, because some words mean something to Mermaid."""
    lines = ["flowchart TD"]
    for place, name in enumerate(graph.inputs):
        lines.append(f'    in_{place}[/"{_label(name)}"/]')
    for node in graph.nodes:
        opened, closed = _SHAPES[node.kind]
        lines.append(f"    n_{node.id}{opened}{_label(node.title or node.id)}<br/>{_label(_what(node))}{closed}")
    inputs = list(graph.inputs)
    for edge in graph.edges:
        source = f"in_{inputs.index(edge.source_output)}" if edge.source == INPUT else f"n_{edge.source}"
        path = "" if edge.source == INPUT or edge.source_output == RESULT else f"{edge.source_output} to "
        lines.append(f'    {source} -->|"{_label(path + edge.target_input)}"| n_{edge.target}')
    for place, (name, output) in enumerate(graph.outputs.items()):
        lines.append(f'    out_{place}[/"{_label(name)}"/]')
        lines.append(f"    n_{output.node} --> out_{place}")
    return "\n".join(lines) + "\n"


def _what(node: WorkflowNode) -> str:
    return "approval" if node.kind == "approval" and node.ref in ("", APPROVAL_REF) else f"{node.kind} {node.ref}"


def _from(source: str, path: str) -> str:
    return f"{source}.{path}"


def _kind(schema: Any) -> str:
    kind = schema.get("type") if isinstance(schema, dict) else None
    return str(kind) if isinstance(kind, str) else "anything"


def _literal(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MAX_LITERAL else text[: _MAX_LITERAL - 1] + "…"


def _label(text: str) -> str:
    """A text that ends no label and begins no markup."""
    safe = "".join(letter if letter.isalnum() or letter in " _-./:$," else f"#{ord(letter)};" for letter in text)
    return " ".join(safe.split())
