"""Tasks on every backend: created once, ended once with all that is known, and found by what is asked of them."""

from collections.abc import Sequence

import pytest

from kit.runs.event_samples import task_created
from kit.runs.store_facts import AGENT, NOON, THREAD, queued, session
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import EventRefused
from wakeful.contracts.events import AnyEvent, TaskEnded, TaskRetried, TaskStatusChanged
from wakeful.contracts.failures import FailureArtifact
from wakeful.contracts.tasks import CommandSpec
from wakeful.decisions.task_ends import CommandOutcome, OutputExcerpt, TaskParent, end_of_command, result_message
from wakeful.ports import Store
from wakeful.ports.tasks import TaskRow


def fact(event: AnyEvent, at: int = NOON) -> Fact:
    return Fact(event, at, THREAD)


async def begun(store: Store, *names: str) -> None:
    await store.admit(AGENT, [session()])
    for place, name in enumerate(names):
        await store.admit(AGENT, [fact(task_created(name), NOON + place)])


def ids(rows: Sequence[TaskRow]) -> list[str]:
    return [row.task_id for row in rows]


@pytest.mark.spec("HOL-TASK-01", "HOL-TASK-04", "HOL-TASK-07", "HOL-TASK-10")
async def test_a_task_is_a_row_with_its_parent_and_what_a_restart_needs(store: Store) -> None:
    await begun(store, "task_1")
    row = await store.task("task_1")
    assert row is not None
    assert (row.kind, row.status, row.agent_id, row.thread_id) == ("command_task", "running", AGENT, THREAD)
    assert (row.parent_turn_id, row.parent_call_id) == ("turn_1", "c1")
    assert row.recovered == task_created("task_1").recovery
    assert row.wait_policy == "background"
    assert (row.created_at, row.updated_at, row.ended_at, row.is_over) == (NOON, NOON, None, False)


@pytest.mark.spec("HOL-TASK-08")
async def test_what_a_restart_needs_names_the_authority_and_no_trust(store: Store) -> None:
    await begun(store, "task_1")
    row = await store.task("task_1")
    assert row is not None
    assert row.recovery is not None
    assert row.recovery["authority_class"] == "runtime_instruction"
    assert "trust" not in row.recovery


async def test_a_task_is_created_once(store: Store) -> None:
    await begun(store, "task_1")
    with pytest.raises(EventRefused, match="there is a task task_1 already"):
        await store.admit(AGENT, [fact(task_created("task_1"), NOON + 9)])


@pytest.mark.spec("HOL-OUT-01", "HOL-OUT-07")
async def test_a_task_ends_once_and_what_is_known_is_stored_with_its_end(store: Store) -> None:
    await begun(store, "task_1")
    failure = FailureArtifact(category="task", kind="exit_status", summary="2", task_id="task_1", exit_status=2)
    end = TaskEnded(
        task_id="task_1",
        status="failed",
        exit_status=2,
        result_summary="no",
        failure_artifact=failure,
        output_summary="both ends",
        output_bytes=99,
        output_truncated=True,
        duration_ms=7,
    )
    await store.admit(AGENT, [fact(end, NOON + 5)])
    row = await store.task("task_1")
    assert row is not None
    assert (row.status, row.exit_status, row.ended_at, row.duration_ms) == ("failed", 2, NOON + 5, 7)
    assert (row.output_summary, row.output_bytes, row.output_truncated) == ("both ends", 99, True)
    assert row.failure == failure.model_dump(mode="json")
    written = len(await store.read(AGENT))
    for late in (end, TaskStatusChanged(task_id="task_1", status="running")):
        with pytest.raises(EventRefused, match="which is failed since"):
            await store.admit(AGENT, [fact(late, NOON + 6)])
    assert await store.task("task_1") == row
    assert len(await store.read(AGENT)) == written


@pytest.mark.spec("HOL-OUT-02", "HOL-OUT-03")
async def test_a_stale_running_state_never_brings_a_task_back(store: Store) -> None:
    """A runtime that was stopped in the middle comes back and says what it believed."""
    await begun(store, "task_1")
    await store.admit(AGENT, [fact(TaskEnded(task_id="task_1", status="completed", exit_status=0), NOON + 5)])
    stale = TaskStatusChanged(task_id="task_1", status="running", reason="found again after a restart")
    with pytest.raises(EventRefused, match="which is completed since"):
        await store.admit(AGENT, [fact(stale, NOON + 1), queued("msg_stale")])
    row = await store.task("task_1")
    assert row is not None
    assert row.status == "completed"
    assert await store.message("msg_stale") is None, "what came with it is refused, too"


