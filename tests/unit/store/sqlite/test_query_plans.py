"""No statement of the store reads a whole table that grows: every one that runs is asked for its plan.

Verifying and rebuilding read everything, on connections of their own; they are no part of this. Queries of declared
tables say themselves what serves them: `tests/contract/store/test_tables.py` looks at their plans.
"""

import inspect
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import apsw

from kit.runs.store_facts import (
    AGENT,
    TURN,
    admitted,
    claimed,
    completed,
    ended,
    interrupt,
    message,
    queued,
    requested,
    session,
    started,
    takes,
)
from wakeful.ports import Match, RowQuery, Store, TurnFilter
from wakeful.ports.approvals import ACTIONS, PENDING_ACTIONS_OF_TURN
from wakeful.ports.turns import (
    ENDED_OF_NAME,
    OPEN_TURNS,
    OPEN_TURNS_OF_THREAD,
    THREAD_BY_AGENT,
    THREAD_BY_LAST_EVENT,
    TURNS,
    TURNS_BY_AGE,
    TURNS_OF_AGENT,
    TURNS_OF_NAME,
    TURNS_OF_THREAD,
)
from wakeful.store.sqlite import SqliteStore
from wakeful.store.sqlite.tables import query_sql
from wakeful.store.tables import TABLES

GROWING = {
    "agents", "events", "appends", "turns", "unknown", "actions", "rules", "tainted_files", "spending", "holds",
    "messages", "busy_threads", "threads", "artifacts", "wakes", "runtime_agents", "tasks",
    "timers", "waits", "continuations", "work_items", "briefs", "workflow_runs",
    "turn_costs", "turn_claims", "usage", "blobs", "workflows", "dispatches", "dispatch_events",
}  # fmt: skip
ALLOWED = {
    "INDEXED BY turns_open WHERE": "open turns: an index of those alone",
    "SELECT count(*) FROM turns": "for a doctor, who has just read every event: one index, and no row",
    "FROM workflows": "workflows are few: a person saved each one",
    "SELECT id, agent_id FROM agents ORDER BY id": "for checking and repairing everything, and for lists of all agents",
    "FROM pragma_table_info('agents')": "the columns of one table, once a connection: no row of it is read",
}
"""Parts of statements that may read a whole table or a whole index, and why."""
DECLARED = {
    query_sql(table, query, after, with_limit, backwards)
    for table in TABLES
    for query in table.queries
    for after in range(len(query.order) + 1)
    for with_limit in (False, True)
    for backwards in (False, True)
}


async def filled(path: Path) -> SqliteStore:
    store = await SqliteStore.open(path)
    for number in range(40):
        agent_id, turn_id = f"agent_{number % 4}", f"turn {number}"
        facts = [message(turn_id, key=f"key {number}", thread=f"t{number % 8}")]
        await store.admit(agent_id, [session(), *facts] if number < 4 else facts)
        claim = await store.claim(turn_id)
        await store.append(claim, [started(turn_id), requested(turn_id), completed(turn_id)])
        if number % 5:
            await store.append(claim, [ended(turn_id)])
        await store.release(claim)
    return store


async def open_turn(store: SqliteStore) -> None:
    """A turn that takes a message from the queue."""
    await store.admit("agent_1", [queued("q1", thread="t8")])
    claim = await store.claim_thread("agent_1", "t8", "turn_z")
    await store.append(claim, [takes("turn_z", "q1", thread="t8")])
    await store.release(claim)


