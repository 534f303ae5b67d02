"""Retention in a runtime: what has reached its age goes, what is open or may be asked for again stays."""

import asyncio
import contextlib
import inspect
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from kit.runs.event_samples import ONE_OF_EACH
from kit.runs.store_facts import AGENT, NOON, THREAD, ended, message, session, started
from wakeful import Agent, Retention, Runtime, open_store, run, tool
from wakeful.bootstrap.stores import opened_store
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import BY_KIND, ContextResolved, RetentionApplied, StoreSizeNoticed
from wakeful.contracts.events.holds import RUNTIME_STREAM
from wakeful.decisions.evolve import facts as evolving
from wakeful.decisions.retention import (
    FOLLOWED,
    FOR_READERS,
    OF_A_CONVERSATION,
    OF_ITS_TURN,
    expiring_kinds,
    is_noticed,
    is_of_conversation,
    why_log_stays,
    without_words,
)
from wakeful.errors import ArtifactExpired, InvalidConfig, StoreDamaged
from wakeful.ports import ModelRequest, Store
from wakeful.runtime.retention import RETENTION_STREAM, RetentionPass
from wakeful.settings.retention import owner_retention
from wakeful.store.sqlite import SqliteStore
from wakeful.store.table_changes import _NOTED
from wakeful.store.tables import RULES_OF_EVENT
from wakeful.system import UniqueIds
from wakeful.testing import FixedClock, SequentialIds, scripted

DAY = 86_400.0
LONG = "a line of a log\n" * 8_000


@tool(effect="pure")
def look(order: str) -> str:
    """Look an order up."""
    return LONG if order == "log" else f"{order} is on its way"


@tool(effect="irreversible", approval=True)
def refund(order: str) -> str:
    """Give the money back."""
    return f"refunded {order}"


def answer(request: ModelRequest) -> object:
    said = str(request.history[-1].text).strip()
    if request.answered == 0 and "Where" in said:
        return {"calls": [{"name": "look", "arguments": {"order": said.split()[-1]}}]}
    if request.answered == 0 and "Refund" in said:
        return {"calls": [{"name": "refund", "arguments": {"order": said.split()[-1]}}]}
    return "It is on its way."


def shop() -> Agent[None, str]:
    return Agent("shop", scripted(answer), tools=[look, refund])


async def ask(rt: Runtime, text: str, thread: str = "main") -> str:
    return (await rt.answer(await rt.send("shop", text, thread=thread))).turn_id


async def types(path: Path, turn: str) -> list[str]:
    async with open_store(path) as store:
        return [event.type async for event in store.events(turn)]


async def passed(store: Store, clock: FixedClock, settings: Retention | None = None, **how: Any) -> Any:
    return await RetentionPass(store, clock, settings or Retention(), **how).run()


async def facts_of(store: Store, kind: type) -> list[Any]:
    stream = RUNTIME_STREAM if kind is StoreSizeNoticed else RETENTION_STREAM
    return [entry.fact.event for entry in await store.read(stream) if isinstance(entry.fact.event, kind)]


