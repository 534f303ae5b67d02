"""What a client is told of workflows, from facts made by hand."""

import json
from typing import Any

import pytest

from kit.runs.event_samples import (
    THREAD,
    TURN,
    fact,
    in_step,
    log,
    message,
    tool_failed,
    turn_completed,
    turn_failed,
    turn_started,
)
from kit.runs.turn_trees import began, call, child_done, did, inside, round_of
from kit.runs.whole_views import wire_messages
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import (
    AnswerRejected,
    PermissionEvaluated,
    SubagentStarted,
    TurnInterruptRequested,
    WorkflowStarted,
)
from wakeful.contracts.tools import ToolError
from wakeful.views.wire import WireView
from wakeful.views.wire_messages import PlanningUpdate, TaskUpdate, WireMessage, WorkTitle

START = (fact(message(), step=None), fact(turn_started(), step=None))
IDS = {"thread_id": THREAD, "turn_id": TURN}
SAVED = {"workflow_id": "wf_1", "revision": 3, "name": "digest", "node_count": 2, "edge_count": 1}
OBJECTIVE = UserItem(parts=(Text("Build it."),))


def sent(*facts: Fact) -> list[WireMessage]:
    return wire_messages(TURN, log(*START, *facts))


def short(messages: list[WireMessage]) -> list[tuple[str, str]]:
    """What of it is about workflows."""
    told: list[tuple[str, str]] = []
    for one in messages:
        if isinstance(one, PlanningUpdate):
            told.append((one.phase, one.status))
        elif isinstance(one, TaskUpdate):
            told.append((one.step.id if one.step is not None else "task", one.event))
    return told


def building() -> list[Fact]:
    """A call has its planner."""
    started = SubagentStarted(level_id="b", tool="build_workflow", title="workflow", depth=1, task=OBJECTIVE)
    return [*round_of(1, "", "b", tool="build_workflow"), began("b", "build_workflow"), call("b", started)]


def drafted(step: int = 1) -> list[Fact]:
    return inside("b", 1, round_of(step, "{}"))


def wrong(step: int = 1) -> list[Fact]:
    rejected = AnswerRejected(item=UserItem(parts=(Text("Again."),)), errors=("cycle at edges[0]: a, b",))
    return inside("b", 1, in_step(step, rejected))


def kept() -> list[Fact]:
    return [*inside("b", 1, [child_done("b", "{}")]), did("b", json.dumps(SAVED), "build_workflow")]


def test_planning_is_told_phase_by_phase_with_its_place_in_the_tree() -> None:
    told = sent(*building(), *drafted(), *wrong(), *drafted(2), *kept())
    assert short(told) == [
        *[("drafting", "running"), ("drafting", "completed"), ("validating", "running"), ("validating", "failed")],
        *[("drafting", "running"), ("drafting", "completed"), ("validating", "running"), ("validating", "completed")],
        *[("task", "task_planned"), ("saving", "running"), ("saving", "completed"), ("task", "task_created")],
    ]
    updates = [one for one in told if isinstance(one, PlanningUpdate)]
    assert updates[0] == PlanningUpdate(
        **IDS, event_seq=7, phase="drafting", status="running", tool_call_id="b", parent_id=None, depth=0
    )
    assert [one.content for one in updates if one.content] == [
        "cycle at edges[0]: a, b",
        "correction 1",
        "digest, revision 3",
    ]
    created = next(one for one in told if isinstance(one, TaskUpdate) and one.event == "task_created")
    assert created == TaskUpdate(
        **IDS,
        task=WorkTitle(id="wf_1", title="digest"),
        event="task_created",
        tool_call_id="b",
        parent_id=None,
        depth=0,
    )


def test_a_call_inside_a_child_is_told_with_its_parent_and_depth() -> None:
    started = SubagentStarted(level_id="b", tool="build_workflow", title="workflow", depth=2, task=OBJECTIVE)
    (told,) = sent(*inside("sub", 1, [call("b", started)]))
    assert isinstance(told, PlanningUpdate)
    assert (told.tool_call_id, told.parent_id, told.depth) == ("b", "sub", 1)


