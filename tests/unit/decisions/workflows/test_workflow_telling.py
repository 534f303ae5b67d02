"""What is told of planning and of a run."""

from wakeful.contracts.workflow_updates import PlanningUpdate, TaskUpdate, Titled, WorkflowUpdate
from wakeful.contracts.workflows import SavedWorkflow
from wakeful.decisions.workflows.planning import Built, Correct, judged
from wakeful.decisions.workflows.running import node_result, run_result
from wakeful.decisions.workflows.telling import (
    Place,
    drafting,
    judged_draft,
    node_began,
    node_ended,
    run_ended,
    saved_draft,
)
from workflow_graphs import TYPES, graph

AT = Place("call_1", "call_0", 2)


def short(updates: list[WorkflowUpdate]) -> list[tuple[str, str]]:
    return [(each.phase, each.status) if isinstance(each, PlanningUpdate) else ("task", each.event) for each in updates]


def test_planning_is_told_phase_by_phase_with_its_place_in_the_tree() -> None:
    first = drafting(AT)
    assert first == PlanningUpdate(
        phase="drafting", status="running", tool_call_id="call_1", parent_id="call_0", depth=2
    )
    assert drafting(AT, 2).content == "correction 2"
    built = judged_draft(AT, Built(graph()))
    assert short(built) == [
        ("drafting", "completed"),
        ("validating", "running"),
        ("validating", "completed"),
        ("task", "task_planned"),
        ("saving", "running"),
    ]
    kept = saved_draft(AT, SavedWorkflow(workflow_id="wf_1", revision=3, name="digest", graph=graph(), created_at=0))
    assert short(kept) == [("saving", "completed"), ("task", "task_created")]
    assert kept[1] == TaskUpdate(
        task=Titled(id="wf_1", title="digest"), event="task_created", tool_call_id="call_1", parent_id="call_0", depth=2
    )


def test_a_draft_that_is_wrong_is_told_with_its_problems() -> None:
    wrong = judged("{}", TYPES, 0)
    assert isinstance(wrong, Correct)
    told = judged_draft(AT, wrong)
    assert short(told)[-1] == ("validating", "failed")
    last = told[-1]
    assert isinstance(last, PlanningUpdate) and last.content is not None and "invalid_graph at name" in last.content


def test_a_run_is_told_node_by_node() -> None:
    running = graph(id="wf_1")
    task = Titled(id="wf_1", title="digest")
    began = node_began(AT, running, "publish")
    assert (began.task, began.event, began.step) == (task, "step_started", Titled(id="publish", title="Publish it"))
    assert node_ended(AT, running, node_result("search", "success", 1)).event == "step_completed"
    assert node_ended(AT, running, node_result("search", "denied")).event == "step_failed"
    failed = run_result(running, {"search": node_result("search", "failed")})
    assert run_ended(AT, running, failed).event == "task_failed"
    done = run_result(graph(nodes=[], edges=[], outputs={}), {})
    assert run_ended(AT, running, done).event == "task_completed"