async def ask_everything(store: SqliteStore) -> set[str]:
    """Each method of the store once or more; which they were."""
    claim = await claimed(store, TURN, AGENT)
    asked: dict[str, list[Callable[[], Awaitable[Any]]]] = {
        "admit": [lambda: admitted(store, "turn_x", "agent_x"), lambda: store.admit(AGENT, [interrupt()])],
        "append": [lambda: store.append(claim, [started(), requested(), completed()])],
        "hold": [lambda: store.hold(claim)],
        "give_up": [lambda: store.give_up(TURN, "nobody")],
        "read": [
            lambda: store.read("agent_1"),
            lambda: store.read("agent_1", after=7, limit=1),
            lambda: store.read("agent_1", turn_id="turn 5"),
            lambda: store.read("agent_1", thread_id="t1"),
            lambda: store.read("agent_1", thread_id="t1", after=7),
        ],
        "turn": [lambda: store.turn(TURN)],
        "turn_of_key": [lambda: store.turn_of_key("key 3")],
        "turns": [lambda: store.turns(limit=3), lambda: store.turns(open_only=True)],
        "count_turns": [store.count_turns],
        "turns_of_agent": [lambda: store.turns_of_agent("agent_1", limit=3, before=30)],
        "figures_of": [lambda: store.figures_of("agent_1")],
        "agent_revisions": [lambda: store.agent_revisions("agent_1", limit=1)],
        "children_of": [lambda: store.children_of("agent_1")],
        "ended_turns": [lambda: store.ended_turns("calc", limit=3)],
        "turn_costs": [store.turn_costs, lambda: store.turn_costs(since=1)],
        "agent_names": [store.agent_names],
        "count_rows": [lambda: store.count_rows(TURNS)],
        "agents_of_name": [lambda: store.agents_of_name("calc")],
        "find_turns": [
            lambda: store.find_turns(TurnFilter(state="running"), limit=3, before="turn 5"),
            lambda: store.find_turns(TurnFilter(prefix="turn 1"), limit=3, before="turn 5"),
            lambda: store.find_turns(TurnFilter(agent_name="calc"), limit=3, before="turn 5"),
            lambda: store.find_turns(TurnFilter(thread_id="t1"), limit=3, before="turn 5"),
        ],
        "thread": [lambda: store.thread("agent_1", "t1")],
        "threads": [lambda: store.threads(limit=3), lambda: store.threads("calc", limit=3)],
        "turns_of_artifact": [lambda: store.turns_of_artifact("sha256:1", limit=1)],
        "artifacts_from": [lambda: store.artifacts_from("sha256:1", limit=2)],
        "deleted_turns": [lambda: store.deleted_turns("agent_1", "t1")],
        "turns_reaching_past": [lambda: store.turns_reaching_past("agent_1", "t1", 7)],
        "is_held": [lambda: store.is_held("agent_1", "t1")],
        "turns_of_thread": [
            lambda: store.turns_of_thread("agent_1", "t1"),
            lambda: store.turns_of_thread("agent_1", "t1", open_only=True),
            lambda: store.turns_of_thread("agent_1", "t1", last=2, before=30),
        ],
        "agents_of_thread": [lambda: store.agents_of_thread("t1", limit=3)],
        "agents": [store.agents],
        "unknown": [store.unknown],
        "action": [lambda: store.action("a")],
        "actions": [
            store.actions,
            lambda: store.actions(pending_only=True),
            lambda: store.actions(pending_only=True, turn_id=TURN),
        ],
        "rules": [store.rules, lambda: store.rules("calc")],
        "tainted_files": [lambda: store.tainted_files("/a/b/c", digest="d", below=True)],
        "message": [lambda: store.message("m")],
        "queued": [lambda: store.queued("agent_1", "t1"), lambda: store.queued("agent_1", "t1", limit=1)],
        "busy_threads": [store.busy_threads],
        "wake": [lambda: store.wake("agent_1", "t1", "turn 5")],
        "deferrals": [lambda: store.deferrals("agent_1", "t1")],
        "deferred": [lambda: store.deferred("agent_1", "t1")],
        "all_deferred": [store.all_deferred],
        "busy_thread": [lambda: store.busy_thread("agent_1", "t1")],
        "armed_timers": [store.armed_timers, lambda: store.armed_timers("agent_1")],
        "all_open_waits": [store.all_open_waits],
        "all_pending_hints": [store.all_pending_hints],
        "notice": [lambda: store.notice("ntc_1")],
        "notices": [store.notices, lambda: store.notices("agent_1")],
        "feed_after": [lambda: store.feed_after(7, limit=3), lambda: store.feed_after(7, limit=3, results=True)],
        "newest_of_feed": [
            lambda: store.newest_of_feed(limit=3, results=True),
            lambda: store.newest_of_feed("agent_1", limit=3),
            lambda: store.newest_of_feed("agent_1", limit=3, results=True),
        ],
        "runtime_hold": [store.runtime_hold],
        "runtime_files": [store.runtime_files],
        "keyed_request": [lambda: store.keyed_request("ada", "k1")],
        "oldest_keyed_request": [store.oldest_keyed_request],
        "parked_provider": [lambda: store.parked_provider("openai")],
        "parked_providers": [store.parked_providers],
        "told_result": [lambda: store.told_result(AGENT, "timer_1")],
        "channel": [lambda: store.channel("phone")],
        "channels": [store.channels],
        "channel_input": [lambda: store.channel_input("inp_1")],
        "channel_message": [lambda: store.channel_message("appr_1")],
        "next_wake": [store.next_wake],
        "wakes_of_thread": [lambda: store.wakes_of_thread("agent_1", "t1")],
        "wakes_of": [lambda: store.wakes_of("agent_1")],
        "runtime_agent": [lambda: store.runtime_agent("agent_1")],
        "runtime_agents": [lambda: store.runtime_agents(limit=3)],
        "deleted_agents": [store.deleted_agents],
        "held_agents": [store.held_agents],
        "task": [lambda: store.task("task_1")],
        "open_tasks": [store.open_tasks],
        "newest_open_tasks": [lambda: store.newest_open_tasks(limit=3)],
        "same_commands": [lambda: store.same_commands("agent_1", "d")],
        "tasks_of": [lambda: store.tasks_of("agent_1", limit=3)],
        "timer": [lambda: store.timer("timer_1")],
        "timers": [store.timers, lambda: store.timers("agent_1")],
        "wait": [lambda: store.wait("wait_1")],
        "work_item": [lambda: store.work_item("wi_1")],
        "current_work_item_id": [lambda: store.current_work_item_id("agent_1")],
        "open_work_items": [lambda: store.open_work_items("agent_1", limit=3)],
        "completed_work_items": [lambda: store.completed_work_items("agent_1", limit=3)],
        "workflow_runs": [lambda: store.workflow_runs(limit=3)],
        "briefs": [lambda: store.briefs("agent_1", limit=3)],
        "open_waits": [lambda: store.open_waits("agent_1")],
        "pending_hint": [lambda: store.pending_hint("agent_1", "main")],
        "brief": [lambda: store.brief("brief_1")],
        "briefs_after": [lambda: store.briefs_after("agent_1", 7, limit=3)],
        "work_items_by_birth": [lambda: store.work_items_by_birth("agent_1", "open", limit=3)],
        "work_items_since": [
            lambda: store.work_items_since("agent_1", True, 5, limit=3),
            lambda: store.work_items_since("agent_1", False, 5, limit=3),
        ],
        "working_memory": [lambda: store.working_memory("agent_1")],
        "prompted_memory": [lambda: store.prompted_memory("agent_1", "main")],
        "episodes": [lambda: store.episodes("agent_1"), lambda: store.episodes("agent_1", after=7, limit=3)],
        "memory_change": [lambda: store.memory_change("agent_1", "mem_1")],
        "memory_changes": [
            lambda: store.memory_changes("agent_1"),
            lambda: store.memory_changes("agent_1", after=7),
        ],
        "memory_use": [lambda: store.memory_use("agent_1", "mem_1")],
        "trigger": [lambda: store.trigger("trg_1")],
        "triggers": [store.triggers, lambda: store.triggers("agent_1")],
        "delivery": [lambda: store.delivery("trg_1", "d1")],
        "refused_input": [store.refused_input, lambda: store.refused_input("agent_1")],
        "active_workspace": [lambda: store.active_workspace("agent_1")],
        "attached_workspace": [lambda: store.attached_workspace("agent_1", "ws_1")],
        "attached_workspaces": [lambda: store.attached_workspaces("agent_1")],
        "all_attached_workspaces": [store.all_attached_workspaces],
        "worktree": [lambda: store.worktree("wt_1")],
        "worktrees_of": [lambda: store.worktrees_of("agent_1")],
        "worktrees_of_task": [lambda: store.worktrees_of_task("task_1")],
        "last_continuation": [lambda: store.last_continuation("agent_1")],
        "all_timed_wakes": [store.all_timed_wakes],
        "due_wakes": [lambda: store.due_wakes(5, limit=3)],
        "spending": [store.spending, lambda: store.spending(["all"], after=5)],
        "usage": [lambda: store.usage("agent_1")],
        "usage_of_name": [lambda: store.usage_of_name("calc")],
        "save_workflow": [lambda: store.save_workflow("w", "{}", new_id="wf", created_at=1, key="k")],
        "workflow": [lambda: store.workflow("wf"), lambda: store.workflow("wf", 1)],
        "workflows": [store.workflows],
        "delete_workflow": [lambda: store.delete_workflow("wf")],
        "put_blob": [lambda: store.put_blob(b"x", "text/plain")],
        "release": [lambda: store.append(claim, [ended()]), lambda: store.release(claim)],
        "claim": [lambda: store.claim("turn 0")],
        "claim_thread": [lambda: store.claim_thread("agent_1", "t9", "turn_y"), lambda: open_turn(store)],
        "sync": [store.sync],
        "head": [lambda: store.head("agent_1")],
        "rebuild_views": [store.rebuild_views],
        "get_row": [lambda: store.get_row(ACTIONS, "a")],
        "list_rows": [lambda: store.list_rows(ACTIONS, PENDING_ACTIONS_OF_TURN, TURN, limit=1)],
        "find_rows": [lambda: store.find_rows(ACTIONS, [Match({"turn_id": (TURN,)})], order=ACTIONS.key)],
    }
    for calls in asked.values():
        for call in calls:
            await call()
    kept = store.dispatches
    await kept.claim("r", "target", "s", "queued", "{}", at=1, event="queued", payload="{}")
    await kept.change("r", 1, "done", "{}", at=2, event="done", payload="{}")
    await kept.note("r", at=3, event="noted", payload="{}")
    await kept.all("target", limit=5)
    await kept.events("r")
    return set(asked)


