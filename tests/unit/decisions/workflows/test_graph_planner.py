"""How a model is asked for a graph, and what becomes of its answers."""

import json

from kit.runs.workflow_graphs import PUBLISH, SEARCH, TYPES, WRITER, data, graph
from wakeful.contracts.workflows import NodeType
from wakeful.decisions.workflows.graph_planner import (
    MAX_CORRECTIONS,
    MAX_TYPES_CHARS,
    BuildFailure,
    GraphCorrection,
    ValidGraph,
    correction,
    judged,
    planner_instructions,
)
from wakeful.decisions.workflows.graph_reader import read_graph
from wakeful.decisions.workflows.validation import by_ref, validate

WRONG = json.dumps(data(outputs={"text": {"node": "nobody"}}))


def test_the_model_is_told_the_form_the_node_types_and_the_objective() -> None:
    told = planner_instructions([SEARCH, WRITER], "A digest of the news on snow.")
    assert '"schema": "wakeful.workflow"' in told
    for line in (SEARCH, WRITER):
        assert json.dumps(line.model_dump(mode="json", exclude_none=True)) in told
    assert '"kind": "approval"' in told
    assert told.endswith("The objective:\nA digest of the news on snow.")


def test_the_example_in_the_prompt_is_itself_a_valid_graph() -> None:
    told = planner_instructions([], "x")
    shown = told[told.index("{") : told.index("\n\nRules:")]
    read = read_graph(shown)
    any_tool = {"type": "object", "additionalProperties": True}
    types = by_ref(
        [
            NodeType(kind="tool", ref="a registered tool", input_schema=any_tool),
            WRITER.model_copy(update={"ref": "a registered agent"}),
        ]
    )
    assert not isinstance(read, tuple) and validate(read, types) == ()


def test_node_types_without_end_are_named_once_they_are_too_long() -> None:
    long = [SEARCH.model_copy(update={"ref": f"tool_{at}", "description": "x" * 9_000}) for at in range(20)]
    told = planner_instructions(long, "x")
    assert len(told) < MAX_TYPES_CHARS + 10_000
    assert "tool tool_19" in told.split("too long to describe here: ")[1]


def test_a_valid_graph_is_built_whatever_stands_round_it_and_claims_no_id() -> None:
    answer = f"Here it is:\n```json\n{json.dumps(data(id='wf_of_somebody_else'))}\n```\nEnjoy."
    assert judged(answer, TYPES, 0) == ValidGraph(graph())


def test_errors_go_back_to_the_model_three_times_and_then_it_is_given_up() -> None:
    problems = validate(graph(outputs={"text": {"node": "nobody"}}), TYPES)
    assert MAX_CORRECTIONS == 3
    for corrections in range(3):
        assert judged(WRONG, TYPES, corrections) == GraphCorrection(problems, correction(problems))
    assert judged(WRONG, TYPES, 3) == BuildFailure(problems)
    assert "unknown_output at outputs.text.node" in correction(problems)


def test_an_answer_without_a_graph_is_corrected_like_a_wrong_one() -> None:
    for answer in ("", "I cannot do that.", "{", "}{", "[1]"):
        judgement = judged(answer, TYPES, 0)
        assert isinstance(judgement, GraphCorrection) and judgement.problems[0].code == "invalid_graph"


def test_the_last_answer_may_still_be_right() -> None:
    assert isinstance(judged(json.dumps(data()), TYPES, 3), ValidGraph)


def test_a_tool_that_is_not_registered_makes_no_graph() -> None:
    judgement = judged(json.dumps(data()), by_ref([SEARCH, PUBLISH, WRITER]), 0)
    assert isinstance(judgement, GraphCorrection) and [each.code for each in judgement.problems] == ["unknown_ref"]
