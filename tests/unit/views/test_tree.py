"""The execution tree, from facts made by hand."""

import json
from typing import Any

import pytest

from kit.runs.event_samples import (
    NOON,
    TURN,
    completed,
    fact,
    log,
    message,
    requested,
    said,
    tool_failed,
    turn_completed,
    turn_failed,
    turn_started,
)
from kit.runs.turn_trees import began, beside, call, child, did, inside, nested_turn, round_of, timed
from wakeful.contracts.conversation import AssistantItem, CallPart
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import CostRecorded, LimitChanged, PlanningStarted
from wakeful.contracts.sensitive_names import REDACTED
from wakeful.views.tree import MAX_TREE_NODES, ExecutionTreeNode, ExecutionTreeSnapshot, execution_tree, thread_messages

START = (fact(message(), step=None), fact(turn_started(), step=None))


def tree_of(*facts: Fact) -> ExecutionTreeSnapshot:
    return execution_tree(log(*START, *facts))


def by_id(tree: ExecutionTreeSnapshot) -> dict[str, ExecutionTreeNode]:
    return {node.id: node for node in tree.nodes}


@pytest.mark.spec("LOOP-TREE-02", "LOOP-TREE-04")
def test_nodes_are_a_flat_list_nested_by_parent_and_a_child_has_its_calls_title() -> None:
    tree = execution_tree(nested_turn())
    assert [(node.id, node.parent_id, node.name, node.title) for node in tree.nodes] == [
        ("sub_a", None, "run_subtask", "Prices"),
        ("sub_b", None, "run_subtask", "Stock"),
        ("look", None, "look_up", None),
        ("a_1", "sub_a", "look_up", None),
        ("sub_c", "sub_b", "run_subtask", "Far"),
        ("c_1", "sub_c", "look_up", None),
    ]
    containers = {node.parent_id for node in tree.nodes} - {None}
    assert {by_id(tree)[parent].name for parent in containers if parent} == {"run_subtask"}
    assert tree.version == 1
    assert ExecutionTreeSnapshot.model_validate_json(tree.model_dump_json()) == tree


def test_a_call_has_what_it_was_given_what_came_of_it_and_how_long_it_took() -> None:
    tree = tree_of(*round_of(1, "", "a"), began("a", order="A17"), did("a", "4200"), fact(turn_completed()))
    assert tree.nodes == (
        ExecutionTreeNode(
            id="a",
            parent_id=None,
            name="look_up",
            args_preview='{"order": "A17"}',
            result_preview="4200",
            is_error=False,
            duration_ms=4,
            started_at=tree.nodes[0].started_at,
        ),
    )
    assert tree.nodes[0].started_at == NOON / 1e6


@pytest.mark.spec("LOOP-TREE-03")
def test_previews_are_cut_to_500_characters() -> None:
    tree = tree_of(*round_of(1, "", "a", "b"), began("a", order="x" * 600), did("a", "y" * 600))
    (node,) = tree.nodes
    assert node.args_preview is not None
    assert node.result_preview is not None
    assert (len(node.args_preview), node.args_preview[:12]) == (500, '{"order": "x')
    assert node.result_preview == "y" * 500
    short = tree_of(*round_of(1, "", "a"), began("a", order="x"), did("a", "y" * 500)).nodes[0]
    assert (short.args_preview, short.result_preview) == ('{"order": "x"}', "y" * 500)


@pytest.mark.spec("LOOP-TREE-05")
def test_words_that_were_said_inside_a_child_are_not_in_the_tree() -> None:
    facts = nested_turn()
    assert any(one.fact.level == "sub_a" and "I look." in repr(one.fact.event) for one in facts)
    shown = execution_tree(facts).model_dump_json()
    assert "I look." not in shown
    assert set(json.loads(shown)["nodes"][0]) == set(ExecutionTreeNode.model_fields), "title, state and previews"