def scanned(connection: apsw.Connection, statement: str) -> list[str]:
    """What the plan of a statement says about whole tables that grow."""
    plan = connection.execute(f"EXPLAIN QUERY PLAN {statement}", (None,) * statement.count("?"), can_cache=False)
    scans = [detail for *_, detail in plan if detail.startswith("SCAN ") and "CONSTANT" not in detail]
    return [detail for detail in scans if detail != "SCAN found"]  # what a search of a declared table came to


async def test_no_statement_reads_a_whole_table_that_grows(tmp_path: Path) -> None:
    store = await filled(tmp_path / "runs.db")
    statements: dict[str, None] = {}

    def note(cursor: apsw.Cursor, statement: str, bindings: Any) -> bool:
        statements[" ".join(statement.split())] = None
        return True

    store._connection.exec_trace = note
    asked = await ask_everything(store)
    store._connection.exec_trace = None
    unasked = {name for name, _ in inspect.getmembers(Store, inspect.iscoroutinefunction)} - asked
    on_purpose = {"verify", "wakes_set_after"}  # the second one when a runtime starts, and when its clock is set
    assert unasked == {"close", "get_blob", *on_purpose}, "these read files, or everything on purpose"
    wrong = {}
    for statement in statements:
        if statement.split()[0] not in ("SELECT", "INSERT", "UPDATE", "DELETE"):
            continue
        found = scanned(store._connection, statement)
        if found and statement not in DECLARED and not any(part in statement for part in ALLOWED):
            wrong[statement] = found
    assert wrong == {}
    unused = [part for part in ALLOWED if not any(part in statement for statement in statements)]
    assert unused == [], "nothing like that is run any more"
    await store.close()


