"""A real process, killed at every commit of admissions and turns: no message is lost, run twice or left without a wake.

Every sweep of this folder holds the rows against the log after each kill (`wakeful.testing.crash_rows`).
"""

from dataclasses import replace
from pathlib import Path

from crash import mailbox_scenarios as scenarios
from crash.sweeps import sweep
from kit.runs.store_facts import AGENT, NOON, deferred, message, queued, session, started
from kit.runs.table_facts import rests
from wakeful.store.sqlite import SqliteStore
from wakeful.testing.crash_rows import find_misfits


def test_messages_that_are_killed_anywhere_are_each_answered_once() -> None:
    sweep(scenarios.a_queue_in_one_thread)


def test_messages_without_a_turn_that_are_killed_anywhere_are_each_taken_once() -> None:
    sweep(scenarios.messages_without_a_turn)


def test_messages_that_are_set_aside_and_killed_anywhere_are_shown_once_or_expire() -> None:
    sweep(scenarios.messages_that_are_set_aside)


def test_two_owners_of_one_queue_that_are_killed_anywhere_take_each_message_once() -> None:
    sweep(scenarios.two_owners_of_one_queue)


async def test_inversion_rows_that_a_kill_had_left_behind_are_found(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "runs.db")
    await store.admit(AGENT, [session(), message("t1")])
    await store.admit(AGENT, [replace(message("t2"), thread_id="side")])
    claim = await store.claim("t1")
    await store.append(claim, [started("t1"), rests("t1", "tool_missing", "add")])
    await store.admit(AGENT, [queued("m1", thread="aside")])
    await store.admit(AGENT, [deferred("m1", NOON + 60, thread="aside")])
    assert await find_misfits(store) == []
    store._connection.execute("DELETE FROM wakes")
    assert await find_misfits(store) == [
        "the rows of wakes are not those that follow from the log",
        f"thread side of agent {AGENT} is free, messages wait in it (1), and nobody is told to look",
        "message m1 is deferred and has no wake",
        "turn t1 rests and has no wake",
    ]
    await store.release(claim)
    await store.close()
