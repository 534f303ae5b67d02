"""The execution tree of a run's result: every call of the tree, bounded, nested, with secrets hidden."""

import json
from typing import Any

import pytest

from kit.runs.engine_runs import calls
from kit.runs.level_scripts import LevelModel, subtask
from wakeful import Agent, Budget, RunResult, run, tool
from wakeful.contracts.sensitive_names import REDACTED
from wakeful.views.tree import ExecutionTreeNode, ExecutionTreeSnapshot, thread_messages

SECRET = "hunter2-" + "z" * 40


@tool(effect="pure")
def look(what: str = "", password: str = "") -> str:
    """Looks at something."""
    return f"saw {what} {password}"


@tool(effect="pure")
def broken() -> str:
    """Never works."""
    raise ValueError("it does not work")


async def nested() -> RunResult[str]:
    """Two children and a call beside them; one of the children has a child of its own."""
    script = {
        "go": [calls(subtask("prices"), subtask("stock"), ("look", {"what": "door"})), "all done"],
        "prices": [{**calls(("look", {"what": "gold"})), "text": "I look."}, "dear"],
        "stock": [calls(subtask("far")), "much"],
        "far": [calls(("look", {"what": "shed"})), "three"],
    }
    return await run(Agent("boss", LevelModel(script), tools=[look, broken], subtasks=True), "go")


@pytest.mark.spec("LOOP-TREE-02", "LOOP-TREE-04", "LOOP-TREE-05")
async def test_the_nodes_of_a_tree_are_nested_by_their_parent_and_a_child_has_its_title() -> None:
    tree = (await nested()).execution_tree
    named = {node.id: node for node in tree.nodes}

    def path(node: ExecutionTreeNode) -> tuple[str, ...]:
        above = path(named[node.parent_id]) if node.parent_id is not None else ()
        return (*above, node.title or node.name)

    assert {path(node) for node in tree.nodes} == {
        ("do prices",),
        ("do stock",),
        ("look",),
        ("do prices", "look"),
        ("do stock", "do far"),
        ("do stock", "do far", "look"),
    }
    assert {named[node.parent_id].name for node in tree.nodes if node.parent_id is not None} == {"run_subtask"}
    # What was said inside a child is not stored in it.
    shown = tree.model_dump_json()
    assert "I look." not in shown and "dear" in shown
    assert ExecutionTreeSnapshot.model_validate_json(shown) == tree


@pytest.mark.spec("LOOP-TREE-03", "LOOP-TREE-08")
async def test_nodes_stand_in_the_order_of_their_starts_with_previews_that_are_cut_and_hide_secrets() -> None:
    result = await nested()
    nodes = result.execution_tree.nodes
    started = [entry.fact.call_id for entry in result.facts() if entry.fact.event.kind == "tool.started"]
    assert [node.id for node in nodes] == started
    for place, node in enumerate(nodes):
        assert node.parent_id is None or node.parent_id in {each.id for each in nodes[:place]}

    long = {"what": "x" * 600, "password": SECRET}
    told = await run(Agent("a", LevelModel({"go": [calls(("look", long)), "done"]}), tools=[look]), "go")
    (node,) = told.execution_tree.nodes
    assert node.args_preview is not None and node.result_preview is not None
    assert len(node.args_preview) == len(node.result_preview) == 500
    # By the name of the argument, and by its value where the tool repeats it.
    short = {"what": "y", "password": SECRET}
    told = await run(Agent("a", LevelModel({"go": [calls(("look", short)), "done"]}), tools=[look]), "go")
    (node,) = told.execution_tree.nodes
    assert json.loads(node.args_preview or "") == {"what": "y", "password": REDACTED}
    assert (node.result_preview, SECRET in told.execution_tree.model_dump_json()) == (f"saw y {REDACTED}", False)
    # The inversion: the same words of a call that was given no secret are shown.
    plain = await run(Agent("a", LevelModel({"go": [calls(("look", {"what": SECRET})), "done"]}), tools=[look]), "go")
    assert plain.execution_tree.nodes[0].result_preview == f"saw {SECRET} "


@pytest.mark.spec("LOOP-TREE-06", "LOOP-TREE-07")
async def test_a_turn_that_a_budget_or_an_error_ended_has_its_tree_and_its_text() -> None:
    said = {**calls(("look", {}), ("look", {"what": "2"})), "text": "I begin."}
    agent = Agent("a", LevelModel({"go": [said, "never"]}), tools=[look])
    stopped = await run(agent, "go", budget=Budget(tool_calls=1))
    answer = thread_messages(stopped.facts())[-1]
    assert (stopped.status, answer.status, answer.content) == ("incomplete", "incomplete", "I begin.")
    assert answer.execution_tree == stopped.execution_tree
    assert [node.is_error for node in stopped.execution_tree.nodes] == [False, True]

    fails: dict[str, Any] = {"fail": {"kind": "contract_error", "message": "wrong field"}}
    said = {**calls("broken"), "text": "So far."}
    failed = await run(Agent("a", LevelModel({"go": [said, fails]}), tools=[broken]), "go")
    answer = thread_messages(failed.facts())[-1]
    assert (failed.status, answer.status, answer.content) == ("failed", "error", "So far.")
    assert [node.is_error for node in failed.execution_tree.nodes] == [True]
    assert answer.execution_tree == failed.execution_tree
