"""The rows that follow from facts, live and rebuilt."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from kit.runs.store_facts import (
    AGENT,
    NOON,
    THREAD,
    TURN,
    USED,
    admitted,
    claimed,
    completed,
    ended,
    fact,
    interrupt,
    message,
    queued,
    requested,
    resolved,
    session,
    spilled,
    started,
    takes,
    tool_failed,
    tool_result,
    tool_started,
)
from wakeful.contracts.events import TurnFailed, TurnResumed, TurnSuspended
from wakeful.contracts.models import AgentTokenUsageSummary, TokenUsage
from wakeful.ports import Store, ThreadRow, TurnFilter, TurnRow, UnknownRow
from wakeful.ports.threads import ThreadPlace


async def row(store: Store, turn: str = TURN) -> TurnRow:
    found = await store.turn(turn)
    assert found is not None
    return found


async def everything(store: Store) -> list[Any]:
    agents = await store.agents()
    return [
        agents,
        await store.turns(),
        await store.turns(open_only=True),
        [await store.turns_of_thread(agent, "main") for agent in agents],
        await store.unknown(),
        [await store.usage(agent) for agent in agents],
    ]


async def test_a_turns_row_follows_its_facts(store: Store) -> None:
    claim = await claimed(store)
    await store.append(claim, [started(index=4, window_from=2), requested()])
    assert (await row(store))[4:9] == ("running", 2, 3, 2, 4)
    await store.append(claim, [fact(TurnSuspended(reason="tool_missing", waiting_for=("refund", "pay")))])
    assert ((await row(store)).state, (await row(store)).waiting_for) == ("suspended", ("refund", "pay"))
    await store.append(claim, [fact(TurnResumed(cause="supplied"))])
    assert ((await row(store)).state, (await row(store)).waiting_for) == ("running", ())
    assert (await row(store)).is_open
    await store.append(claim, [replace(ended(), at=NOON + 9)])
    last = await row(store)
    assert (last.state, last.ended_at, last.last_seq, last.is_open) == ("completed", NOON + 9, 7, False)


@pytest.mark.parametrize("status", ["incomplete", "failed", "cancelled"])
async def test_a_turn_that_did_not_complete_has_the_status_it_ended_with(store: Store, status: Any) -> None:
    claim = await claimed(store)
    failed = TurnFailed(
        turn_index=1, status=status, stop_reason="cancelled", retryable=False, duration_ms=1.0, active_ms=1.0
    )
    await store.append(claim, [started(), fact(failed)])
    assert ((await row(store)).state, await store.turns(open_only=True)) == (status, [])


async def test_of_a_threads_turns_those_that_are_open_are_found_whatever_is_over(store: Store) -> None:
    for n, last in enumerate((None, TurnSuspended(reason="paused", waiting_for=("pause",)), "over", None)):
        claim = await claimed(store, f"turn_{n}", AGENT)
        facts = [] if last is None else [ended(f"turn_{n}") if last == "over" else fact(last, f"turn_{n}")]
        await store.append(claim, [started(f"turn_{n}"), *facts])
    await claimed(store, "turn_4")  # admitted, and not begun
    await store.admit(AGENT, [message("turn_5", thread="side")])
    await store.append(await claimed(store, "turn_6", "agent_2"), [started("turn_6")])

    async def found(agent_id: str, thread_id: str) -> list[tuple[str, str]]:
        rows = await store.turns_of_thread(agent_id, thread_id, open_only=True)
        return [(row.turn_id, row.state) for row in rows]

    main = [("turn_0", "running"), ("turn_1", "suspended"), ("turn_3", "running"), ("turn_4", "admitted")]
    assert await found(AGENT, "main") == main
    assert await found(AGENT, "side") == [("turn_5", "admitted")]
    assert await found("agent_2", "main") == [("turn_6", "running")]
    assert await found("nobody", "main") == []


async def test_turns_are_listed_newest_first_and_those_of_a_thread_oldest_first(store: Store) -> None:
    for n, at in enumerate((3, 1, 2)):
        await store.admit(AGENT, [message(f"turn_{n}", at=NOON + at)])
    await store.admit("agent_2", [message("turn_3", at=NOON), message("x")][:1])
    assert [found.turn_id for found in await store.turns()] == ["turn_0", "turn_2", "turn_1", "turn_3"]
    assert [found.turn_id for found in await store.turns(limit=2)] == ["turn_0", "turn_2"]
    await store.append(await store.claim("turn_2"), [ended("turn_2")])
    assert [found.turn_id for found in await store.turns(open_only=True)] == ["turn_0", "turn_1", "turn_3"]
    assert [found.turn_id for found in await store.turns_of_thread(AGENT, "main")] == ["turn_0", "turn_1", "turn_2"]
    assert await store.turns_of_thread(AGENT, "side") == []
    assert await store.agents() == [AGENT, "agent_2"]


async def test_turns_of_an_agent_and_of_a_thread_come_in_pages_newest_first(store: Store) -> None:
    for n in range(5):
        await store.admit(AGENT, [message(f"turn_{n}", thread="side" if n % 2 else "main", at=NOON + n)])
    await store.admit("agent_2", [message("turn_5", thread="side")])
    first = await store.turns_of_agent(AGENT, limit=3)
    assert [found.turn_id for found in first] == ["turn_4", "turn_3", "turn_2"]
    rest = await store.turns_of_agent(AGENT, limit=3, before=first[-1].first_seq)
    assert [found.turn_id for found in rest] == ["turn_1", "turn_0"]
    (newest,) = await store.turns_of_thread(AGENT, "main", last=1)
    earlier = await store.turns_of_thread(AGENT, "main", last=5, before=newest.first_seq)
    assert (newest.turn_id, [found.turn_id for found in earlier]) == ("turn_4", ["turn_0", "turn_2"])
    assert (await store.turns_of_agent("nobody", limit=3), await store.count_turns()) == ([], 6)


async def test_who_had_a_turn_in_a_thread_of_a_name(store: Store) -> None:
    for n, (agent_id, thread) in enumerate([("b", "main"), ("a", "main"), ("b", "main"), ("c", "side")]):
        await store.admit(agent_id, [message(f"turn_{n}", thread=thread)])
    assert await store.agents_of_thread("main", limit=9) == ["b", "a"]
    assert await store.agents_of_thread("main", limit=1) == ["b"]
    assert (await store.agents_of_thread("side", limit=9), await store.agents_of_thread("x", limit=9)) == (["c"], [])


async def test_turns_are_found_by_state_agent_thread_and_beginning_of_the_id_in_pages(store: Store) -> None:
    for n, (agent_id, thread) in enumerate([(AGENT, "main"), (AGENT, "side"), ("agent_2", "main"), (AGENT, "main")]):
        await store.admit(agent_id, [replace(message(f"turn_{n}", thread=thread), at=NOON + n)])
    claim = await store.claim("turn_1")
    await store.append(claim, [replace(each("turn_1"), thread_id="side") for each in (started, ended)])
    name = (await row(store, "turn_0")).agent_name

    async def found(limit: int = 9, before: str | None = None, **which: Any) -> list[str]:
        return [each.turn_id for each in await store.find_turns(TurnFilter(**which), limit=limit, before=before)]

    assert await found() == ["turn_3", "turn_2", "turn_1", "turn_0"]
    assert await found(agent_name=name) == ["turn_3", "turn_2", "turn_0"]  # the other has the name it began with
    assert await found(state="completed") == ["turn_1"]
    assert await found(state="admitted", thread_id="main") == ["turn_3", "turn_2", "turn_0"]
    assert await found(prefix="turn_2") == ["turn_2"] and await found(prefix="urn") == []
    assert await found(agent_name="nobody") == []
    assert await found(2) == ["turn_3", "turn_2"]
    assert await found(2, "turn_2") == ["turn_1", "turn_0"]
    assert await found(9, "turn_3", thread_id="main") == ["turn_2", "turn_0"]
    assert await found(9, "turn_0") == [] == await found(9, "nothing")


async def test_threads_come_with_their_newest_turn_and_how_many_there_are(store: Store) -> None:
    for n, (agent_id, thread) in enumerate([(AGENT, "main"), (AGENT, "side"), ("agent_2", "main"), (AGENT, "main")]):
        await store.admit(agent_id, [replace(message(f"turn_{n}", thread=thread), at=NOON + n)])
    name = (await row(store, "turn_0")).agent_name
    main = ThreadRow(AGENT, "main", name, 2, "turn_3", NOON, NOON + 3)
    second = ThreadRow("agent_2", "main", name, 1, "turn_2", NOON + 2, NOON + 2)
    side = ThreadRow(AGENT, "side", name, 1, "turn_1", NOON + 1, NOON + 1)
    assert await store.threads(limit=9) == await store.threads(name, limit=9) == [main, second, side]
    assert await store.threads(limit=1) == [main]
    first = ThreadPlace.of(main)
    assert await store.threads(limit=1, before=first) == await store.threads(name, limit=1, before=first) == [second]
    assert await store.threads(limit=9, before=ThreadPlace.of(side)) == await store.threads("nobody", limit=9) == []
    assert await store.thread("agent_2", "main") == second and await store.thread("agent_2", "side") is None
    assert await store.agents_of_name(name) == [AGENT, "agent_2"] and await store.agent_names() == [name]


async def test_a_thread_whose_messages_wait_is_there_before_its_first_turn(store: Store) -> None:
    await store.admit(AGENT, [session(), queued("q1")])
    await store.admit(AGENT, [queued("q2", at=NOON + 5)])
    assert await store.threads(limit=9) == [ThreadRow(AGENT, THREAD, "calc", 0, "", NOON, NOON + 5)]
    claim = await store.claim_thread(AGENT, THREAD, "turn_1")
    await store.append(claim, [takes("turn_1", "q1", "q2", at=NOON + 9)])
    assert await store.thread(AGENT, THREAD) == ThreadRow(AGENT, THREAD, "calc", 1, "turn_1", NOON, NOON + 9)


async def test_turns_of_one_name_are_found_among_many_of_another(store: Store) -> None:
    for n in range(450):  # more than a page of turns in between
        agent_id = AGENT if n % 150 == 0 else "agent_2"
        facts = [session("loud")] if n == 1 else [session()] if n == 0 else []
        await store.admit(agent_id, [*facts, message(f"turn_{n:03}", at=NOON + n)])

    async def found(name: str, limit: int, before: str | None = None) -> list[str]:
        which = TurnFilter(agent_name=name)
        return [each.turn_id for each in await store.find_turns(which, limit=limit, before=before)]

    assert await found("calc", 9) == ["turn_300", "turn_150", "turn_000"]
    assert await found("calc", 1, "turn_300") == ["turn_150"]
    assert await found("loud", 2, "turn_149") == ["turn_148", "turn_147"]
    assert len(await found("loud", 999)) == 447


async def test_an_artifact_is_found_by_its_id_or_the_beginning_of_it(store: Store) -> None:
    claim = await claimed(store)
    second = await claimed(store, "turn_2", "agent_2")
    await store.append(claim, [spilled("sha256:aab1"), tool_result(artifacts=("sha256:aab1", "sha256:aac2"))])
    await store.append(second, [spilled("sha256:aab1", "turn_2")])
    assert await store.artifacts_from("sha256:aa", limit=9) == ["sha256:aab1", "sha256:aac2"]
    assert await store.artifacts_from("sha256:aa", limit=1) == await store.artifacts_from("sha256:aab", limit=9)
    assert await store.artifacts_from("sha256:ab", limit=9) == []
    found = await store.turns_of_artifact("sha256:aab1", limit=9)
    assert [(each.turn_id, each.agent_id) for each in found] == [("turn_2", "agent_2"), (TURN, AGENT)]
    assert [each.turn_id for each in await store.turns_of_artifact("sha256:aac2", limit=9)] == [TURN]
    assert await store.turns_of_artifact("sha256:aa", limit=9) == []


async def test_turns_that_ended_come_by_name_in_pages_last_ended_first(store: Store) -> None:
    ends = {"turn_0": 3, "turn_1": 1, "turn_2": 3, "turn_3": 2, "turn_4": None}
    for turn, at in ends.items():
        claim = await claimed(store, turn, "agent_2" if turn == "turn_2" else AGENT)
        await store.append(claim, [started(turn), *([replace(ended(turn), at=NOON + at)] if at else [])])
    name = (await row(store, "turn_0")).agent_name
    found: list[TurnRow] = []
    while page := await store.ended_turns(name, limit=1, before=found[-1] if found else None):
        found += page
    assert [each.turn_id for each in found] == ["turn_2", "turn_0", "turn_3", "turn_1"]
    assert await store.ended_turns(name, limit=9) == found
    assert await store.ended_turns("nobody", limit=9) == []


async def test_usage_of_a_name_is_that_of_all_its_streams(store: Store) -> None:
    for turn, agent_id, usage in (("turn_1", AGENT, USED), ("turn_2", "agent_2", None)):
        claim = await claimed(store, turn, agent_id)
        await store.append(claim, [started(turn), completed(turn), ended(turn, usage=usage)])
    name = (await row(store, "turn_1")).agent_name
    streams = [await store.usage(agent_id) for agent_id in (AGENT, "agent_2")]
    one = await store.usage_of_name(name)
    assert one == (streams[0].total + streams[1].total, 2, 1, USED)
    claim = await claimed(store, "turn_3", "agent_2")
    await store.append(claim, [started("turn_3"), ended("turn_3", usage=USED)])
    assert (await store.usage_of_name(name))[1:] == (2, 2, None)
    assert await store.usage_of_name("nobody") == (TokenUsage(), 0, 0, None)


async def test_of_a_thread_what_comes_after_an_event_is_read_also_where_a_turn_was_written_to_late(
    store: Store,
) -> None:
    for turn in ("turn_0", "turn_1", "turn_2"):
        claim = await claimed(store, turn, AGENT)
        await store.append(claim, [started(turn), *([ended(turn)] if turn != "turn_1" else [])])
    every = await store.read(AGENT, thread_id="main")
    await store.admit(AGENT, [interrupt("turn_0")])
    every += (await store.read(AGENT))[-1:]
    for after in range(every[-1].seq + 1):
        assert await store.read(AGENT, thread_id="main", after=after) == [one for one in every if one.seq > after]


async def test_a_call_nobody_knows_the_outcome_of_is_listed_until_it_is_known(store: Store) -> None:
    claim = await claimed(store)
    await store.append(claim, [started(), tool_started(call="call_1", b=7), tool_started(call="call_2", b=8)])
    await store.append(claim, [requested(step=step) for step in range(1, 600)])
    await store.append(claim, [tool_failed(call="call_2", effects="none"), tool_failed(call="call_1", step=5)])
    assert await store.unknown() == [
        UnknownRow(
            call_id="call_1",
            agent_id=AGENT,
            turn_id=TURN,
            thread_id="main",
            step=5,
            tool="add",
            arguments={"a": 1, "b": 7},
            reason="the process ended while the call ran",
            since=NOON,
            seq=606,
        )
    ]
    await store.append(claim, [tool_started(call="call_3", b=9), tool_failed(call="call_3")])
    assert [found.arguments["b"] for found in await store.unknown()] == [7, 9]
    await store.append(claim, [ended()])
    await store.admit(AGENT, [resolved(call="call_1")])  # the turn is over, and the answer still counts
    assert [found.call_id for found in await store.unknown()] == ["call_3"]


@pytest.mark.spec("HOL-TOK-01", "HOL-TOK-02", "HOL-TOK-08")
async def test_usage_is_added_up_in_the_agents_row_and_outlives_the_process(store: Store, backend: Any) -> None:
    """HOL-TOK-08: the summary is read from its row; a reader that scanned the log would fail on the damaged one."""
    assert await store.usage(AGENT) == AgentTokenUsageSummary()
    claim = await claimed(store)
    more = TokenUsage(input_tokens=1, output_tokens=2, total_tokens=3, cached_input_tokens=4, reasoning_tokens=5)
    await store.append(claim, [completed(), completed(step=2, usage=more)])
    await store.append(claim, [completed(step=3)])
    assert (await store.usage(AGENT)).last_turn is None
    await store.append(claim, [ended(usage=more)])
    await backend.forge(AGENT, 1)
    await store.close()
    reopened = await backend.open()
    summary = await reopened.usage(AGENT)
    await reopened.close()
    assert (summary.total.input_tokens, summary.total.output_tokens, summary.total.total_tokens) == (21, 12, 33)
    assert (summary.total.cached_input_tokens, summary.total.reasoning_tokens) == (4, 5)
    assert (summary.total_model_rounds, summary.last_turn) == (3, more)


@pytest.mark.spec("HOL-TOK-09")
async def test_a_provider_that_reports_no_tokens_leaves_zeros_and_the_turn_completes(store: Store) -> None:
    claim = await claimed(store)
    await store.append(claim, [started(), completed(usage=None), ended(usage=None)])
    assert await store.usage(AGENT) == AgentTokenUsageSummary(total=TokenUsage(), total_model_rounds=1, last_turn=None)
    assert (await row(store)).state == "completed"


async def test_the_last_turn_is_the_newest_that_reported_tokens(store: Store) -> None:
    for turn, usage in (("turn_1", USED), ("turn_2", None)):
        claim = await claimed(store, turn)
        await store.append(claim, [ended(turn, usage=usage)])
    assert (await store.usage(AGENT)).last_turn == USED


@pytest.mark.spec("STD-VAL-06")
async def test_rows_rebuilt_from_the_log_equal_the_live_ones(store: Store) -> None:
    one = await claimed(store)
    await store.admit(AGENT, [message("turn_2", key="k2", at=NOON + 5)])
    two = await store.claim("turn_2")
    await claimed(store, "turn_3", "agent_2")
    await store.append(one, [started(), completed(), tool_started(), tool_started(call="call_2")])
    await store.append(two, [started("turn_2", index=2), completed("turn_2"), tool_started("turn_2")])
    await store.append(one, [tool_failed(), tool_failed(call="call_2"), tool_result(call="call_3")])
    await store.admit(AGENT, [session("renamed"), message("turn_4"), resolved(call="call_2")])
    await store.append(
        two, [tool_failed("turn_2"), fact(TurnSuspended(reason="tool_missing", waiting_for=("x",)), "turn_2")]
    )
    await store.append(one, [ended()])
    live = await everything(store)
    assert [len(part) for part in live[1:5]] == [4, 3, 2, 2]
    await store.rebuild_views()
    assert await everything(store) == live
    # Claims outlive it: they are no views.
    await store.append(two, [fact(TurnResumed(), "turn_2")])
    assert not (await store.claim("turn_4")).fresh or (await store.turn("turn_4")) is not None
    assert await store.verify() == []


async def test_the_comparison_sees_a_row_that_differs(store: Store) -> None:
    await admitted(store)
    before = await everything(store)
    await store.append(await store.claim(TURN), [started()])
    assert await everything(store) != before


async def test_rows_may_be_made_again_while_turns_go_on(store: Store, other: Store) -> None:
    claim = await claimed(store)
    await store.append(claim, [started()])
    for step in range(1, 200):
        await store.append(claim, [requested(step=step), completed(step=step)])
    rebuilding = asyncio.create_task(other.rebuild_views())
    for step in range(200, 260):
        await store.append(claim, [requested(step=step), completed(step=step)])
        await asyncio.sleep(0)
    await rebuilding
    await store.append(claim, [ended()])
    live = await store.turns(), await store.turn_costs(), await store.usage(AGENT)
    await other.rebuild_views()
    assert (await other.turns(), await other.turn_costs(), await other.usage(AGENT)) == live
    assert live[2].total_model_rounds == 259
