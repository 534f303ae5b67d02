"""What a node gets, what may begin, and what a run comes to."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.runs.workflow_graphs import data, graph, line
from wakeful.contracts.workflows import NodeStatus, WorkflowGraph, WorkflowNodeResult
from wakeful.decisions.workflows.layout import as_lines, as_mermaid
from wakeful.decisions.workflows.node_inputs import (
    UnresolvedInput,
    arguments_of,
    complete_inputs,
    outputs_of,
    value_at,
    wrong_inputs,
)
from wakeful.decisions.workflows.order import dependencies, doomed, topological
from wakeful.decisions.workflows.progress import PlannedCall, node_result, planned_calls, run_result

INPUTS = {"topic": "snow", "limit": 5}
RESULTS: dict[str, Any] = {
    "search": {"pages": [{"title": "Snow", "url": "s.example"}, "more"]},
    "write": "It snowed.",
    "review": {"score": 7, "notes": ["short"]},
    "ask": "yes",
    "publish": None,
}


def arguments(node: str, results: dict[str, Any] | None = None, of: WorkflowGraph | None = None) -> dict[str, Any]:
    drawn = of or graph()
    return arguments_of(drawn.node(node), drawn, INPUTS, RESULTS if results is None else results)


def test_a_node_gets_its_literals_inputs_and_what_others_gave() -> None:
    assert arguments("search") == {"query": "snow", "limit": 5}
    assert arguments("publish") == {"text": "yes", "copies": 2}


def test_an_agent_is_asked_in_words_and_a_person_sees_what_it_is_about() -> None:
    assert arguments("write") == {"input": '{\n  "title": "Snow",\n  "url": "s.example"\n}'}
    assert arguments("ask") == {"question": "Publish this?\n\nIt snowed."}
    few = graph(nodes=[{"id": "ask", "kind": "approval", "inputs": {"question": "?", "choices": ["a", "b"]}}], edges=[])
    assert arguments("ask", of=few) == {"question": "?", "choices": ["a", "b"]}


@pytest.mark.parametrize(
    ("value", "path", "found"),
    [
        ({"a": {"b": [1, {"c": None}]}}, "result.a.b.1.c", None),
        ([1, 2], "result.1", 2),
        ('{"a": [3]}', "result.a.0", 3),
        ("plain", "result", "plain"),
        ({"0": "key"}, "result.0", "key"),
    ],
)
def test_a_dotted_path_leads_into_what_a_node_gave(value: Any, path: str, found: Any) -> None:
    assert value_at("node", value, path) == found


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"a": 1}, "result.b"),
        ({"a": 1}, "result.a.b"),
        ([1], "result.1"),
        ([1], "result.-1"),
        ([1], "result.x"),
        ("no json", "result.a"),
        (None, "result.a"),
    ],
)
def test_a_path_that_leads_nowhere_is_an_error_and_never_an_empty_value(value: Any, path: str) -> None:
    with pytest.raises(UnresolvedInput) as lost:
        value_at("node", value, path)
    assert lost.value.error.kind == "unresolved_input" and repr(path) in lost.value.error.message


def test_nodes_are_calls_in_an_order_in_which_they_can_run() -> None:
    assert planned_calls(graph(), INPUTS) == (
        PlannedCall("search", "tool", "search", "search", {"query": "snow", "limit": 5}, ()),
        PlannedCall("write", "agent", "agent/writer", "write", {}, ("search",)),
        PlannedCall("review", "agent", "agent/reviewer", "review", {"instructions": "Be strict."}, ("search",)),
        PlannedCall("ask", "approval", "wakeful/ask_person", "ask", {"question": "Publish this?"}, ("write",)),
        PlannedCall("publish", "tool", "publish", "Publish it", {"copies": 2}, ("ask",)),
    )


def test_what_depends_on_a_failure_is_lost_and_the_rest_is_not() -> None:
    assert doomed(graph(), {"search": "succeeded", "write": "failed"}) == {"ask": "write", "publish": "ask"}
    assert doomed(graph(), {"search": "succeeded"}) == {}


def test_a_run_in_which_everything_succeeded_gives_its_outputs() -> None:
    result = run_result(graph(id="wf_1"), ended(RESULTS), revision=3)
    assert (result.workflow_id, result.revision, result.status) == ("wf_1", 3, "succeeded")
    assert result.outputs == {"text": "It snowed.", "score": 7}
    assert [each.id for each in result.nodes] == ["search", "write", "review", "ask", "publish"]


def test_a_failed_node_fails_the_run_skips_what_depends_on_it_and_leaves_the_others() -> None:
    done = ended({name: RESULTS[name] for name in ("search", "review")})
    done["write"] = node_result("write", "denied")
    result = run_result(graph(), done)
    assert result.status == "failed"
    assert {each.id: each.status for each in result.nodes} == {
        "search": "succeeded",
        "write": "failed",
        "review": "succeeded",
        "ask": "skipped",
        "publish": "skipped",
    }
    errors = {each.id: each.error.kind for each in result.nodes if each.error is not None}
    assert errors == {"write": "denied", "ask": "dependency_failed", "publish": "dependency_failed"}
    assert result.outputs == {"score": 7}


@pytest.mark.parametrize(
    ("ended_as", "status"),
    [
        ("success", "succeeded"),
        ("failed", "failed"),
        ("denied", "failed"),
        ("rejected", "failed"),
        ("timed_out", "failed"),
        ("invalid", "failed"),
        ("skipped", "skipped"),
        ("cancelled", "cancelled"),
        ("interrupted", "cancelled"),
    ],
)
def test_the_end_of_a_call_is_the_end_of_its_node(ended_as: Any, status: str) -> None:
    assert node_result("a", ended_as).status == status


def test_a_run_that_was_cancelled_says_so_of_each_node_that_had_no_end() -> None:
    result = run_result(graph(), ended({"search": RESULTS["search"]}))
    assert result.status == "cancelled"
    assert [each.status for each in result.nodes] == ["succeeded", *["cancelled"] * 4]


def test_an_output_that_is_not_there_is_told() -> None:
    result = run_result(graph(), ended({**RESULTS, "review": {"notes": []}}))
    assert result.status == "succeeded" and result.outputs == {"text": "It snowed."}
    assert result.lost_outputs["score"].kind == "unresolved_input"


def test_the_text_of_a_message_is_the_input_prompt_where_there_is_one() -> None:
    asks = graph(inputs={"prompt": {"type": "string"}}, required_inputs=["prompt"], nodes=[], edges=[], outputs={})
    assert wrong_inputs(asks, {}, "hello") == {}
    assert complete_inputs(asks, {}, "hello") == {"prompt": "hello"}
    assert complete_inputs(asks, {"prompt": "mine"}, "hello") == {"prompt": "mine"}
    assert complete_inputs(graph(), {"topic": "snow"}, "hello") == INPUTS  # it declares none, and has a default


def test_inputs_that_are_not_the_workflows_are_told_one_by_one() -> None:
    assert wrong_inputs(graph(), {"topic": "snow"}) == {}
    assert wrong_inputs(graph(), {}) == {"topic": "is required"}
    assert wrong_inputs(graph(), {"topic": 7, "day": 1}) == {
        "day": "the workflow has no such input; it has: topic, limit",
        "topic": "must be string, not integer",
    }


def test_outputs_of_nodes_that_gave_nothing_are_left_out() -> None:
    assert outputs_of(graph(), {"write": "x"}) == ({"text": "x"}, {})


def test_a_graph_is_drawn_in_lines_and_as_mermaid() -> None:
    assert as_lines(graph()) == [
        "$input.topic  string, required",
        "$input.limit  integer, optional",
        "search  tool search",
        "    query <- $input.topic",
        "    limit <- $input.limit",
        "write  agent writer",
        "    input <- search.result.pages.0",
        "review  agent reviewer",
        "    input <- search.result",
        '    instructions = "Be strict."',
        "ask  approval",
        "    show <- write.result",
        '    question = "Publish this?"',
        "publish  tool publish  (Publish it)",
        "    text <- ask.result",
        "    copies = 2",
        "=> text  write.result",
        "=> score  review.result.score",
    ]
    drawn = as_mermaid(
        graph(nodes=[*data()["nodes"], {"id": "end", "kind": "tool", "ref": "search", "title": '"]; x'}])
    )
    assert drawn.startswith("flowchart TD\n")
    assert '    n_search -->|"result.pages.0 to input"| n_write\n' in drawn
    assert '    n_end["#34;#93;#59; x<br/>tool search"]\n' in drawn


def ended(results: dict[str, Any]) -> dict[str, WorkflowNodeResult]:
    return {name: node_result(name, "success", value) for name, value in results.items()}


def ready(graph: WorkflowGraph, done: dict[str, WorkflowNodeResult]) -> list[str]:
    return [
        node
        for node, needs in dependencies(graph).items()
        if node not in done and all(need in done and done[need].status == "succeeded" for need in needs)
    ]


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_however_nodes_end_a_run_gets_to_its_end_with_one_entry_a_node(draw: st.DataObject) -> None:
    """The engine's part in small: begin what is ready until nothing is, in any order, with any outcome."""
    names = [f"n{at}" for at in range(draw.draw(st.integers(1, 7)))]
    later = [(source, target) for at, source in enumerate(names) for target in names[at + 1 :]]
    chosen = draw.draw(st.lists(st.sampled_from(later), unique=True, max_size=10)) if later else []
    drawn = line(*names).model_copy(update={"edges": tuple(line(source, target).edges[0] for source, target in chosen)})
    done: dict[str, WorkflowNodeResult] = {}
    while now := ready(drawn, done):
        name = draw.draw(st.sampled_from(now))
        assert all(done[source].status == "succeeded" for source, target in chosen if target == name)
        done[name] = node_result(name, draw.draw(st.sampled_from(["success", "failed", "rejected"])), name)
    result = run_result(drawn, done)
    assert [each.id for each in result.nodes] == list(topological(drawn))
    statuses: dict[str, NodeStatus] = {each.id: each.status for each in result.nodes}
    assert "cancelled" not in statuses.values()
    for name in names:
        lost = any(statuses[source] != "succeeded" for source, target in chosen if target == name)
        assert (statuses[name] == "skipped") is lost
    assert (result.status == "succeeded") is (set(statuses.values()) == {"succeeded"})
