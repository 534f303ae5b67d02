"""How a model is asked for a graph: what it is told, what its answer is, and what it hears when the graph is wrong.

    instructions -> answer -> `judged` -> ValidGraph, GraphCorrection (up to three times) or BuildFailure

An invalid graph leaves this module in no form but its problems.
"""

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from wakeful.contracts.workflows import MAX_EDGES, MAX_NODES, GraphProblem, NodeType, WorkflowGraph
from wakeful.decisions.workflows.graph_reader import read_graph
from wakeful.decisions.workflows.validation import APPROVAL, Types, by_ref, validate

MAX_CORRECTIONS = 3
"""How often the model hears what is wrong before `build_workflow` gives up."""
MAX_TYPES_CHARS = 24_000
"""How much of the prompt describes node types; the rest is named. The prompt stands in a fact, which has its limit."""
MAX_NAMED = 300
"""How many are named."""
MAX_TOLD = 30
"""How many problems the model hears of at once."""

_FORM = {
    "schema": "wakeful.workflow",
    "version": 1,
    "name": "short_name",
    "description": "what it is for",
    "inputs": {"topic": {"type": "string"}},
    "required_inputs": ["topic"],
    "nodes": [
        {"id": "find", "kind": "tool", "ref": "a registered tool", "title": "Find it", "inputs": {"limit": 5}},
        {"id": "write", "kind": "agent", "ref": "a registered agent", "inputs": {"instructions": "Be brief."}},
        {"id": "check", "kind": "approval", "inputs": {"question": "Publish this?", "choices": ["yes", "later"]}},
    ],
    "edges": [
        {"source": "$input", "source_output": "topic", "target": "find", "target_input": "query"},
        {"source": "find", "source_output": "result", "target": "write", "target_input": "input"},
        {"source": "write", "source_output": "result", "target": "check", "target_input": "show"},
    ],
    "outputs": {"text": {"node": "write", "path": "result"}},
}


class ValidGraph(NamedTuple):
    """The graph is valid."""

    graph: WorkflowGraph


class GraphCorrection(NamedTuple):
    """The model is told what is wrong, and answers again."""

    problems: tuple[GraphProblem, ...]
    text: str


class BuildFailure(NamedTuple):
    """It was told often enough."""

    problems: tuple[GraphProblem, ...]


Judgement: TypeAlias = ValidGraph | GraphCorrection | BuildFailure


def planner_instructions(node_types: Iterable[NodeType], objective: str) -> str:
    """All that the model which plans a workflow is told."""
    return "\n".join(
        [
            "You design a workflow: a small graph of steps that a runtime will run later, without you.",
            "Answer with the graph as one JSON object and nothing else. Its form, with one node of each kind:",
            "",
            json.dumps(_FORM, indent=1),
            "",
            "Rules:",
            "- A node's id is lower case: a letter, then letters, digits and _, at most 64. Every id is used once.",
            "- `ref` of a tool or agent node is one of the names below, letter for letter. An approval needs no ref.",
            "- Every required parameter of a node gets exactly one value: a literal in `inputs`, or one edge.",
            "- An edge takes `result` of its source, or a dotted path below it, such as `result.items.0.title`. The "
            "source `$input` is an input of the workflow; source_output is then its name.",
            "- A required parameter must not hang on an input that may be left out, unless that has a default.",
            f"- No cycles. At most {MAX_NODES} nodes and {MAX_EDGES} edges; use as few as do the work.",
            "- Nodes that need nothing of each other run at the same time. Put an approval before what cannot be taken "
            "back.",
            "- When the user should say what the workflow is about, declare an input `prompt`: it takes their text.",
            "",
            "What nodes may be:",
            *_described([APPROVAL, *node_types]),
            "",
            "The objective:",
            objective,
        ]
    )


def judged(text: str, types: Types, corrections: int) -> Judgement:
    """What a model's answer is worth, when it has been corrected this often before."""
    graph = read_graph(answer_in(text))
    problems = validate(graph, types) if isinstance(graph, WorkflowGraph) else graph
    if not problems:
        assert isinstance(graph, WorkflowGraph)
        # The store says which workflow this is, by its name: an id is not the model's to claim.
        return ValidGraph(graph.model_copy(update={"id": None}))
    if corrections >= MAX_CORRECTIONS:
        return BuildFailure(problems)
    return GraphCorrection(problems, correction(problems))


def correction(problems: Sequence[GraphProblem]) -> str:
    """What the model hears about its graph."""
    return "\n".join(
        [
            "The graph was not accepted:",
            *(f"- {problem}" for problem in problems[:MAX_TOLD]),
            *([f"- and {len(problems) - MAX_TOLD} more"] if len(problems) > MAX_TOLD else []),
            "Answer with the whole graph again, as one JSON object, with these mended and nothing else changed.",
        ]
    )


def answer_in(text: str) -> str:
    """The JSON in an answer that may have a fence or words round it."""
    first, last = text.find("{"), text.rfind("}")
    return text[first : last + 1] if 0 <= first < last else text


def _described(types: Sequence[NodeType]) -> list[str]:
    lines: list[str] = []
    left = MAX_TYPES_CHARS
    named: list[str] = []
    for each in by_ref(types).values():
        line = "- " + json.dumps(each.model_dump(mode="json", exclude_none=True), ensure_ascii=False)
        if len(line) <= left:
            lines.append(line)
            left -= len(line)
        else:
            named.append(f"{each.kind} {each.ref}")
    if named:
        lines.append(f"- and, too long to describe here: {', '.join(named[:MAX_NAMED])}")
    return lines
