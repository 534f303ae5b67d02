"""What is wrong with a graph, by code and path. Each problem is shown on a graph that is valid but for it."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.runs.workflow_graphs import PROBLEMS, TYPES, data, edge, edges, graph, line, nodes
from wakeful.contracts.workflows import (
    MAX_EDGES,
    MAX_GRAPH_BYTES,
    MAX_NODES,
    NODE_INPUTS,
    GraphProblem,
    NodeType,
    WorkflowGraph,
)
from wakeful.decisions.workflows.graph_reader import read_graph
from wakeful.decisions.workflows.order import cycles, dependencies, topological
from wakeful.decisions.workflows.validation import by_ref, validate


def found(**changes: Any) -> list[tuple[str, str]]:
    return [(problem.code, problem.path) for problem in validate(graph(**changes), TYPES)]


@pytest.mark.spec("LOOP-WF-07")
def test_a_graph_of_tools_agents_and_approvals_is_read_from_json_and_written_as_it_was() -> None:
    written = json.dumps(data())
    read = read_graph(written)
    assert isinstance(read, WorkflowGraph)
    assert validate(read, TYPES) == ()
    assert {node.kind for node in read.nodes} == {"tool", "agent", "approval"}
    assert dependencies(read)["publish"] == ("ask",)  # an edge is a dependency
    as_json = read.as_json()
    assert as_json["schema"] == "wakeful.workflow" and "schema_name" not in as_json
    assert WorkflowGraph.model_validate(as_json) == read
    assert {name: as_json[name] for name in data() if name not in ("nodes", "edges", "outputs")} == {
        name: value for name, value in data().items() if name not in ("nodes", "edges", "outputs")
    }


@pytest.mark.parametrize(
    ("changes", "problem"),
    PROBLEMS,
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else "",
)
def test_a_problem_has_its_code_and_its_path(changes: dict[str, Any], problem: tuple[str, str]) -> None:
    assert found() == []
    assert found(**changes) == [problem]


@pytest.mark.spec("LOOP-WF-10")
def test_a_workflow_has_no_way_back_not_even_to_itself_and_an_end_to_its_size() -> None:
    loop = line("a", "b", "c").model_copy(update={"edges": (*line("a", "b", "c").edges, *line("c", "a").edges)})
    (problem,) = validate(loop, TYPES)
    assert (problem.code, problem.nodes) == ("cycle", ("a", "b", "c"))
    itself = graph(edges=edges(edge("write", "write", "instructions")))
    (problem,) = validate(itself, TYPES)
    assert (problem.code, problem.path, problem.nodes) == ("cycle", "edges[6]", ("write",))

    largest = line(*(f"n{at}" for at in range(MAX_NODES)))
    assert MAX_NODES == 64 and [each.code for each in validate(largest, TYPES)] == ["missing_required_input"]
    assert [str(each) for each in validate(line(*(f"n{at}" for at in range(MAX_NODES + 1))), TYPES)] == [
        "too_large at nodes: 65 nodes are too many; a workflow has at most 64"
    ]
    open_tool = NodeType(kind="tool", ref="any", input_schema={"type": "object", "additionalProperties": True})
    most = {
        "name": "wide",
        "nodes": [{"id": "a", "kind": "tool", "ref": "any"}, {"id": "b", "kind": "tool", "ref": "any"}],
        "edges": [edge("a", "b", f"p{at}") for at in range(MAX_EDGES)],
    }
    assert MAX_EDGES == 256
    assert validate(WorkflowGraph.model_validate(most), by_ref([open_tool])) == ()
    most["edges"].append(edge("a", "b", "one_more"))  # type: ignore[attr-defined]
    assert [each.path for each in validate(WorkflowGraph.model_validate(most), by_ref([open_tool]))] == ["edges"]


def test_a_graph_that_is_too_long_is_refused_as_a_whole() -> None:
    (problem,) = validate(graph(description="x" * MAX_GRAPH_BYTES), TYPES)
    assert (problem.code, problem.path) == ("too_large", "")


def test_all_problems_are_told_at_once() -> None:
    assert found(
        nodes=nodes(write={"ref": "poet"}, search={"inputs": {"page": 1}}), outputs={"text": {"node": "nobody"}}
    ) == [
        ("unknown_input", "nodes[1].inputs.page"),
        ("unknown_ref", "nodes[2].ref"),
        ("unknown_output", "outputs.text.node"),
    ]


def test_an_approval_may_name_the_tool_that_asks_and_no_other() -> None:
    assert found(nodes=nodes(ask={"ref": "wakeful/ask_person"})) == []
    assert found(nodes=nodes(ask={"ref": "search"})) == [("unknown_ref", "nodes[4].ref")]


def test_a_literal_that_is_wrong_is_not_repeated_in_the_words_about_it() -> None:
    (problem,) = validate(graph(nodes=nodes(publish={"inputs": {"copies": "hunter2"}})), TYPES)
    assert problem.message == "must be integer, not string"


def test_a_tool_and_an_agent_of_one_name_are_two_things() -> None:
    both = by_ref(
        [
            NodeType(kind="tool", ref="same", input_schema={"type": "object", "properties": {"x": {}}}),
            NodeType(kind="agent", ref="same", input_schema=NODE_INPUTS["agent"]),
        ]
    )
    wrong = {"name": "n", "nodes": [{"id": "a", "kind": "agent", "ref": "same", "inputs": {"x": 1}}]}
    assert {each.code for each in validate(WorkflowGraph.model_validate(wrong), both)} == {
        "unknown_input",
        "missing_required_input",
    }


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("{", ""),
        ("[]", ""),
        ("[" * 100_000, ""),
        (json.dumps(data(name="")), "name"),
        (json.dumps(data(version=2)), "version"),
        (json.dumps({**data(), "colour": "red"}), "colour"),
        (json.dumps(data(nodes=nodes({"id": "No", "kind": "tool", "ref": "search"}))), "nodes[5].id"),
        (json.dumps(data(nodes=nodes({"id": "x" * 65, "kind": "tool", "ref": "search"}))), "nodes[5].id"),
        (json.dumps(data(nodes=nodes({"id": "a", "kind": "loop", "ref": "search"}))), "nodes[5].kind"),
        ('{"name": "n", "nodes": [{"id": "a", "kind": "tool", "ref": "t", "inputs": {"x": NaN}}]}', "nodes[0].inputs"),
    ],
)
def test_what_is_no_graph_is_told_by_its_path(text: str, path: str) -> None:
    problems = read_graph(text)
    assert isinstance(problems, tuple)
    assert [(problem.code, problem.path) for problem in problems] == [("invalid_graph", path)]


def test_a_text_without_end_is_not_even_read() -> None:
    problems = read_graph("x" * (8 * MAX_GRAPH_BYTES + 1))
    assert isinstance(problems, tuple) and problems[0].code == "too_large"


names = st.sampled_from(["a", "b", "c", "d", "e", "f"])
pairs = st.lists(st.tuples(names, names), max_size=14)


@settings(max_examples=300, deadline=None)
@given(pairs)
def test_a_graph_has_an_order_exactly_when_it_has_no_cycle(drawn: list[tuple[str, str]]) -> None:
    made = WorkflowGraph.model_validate(
        {
            "name": "drawn",
            "nodes": [{"id": name, "kind": "agent", "ref": "writer"} for name in "abcdef"],
            "edges": [edge(source, target, "input") for source, target in drawn],
        }
    )
    knots = cycles(made)
    for knot in knots:
        for source, target in zip(knot, (*knot[1:], knot[0]), strict=True):
            assert (source, target) in drawn
    if knots:
        with pytest.raises(ValueError, match="depend on each other"):
            topological(made)
    else:
        order = topological(made)
        assert sorted(order) == list("abcdef")
        assert all(order.index(source) < order.index(target) for source, target in drawn)


keys = st.sampled_from(["name", "nodes", "edges", "id", "kind", "ref", "schema", "inputs", "outputs"])
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(anything)
def test_reading_and_validating_never_raise(value: Any) -> None:
    read = read_graph(json.dumps(value))
    if isinstance(read, WorkflowGraph):
        assert all(isinstance(problem, GraphProblem) for problem in validate(read, TYPES))
