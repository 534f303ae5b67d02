"""Appending and reading: numbers, ids, sizes, unknown kinds, the chain."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from kit.runs.event_samples import ONE_OF_EACH, QUEUED
from kit.runs.store_facts import (
    AGENT,
    NOON,
    TURN,
    admitted,
    claimed,
    completed,
    ended,
    fact,
    interrupt,
    message,
    queued,
    requested,
    session,
    started,
    tool_result,
    tool_started,
)
from wakeful.contracts.envelope import MAX_PAYLOAD_BYTES, Fact
from wakeful.contracts.errors import EventRefused, StoreDamaged, StoreProblem
from wakeful.contracts.events import (
    EVENTS,
    ActionReminded,
    ActionRequired,
    ActionResolved,
    ActionSettled,
    ActionStaged,
    AgentCreated,
    AgentDeleted,
    AnyEvent,
    ChannelAdded,
    ChannelInputReceived,
    ChannelInputSettled,
    ChannelMessageClosed,
    EventExpired,
    KeyedRequestStarted,
    LivenessViolated,
    MessageSettled,
    NoticeAttempted,
    NoticeRequested,
    ProviderParked,
    ProviderUnparked,
    RuntimeToolRequested,
    RuntimeToolResolved,
    TaskCreated,
    TaskEnded,
    TaskRetried,
    Terminal,
    ThreadDeleted,
    TimerArmed,
    TriggerCreated,
    TurnFailed,
    TurnRetried,
    TurnSuspended,
    UnrecognisedEvent,
    WaitCreated,
    WakeHintStored,
    WakeMoved,
    WorkItemCreated,
    WorkItemRechecked,
    WorkItemUpdated,
    WorkQueueActivated,
    WorkQueueScheduled,
    WorkspaceAttached,
    WorkspaceUsed,
    WorktreeCleanupRequested,
    WorktreeCreated,
    WorktreeRemoved,
    WorktreeRequested,
    WorktreeRetained,
)
from wakeful.ports import Store

ATTRIBUTES = {"step_id": "step", "tool_call_id": "call_id"}


def sample(kind: type) -> AnyEvent:
    return next(event for event in ONE_OF_EACH if isinstance(event, kind))


ASKED_FIRST: dict[type, AnyEvent] = {
    ActionResolved: sample(ActionRequired),
    RuntimeToolResolved: sample(RuntimeToolRequested),
    ActionSettled: sample(ActionStaged),
}
"""What has to be asked before it can be decided."""
BEGINS = {
    "trigger": TriggerCreated,
    "notice": NoticeRequested,
    "agent": AgentCreated,
    "keyed_request": KeyedRequestStarted,
    "timer": TimerArmed,
    "wait": WaitCreated,
    "wake_hint": WakeHintStored,
    "task": TaskCreated,
    "work_item": WorkItemCreated,
    "work_queue": WorkItemCreated,
    "workspace": WorkspaceAttached,
    "worktree": WorktreeRequested,
    "channel": ChannelAdded,
}
"""By the first word of a kind: what a thing begins with that is settled once, or changes from there."""


BEGIN_THEMSELVES = ("work_item.enqueued",)
PARKED = sample(ProviderParked).model_copy(update={"probes": 0})
SHOWN = sample(NoticeAttempted)
BEGIN_WITH_MORE: dict[type, list[AnyEvent]] = {
    WorkItemRechecked: [sample(WorkItemCreated), sample(WorkItemUpdated)],
    WorkQueueActivated: [sample(WorkItemCreated), sample(WorkQueueScheduled)],
    NoticeAttempted: [sample(AgentCreated), sample(NoticeRequested)],
    ActionReminded: [sample(AgentCreated), sample(ActionRequired)],
    ProviderParked: [PARKED],
    ProviderUnparked: [PARKED],
    LivenessViolated: [sample(WaitCreated)],
    WakeMoved: [sample(WaitCreated)],
    ChannelInputSettled: [sample(ChannelAdded), sample(ChannelInputReceived)],
    ChannelMessageClosed: [sample(AgentCreated), sample(NoticeRequested), SHOWN],
    WorkspaceUsed: [sample(WorkspaceAttached), sample(WorktreeRequested), sample(WorktreeCreated)],
    WorktreeRemoved: [sample(WorktreeRequested), sample(WorktreeCleanupRequested)],
    WorktreeRetained: [sample(WorktreeRequested), sample(WorktreeCleanupRequested)],
    TurnRetried: [sample(TurnFailed)],
    TaskRetried: [sample(TaskCreated), sample(TaskEnded)],
}
"""Those that need more than one thing, or a thing of another family."""


def before(event: AnyEvent) -> list[AnyEvent]:
    """What has to be there before this can happen."""
    if type(event) in BEGIN_WITH_MORE:
        return BEGIN_WITH_MORE[type(event)]
    begins = BEGINS.get(event.kind.partition(".")[0])
    if begins is not None and not isinstance(event, begins) and event.kind not in BEGIN_THEMSELVES:
        return [sample(begins)]
    return [ASKED_FIRST[type(event)]] if type(event) in ASKED_FIRST else []


async def naming_what_is_there(store: Store, event: AnyEvent) -> AnyEvent:
    """A notice is called after the fact that it is about, and no sample can know its name."""
    if isinstance(event, NoticeAttempted):
        (notice,) = await store.notices()
        return event.model_copy(update={"notice_id": notice.notice_id})
    return event


def whole(event: AnyEvent) -> Fact:
    """A fact with every id there is."""
    return Fact(event, NOON, "main", TURN, 3, "call_9", "action_1", "call_8", 2)


@pytest.mark.spec("STD-ENV-02")
async def test_events_of_an_agent_are_numbered_from_1_without_gaps_and_time_has_no_say(store: Store) -> None:
    claim = await claimed(store)
    await store.append(claim, [replace(started(), at=NOON - 5), replace(requested(), at=NOON - 9)])
    await claimed(store, "turn_2", "agent_2")
    await store.admit(AGENT, [replace(interrupt(), at=7)])
    await store.append(claim, [replace(completed(), at=NOON - 99)])
    read = await store.read(AGENT)
    assert [one.seq for one in read] == [1, 2, 3, 4, 5, 6]
    kinds = ["session.started", "message.admitted", "turn.started", "model.requested", "turn.interrupt.requested"]
    assert [one.fact.event.kind for one in read] == [*kinds, "model.completed"]
    assert [one.seq for one in await store.read("agent_2")] == [1, 2]
    assert read[0].event_id == f"{AGENT}:1"
    assert [await store.head(name) for name in (AGENT, "agent_2", "nobody")] == [6, 2, 0]


async def test_every_kind_comes_back_as_it_was_written_with_all_its_ids(store: Store) -> None:
    claim = await claimed(store)
    await store.admit(AGENT, [queued(QUEUED)])
    apart = (Terminal, EventExpired)  # a turn's end comes last, and an expired event is only read
    lasting = [event for event in ONE_OF_EACH if not isinstance(event, apart) and not _is_settled_once(event)]
    facts = [whole(event) for event in lasting]
    await store.append(claim, facts)
    assert [one.fact for one in await store.read(AGENT, after=3)] == facts
    assert {type(event) for event in ONE_OF_EACH} == set(EVENTS)


def _kind_of(event: AnyEvent) -> str:
    return event.kind


def _is_settled_once(event: AnyEvent) -> bool:
    """What is settled once is written by itself, in the next test."""
    begins_apart = event.kind.partition(".")[0] in BEGINS or type(event) in BEGIN_WITH_MORE
    return begins_apart or isinstance(event, MessageSettled | ThreadDeleted)


ELSEWHERE = EventExpired, ThreadDeleted, AgentDeleted
"""One is never written, the others not while something is open (test_deleted_threads, test_agent_registry)."""


@pytest.mark.spec("STD-ENV-03")
@pytest.mark.parametrize("event", [each for each in ONE_OF_EACH if not isinstance(each, ELSEWHERE)], ids=_kind_of)
async def test_an_event_without_an_id_it_needs_is_refused_and_nothing_is_written(store: Store, event: Any) -> None:
    claim = await claimed(store)
    await store.admit(AGENT, [queued(QUEUED)])
    for earlier in before(event):
        await store.append(claim, [whole(await naming_what_is_there(store, earlier))])
    event = await naming_what_is_there(store, event)
    there = len(await store.read(AGENT))
    for need in event.needs:
        lacking = replace(whole(event), **{ATTRIBUTES.get(need, need): None})
        with pytest.raises(EventRefused, match=f"{event.kind} needs {need}"):
            await store.append(claim, [requested(), lacking])
        if event.outsider:
            with pytest.raises(EventRefused, match=f"{event.kind} needs {need}"):
                await store.admit(AGENT, [lacking])
    assert len(await store.read(AGENT)) == there
    await store.append(claim, [whole(event)])  # with its ids it is taken
    assert (await store.read(AGENT))[-1].fact == whole(event)


async def test_no_id_is_made_up_for_an_event_that_needs_none(store: Store) -> None:
    await admitted(store)
    first = (await store.read(AGENT))[0].fact
    assert (first.thread_id, first.turn_id, first.step, first.call_id, first.action_id) == (None,) * 5


@pytest.mark.spec("STD-ENV-06")
async def test_a_payload_has_at_most_65536_bytes_and_larger_content_goes_behind_a_reference(store: Store) -> None:
    claim = await claimed(store)
    empty = UnrecognisedEvent(original_kind="wakeful.test", original_version=1, body={"text": ""})
    room = MAX_PAYLOAD_BYTES - len('{"text":""}')
    fits, too_long = (empty.model_copy(update={"body": {"text": "x" * length}}) for length in (room, room + 1))
    assert MAX_PAYLOAD_BYTES == 65_536
    await store.append(claim, [fact(fits)])
    with pytest.raises(EventRefused, match="65537 bytes"):
        await store.append(claim, [fact(too_long)])
    assert len(await store.read(AGENT)) == 3
    text = "x" * (MAX_PAYLOAD_BYTES + 1)
    ref = await store.put_blob(text.encode(), "text/plain")
    short = tool_result(text="x" * 100)
    await store.append(claim, [replace(short, event=short.event.model_copy(update={"result_ref": ref}))])
    kept: Any = (await store.read(AGENT))[-1].fact.event
    assert (await store.get_blob(kept.result_ref.digest)).decode() == text


@pytest.mark.spec("STD-ENV-07")
async def test_a_kind_nobody_knows_is_kept_and_reading_goes_on(store: Store) -> None:
    claim = await claimed(store)
    strange = UnrecognisedEvent(
        original_kind="wakeful.weather.changed", original_version=7, body={"to": ["rain", None, 1.5]}
    )
    await store.append(claim, [fact(strange), requested()])
    assert [one.fact.event for one in await store.read(AGENT, after=2)] == [strange, requested().event]
    for name in ("weather.changed", "tool.result"):
        with pytest.raises(EventRefused, match=name):
            await store.append(claim, [fact(strange.model_copy(update={"original_kind": name}))])


async def test_what_cannot_be_json_is_refused(store: Store) -> None:
    claim = await claimed(store)
    event = tool_started().event.model_copy(update={"safe_args": {"a": object()}})
    with pytest.raises(EventRefused, match=r"tool\.started cannot be written as JSON"):
        await store.append(claim, [replace(tool_started(), event=event)])


async def test_outsiders_may_append_only_what_outsiders_append(store: Store) -> None:
    await admitted(store)
    for one in (started(), requested(), ended()):
        with pytest.raises(EventRefused, match="owner of its turn"):
            await store.admit(AGENT, [interrupt(), one])
    assert len(await store.read(AGENT)) == 2
    await store.admit(AGENT, [interrupt()])
    assert len(await store.read(AGENT)) == 3


async def test_a_fact_of_a_turn_that_no_message_opened_is_refused(store: Store) -> None:
    await admitted(store)
    with pytest.raises(EventRefused, match="turn_9"):
        await store.admit(AGENT, [interrupt("turn_9")])
    with pytest.raises(EventRefused, match="turn_1 in turns belongs to agent agent_1"):
        await store.admit("agent_2", [message()])
    with pytest.raises(EventRefused, match="turn_1"):
        await store.admit("agent_2", [interrupt()])
    assert await store.agents() == [AGENT]


async def test_an_owner_writes_about_its_own_turn_only(store: Store) -> None:
    claim = await claimed(store)
    await store.admit(AGENT, [message("turn_2")])
    with pytest.raises(EventRefused, match="turn_2"):
        await store.append(claim, [requested(), requested("turn_2")])
    assert len(await store.read(AGENT)) == 3


async def test_a_turn_ends_once(store: Store) -> None:
    claim = await claimed(store)
    await store.append(claim, [started(), ended()])
    for late in (ended(), started(), fact(TurnSuspended(reason="tool_missing", waiting_for=("x",)))):
        with pytest.raises(EventRefused, match="turn_1 was completed"):
            await store.append(claim, [late])
    assert len(await store.read(AGENT)) == 4


async def test_reading_by_turn_thread_place_and_number(store: Store) -> None:
    one = await claimed(store)
    await store.admit(AGENT, [message("turn_2", thread="side")])
    two = await store.claim("turn_2")
    for step in range(1, 4):
        await store.append(one, [requested(step=step)])
        await store.append(two, [replace(requested("turn_2", step), thread_id="side")])
    assert [r.seq for r in await store.read(AGENT, turn_id=TURN)] == [2, 4, 6, 8]
    assert [r.seq for r in await store.read(AGENT, turn_id="turn_2")] == [3, 5, 7, 9]
    assert [r.seq for r in await store.read(AGENT, thread_id="side")] == [3, 5, 7, 9]
    assert [r.seq for r in await store.read(AGENT, after=5)] == [6, 7, 8, 9]
    assert [r.seq for r in await store.read(AGENT, after=3, turn_id=TURN, limit=2)] == [4, 6]
    assert [r.seq for r in await store.read(AGENT, limit=1)] == [1]
    assert await store.read(AGENT, after=9) == []
    assert await store.read(AGENT, after=99) == []
    assert await store.read(AGENT, turn_id="turn_9") == []
    assert await store.read("agent_9") == []


async def test_a_turn_is_read_on_any_loop_and_after_its_store_was_closed(backend: Any) -> None:
    store = await backend.open()
    claim = await claimed(store)
    await store.append(claim, [requested(step=1), requested(step=2)])
    reader = store.turn_reader(AGENT, TURN)
    whole = await store.read(AGENT, turn_id=TURN)
    await store.append(claim, [ended()])
    assert await reader() == [*whole, *await store.read(AGENT, after=whole[-1].seq)], "what is there when it is awaited"
    await store.close()
    elsewhere = await asyncio.to_thread(lambda: asyncio.run(reader()))
    assert elsewhere[:-1] == whole and elsewhere == await reader()


async def test_a_read_does_not_touch_what_belongs_to_others(store: Store, backend: Any) -> None:
    """Bytes that nobody reads cannot stop anybody: the way to see from outside what is read."""
    mine = await claimed(store)
    await store.admit(AGENT, [message("turn_2", thread="side")])
    other = await store.claim("turn_2")
    for step in range(1, 4):
        await store.append(mine, [requested(step=step)])
        await store.append(other, [replace(requested("turn_2", step), thread_id="side")])
    await store.admit(AGENT, [interrupt()])
    await store.append(mine, [ended()])
    await backend.forge(AGENT, 7)
    assert [r.seq for r in await store.read(AGENT, thread_id="main")] == [2, 4, 6, 8, 10, 11]
    assert [r.seq for r in await store.read(AGENT, turn_id=TURN, after=4)] == [6, 8, 10, 11]
    assert [r.seq for r in await store.turn_reader(AGENT, TURN)()] == [2, 4, 6, 8, 10, 11]
    assert [r.seq for r in await store.read(AGENT, limit=5)] == [1, 2, 3, 4, 5]
    assert [r.seq for r in await store.read(AGENT, thread_id="side", limit=2)] == [3, 5]
    for read in (store.read(AGENT), store.read(AGENT, thread_id="side"), store.read(AGENT, turn_id="turn_2")):
        with pytest.raises(StoreDamaged):
            await read


async def test_a_read_may_begin_and_end_within_an_append(store: Store) -> None:
    claim = await claimed(store)
    await store.append(claim, [requested(step=step) for step in range(1, 6)])
    await store.append(claim, [requested(step=step) for step in range(6, 9)])
    for turn_id in (None, TURN):
        assert [r.seq for r in await store.read(AGENT, after=4, limit=2, turn_id=turn_id)] == [5, 6]
        assert [r.seq for r in await store.read(AGENT, after=6, turn_id=turn_id)] == [7, 8, 9, 10]


async def test_more_events_than_are_read_at_a_time_come_whole(store: Store) -> None:
    claim = await claimed(store)
    await store.append(claim, [requested(step=step) for step in range(1, 1201)])
    assert [r.seq for r in await store.read(AGENT)] == list(range(1, 1203))
    assert [r.fact.step for r in await store.read(AGENT, turn_id=TURN, after=700, limit=600)] == list(range(699, 1201))


async def test_changed_bytes_stop_their_agent_and_no_other(store: Store, backend: Any) -> None:
    await claimed(store)
    claim = await claimed(store, "turn_2", "agent_2")
    assert await store.verify() == []
    await backend.forge(AGENT, 1)
    with pytest.raises(StoreDamaged) as damaged:
        await store.read(AGENT)
    assert (damaged.value.agent_id, damaged.value.sequence) == (AGENT, 1)
    assert [(found.agent_id, found.seq) for found in await store.verify()] == [(AGENT, 1)]
    assert len(await store.read("agent_2")) == 2
    await store.append(claim, [started("turn_2")])


async def test_a_closed_store_says_so(store: Store) -> None:
    claim = await claimed(store)
    await store.close()
    await store.close()
    for call in (store.admit(AGENT, [session()]), store.hold(claim), store.read(AGENT), store.claim(TURN)):
        with pytest.raises(StoreProblem, match="closed"):
            await call