async def test_a_task_that_failed_goes_on_when_it_is_tried_again_and_no_other_does(store: Store) -> None:
    await begun(store, "task_1", "task_2")
    retried = TaskRetried(task_id="task_1", turn="turn_c1", requested_by="ada")
    with pytest.raises(EventRefused, match="task task_1 is running"):
        await store.admit(AGENT, [fact(retried, NOON + 4)])
    before = await store.task("task_1")
    failed = TaskEnded(task_id="task_1", status="failed", exit_status=2, result_summary="no", output_summary="oh")
    await store.admit(AGENT, [fact(failed, NOON + 5)])
    await store.admit(AGENT, [fact(retried, NOON + 6)])
    row = await store.task("task_1")
    assert before is not None and row == before._replace(updated_at=NOON + 6, retried_at=NOON + 6)
    assert ids(await store.open_tasks()) == ["task_1", "task_2"]
    completed = TaskEnded(task_id="task_1", status="completed", result_summary="yes")
    await store.admit(AGENT, [fact(completed, NOON + 7)])
    with pytest.raises(EventRefused, match="task task_1 is completed"):
        await store.admit(AGENT, [fact(retried, NOON + 8)])
    first, later = (result_message(TaskParent("make", retried_at=at), failed) for at in (None, NOON + 6))
    assert first.message_id != later.message_id, "each end has a message of its own"


async def test_a_state_on_the_way_is_told_by_the_row(store: Store) -> None:
    await begun(store, "task_1")
    await store.admit(AGENT, [fact(TaskStatusChanged(task_id="task_1", status="cancelling"), NOON + 2)])
    row = await store.task("task_1")
    assert row is not None
    assert (row.status, row.updated_at, row.is_over) == ("cancelling", NOON + 2, False)


async def test_a_task_of_another_agent_cannot_be_ended(store: Store) -> None:
    await begun(store, "task_1")
    await store.admit("other", [session()])
    with pytest.raises(EventRefused, match="agent other has no task task_1"):
        await store.admit("other", [fact(TaskEnded(task_id="task_1", status="completed"))])


@pytest.mark.spec("HOL-TASK-05")
async def test_the_result_is_a_message_of_the_same_transaction_and_there_is_one_for_ever(store: Store) -> None:
    await begun(store, "task_1")
    end = end_of_command("task_1", CommandOutcome(exit_status=0), OutputExcerpt("ok", 2))
    told = result_message(TaskParent("make"), end)
    await store.admit(AGENT, [fact(end, NOON + 5), fact(told, NOON + 5)])
    message = await store.message(told.message_id)
    assert message is not None
    assert (message.state, message.kind, message.authority) == ("queued", "task_result", "runtime_instruction")
    assert ids(await store.open_tasks()) == []
    try:
        await store.admit(AGENT, [fact(end, NOON + 6), fact(told, NOON + 6)])
    except EventRefused:
        pass
    found = [each for each in await store.read(AGENT) if each.fact.event.kind in ("task.ended", "message.admitted")]
    assert [each.fact.event.kind for each in found] == ["task.ended", "message.admitted"]


@pytest.mark.spec("HOL-TASK-11")
async def test_open_tasks_are_found_whichever_agent_has_them(store: Store) -> None:
    await begun(store, "task_1", "task_2")
    await store.admit("other", [session(), fact(task_created("task_3"), NOON + 7)])
    await store.admit(AGENT, [fact(TaskEnded(task_id="task_1", status="cancelled"), NOON + 8)])
    assert ids(await store.open_tasks()) == ["task_2", "task_3"]
    assert ids(await store.tasks_of(AGENT)) == ["task_2", "task_1"]


async def test_the_same_command_is_found_while_it_runs(store: Store) -> None:
    await store.admit(AGENT, [session()])
    for place, (name, cmd) in enumerate([("task_1", "make"), ("task_2", "make"), ("task_3", "make x")]):
        await store.admit(AGENT, [fact(task_created(name, cmd), NOON + place)])
    same = CommandSpec(cmd="make", workdir="/srv/shop", yield_time_ms=5).digest
    assert ids(await store.same_commands(AGENT, same)) == ["task_1", "task_2"]
    await store.admit(AGENT, [fact(TaskEnded(task_id="task_1", status="completed"))])
    assert ids(await store.same_commands(AGENT, same)) == ["task_2"]
    assert await store.same_commands("other", same) == []


@pytest.mark.parametrize("other", [{"cmd": "b"}, {"workdir": "/x"}, {"shell": "sh"}, {"login": True}, {"tty": True}])
def test_commands_differ_by_what_they_run_and_where(other: dict[str, object]) -> None:
    given: dict[str, object] = {"cmd": "a", "workdir": "/w", "yield_time_ms": 1}
    first = CommandSpec.model_validate(given)
    assert first.digest == CommandSpec.model_validate(given | {"yield_time_ms": 9, "accepts_input": True}).digest
    assert first.digest != CommandSpec.model_validate(given | other).digest


async def test_tasks_are_read_page_by_page_behind_one_that_may_have_ended(store: Store) -> None:
    names = [f"task_{number}" for number in range(5)]
    await begun(store, *names)
    first = await store.newest_open_tasks(limit=2)
    assert ids(first) == ["task_4", "task_3"]
    await store.admit(AGENT, [fact(TaskEnded(task_id="task_3", status="completed", exit_status=0), NOON + 9)])
    assert ids(await store.newest_open_tasks(limit=2, after=first[-1])) == ["task_2", "task_1"]
    assert ids(await store.tasks_of(AGENT, limit=9, after=first[0])) == names[3::-1]
