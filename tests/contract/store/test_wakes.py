"""Wakes on every backend: each is there from the fact that causes it to the fact that settles it, and found by time."""

from dataclasses import replace

import pytest

from contract.store.test_mailbox import posted, step
from kit.runs.action_facts import asked, decided
from kit.runs.store_facts import AGENT, NOON, THREAD, created, ended, interrupt, session, started
from kit.runs.table_facts import WINDOW, failed, in_turn, passed_window, rests, resumed
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import EventRefused
from wakeful.contracts.events import ActionReminded, TurnPauseLifted, TurnPauseRequested
from wakeful.ports import Store, WakeRow
from wakeful.store.tables.notices import notice_id


async def begun(store: Store, *facts: Fact) -> None:
    await store.admit(AGENT, [created(), posted("t1")])
    await step(store, "t1", started("t1"), *facts)


def wake(subject: str, due_at: int | None, cause: str, cause_id: str) -> WakeRow:
    return WakeRow(AGENT, THREAD, subject, due_at, cause, cause_id, due_at, NOON)  # type: ignore[arg-type]


async def of_turns(store: Store) -> list[WakeRow]:
    """What a runtime looks at, the earliest first, but for what people are told."""
    found = await store.due_wakes(NOON + 10**12, limit=99)
    return [row._replace(set_at=NOON) for row in found if row.cause not in ("notice", "reminder")]


async def for_people(store: Store) -> list[WakeRow]:
    """What people are told, and when."""
    found = await store.due_wakes(NOON + 10**12, limit=99)
    return [row._replace(set_at=NOON) for row in found if row.cause in ("notice", "reminder")]


def told(seq: int, at: int = NOON) -> WakeRow:
    name = notice_id(AGENT, seq)
    return wake(f"notice:{name}", at, "notice", name)


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
    assert await store.wake(AGENT, THREAD) == wake("", NOON + 5, "message", "t1")._replace(set_at=NOON + 5)
    await step(store, "t2", failed("t2", NOON + 6))
    assert await store.wake(AGENT, THREAD) == wake("", NOON + 5, "message", "t1")._replace(set_at=NOON + 5), (
        "one is left"
    )
    await step(store, "t3", failed("t3", NOON + 7))
    assert await store.next_wake() is None


async def test_a_turn_that_rests_on_people_is_due_at_the_first_expiry_and_when_one_decides(
    store: Store,
) -> None:
    await begun(store, asked("appr_1", turn="t1"), asked("appr_2", turn="t1"))
    assert await of_turns(store) == [], "it runs"
    await step(store, "t1", rests("t1", "approval_required", "appr_1", "appr_2"))
    assert await of_turns(store) == [wake("t1", NOON + 60, "expiry", "appr_1")]
    early, late = [await store.due_wakes(NOON + seconds, limit=9) for seconds in (59, 60)]
    assert [row for row in late if row not in early] == [wake("t1", NOON + 60, "expiry", "appr_1")]
    await store.admit(AGENT, [replace(decided("appr_2"), turn_id="t1")])
    assert await of_turns(store) == [wake("t1", NOON + 5, "decision", "appr_2")]
    await step(store, "t1", resumed("t1"))
    assert await of_turns(store) == []


async def test_a_decision_for_a_turn_that_runs_wakes_nobody(store: Store) -> None:
    await begun(store, asked("appr_1", turn="t1"))
    await store.admit(AGENT, [replace(decided("appr_1"), turn_id="t1")])
    assert await of_turns(store) == []


async def test_a_turn_that_rests_on_a_spend_window_is_due_when_it_turns(store: Store) -> None:
    await begun(store, asked("appr_1", turn="t1"), passed_window("t1"), rests("t1", "budget_window", "runtime hour"))
    full = wake("t1", WINDOW.turns, "window", "runtime hour")
    assert await of_turns(store) == [full]
    await store.admit(AGENT, [replace(decided("appr_1"), turn_id="t1")])
    assert await of_turns(store) == [full], "a decision gives it no money"
    await step(store, "t1", ended("t1"))
    assert await of_turns(store) == []


async def test_a_turn_that_no_time_moves_has_its_row_and_is_never_due(store: Store) -> None:
    await begun(store, rests("t1", "tool_missing", "add"))
    assert await store.next_wake() is None
    assert await store.wake(AGENT, THREAD, "t1") == wake("t1", None, "somebody", "add")


async def test_a_pause_holds_a_turn_at_rest_until_it_is_lifted(store: Store) -> None:
    await begun(store, asked("appr_1", turn="t1"), rests("t1", "approval_required", "appr_1"))
    await store.admit(AGENT, [in_turn(TurnPauseRequested(requested_by="ada"), "t1")])
    assert await of_turns(store) == []
    await store.admit(AGENT, [in_turn(TurnPauseLifted(requested_by="ada"), "t1", NOON + 9)])
    assert await of_turns(store) == [wake("t1", NOON + 9, "unpaused", "ada")]


async def test_people_are_told_at_once_and_once_more_at_half_time_until_they_decide(store: Store) -> None:
    await begun(store, asked("appr_1", turn="t1"), rests("t1", "approval_required", "appr_1"))
    reminder = wake("reminder:appr_1", NOON + 30, "reminder", "appr_1")
    assert await for_people(store) == [told(4), reminder]
    await store.admit(AGENT, [in_turn(TurnPauseRequested(requested_by="ada"), "t1")])
    assert await for_people(store) == [told(4), reminder], "a turn that is to rest still waits for its decision"
    await store.admit(AGENT, [replace(decided("appr_1"), turn_id="t1")])
    assert await for_people(store) == [told(4)], "nobody is reminded of a decision that was made"


async def test_people_are_reminded_once(store: Store) -> None:
    await begun(store, asked("appr_1", turn="t1"), rests("t1", "approval_required", "appr_1"))
    reminded = Fact(ActionReminded(action_id="appr_1", tool_name="refund", expires_at=NOON + 60), NOON + 30, THREAD)
    await store.admit(AGENT, [reminded])
    assert await for_people(store) == [told(4), told(6, NOON + 30)]
    with pytest.raises(EventRefused, match="appr_1 is decided, or was reminded of"):
        await store.admit(AGENT, [reminded])


async def test_a_run_of_the_library_has_a_caller_and_no_rows_for_a_runtime(store: Store) -> None:
    await store.admit(AGENT, [session(), posted("t1")])
    await step(store, "t1", started("t1"), asked("appr_1", turn="t1"), rests("t1", "approval_required", "appr_1"))
    at_rest = WakeRow(AGENT, THREAD, "t1", NOON + 60, "expiry", "appr_1", None, NOON)
    assert await store.wakes_of(AGENT) == [at_rest]
    assert (await store.next_wake(), await store.notices()) == (None, [])
    await store.admit(AGENT, [replace(decided("appr_1", "timed_out", at=NOON + 60), turn_id="t1")])
    await step(store, "t1", resumed("t1"), failed("t1", NOON + 61))
    assert (await store.wakes_of(AGENT), await store.notices()) == ([], [])


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