NARROW: list[tuple[RowQuery, str]] = [
    (OPEN_TURNS, "turns_open (created_at<?)"),
    (TURNS_BY_AGE, "turns_by_age (created_at<?)"),
    (THREAD_BY_LAST_EVENT, "turns_by_last_event (thread_id=? AND agent=? AND last_seq<?)"),
    (THREAD_BY_AGENT, "turns_by_thread (thread_id=? AND agent<?)"),
    (TURNS_OF_AGENT, "turns_of_agent (agent=? AND first_seq<?)"),
    (TURNS_OF_THREAD, "turns_by_thread (thread_id=? AND agent=? AND first_seq<?)"),
    (OPEN_TURNS_OF_THREAD, "turns_open_in_thread (thread_id=? AND agent=? AND first_seq<?)"),
    (ENDED_OF_NAME, "turns_by_name_and_end (agent_name=? AND ended_at>? AND ended_at<?)"),
    (TURNS_OF_NAME, "turns_of_name (agent_name=? AND created_at<?)"),
]
"""Pages of turns, and how each is found."""


async def test_a_page_of_turns_begins_where_the_one_before_ended(tmp_path: Path) -> None:
    store = await filled(tmp_path / "runs.db")
    for query, way in NARROW:
        statement = query_sql(TURNS, query, after=1, with_limit=True, backwards=True)
        plan = store._connection.execute(f"EXPLAIN QUERY PLAN {statement}", (None,) * statement.count("?"))
        found = [detail for *_, detail in plan]
        assert any(way in detail for detail in found), (way, found)
        assert "USE TEMP B-TREE FOR ORDER BY" not in found, (way, found)
    await store.close()


async def test_inversion_a_statement_without_its_index_is_found(tmp_path: Path) -> None:
    store = await filled(tmp_path / "runs.db")
    statement = "SELECT turn_id FROM turns WHERE key = ?"
    assert scanned(store._connection, statement) == []
    store._connection.execute("DROP INDEX turns_by_key")
    assert scanned(store._connection, statement) == ["SCAN turns"]
    await store.close()