@pytest.mark.parametrize(("drafts", "phase"), [(0, "drafting"), (1, "validating")])
def test_a_planning_that_comes_to_nothing_fails_in_the_phase_it_was_in(drafts: int, phase: str) -> None:
    problem = {"code": "cycle", "path": "edges[0]", "message": "a and b wait for each other"}
    error = ToolError(kind="invalid_workflow", message="no valid workflow came of it", details={"problems": [problem]})
    failed = tool_failed("b").model_copy(update={"tool_error": error})
    told = sent(*building(), *(drafted() if drafts else ()), call("b", failed))
    assert short(told)[-1] == (phase, "failed")
    last = [one for one in told if isinstance(one, PlanningUpdate)][-1]
    assert last.content == "cycle at edges[0]: a and b wait for each other"
    assert not [one for one in told if isinstance(one, TaskUpdate)], "and no task came of it"


def test_other_children_are_no_planning() -> None:
    started = SubagentStarted(level_id="b", tool="run_subtask", title="workflow", depth=1, task=OBJECTIVE)
    told = sent(*round_of(1, "", "b"), began("b"), call("b", started), *drafted(), did("b"))
    assert short(told) == []


LET_THROUGH = PermissionEvaluated(decision="allow", decision_reason="no rule says otherwise")


def a_run(**fields: Any) -> list[Fact]:
    event = WorkflowStarted(name="digest", nodes=3, titles={"pay": "Pay it back"}, **fields)
    return [fact(event, step=None)]


def node(name: str, *after: Fact) -> list[Fact]:
    return [call(name, LET_THROUGH), began(name), *after]


def test_a_run_is_told_node_by_node_and_what_is_skipped_never_begins() -> None:
    facts = [
        *a_run(workflow_id="wf_1"),
        *node("pay", did("pay")),
        *node("mail", call("mail", tool_failed("mail"))),
        *(began("tell"), call("tell", tool_failed("tell", status="skipped"))),
        fact(turn_failed("failed", "node_failed")),
    ]
    told = sent(*facts)
    assert short(told) == [
        *[("task", "task_created"), ("pay", "step_started"), ("pay", "step_completed")],
        *[("mail", "step_started"), ("mail", "step_failed"), ("tell", "step_failed"), ("task", "task_failed")],
    ]
    tasks = [one for one in told if isinstance(one, TaskUpdate)]
    assert {(one.task.id, one.task.title) for one in tasks} == {("wf_1", "digest")}
    assert tasks[1].step == WorkTitle(id="pay", title="Pay it back")
    assert (tasks[1].tool_call_id, tasks[0].tool_call_id) == ("pay", None)
    assert tasks[3].step == WorkTitle(id="mail", title="mail"), "without a title it goes by its id"
    assert [one.type for one in told[-3:]] == ["task_update", "cost_summary", "turn_terminal"]
    done = sent(*a_run(), *node("pay", did("pay")), fact(turn_completed()))
    assert short(done)[-1] == ("task", "task_completed")
    assert isinstance(done[0], TaskUpdate)
    assert done[0].task.id == "digest", "one that was never saved has no other name"


def test_whoever_has_the_last_number_has_missed_nothing() -> None:
    recorded = log(*START, *building(), *drafted(), *wrong(), *drafted(2), *kept(), fact(turn_completed()))
    for cut in range(len(recorded) + 1):
        before = wire_messages(TURN, recorded[:cut])
        last = max((getattr(one, "event_seq", None) or 0 for one in before), default=0)
        rest = wire_messages(TURN, recorded, after_seq=last)
        assert [*before, *rest] == wire_messages(TURN, recorded)


def test_after_a_cancel_nothing_more_is_told_of_it() -> None:
    asked = fact(TurnInterruptRequested(interrupt_id="i", requested_by="somebody"))
    view = WireView(TURN)
    for recorded in log(*START, *a_run(), *node("pay")):
        view.feed(recorded)
    rest = log(asked, did("pay"), fact(turn_failed("cancelled", "cancelled")), start=7)
    shown = [one for recorded in rest for one in view.feed(recorded)]
    assert [one.type for one in shown] == ["tool_call_update", "cost_summary", "turn_terminal"]
