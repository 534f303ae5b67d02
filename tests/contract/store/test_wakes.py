"""Wakes on every backend: each is there from the fact that causes it to the fact that settles it, and found by time."""

from dataclasses import replace

from contract.store.test_mailbox import posted, step
from kit.runs.action_facts import asked, decided
from kit.runs.store_facts import AGENT, NOON, THREAD, created, ended, interrupt, started
from kit.runs.table_facts import WINDOW, failed, in_turn, passed_window, rests, resumed
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import TurnPauseLifted, TurnPauseRequested
from wakeful.ports import Store, WakeRow


async def begun(store: Store, *facts: Fact) -> None:
    await store.admit(AGENT, [created(), posted("t1")])
    await step(store, "t1", started("t1"), *facts)


def wake(subject: str, due_at: int | None, cause: str, cause_id: str) -> WakeRow:
    return WakeRow(AGENT, THREAD, subject, due_at, cause, cause_id, due_at)  # type: ignore[arg-type]


async def test_a_message_on_a_free_thread_is_due_until_a_turn_takes_it(store: Store) -> None:
    await store.admit(AGENT, [created(), posted("t1")])
    assert await store.due_wakes(NOON, limit=9) == [wake("", NOON, "message", "msg of t1")]
    await step(store, "t1", started("t1"))
    assert await store.next_wake() is None


async def test_a_message_behind_a_turn_is_due_when_that_turn_has_ended(store: Store) -> None:
    await begun(store)
    await store.admit(AGENT, [posted("t2")])
    await store.admit(AGENT, [posted("t3")])
    assert await store.next_wake() is None, "whoever runs the turn is at the thread"
    await step(store, "t1", replace(ended("t1"), at=NOON + 5))
    assert await store.wake(AGENT, THREAD) == wake("", NOON + 5, "message", "t1")
    await step(store, "t2", failed("t2", NOON + 6))
    assert await store.wake(AGENT, THREAD) == wake("", NOON + 5, "message", "t1"), "one is left"
    await step(store, "t3", failed("t3", NOON + 7))
    assert await store.next_wake() is None


async def test_a_turn_that_rests_on_people_is_due_at_the_first_expiry_and_when_one_decides(
    store: Store,
) -> None:
    await begun(store, asked("appr_1", turn="t1"), asked("appr_2", turn="t1"))
    assert await store.next_wake() is None, "it runs"
    await step(store, "t1", rests("t1", "approval_required", "appr_1", "appr_2"))
    assert await store.next_wake() == wake("t1", NOON + 60, "expiry", "appr_1")
    assert await store.due_wakes(NOON + 59, limit=9) == []
    assert len(await store.due_wakes(NOON + 60, limit=9)) == 1
    await store.admit(AGENT, [replace(decided("appr_2"), turn_id="t1")])
    assert await store.next_wake() == wake("t1", NOON + 5, "decision", "appr_2")
    await step(store, "t1", resumed("t1"))
    assert await store.next_wake() is None


async def test_a_decision_for_a_turn_that_runs_wakes_nobody(store: Store) -> None:
    await begun(store, asked("appr_1", turn="t1"))
    await store.admit(AGENT, [replace(decided("appr_1"), turn_id="t1")])
    assert await store.next_wake() is None


async def test_a_turn_that_rests_on_a_spend_window_is_due_when_it_turns(store: Store) -> None:
    await begun(store, asked("appr_1", turn="t1"), passed_window("t1"), rests("t1", "budget_window", "runtime hour"))
    full = wake("t1", WINDOW.turns, "window", "runtime hour")
    assert await store.next_wake() == full
    await store.admit(AGENT, [replace(decided("appr_1"), turn_id="t1")])
    assert await store.next_wake() == full, "a decision gives it no money"
    await step(store, "t1", ended("t1"))
    assert await store.next_wake() is None


async def test_a_turn_that_no_time_moves_has_its_row_and_is_never_due(store: Store) -> None:
    await begun(store, rests("t1", "tool_missing", "add"))
    assert await store.next_wake() is None
    assert await store.wake(AGENT, THREAD, "t1") == wake("t1", None, "somebody", "add")


async def test_a_pause_holds_a_turn_at_rest_until_it_is_lifted(store: Store) -> None:
    await begun(store, asked("appr_1", turn="t1"), rests("t1", "approval_required", "appr_1"))
    await store.admit(AGENT, [in_turn(TurnPauseRequested(requested_by="ada"), "t1")])
    assert await store.next_wake() is None
    await store.admit(AGENT, [in_turn(TurnPauseLifted(requested_by="ada"), "t1", NOON + 9)])
    assert await store.next_wake() == wake("t1", NOON + 9, "unpaused", "ada")


async def test_a_turn_at_rest_that_is_asked_to_stop_is_due(store: Store) -> None:
    await begun(store, rests("t1", "tool_missing", "add"))
    await store.admit(AGENT, [interrupt("t1")])
    assert await store.next_wake() == wake("t1", NOON, "interrupt", "int_1")


async def test_wakes_of_all_agents_come_in_the_order_of_their_times(store: Store) -> None:
    for place, agent in enumerate(["c", "a", "b"]):
        await store.admit(agent, [created(), posted(f"turn of {agent}", at=NOON + 10 - place)])
    found = await store.due_wakes(NOON + 9, limit=9)
    assert [(row.agent_id, row.due_at) for row in found] == [("b", NOON + 8), ("a", NOON + 9)]
    assert [row.agent_id for row in await store.due_wakes(NOON + 99, limit=2)] == ["b", "a"]