@pytest.mark.spec("LOOP-TREE-08")
def test_nodes_are_in_the_order_of_their_starts_and_a_parent_stands_before_what_is_inside_it() -> None:
    facts = nested_turn()
    started = [one.fact.call_id for one in facts if one.fact.event.kind == "tool.started"]
    nodes = execution_tree(facts).nodes
    assert [node.id for node in nodes] == started
    for place, node in enumerate(nodes):
        assert node.parent_id is None or node.parent_id in {one.id for one in nodes[:place]}
    # Secrets: by the name of an argument, and by their value wherever a tool repeats them, at the edge of a cut too.
    secret = "hunter2-" + "z" * 40
    given = CallPart(call_id="a", name="look_up", arguments={"password": secret, "order": "A17"})
    spoken = said("", "a").model_copy(update={"item": AssistantItem(parts=(given,), provider="scripted")})
    echoed = "x" * 480 + secret
    shown = tree_of(fact(spoken), began("a", password=REDACTED, order="A17"), did("a", echoed)).nodes[0]
    assert shown.args_preview == json.dumps({"password": REDACTED, "order": "A17"})
    assert shown.result_preview == ("x" * 480 + REDACTED)[:500]
    assert "hunter2" not in shown.model_dump_json()


def test_without_learning_the_secrets_the_echo_would_be_shown() -> None:
    """The inversion: the same result of a call that was given no secret."""
    shown = tree_of(*round_of(1, "", "a"), began("a", order="A17"), did("a", "hunter2-zzzz")).nodes[0]
    assert shown.result_preview == "hunter2-zzzz"


@pytest.mark.spec("LOOP-TREE-06")
def test_a_turn_that_a_budget_ended_has_its_tree_and_its_partial_text() -> None:
    stopped = LimitChanged(limit_name="tool_calls", limit=1, observed=2)
    facts = log(
        *START,
        *round_of(1, "I begin.", "a", "b"),
        *(began("a"), did("a"), fact(stopped), call("b", tool_failed("b", status="skipped"))),
        fact(turn_failed("incomplete", "tool_calls")),
    )
    asked, answer = thread_messages(facts)
    assert (asked.role, answer.role, answer.status, answer.content) == ("user", "assistant", "incomplete", "I begin.")
    assert answer.execution_tree == execution_tree(facts)
    assert [(node.id, node.is_error) for node in execution_tree(facts).nodes] == [("a", False), ("b", True)]


@pytest.mark.spec("LOOP-TREE-07")
@pytest.mark.parametrize(
    ("status", "shown", "reason"), [("failed", "error", "provider_error"), ("cancelled", "cancelled", "cancelled")]
)
def test_calls_under_way_when_an_error_or_a_cancel_ended_the_turn_are_errors(
    status: Any, shown: str, reason: Any
) -> None:
    under_way = (
        *round_of(1, "So far.", "sub", "b", tool="run_subtask"),
        began("sub", "run_subtask", title="Long"),
        child("sub", "Long"),
        began("b"),
        *inside("sub", 1, [*round_of(1, "", "c"), began("c")]),
        did("b"),
    )
    still = tree_of(*under_way)
    assert {node.id: node.is_error for node in still.nodes} == {"sub": None, "b": False, "c": None}
    facts = log(*START, *under_way, fact(turn_failed(status, reason)))
    over = execution_tree(facts)
    assert {node.id: node.is_error for node in over.nodes} == {"sub": True, "b": False, "c": True}
    answer = thread_messages(facts)[-1]
    assert (answer.content, answer.status, answer.execution_tree) == ("So far.", shown, over)


def test_a_call_under_way_has_taken_as_long_as_the_log_knows() -> None:
    facts = timed([*START, *round_of(1, "", "a", "b"), began("a"), began("b"), did("b")], every_ms=10)
    assert {node.id: node.duration_ms for node in execution_tree(log(*facts)).nodes} == {"a": 20, "b": 4}


def test_a_call_that_made_a_child_has_what_the_requests_inside_it_cost_at_any_depth() -> None:
    def paid(amount: str) -> list[Fact]:
        bill = CostRecorded(model_ref="openai:gpt-5.5", amount=amount, price_list="own")
        return [fact(requested()), fact(completed()), fact(bill)]

    tree = tree_of(
        *paid("0.5"),
        *round_of(1, "", "out", "a", tool="run_subtask"),
        began("out", "run_subtask", title="Out"),
        child("out", "Out"),
        *inside("out", 1, [*paid("0.01"), *round_of(1, "", "in", tool="run_subtask"), began("in", "run_subtask")]),
        *inside("in", 2, [*paid("0.02"), *paid("0.03")]),
        began("a"),
    )
    assert {node.id: node.cost for node in tree.nodes} == {"out": "0.06", "in": "0.05", "a": None}