async def test_a_damaged_log_keeps_its_blobs_and_holds_up_no_other_step(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock, path = FixedClock(), tmp_path / "wakeful.db"
    async with Runtime(tmp_path, agents=[shop()], clock=clock, ids=SequentialIds()) as rt:
        await ask(rt, "Where is log", "first")
    with contextlib.closing(sqlite3.connect(path)) as file, file:  # as a failing disk would
        file.execute("UPDATE appends SET body = zeroblob(length(body)) WHERE id = (SELECT max(id) FROM appends)")
    clock.advance(40 * DAY)
    async with opened_store(path) as store:
        report = await passed(store, clock)
        assert (report.blobs, bool(report.feed)) == (0, True)
        assert "no blob is removed" in caplog.text
        clock.advance(1)
        with pytest.raises(StoreDamaged, match="no blob is removed"):
            await passed(store, clock, everything=True)
        dry = await passed(store, clock, dry=True)
        assert (dry.dry_run, dry.blobs) == (True, 0)
        passes = await facts_of(store, RetentionApplied)
        assert passes, "it is on record that a pass came to its end"


async def test_details_of_a_turn_expire_after_thirty_days_and_its_conversation_stays(tmp_path: Path) -> None:
    clock, path = FixedClock(), tmp_path / "wakeful.db"
    async with Runtime(tmp_path, agents=[shop()], clock=clock, ids=SequentialIds()) as rt:
        old = await ask(rt, "Where is A17", "first")
        clock.advance(20 * DAY)
        new = await ask(rt, "Where is B4", "second")
    before = await types(path, old)
    async with open_store(path) as opened:
        said = await opened.messages("first")
    async with opened_store(path) as store:
        assert (await passed(store, clock)).is_empty
        clock.advance(11 * DAY)
        report = await passed(store, clock)
        going = [kind for kind in before if kind in FOR_READERS]
        assert (report.turns, report.events) == (1, len(going))
        assert (await passed(store, clock)).is_empty
    async with open_store(path) as opened:
        after = [event async for event in opened.events(old)]
        assert [event.payload["event_type"] for event in after if event.type == "event.expired"] == going
        assert [event.type for event in after if event.type != "event.expired"] == [
            kind for kind in before if kind not in FOR_READERS
        ]
        assert await opened.messages("first") == said
        assert (await opened.verify()).damage == []
        assert (await opened.replay(new)).identical
        replayed = await opened.replay(old)
        assert (replayed.expired, replayed.identical, replayed.divergence) == (len(going), False, None)
        for view in (opened.tree, opened.context, opened.prompt, opened.tools, opened.latency, opened.turn):
            assert await view(old)  # type: ignore[operator]


async def test_a_thread_goes_on_after_its_turns_have_expired(tmp_path: Path) -> None:
    clock = FixedClock()
    async with Runtime(tmp_path, agents=[shop()], clock=clock, ids=SequentialIds()) as rt:
        for number in range(12):
            await ask(rt, f"Where is A{number}")
    clock.advance(40 * DAY)
    store = await SqliteStore.open(tmp_path / "wakeful.db")
    assert (await passed(store, clock)).turns == 12
    await store.close()
    async with Runtime(tmp_path, agents=[shop()], clock=clock, ids=UniqueIds()) as rt:
        result = await rt.answer(await rt.send("shop", "Where is B1"))
        assert result.output == "It is on its way."
        turn = result.turn_id
    async with open_store(tmp_path / "wakeful.db") as opened:
        assert len(await opened.messages("main")) == 13
        assert (await opened.replay(turn)).identical


async def test_a_short_thread_keeps_the_details_of_its_newest_turn_alone(tmp_path: Path) -> None:
    """Its window reaches all of its turns for ever; what the next one begins with are the details of the newest."""
    clock, path = FixedClock(), tmp_path / "wakeful.db"
    async with Runtime(tmp_path, agents=[shop()], clock=clock, ids=SequentialIds()) as rt:
        first, second = await ask(rt, "Where is A17"), await ask(rt, "Where is B4")
    clock.advance(31 * DAY)
    async with opened_store(path) as store:
        await passed(store, clock)
    async with Runtime(tmp_path, agents=[shop()], clock=clock, ids=UniqueIds()) as rt:
        third = await ask(rt, "Where is C5")
    assert {"context.resolved", "routing.decided"}.isdisjoint(await types(path, first))
    assert {"context.resolved", "routing.decided"} <= {*await types(path, second)}
    async with open_store(path) as opened:
        assert (await opened.replay(third)).identical
        replayed = await opened.replay(first)
    assert (replayed.identical, replayed.divergence, replayed.expired > 2) == (False, None, True)


@pytest.mark.parametrize("shown", [(), ("AGENTS.md",)], ids=["inversion: nothing", "a file"])
async def test_a_file_that_the_owner_has_not_accepted_taints_a_thread_for_ever(
    tmp_path: Path, shown: tuple[str, ...]
) -> None:
    store, clock = await SqliteStore.open(tmp_path / "runs.db"), FixedClock(NOON)
    for number, turn in enumerate(("turn_1", "turn_2")):
        await store.admit(AGENT, [*([] if number else [session()]), message(turn)])
        context = ContextResolved(
            context_id=f"ctx_{turn}",
            tokens_used=8,
            tokens_are_estimate=True,
            context_build_ms=0.1,
            untrusted_refs=() if number else shown,
        )
        facts = [started(turn), Fact(context, NOON, THREAD, turn), ended(turn)]
        await store.append(await store.claim(turn), facts, last=True)
    clock.advance(31 * DAY)
    await passed(store, clock)
    kept = [
        entry.fact.event.context_id
        for entry in await store.read(AGENT)
        if isinstance(entry.fact.event, ContextResolved)
    ]
    assert kept == (["ctx_turn_1", "ctx_turn_2"] if shown else ["ctx_turn_2"])
    await store.close()


async def test_a_runtime_does_it_by_itself_and_says_so(tmp_path: Path) -> None:
    clock = FixedClock()
    async with Runtime(tmp_path, agents=[shop()], clock=clock, ids=SequentialIds()) as rt:
        turn = await ask(rt, "Where is A17")
        store = rt._here.engine.store
        watch = store.watch(RETENTION_STREAM)
        clock.advance(31 * DAY)
        await watch.wait()
        watch.close()
        (applied,) = await facts_of(store, RetentionApplied)
        assert applied.turns == 1
    assert "event.expired" in await types(tmp_path / "wakeful.db", turn)


async def test_a_clock_that_was_set_back_does_not_keep_it_from_running(tmp_path: Path) -> None:
    """The pass before is said to lie years ahead."""
    clock = FixedClock()
    async with opened_store(tmp_path / "wakeful.db") as store:
        ahead = FixedClock()
        ahead.advance(4 * 365 * DAY)
        await RetentionPass(store, ahead, Retention()).run()
    async with Runtime(tmp_path, agents=[shop()], clock=clock, ids=SequentialIds()) as rt:
        await ask(rt, "Where is A17")
        store = rt._here.engine.store
        watch = store.watch(RETENTION_STREAM)
        clock.advance(31 * DAY)
        async with asyncio.timeout(60):
            await watch.wait()
        watch.close()
        (applied,) = await facts_of(store, RetentionApplied)
        assert applied.turns == 1


async def test_a_long_result_goes_after_thirty_days_and_reading_it_says_expired(tmp_path: Path) -> None:
    clock, path = FixedClock(), tmp_path / "wakeful.db"
    async with Runtime(tmp_path, agents=[shop()], clock=clock, ids=SequentialIds()) as rt:
        turn = await ask(rt, "Where is log")
    async with open_store(path) as opened:
        (artifact,) = await opened.artifacts(turn)
        assert (await opened.artifact(artifact.artifact_id)).text == LONG
    clock.advance(31 * DAY)
    store = await SqliteStore.open(path)
    report = await passed(store, clock)
    assert (report.outputs, report.freed_bytes > len(LONG)) == (1, True)
    expired = [entry.fact.event for entry in await store.read("shop") if entry.fact.event.kind == "output.expired"]
    assert [(event.output_ref, event.of_turn) for event in expired] == [(artifact.artifact_id, turn)]  # type: ignore[union-attr]
    assert (await passed(store, clock, everything=True)).outputs == 0
    await store.close()
    async with open_store(path) as opened:
        assert [each.artifact_id for each in await opened.artifacts(turn)] == [artifact.artifact_id]
        with pytest.raises(ArtifactExpired, match="has expired"):
            await opened.artifact(artifact.artifact_id)


@pytest.mark.parametrize("order", ["the message first", "the result first"])
async def test_a_long_result_whose_bytes_a_message_has_too_stays_with_the_message(tmp_path: Path, order: str) -> None:
    """Contents are stored once: the bytes of a message do not go with a result that happens to be the same."""
    clock, path = FixedClock(), tmp_path / "wakeful.db"
    async with Runtime(tmp_path, agents=[shop()], clock=clock, ids=SequentialIds()) as rt:
        said = ("Where is log", LONG) if order == "the result first" else (LONG, "Where is log")
        for number, text in enumerate(said):
            await ask(rt, text, f"thread-{number}")
    clock.advance(31 * DAY)
    store = await SqliteStore.open(path)
    assert (await passed(store, clock, dry=True)).outputs == 0
    assert (await passed(store, clock)).outputs == 0
    await store.close()
    heard: list[str] = []

    def listen(request: ModelRequest) -> object:
        heard.extend(str(item.text) for item in request.history)
        return "I have read it."

    listening: Agent[None, str] = Agent("shop", scripted(listen), tools=[look, refund])
    async with Runtime(tmp_path, agents=[listening], clock=clock, ids=UniqueIds()) as rt:
        thread = f"thread-{said.index(LONG)}"
        await rt.answer(await rt.send("shop", "And?", thread=thread))
    assert LONG in heard


async def test_what_is_open_is_not_touched(tmp_path: Path) -> None:
    """A turn that waits for an approval keeps every event and every output, however old it is."""
    clock, path = FixedClock(), tmp_path / "wakeful.db"
    async with Runtime(tmp_path, agents=[shop()], clock=clock, ids=SequentialIds()) as rt:
        waiting = await ask(rt, "Refund A17")
    before = await types(path, waiting)
    clock.advance(400 * DAY)
    store = await SqliteStore.open(path)
    assert (await passed(store, clock, Retention(feed=0))).is_empty
    await store.close()
    assert await types(path, waiting) == before


@pytest.mark.parametrize("held", [False, True], ids=["inversion: nothing asks", "asked"])
async def test_inversion_a_rule_that_does_not_ask_for_open_turns_takes_what_they_need(
    tmp_path: Path, held: bool
) -> None:
    """The store refuses a turn that is open. Told that it is not, it takes the details of what waits."""
    clock, path = FixedClock(), tmp_path / "wakeful.db"
    async with Runtime(tmp_path, agents=[shop()], clock=clock, ids=SequentialIds()) as rt:
        waiting = await ask(rt, "Refund A17")
    store = await SqliteStore.open(path)
    row = await store.turn(waiting)
    assert row is not None
    row = row if held else row._replace(state="completed")
    freed = await store.retention.expire_events(row, FOR_READERS | OF_ITS_TURN)
    await store.close()
    assert (freed.items > 0, "event.expired" in await types(path, waiting)) == (not held, not held)


async def test_runs_without_thread_and_key_go_after_seven_days_those_with_a_key_answer_again(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    clock = FixedClock()
    lone = await run(shop(), "Where is A17", store=path)
    keyed = await run(shop(), "Where is A17", store=path, key="ticket-1")
    store = await SqliteStore.open(path)
    clock = FixedClock((await store.turn(lone.turn_id)).created_at)  # type: ignore[union-attr]
    clock.advance(6 * DAY)
    assert (await passed(store, clock)).streams == 0
    clock.advance(2 * DAY)
    assert (await passed(store, clock)).streams == 1
    assert await store.turn(lone.turn_id) is None
    assert await store.verify() == []
    await store.close()
    again = await run(shop(), "Where is A17", store=path, key="ticket-1")
    assert (again.turn_id, again.output) == (keyed.turn_id, "It is on its way.")
    async with open_store(path) as opened:
        assert [turn.turn_id for turn in await opened.turns()] == [keyed.turn_id]
        assert (await opened.cost()).total.calls == 4


async def test_zero_keeps_for_ever(tmp_path: Path) -> None:
    clock = FixedClock()
    async with Runtime(tmp_path, agents=[shop()], clock=clock, ids=SequentialIds()) as rt:
        await ask(rt, "Where is log")
    clock.advance(4_000 * DAY)
    store = await SqliteStore.open(tmp_path / "wakeful.db")
    for_ever = Retention(
        turns=0, temporary_agents=0, task_output=0, spilled_output=0, blobs=0, feed=0, notice_gb=0, request_keys=0
    )
    assert (await passed(store, clock, for_ever)).is_empty
    await store.close()


async def test_the_size_is_noticed_once_until_it_was_smaller_again(tmp_path: Path) -> None:
    clock = FixedClock()
    store = await SqliteStore.open(tmp_path / "runs.db")
    tiny, large = Retention(notice_gb=0.000_001), Retention(notice_gb=5)
    for settings in (tiny, tiny, large, tiny):
        await passed(store, clock, settings)
    noticed = await facts_of(store, StoreSizeNoticed)
    assert [event.notice_bytes for event in noticed] == [1_000, 1_000]
    await store.close()


async def test_people_are_told_of_a_large_store_once(tmp_path: Path) -> None:
    clock = FixedClock()
    store = await SqliteStore.open(tmp_path / "wakeful.db")
    for _ in range(2):
        await passed(store, clock, Retention(notice_gb=0.000_001))
    await store.close()
    async with Runtime(tmp_path, agents=[shop()], clock=clock) as rt:
        await rt.settled()
        (notice,) = await rt.notices()
        assert (notice.kind, notice.cause) == ("failure", "store.size_noticed")
        assert notice.text.endswith("how to free some: wakeful store stats, wakeful store compact")
        assert [entry.presentation.summary for entry in await rt.tail()] == [notice.text]


async def test_a_dry_run_says_what_would_go_and_changes_nothing(tmp_path: Path) -> None:
    clock = FixedClock()
    async with Runtime(tmp_path, agents=[shop()], clock=clock, ids=SequentialIds()) as rt:
        await ask(rt, "Where is log")
        clock.advance(29 * DAY)
        assert (await rt.compact(dry_run=True)).is_empty
    clock.advance(3 * DAY)
    store = await SqliteStore.open(tmp_path / "wakeful.db")
    before = await store.read("shop")
    dry = await passed(store, clock, dry=True)
    assert await store.read("shop") == before
    done = await passed(store, clock)
    assert (dry.turns, dry.events, dry.outputs) == (done.turns, done.events, done.outputs)
    await store.close()


def test_nothing_follows_from_the_kinds_that_expire() -> None:
    """No row, and in a later turn no state: held against the rules of the tables and against `evolve`."""
    read = {event.kind for event in RULES_OF_EVENT} | {event.kind for event in _NOTED}
    assert (FOR_READERS | OF_ITS_TURN).isdisjoint(read)
    source = inspect.getsource(evolving.evolve)
    ignored = source[source.index("SessionStarted()") : source.index("case _:")] + "ToolProgress() | ToolArgs()"
    ignored += "RoutingSingleCandidate()"
    for kind in FOR_READERS:
        assert f"{BY_KIND[kind].__name__}()" in ignored, kind


def test_of_a_deleted_thread_rows_follow_from_what_is_left() -> None:
    """What goes for good has no rows that stay; all else keeps what its rules read."""
    read = {event.kind for event in RULES_OF_EVENT}
    rows_go_with_the_turn = {"output.spilled"}
    assert (OF_A_CONVERSATION & read) == rows_go_with_the_turn
    left = {event.kind: without_words(event) for event in ONE_OF_EACH if is_of_conversation(event)}
    assert {kind for kind, event in left.items() if event is None} == OF_A_CONVERSATION
    stays = {"brief.created", "action.required", "cost.recorded", "memory.episode_finalized", "work_item.created"}
    assert stays.isdisjoint(left)


def test_events_that_the_next_turn_may_begin_with_stay_as_long_as_its_window_reaches_them() -> None:
    assert expiring_kinds(last_seq=9, keep_from=10) == FOR_READERS | OF_ITS_TURN
    assert expiring_kinds(last_seq=10, keep_from=10) == FOR_READERS
    followed = expiring_kinds(last_seq=10, keep_from=10, is_followed=True, is_tainted=False)
    assert followed == FOR_READERS | FOLLOWED
    assert expiring_kinds(last_seq=10, keep_from=10, is_followed=True, is_tainted=True) == FOR_READERS


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({"is_temporary": False}, "belongs to an agent"),
        ({"open_turns": 1}, "have not ended"),
        ({"keys": 2}, "have a key"),
        ({"other_tables": ["unknown", "actions"]}, "rows in actions, unknown"),
        ({}, None),
    ],
)
def test_why_a_log_stays(terms: dict[str, Any], words: str | None) -> None:
    usual: dict[str, Any] = {"is_temporary": True, "open_turns": 0, "keys": 0, "other_tables": []}
    why = why_log_stays(**usual | terms)
    assert why is None if words is None else why is not None and words in why


