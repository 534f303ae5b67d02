"""Graphs and node types that the suites of workflows share."""

from itertools import pairwise
from typing import Any

from wakeful.contracts.workflows import NODE_INPUTS, NodeType, WorkflowGraph
from wakeful.decisions.workflows.validation import Types, by_ref

SEARCH = NodeType(
    kind="tool",
    ref="search",
    description="Find pages.",
    input_schema={
        "type": "object",
        "properties": {"query": {"type": "string"}, "limit": {"type": "integer", "maximum": 50}},
        "required": ["query"],
        "additionalProperties": False,
    },
)
PUBLISH = NodeType(
    kind="tool",
    ref="publish",
    input_schema={
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "copies": {"$ref": "#/$defs/Copies"},
            "draft": {"type": "boolean"},
        },
        "required": ["text"],
        "additionalProperties": False,
        "$defs": {"Copies": {"type": "integer", "minimum": 1}},
    },
)
WRITER = NodeType(kind="agent", ref="writer", input_schema=NODE_INPUTS["agent"], output_schema={"type": "string"})
REVIEWER = NodeType(
    kind="agent",
    ref="reviewer",
    input_schema=NODE_INPUTS["agent"],
    output_schema={
        "type": "object",
        "properties": {"score": {"type": "integer"}, "notes": {"type": "array", "items": {"type": "string"}}},
        "required": ["score"],
    },
)
TYPES: Types = by_ref([SEARCH, PUBLISH, WRITER, REVIEWER])


def data(**changes: Any) -> dict[str, Any]:
    """A graph as JSON data: search, write, review beside it, ask, publish."""
    return {
        "schema": "wakeful.workflow",
        "version": 1,
        "name": "digest",
        "inputs": {"topic": {"type": "string"}, "limit": {"type": "integer", "default": 5}},
        "required_inputs": ["topic"],
        "nodes": [
            {"id": "publish", "kind": "tool", "ref": "publish", "title": "Publish it", "inputs": {"copies": 2}},
            {"id": "search", "kind": "tool", "ref": "search"},
            {"id": "write", "kind": "agent", "ref": "writer"},
            {"id": "review", "kind": "agent", "ref": "reviewer", "inputs": {"instructions": "Be strict."}},
            {"id": "ask", "kind": "approval", "inputs": {"question": "Publish this?"}},
        ],
        "edges": [
            {"source": "$input", "source_output": "topic", "target": "search", "target_input": "query"},
            {"source": "$input", "source_output": "limit", "target": "search", "target_input": "limit"},
            {"source": "search", "source_output": "result.pages.0", "target": "write", "target_input": "input"},
            {"source": "search", "target": "review", "target_input": "input"},
            {"source": "write", "target": "ask", "target_input": "show"},
            {"source": "ask", "target": "publish", "target_input": "text"},
        ],
        "outputs": {"text": {"node": "write"}, "score": {"node": "review", "path": "result.score"}},
        **changes,
    }


def graph(**changes: Any) -> WorkflowGraph:
    return WorkflowGraph.model_validate(data(**changes))


def line(*names: str) -> WorkflowGraph:
    """Nodes of which each takes something from the one before it."""
    return WorkflowGraph.model_validate(
        {
            "name": "line",
            "nodes": [{"id": name, "kind": "agent", "ref": "writer"} for name in names],
            "edges": [
                {"source": source, "target": target, "target_input": "input"} for source, target in pairwise(names)
            ],
        }
    )


def nodes(*more: dict[str, Any], **changed: dict[str, Any]) -> list[dict[str, Any]]:
    """The sample's nodes, some of them changed, and more."""
    return [*({**node, **changed.get(node["id"], {})} for node in data()["nodes"]), *more]


def edges(*more: dict[str, Any], without: int | None = None) -> list[dict[str, Any]]:
    return [*(edge for at, edge in enumerate(data()["edges"]) if at != without), *more]


def edge(source: str, target: str, target_input: str, source_output: str = "result") -> dict[str, Any]:
    return {"source": source, "source_output": source_output, "target": target, "target_input": target_input}


PROBLEMS: list[tuple[dict[str, Any], tuple[str, str]]] = [
        (
            {"nodes": nodes({"id": "search", "kind": "tool", "ref": "search"})},
            ("duplicate_node_id", "nodes[5].id"),
        ),
        ({"nodes": nodes(write={"ref": "poet"})}, ("unknown_ref", "nodes[2].ref")),
        ({"edges": edges(edge("searhc", "write", "instructions"))}, ("unknown_node", "edges[6].source")),
        ({"edges": edges(edge("search", "wriet", "input"))}, ("unknown_node", "edges[6].target")),
        ({"edges": edges(edge("search", "review", "prompt"))}, ("unknown_input", "edges[6].target_input")),
        ({"nodes": nodes(search={"inputs": {"page": 1}})}, ("unknown_input", "nodes[1].inputs.page")),
        ({"required_inputs": ["topic", "day"]}, ("unknown_input", "required_inputs[1]")),
        ({"edges": edges(edge("review", "write", "input"))}, ("duplicate_target_input", "edges[6].target_input")),
        (
            {"nodes": nodes(search={"inputs": {"query": "snow"}})},
            ("duplicate_target_input", "edges[0].target_input"),
        ),
        ({"edges": edges(without=0)}, ("missing_required_input", "nodes[1].inputs.query")),
        ({"required_inputs": []}, ("missing_required_input", "nodes[1].inputs.query")),
        ({"nodes": nodes(search={"inputs": {"limit": "ten"}}), "edges": edges(without=1)},
         ("type_mismatch", "nodes[1].inputs.limit")),
        ({"nodes": nodes(publish={"inputs": {"copies": 0}})}, ("type_mismatch", "nodes[0].inputs.copies")),
        ({"edges": edges(edge("review", "publish", "draft", "result.score"))}, ("type_mismatch", "edges[6]")),
        ({"inputs": {**data()["inputs"], "topic": {"type": "boolean"}}}, ("type_mismatch", "edges[0]")),
        ({"inputs": {**data()["inputs"], "odd": {"type": 7}}}, ("type_mismatch", "inputs.odd")),
        ({"edges": edges(edge("publish", "write", "instructions"))}, ("cycle", "edges[6]")),
        ({"edges": edges(edge("search", "write", "instructions", "pages"))},
         ("unknown_output", "edges[6].source_output")),
        ({"edges": edges(edge("$input", "write", "instructions", "day"))},
         ("unknown_output", "edges[6].source_output")),
        ({"outputs": {"text": {"node": "wriet"}}}, ("unknown_output", "outputs.text.node")),
        ({"outputs": {"text": {"node": "write", "path": "result.title"}}}, ("unknown_output", "outputs.text.path")),
        ({"outputs": {"text": {"node": "review", "path": "result.grade"}}}, ("unknown_output", "outputs.text.path")),
    ]  # fmt: skip
"""Changes that make the sample wrong in one way each, and the problem that is found then."""