def test_a_call_that_was_refused_before_it_was_taken_up_is_a_node() -> None:
    (node,) = tree_of(*round_of(1, "", "a"), call("a", tool_failed("a", status="denied"))).nodes
    assert (node.id, node.is_error, node.args_preview) == ("a", True, None)
    assert node.result_preview == "execution_failed: no such order"


def test_children_of_one_call_share_their_parent_and_give_it_no_title() -> None:
    tree = tree_of(
        *round_of(1, "", "many", tool="spawn_parallel"),
        began("many", "spawn_parallel", jobs=2),
        child("many", "First", level="many#0"),
        child("many", "Second", level="many#1", index=1),
        *inside("many#0", 1, [*round_of(1, "", "x"), began("x")]),
        *inside("many#1", 1, [*round_of(1, "", "y"), began("y")]),
    )
    assert [(node.id, node.parent_id, node.title) for node in tree.nodes] == [
        ("many", None, None),
        ("x", "many", None),
        ("y", "many", None),
    ]


def test_a_child_that_another_tool_made_is_named_by_the_fact_that_made_it() -> None:
    tree = tree_of(*round_of(1, "", "me", tool="spawn_self"), began("me", "spawn_self"), child("me", "Again"))
    assert [(node.id, node.title) for node in tree.nodes] == [("me", "Again")]


def test_what_the_planner_called_is_not_part_of_the_conversations_tree() -> None:
    planning = fact(PlanningStarted(level_id="plan", model_ref="scripted:list", task=message().item))
    tree = tree_of(planning, *beside("plan", [*round_of(1, "", "p"), began("p"), did("p")]), began("a"), did("a"))
    assert [node.id for node in tree.nodes] == ["a"]


def test_a_tree_is_bounded_and_says_how_much_is_not_listed() -> None:
    many = [f"call_{number}" for number in range(MAX_TREE_NODES + 3)]
    began_all = [began(each) for each in many]
    late = inside(many[0], 1, [began("inside_a_listed_one")]) + inside(many[-1], 1, [began("inside_another")])
    tree = tree_of(*began_all, *late, did(many[-1]), did(many[0]), fact(turn_completed()))
    assert (len(tree.nodes), tree.omitted) == (MAX_TREE_NODES, 5)
    assert [node.id for node in tree.nodes] == many[:MAX_TREE_NODES]
    assert (tree.nodes[0].is_error, tree.nodes[1].is_error) == (False, True)


def test_with_another_bound_a_tree_lists_that_many() -> None:
    """The inversion: what is not listed is left out by the bound, and by nothing else."""
    many = log(*(began(f"call_{number}") for number in range(MAX_TREE_NODES + 3)))
    assert len(execution_tree(many, most=MAX_TREE_NODES + 3).nodes) == MAX_TREE_NODES + 3
    assert execution_tree(many, most=1).omitted == MAX_TREE_NODES + 2


def test_a_thread_after_a_reload_has_each_answer_with_the_tree_of_its_turn() -> None:
    first = nested_turn()
    plain = log(
        fact(message("And now?"), step=None, turn="turn_2"),
        *(fact(one.event, step=1, turn="turn_2") for one in round_of(1, "Nothing.")),
        fact(turn_completed(), turn="turn_2"),
        start=len(first) + 1,
    )
    shown = thread_messages([*first, *plain])
    assert [(one.role, one.turn_id, one.content) for one in shown] == [
        ("user", TURN, "Order A17 arrived broken."),
        ("assistant", TURN, "12 EUR, 3 left."),
        ("user", "turn_2", "And now?"),
        ("assistant", "turn_2", "Nothing."),
    ]
    assert shown[1].execution_tree == execution_tree(first)
    assert shown[3].execution_tree is None, "optional: nothing was called"
    assert shown[1].event_seq == len(first)
    # While it goes on there is what there is.
    assert [one.status for one in thread_messages(first[:-1])] == [None, "running"]