def test_the_owner_is_told_of_a_size_once() -> None:
    assert is_noticed(6, 5, was_noticed=False)
    assert not is_noticed(6, 5, was_noticed=True)
    assert not is_noticed(5, 5, was_noticed=False)
    assert not is_noticed(6, 0, was_noticed=False)


def test_the_owners_file_says_how_long_things_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "wakeful.toml"
    file.write_text("[retention]\nturns = 7\nnotice_gb = 0.5\n")
    environ = {"WAKEFUL_CONFIG": str(file)}
    assert owner_retention(environ) == Retention(turns=7, notice_gb=0.5)
    for line, words in {
        "turn = 7": "Did you mean turns?",
        'turns = "7 days"': "Write a number",
        "turns = -1": "Write a number, 0 or more",
        "turns = true": "Write a number",
    }.items():
        file.write_text(f"[retention]\n{line}\n")
        with pytest.raises(InvalidConfig, match=r"wakeful.toml: \[retention\]") as refused:
            owner_retention(environ)
        assert words in str(refused.value.hint)


async def test_a_few_weeks_of_a_busy_agent_keep_their_conversations_and_lose_the_details(tmp_path: Path) -> None:
    """A share of `benchmarks/year.py`: 40 days on a virtual clock, one thread that lives through all of them."""
    clock, path, turns = FixedClock(), tmp_path / "wakeful.db", list[str]()
    async with Runtime(tmp_path, agents=[shop()], clock=clock, ids=SequentialIds()) as rt:
        for day in range(40):
            turns.append(await ask(rt, f"Where is A{day}"))
            clock.advance(DAY)
            await rt.compact()
    async with open_store(path) as opened:
        expired = [(await opened.replay(turn)).expired > 0 for turn in turns]
        assert expired == [True] * 10 + [False] * 30
        assert (await opened.replay(turns[-1])).identical
        assert (await opened.verify()).damage == []
        assert len(await opened.messages("main")) == 40
        kinds = [event.type async for event in opened.events(turns[0])]
    assert OF_ITS_TURN.isdisjoint(kinds), "no window reaches the first turn any more"
