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
