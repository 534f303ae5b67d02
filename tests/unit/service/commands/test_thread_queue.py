"""The queue of a thread: messages that nobody waits for, and the turns that take them."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kit.runs.engine_runs import calls
from kit.runs.store_facts import message
from wakeful import Agent, run, tool
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import AgentBusy, EventRefused, KeyReused, NotEntitled, RestRefused
from wakeful.contracts.events import MessageAdmitted, MessageDeferred, TurnStarted
from wakeful.contracts.messages import ChannelOrigin, WebhookOrigin
from wakeful.decisions.intake import DEFER_DEADLINE
from wakeful.engine.run_request import Engine, RunRequest
from wakeful.engine.warm_threads import warm_threads
from wakeful.hosts.chat.turns import check_owner
from wakeful.ports import BusyThread, Claim, MessageRow, ModelRequest, Store
from wakeful.runtime.inbox import QueuedMessage, defer_message, queue_message
from wakeful.service.commands.thread_queue import take_next
from wakeful.service.commands.turn_claims import recall
from wakeful.service.commands.turns import run_turn
from wakeful.service.queries.replay import replay_turn
from wakeful.service.queries.turns import follow, turn_events
from wakeful.store.memory import Memory, MemoryStore
from wakeful.store.sqlite import SqliteStore
from wakeful.testing import FixedClock, scripted
from wakeful.testing.wrapped_store import WrappedStore


class Desk:
    """An agent whose model notes what it is shown, and a queue in front of it."""

    def __init__(self, memory: Memory | None = None, *, agent: Agent[Any, Any] | None = None) -> None:
        self.clock = FixedClock()
        self.store: Store = MemoryStore(memory)
        self.engine: Engine = new_engine(self.store, clock=self.clock)
        self.shown: list[list[str]] = []

        async def answer(request: ModelRequest) -> str:
            self.shown.append([item.text for item in request.history if item.role == "user"])
            return f"answer {len(self.shown)}"

        self.agent = agent or Agent("desk", scripted(answer))

    async def queue(self, prompt: str, thread: str = "t", **envelope: Any) -> MessageRow:
        return await queue_message(self.engine, "desk", thread, QueuedMessage(prompt, **envelope))

    async def take(self, thread: str = "t") -> Any:
        return await take_next(self.engine, RunRequest(self.agent, "", thread=thread))

    async def states(self, *rows: MessageRow) -> list[str]:
        found = [await self.store.message(row.message_id) for row in rows]
        return [row.state for row in found if row is not None]

    async def started(self, turn_id: str) -> TurnStarted:
        events = [entry.fact.event for entry in await self.store.read("desk", turn_id=turn_id)]
        (found,) = [event for event in events if isinstance(event, TurnStarted)]
        return found


@pytest.mark.spec("HOL-QUEUE-03", "HOL-QUEUE-04")
async def test_queued_messages_are_answered_together_by_the_turn_that_takes_them() -> None:
    desk = Desk()
    first, second = await desk.queue("one"), await desk.queue("two")
    low = await desk.queue("later", priority="background")
    assert (await desk.store.turns(), await desk.states(first, second, low)) == ([], ["queued"] * 3)
    result = await desk.take()
    assert (result.status, result.output) == ("completed", "answer 1")
    assert desk.shown == [["one", "two"]]
    started = await desk.started(result.turn_id)
    assert started.message_ids == (first.message_id, second.message_id)
    assert started.opens_turn and started.prompt_preview == "one"
    assert await desk.states(first, second, low) == ["processed", "processed", "queued"]
    assert (await desk.take()).output == "answer 2"
    assert desk.shown[1] == ["one", "two", "later"], "the conversation goes on"
    assert await desk.take() is None
    assert (await desk.store.busy_threads(), await desk.store.next_wake()) == ([], None)
    events = [entry.fact.event for entry in await desk.store.read("desk")]
    stored = [event for event in events if isinstance(event, MessageAdmitted)]
    assert [(event.item.text, event.priority) for event in stored] == [
        ("one", "normal"),
        ("two", "normal"),
        ("later", "background"),
    ], "what was processed stays in the log as it came"


async def test_a_turn_of_several_messages_is_replayed_and_recalled_with_all_of_them() -> None:
    desk = Desk()
    await desk.queue("one")
    await desk.queue("two")
    result = await desk.take()
    row = await desk.store.turn(result.turn_id)
    assert row is not None
    report = await replay_turn(desk.store, row)
    assert report.divergence is None and report.checked
    again = await recall(desk.engine, row, desk.agent)
    assert again.output == result.output
    for facts in (again.facts(), result.facts(), await turn_events(desk.store, row)):
        messages = [entry.fact.event for entry in facts if isinstance(entry.fact.event, MessageAdmitted)]
        assert [message.item.text for message in messages] == ["one", "two"]


@pytest.mark.spec("HOL-QUEUE-02")
async def test_each_message_is_shown_with_its_origin_and_lowers_the_turn() -> None:
    desk = Desk()
    terms: dict[str, Any] = {"authority": "external_evidence", "surface": "http_webhook", "priority": "next"}
    await desk.queue("hello", kind="channel_event", origin=ChannelOrigin(channel_id="support"), **terms)
    await desk.queue("pushed", kind="webhook_event", origin=WebhookOrigin(source="ci"), **terms)
    result = await desk.take()
    way = "via http_webhook, runtime_owned"
    assert desk.shown == [
        [
            f'[message from channel, channel_id "support"; {way}; authority: external_evidence]\nhello',
            f'[message from webhook, source "ci"; {way}; authority: external_evidence]\npushed',
        ]
    ]
    messages = [entry.fact.event for entry in result.facts() if isinstance(entry.fact.event, MessageAdmitted)]
    assert [message.origin.kind for message in messages] == ["channel", "webhook"]
    assert {(message.authority_class, message.priority) for message in messages} == {("external_evidence", "next")}


async def test_a_message_with_a_key_is_answered_alone_and_admitted_once() -> None:
    desk = Desk()
    first = await desk.queue("mine", key="k")
    assert await desk.queue("mine", key="k") == first
    with pytest.raises(KeyReused, match="key 'k' belongs to another message"):
        await desk.queue("something else", key="k")
    await desk.queue("not mine")
    await desk.take()
    await desk.take()
    assert desk.shown == [["mine"], ["mine", "not mine"]]


async def test_a_deferred_message_is_shown_in_the_next_turn_whatever_starts_it() -> None:
    desk = Desk()
    aside = await desk.queue("by the way")
    await defer_message(desk.engine, aside.message_id, reason="nothing of it is urgent")
    assert (await desk.take(), await desk.states(aside)) == (None, ["deferred"])
    await run(desk.agent, "a caller asks", thread="t", store=desk.store)
    assert desk.shown == [["a caller asks", "by the way"]]
    assert await desk.states(aside) == ["processed"]
    assert await desk.store.next_wake() is None
    await run(desk.agent, "and again", thread="t", store=desk.store)
    assert desk.shown[1] == ["a caller asks", "by the way", "and again"]


async def test_a_deferred_message_starts_a_turn_at_its_deadline() -> None:
    desk = Desk()
    aside = await desk.queue("by the way")
    await defer_message(desk.engine, aside.message_id)
    (wake,) = await desk.store.deferrals("desk", "t")
    assert wake.due_at == desk.clock.now() + DEFER_DEADLINE
    desk.clock.advance(DEFER_DEADLINE / 1_000_000 - 1)
    assert await desk.take() is None
    desk.clock.advance(1)
    assert (await desk.take()).output == "answer 1"
    assert desk.shown == [["by the way"]]


async def test_a_message_whose_time_is_over_starts_no_turn() -> None:
    desk = Desk()
    late = await desk.queue("was it?", expires_at=desk.clock.now() + 1_000_000)
    aside = await desk.queue("aside", expires_at=desk.clock.now() + 1_000_000)
    await defer_message(desk.engine, aside.message_id)
    desk.clock.advance(1)
    assert (await desk.take(), await desk.states(late, aside)) == (None, ["expired", "expired"])
    assert (await desk.store.busy_threads(), await desk.store.next_wake()) == ([], None)
    in_time = await desk.queue("in time", expires_at=desk.clock.now() + 1)
    assert (await desk.take()).output == "answer 1"
    assert await desk.states(in_time) == ["processed"]


async def test_what_a_turn_has_taken_cannot_be_deferred() -> None:
    desk = Desk()
    row = await desk.queue("one")
    await desk.take()
    with pytest.raises(EventRefused, match="which is processed by turn"):
        await defer_message(desk.engine, row.message_id)
    with pytest.raises(EventRefused, match="there is no message msg_none"):
        await defer_message(desk.engine, "msg_none")


async def test_a_turn_that_its_caller_opened_keeps_its_place() -> None:
    desk = Desk()
    await desk.queue("queued first", priority="next")
    result = await run(desk.agent, "a caller asks", thread="t", store=desk.store)
    assert (result.output, desk.shown) == ("answer 1", [["a caller asks"]])
    await desk.take()
    assert desk.shown[1] == ["a caller asks", "queued first"]


@pytest.mark.parametrize("band", ["interject", "next", "normal", "background"])
async def test_no_band_of_the_queue_overtakes_a_turn_that_its_caller_opened(band: Any) -> None:
    desk = Desk()
    await desk.queue("before", priority=band)
    answer = await desk.store.admit("desk", [message("turn of caller", thread="t", at=desk.clock.now())])
    assert answer is not None and answer.created
    await desk.queue("after", priority=band)
    while await desk.take() is not None:
        pass
    assert desk.shown == [["what is 1 + 1?"], ["what is 1 + 1?", "before", "after"]]


BACKENDS = pytest.mark.parametrize("backend", ["memory", "sqlite"])


async def desk_on(backend: str, tmp_path: Path, **options: Any) -> Desk:
    desk = Desk(**options)
    if backend == "sqlite":
        desk.store = await SqliteStore.open(tmp_path / "runs.db")
        desk.engine = new_engine(desk.store, clock=desk.clock)
    return desk


@BACKENDS
async def test_a_run_with_the_key_of_a_queued_message_gives_the_answer_to_that(backend: str, tmp_path: Path) -> None:
    desk = await desk_on(backend, tmp_path)
    await desk.queue("first of all", priority="next")
    mine = await desk.queue("mine", key="k")
    for _ in range(2):  # by running the queue until it was its turn, then from the log
        result = await run(desk.agent, "mine", key="k", thread="t", store=desk.store)
        assert (result.output, desk.shown) == ("answer 2", [["first of all"], ["first of all", "mine"]])
    assert await desk.states(mine) == ["processed"]
    assert (await run(desk.agent, "mine", key="k", store=desk.store)).turn_id == result.turn_id, "without a thread, too"
    with pytest.raises(KeyReused, match="key 'k' belongs to a message of a queue: 'mine'"):
        await run(desk.agent, "something else", key="k", thread="t", store=desk.store)
    await desk.store.close()


@BACKENDS
async def test_a_message_that_is_queued_with_the_key_of_a_run_is_that_runs(backend: str, tmp_path: Path) -> None:
    desk = await desk_on(backend, tmp_path)
    result = await run(desk.agent, "mine", key="k", thread="t", store=desk.store)
    row = await desk.queue("mine", key="k")
    assert (row.turn_id, row.state) == (result.turn_id, "processed")
    with pytest.raises(KeyReused, match="key 'k' belongs to another message"):
        await desk.queue("something else", key="k")
    assert await desk.take() is None and desk.shown == [["mine"]]
    await desk.store.close()


class QueuedMeanwhile(WrappedStore):
    """Somebody queues the message of the key right before a run admits it."""

    def __init__(self, inner: Store, desk: Desk) -> None:
        super().__init__(inner)
        self.desk = desk

    async def admit(self, agent_id: str, facts: Sequence[Fact], **how: bool) -> Any:
        if any(fact.turn_id is not None for fact in facts):
            await self.desk.queue("mine", key="k")
        return await super().admit(agent_id, facts, **how)


async def test_of_a_run_and_a_queued_message_with_one_key_at_the_same_time_one_is_admitted() -> None:
    desk = Desk()
    result = await run(desk.agent, "mine", key="k", thread="t", store=QueuedMeanwhile(desk.store, desk))
    assert (result.output, desk.shown) == ("answer 1", [["mine"]])
    admitted = [entry for entry in await desk.store.read("desk") if isinstance(entry.fact.event, MessageAdmitted)]
    assert len(admitted) == 1


async def test_a_run_waits_for_a_queued_message_that_is_deferred_until_its_deadline() -> None:
    desk = Desk()
    mine = await desk.queue("mine", key="k")
    await defer_message(desk.engine, mine.message_id)
    running = asyncio.create_task(run_turn(desk.engine, RunRequest(desk.agent, "mine", key="k", thread="t")))
    await desk.clock.somebody_sleeps()
    assert desk.shown == []
    desk.clock.advance(DEFER_DEADLINE / 1_000_000)
    assert (await running).output == "answer 1"


async def test_a_run_whose_message_was_cleared_from_its_queue_is_told_so() -> None:
    desk = Desk()
    await desk.queue("mine", key="k", expires_at=desk.clock.now())
    with pytest.raises(KeyReused, match="a message that no turn takes any more"):
        await run(desk.agent, "mine", key="k", thread="t", store=desk.store)


@BACKENDS
async def test_messages_whose_turn_cannot_be_begun_are_tried_later_and_later(backend: str, tmp_path: Path) -> None:
    attempts: list[int] = []

    def deps(context: Any) -> Any:
        attempts.append(desk.clock.now())
        if len(attempts) < 4:
            raise OSError("the shelf is locked")
        return "key"

    desk = await desk_on(backend, tmp_path, agent=Agent("desk", scripted(["at last"]), deps=deps))
    rows = [await desk.queue("one"), await desk.queue("two")]
    pauses = []
    for _ in range(3):
        with pytest.raises(OSError, match="locked"):
            await desk.take()
        assert await desk.states(*rows) == ["deferred", "deferred"] and await desk.store.turns() == []
        assert await desk.take() is None, "not at once"
        wakes = await desk.store.deferrals("desk", "t")
        pauses.append({((wake.due_at or 0) - desk.clock.now()) // 1_000_000 for wake in wakes})
        desk.clock.advance(max(pauses[-1]))
    assert pauses == [{30}, {30}, {60}]
    assert (await desk.take()).output == "at last"
    assert await desk.states(*rows) == ["processed", "processed"]
    events = [entry.fact.event for entry in await desk.store.read("desk")]
    why = [event.reason for event in events if isinstance(event, MessageDeferred)]
    assert why == ["OSError: the shelf is locked"] * 6
    await desk.store.close()


async def test_the_same_thread_is_taken_by_one_process_at_a_time() -> None:
    memory = Memory()
    begun, go_on = asyncio.Event(), asyncio.Event()

    @tool(effect="pure")
    async def wait() -> str:
        begun.set()
        await go_on.wait()
        return "waited"

    desk = Desk(memory, agent=Agent("desk", scripted([calls("wait"), "done"]), tools=[wait]))
    other = Desk(memory)
    await desk.queue("one")
    async with asyncio.TaskGroup() as together:
        running = together.create_task(desk.take())
        await begun.wait()
        await desk.queue("two")
        with pytest.raises(AgentBusy):
            await other.take()
        go_on.set()
    assert running.result().output == "done"
    assert (await other.take()).output == "answer 1"
    assert other.shown == [["one", "two"]]


async def test_a_turn_that_was_cut_off_is_taken_up_before_the_queue() -> None:
    memory = Memory()
    desk, later = Desk(memory), Desk(memory)
    await desk.queue("one")

    asked = asyncio.Event()

    async def hangs(request: ModelRequest) -> str:
        asked.set()
        await asyncio.Event().wait()
        return "never"

    taking = asyncio.create_task(take_next(desk.engine, RunRequest(Agent("desk", scripted(hangs)), "", thread="t")))
    await asked.wait()
    taking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await taking
    await desk.queue("two")
    assert await later.store.busy_threads() == [BusyThread("desk", "t", turns=1, queued=1)]
    result = await later.take()
    assert (result.output, later.shown) == ("answer 1", [["one"]])
    await later.take()
    assert later.shown[1] == ["one", "two"]
    for turn in await later.store.turns():
        assert (await replay_turn(later.store, turn)).divergence is None


class RefusedOnce(WrappedStore):
    """Refuses the first append of an owner, as when somebody else was faster with the rest of a spend window."""

    refused = 0

    async def append(
        self, claim: Claim, facts: Sequence[Fact], *, barrier: bool = False, rest: bool = False, last: bool = False
    ) -> Any:
        if not self.refused:
            self.refused += 1
            raise RestRefused("somebody was faster", "Fold what arrived, then decide.")
        return await super().append(claim, facts, barrier=barrier, rest=rest, last=last)


class CallerComesBetween(WrappedStore):
    """A caller opens a turn of the thread after it was claimed for the queue, and before that turn is started."""

    came = False

    async def append(
        self, claim: Claim, facts: Sequence[Fact], *, barrier: bool = False, rest: bool = False, last: bool = False
    ) -> Any:
        if not self.came:
            self.came = True
            await self.inner.admit("desk", [replace(message("turn of caller"), thread_id="t", at=facts[0].at)])
        return await super().append(claim, facts, barrier=barrier, rest=rest, last=last)


@pytest.mark.parametrize("backend", ["memory", "sqlite"])
async def test_a_caller_who_comes_between_claim_and_start_goes_first(backend: str, tmp_path: Path) -> None:
    desk = Desk()
    if backend == "sqlite":
        desk.store = await SqliteStore.open(tmp_path / "runs.db")
        desk.engine = new_engine(desk.store, clock=desk.clock)
    queued = await desk.queue("queued")
    engine = new_engine(CallerComesBetween(desk.store), clock=desk.clock)
    result = await take_next(engine, RunRequest(desk.agent, "", thread="t"))
    assert result is not None and (result.turn_id, result.status, result.message) == ("turn of caller", "completed", "")
    assert (desk.shown, await desk.states(queued)) == ([["what is 1 + 1?"]], ["queued"])
    assert await desk.take() is not None
    assert desk.shown[1] == ["what is 1 + 1?", "queued"]
    await desk.store.close()


async def test_a_start_that_is_refused_once_still_shows_every_message() -> None:
    desk = Desk()
    aside = await desk.queue("by the way")
    await defer_message(desk.engine, aside.message_id)
    await desk.queue("one")
    await desk.queue("two")
    store = RefusedOnce(desk.store)
    result = await take_next(new_engine(store, clock=desk.clock), RunRequest(desk.agent, "", thread="t"))
    assert result is not None and store.refused == 1
    assert desk.shown == [["one", "two", "by the way"]]
    row = await desk.store.turn(result.turn_id)
    assert row is not None and (await replay_turn(desk.store, row)).divergence is None


async def test_a_callers_start_that_is_refused_once_still_shows_what_was_deferred() -> None:
    desk = Desk()
    aside = await desk.queue("by the way")
    await defer_message(desk.engine, aside.message_id)
    result = await run(desk.agent, "a caller asks", thread="t", store=RefusedOnce(desk.store))
    assert desk.shown == [["a caller asks", "by the way"]]
    row = await desk.store.turn(result.turn_id)
    assert row is not None and (await replay_turn(desk.store, row)).divergence is None
    assert await desk.states(aside) == ["processed"]


async def test_whoever_follows_a_turn_is_shown_the_messages_that_it_took() -> None:
    desk = Desk()
    await desk.queue("one")
    await desk.queue("two")
    result = await desk.take()
    row = await desk.store.turn(result.turn_id)
    assert row is not None
    events = [entry.fact.event async for entry in follow(desk.store, row)]
    assert [event.kind for event in events][:3] == ["message.admitted", "message.admitted", "turn.started"]
    assert [event.item.text for event in events if isinstance(event, MessageAdmitted)] == ["one", "two"]


async def test_whoever_follows_a_turn_gets_what_was_set_aside_where_it_stands_in_the_log() -> None:
    """The model is shown it last. A client that comes back says after which number: none may come after a greater."""
    desk = Desk()
    aside = await desk.queue("by the way")
    await defer_message(desk.engine, aside.message_id)
    await desk.queue("now")
    result = await desk.take()
    assert desk.shown == [["now", "by the way"]]
    row = await desk.store.turn(result.turn_id)
    assert row is not None
    followed = [entry async for entry in follow(desk.store, row)]
    assert followed == await turn_events(desk.store, row)
    assert [entry.seq for entry in followed] == sorted(entry.seq for entry in followed)


async def test_a_thread_that_a_queued_message_began_is_its_senders() -> None:
    desk = Desk()
    await desk.queue("mine", principal="ada")
    await desk.take()
    await check_owner(desk.engine, "desk", "t", "ada")
    for other in ("bob", None):
        with pytest.raises(NotEntitled):
            await check_owner(desk.engine, "desk", "t", other)


@pytest.mark.parametrize("cold", [1, 2, 3], ids=["always", "every second turn", "every third turn"])
async def test_a_thread_is_read_again_with_the_messages_that_its_turns_took(cold: int) -> None:
    desk = Desk()
    expected: list[str] = []
    for number in range(14):  # enough for pages of the conversation
        await desk.queue(f"m{number}a")
        await desk.queue(f"m{number}b")
        expected += [f"m{number}a", f"m{number}b"]
        if number % 5 == 4:
            await run(desk.agent, f"run {number}", thread="t", store=desk.store)
            expected[-2:-2] = [f"run {number}"]
        if number % cold == 0:
            for row in await desk.store.turns(limit=1):
                warm_threads.take(desk.store, row, None)
        await desk.take()
        assert desk.shown[-1] == expected
    rows = await desk.store.turns_of_thread("desk", "t")
    assert [row.turn_index for row in rows] == list(range(1, 17))
    for row in rows:
        assert (await replay_turn(desk.store, row)).divergence is None
