"""The feed over all agents and transcripts, through `Runtime` and `open_store`."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import pytest

from kit.runs.engine_runs import calls
from wakeful import Agent, Retention, Runtime, open_store, tool
from wakeful.errors import AgentNotFound, CursorGone, InvalidRequest
from wakeful.ports import ModelRequest
from wakeful.service.queries.operator_feed import FeedReader
from wakeful.testing import FixedClock, scripted
from wakeful.views.presentation.display_modes import DisplayMode
from wakeful.views.presentation.feed_entries import FeedEntry
from wakeful.views.presentation.placements import Category

MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)
MODES: tuple[DisplayMode, ...] = ("info", "verbose", "debug")
SECRET = "hunter2-hunter2"


@tool(effect="pure")
def look_up(order: str, password: str = "") -> str:
    return f"order {order}: shipped, {password}"


@tool(effect="irreversible", approval=True)
def refund(order: str) -> str:
    return "done"


def clerk(*replies: object, name: str = "clerk") -> Agent[None, str]:
    left = [*replies]  # one after the other, whichever turn asks

    def reply(request: ModelRequest) -> Any:
        return left.pop(0)

    return Agent(name, scripted(reply), tools=[look_up, refund])


def lines(entries: list[FeedEntry]) -> list[tuple[str, str, str]]:
    return [(each.envelope.agent_id, each.presentation.visibility, each.presentation.summary) for each in entries]


async def everything(rt: Runtime, **asked: object) -> list[FeedEntry]:
    return [entry async for entry in rt.feed(**asked)]  # type: ignore[arg-type]


async def taken(feed: AsyncIterator[FeedEntry], number: int) -> list[FeedEntry]:
    return [await anext(feed) for _ in range(number)]


@pytest.mark.spec("HOL-PRES-01", "HOL-PRES-05")
async def test_the_feed_tells_what_all_agents_do_in_words(tmp_path: Path) -> None:
    busy = clerk(calls(("look_up", {"order": "A17"})), "Order A17 was shipped.")
    quiet = clerk("Nothing to do.", name="night")
    async with Runtime(tmp_path, agents=[busy, quiet]) as rt:
        await rt.answer(await rt.send("clerk", "Where is A17?"))
        await rt.answer(await rt.send("night", "Anything?"))
        found = await everything(rt)
        took = found[2].presentation.summary
        assert took.startswith("ok look_up, ")
        assert lines(found) == [
            ("clerk", "progress", "message from the operator: Where is A17?"),
            ("clerk", "progress", "Model requested tools: look_up"),
            ("clerk", "trace", took),
            ("clerk", "turn_result", "Order A17 was shipped."),
            ("night", "progress", "message from the operator: Anything?"),
            ("night", "turn_result", "Nothing to do."),
        ]
        assert lines(await everything(rt, display="info")) == [
            ("clerk", "turn_result", "Order A17 was shipped."),
            ("night", "turn_result", "Nothing to do."),
        ]
        assert await everything(rt, after=found[3].cursor) == found[4:]
        with pytest.raises(InvalidRequest, match="there is no display mode 'loud'"):
            await everything(rt, display="loud")


@pytest.mark.spec("HOL-PRES-02", "HOL-PRES-03", "HOL-PRES-04", "HOL-DISPLAY-01")
async def test_every_event_of_a_life_has_one_presentation(tmp_path: Path) -> None:
    async with Runtime(tmp_path, agents=[clerk(calls(("look_up", {"order": "A17"})), "Shipped.")]) as rt:
        await rt.answer(await rt.send("clerk", "Where is A17?"))
        found = [(each.envelope.kind, each.presentation) for each in await rt.replayed("clerk")]
    fields = {"visibility", "category", "title", "body", "summary", "source_event_kind"}
    for kind, shown in found:
        assert set(shown.model_dump()) == fields, "neither a severity nor a hint where to deliver it"
        assert shown.category in get_args(Category)
        assert shown.visibility in ("action_required", "work_done", "turn_result", "progress", "trace")
        assert shown.source_event_kind == kind
        assert shown.title and shown.summary and "\n" not in shown.summary


@pytest.mark.spec("HOL-PRES-06", "HOL-PRES-10", "HOL-DISPLAY-06", "HOL-DISPLAY-09")
async def test_signals_to_refresh_and_raw_events_of_tools_are_no_lines_of_a_conversation(tmp_path: Path) -> None:
    async with Runtime(tmp_path, agents=[clerk(calls(("look_up", {"order": "A17"})), "Shipped.")]) as rt:
        await rt.answer(await rt.send("clerk", "Where is A17?"))
        await rt.pause("clerk")
        raw = {each.envelope.kind: each.presentation for each in await rt.replayed("clerk")}
        state = raw["agent.state_changed"]
        assert (state.visibility, state.category) == ("trace", "state_sync")
        for kind in ("tool.started", "tool.result"):
            assert (raw[kind].visibility, raw[kind].category) == ("trace", "tool")
        shown = {mode: [each.envelope.kind for each in await rt.tail(display=mode)] for mode in MODES}
        assert shown["info"] == ["brief.created"]
        assert shown["verbose"] == ["message.admitted", "assistant.recorded", "tool.result", "brief.created"]
        assert shown["debug"] == shown["verbose"], "more of each, and no raw trace: that has its inspector"


@pytest.mark.spec("HOL-PRES-07", "HOL-PRES-08", "HOL-PRES-09", "HOL-DISPLAY-05")
async def test_a_round_says_its_words_or_else_the_tools_it_asked_for(tmp_path: Path) -> None:
    both = {"text": "Looking.", **calls(("look_up", {"order": "A17"}))}
    agent = clerk(both, calls(("look_up", {"order": "B2"}), ("look_up", {"order": "C3"})), {"reasoning": "hm"}, "None.")
    async with Runtime(tmp_path, agents=[agent]) as rt:
        await rt.answer(await rt.send("clerk", "Where are they?"))
        rounds = [each for each in await rt.replayed("clerk") if each.envelope.kind == "assistant.recorded"]
        assert [each.presentation.summary for each in rounds] == [
            "Assistant progress: Looking.",
            "Model requested tools: look_up, look_up",
            "Model round completed without words or tools",
        ]
        assert {each.presentation.visibility for each in rounds} == {"progress"}


@pytest.mark.spec("HOL-DISPLAY-02", "HOL-DISPLAY-03", "HOL-DISPLAY-04", "HOL-DISPLAY-07")
async def test_how_near_a_brief_is_follows_from_what_its_turn_came_to(tmp_path: Path) -> None:
    def reply(request: ModelRequest) -> Any:
        said = steps.pop(0)
        return said(request) if callable(said) else said

    def done(request: ModelRequest) -> Any:
        made = json.loads(str(request.history[-1].text))["work_item_id"]
        return {"text": "The room is tidy.", **calls(("complete_work_item", {"work_item_id": made}))}

    steps: list[Any] = ["Fine.", calls(("create_work_item", {"objective": "Tidy up."})), done, "Anything else?"]
    agent = Agent("clerk", scripted(reply), work_items=True)
    async with Runtime(tmp_path, agents=[agent]) as rt:
        await rt.answer(await rt.send("clerk", "How are you?"))
        await rt.answer(await rt.send("clerk", "Tidy up."))
        steps += [calls(("wait_for", {"reason": "which one?", "wake": "operator_input"}))]
        await rt.answer(await rt.send("clerk", "Choose one."))
        steps += [{"fail": [{"kind": "contract_error", "message": "no such parameter"}]}]
        await rt.answer(await rt.send("clerk", "The blue one."))
        found = [(each.presentation.visibility, each.presentation.title) for each in await rt.tail(display="info")]
        assert found == [
            ("turn_result", "Result"),
            ("work_done", "Work done"),
            ("turn_result", "Result"),
            ("action_required", "Needs you"),
            ("turn_result", "Failure"),
        ]
        assert len(await rt.replayed("clerk", limit=1_000)) > 5 * len(found), "raw events stay as they are"


async def test_what_needs_somebody_is_told_as_its_notice_is(tmp_path: Path) -> None:
    async with Runtime(tmp_path, agents=[clerk(calls(("refund", {"order": "A17"})), "Refunded.")]) as rt:
        await rt.answer(await rt.send("clerk", "Refund A17."))
        asked = (await everything(rt, display="info"))[-1]
        (notice,) = await rt.notices()
        assert (asked.presentation.visibility, asked.presentation.title) == ("action_required", "Needs you")
        assert asked.presentation.summary == notice.text
        assert 'order="A17"' in (asked.presentation.body or "")


async def test_a_secret_of_a_turn_is_in_no_entry_of_it(tmp_path: Path) -> None:
    async with Runtime(tmp_path, agents=[clerk(calls(("look_up", {"order": "A17", "password": SECRET})), "Ok.")]) as rt:
        await rt.answer(await rt.send("clerk", "Look."))
        found = await everything(rt)
        assert any(each.envelope.kind == "tool.result" for each in found)
        assert SECRET not in repr(found)
        assert SECRET not in repr(await FeedReader(rt._here.engine.store).newest("clerk", limit=1)), "read by itself"


async def test_followers_get_what_is_stored_then_what_comes_each_once(tmp_path: Path) -> None:
    async with Runtime(tmp_path, agents=[clerk("one", "two", "three")]) as rt:
        await rt.answer(await rt.send("clerk", "1"))
        async with aclosing(rt.feed(follow=True)) as first, aclosing(rt.feed(follow=True, display="info")) as second:
            begun = await taken(first, 2)
            await rt.answer(await rt.send("clerk", "2"))
            later = asyncio.gather(taken(first, 4), taken(second, 3))
            await rt.answer(await rt.send("clerk", "3"))
            rest, results = await later
        found = [*begun, *rest]
        assert [each.cursor for each in found] == [each.cursor for each in await everything(rt)]
        assert [each.presentation.summary for each in results] == ["one", "two", "three"]
        async with aclosing(rt.feed(found[1].cursor, follow=True)) as again:
            assert await taken(again, 4) == found[2:]


async def test_a_follower_that_fell_far_behind_reads_the_store(tmp_path: Path) -> None:
    async with Runtime(tmp_path, agents=[clerk(*[f"r{number}" for number in range(8)])]) as rt:
        reader = FeedReader(rt._here.engine.store, recent=2)
        results = reader.follow(display="info")
        async with aclosing(reader.follow()) as slow, aclosing(reader.follow()) as quick, aclosing(results):
            await rt.answer(await rt.send("clerk", "0"))
            await taken(slow, 1)
            assert [each.presentation.summary for each in await taken(results, 1)] == ["r0"]
            for number in range(1, 8):
                await rt.answer(await rt.send("clerk", str(number)))
                await taken(quick, 2)
            rest = await taken(slow, 15)
            assert [each.presentation.summary for each in await taken(results, 7)] == [f"r{n}" for n in range(1, 8)]
        assert [each.presentation.summary for each in rest[::2]] == [f"r{number}" for number in range(8)]


async def test_a_cursor_that_is_gone_says_how_to_start_again(tmp_path: Path) -> None:
    clock = FixedClock(MIDNIGHT)
    async with Runtime(tmp_path, agents=[clerk("one", "two")], clock=clock, retention=Retention(feed=1)) as rt:
        await rt.answer(await rt.send("clerk", "1"))
        old = (await everything(rt))[0].cursor
        clock.advance(3 * 86_400)
        await rt.answer(await rt.send("clerk", "2"))
        await rt.compact()
        left = await everything(rt)
        assert [each.presentation.summary for each in left] == ["message from the operator: 2", "two"]
        with pytest.raises(CursorGone, match="have expired") as gone:
            await everything(rt, after=old)
        again = gone.value.hint.partition("after ")[2].partition(";")[0]
        assert await everything(rt, after=again) == left
        for wrong in (
            "x",
            "feed-00000000-1",
            left[-1].cursor + "9",
            "feed--",
            left[0].cursor.rpartition("-")[0] + "-\u0661",
        ):
            with pytest.raises(CursorGone, match="cursor"):
                await everything(rt, after=wrong)
    async with open_store(tmp_path / "wakeful.db") as store:
        with pytest.raises(CursorGone):
            await anext(store.feed(old, follow=True))


async def test_compacting_says_how_many_rows_of_the_feed_go(tmp_path: Path) -> None:
    clock = FixedClock(MIDNIGHT)
    async with Runtime(tmp_path, agents=[clerk("one", "two")], clock=clock, retention=Retention(feed=0)) as rt:
        await rt.answer(await rt.send("clerk", "1"))
        clock.advance(40 * 86_400)
        await rt.answer(await rt.send("clerk", "2"))
        await rt.compact()
        assert len(await everything(rt)) == 4, "0 keeps it for ever"
    async with open_store(tmp_path / "wakeful.db") as store:
        terms = Retention(feed=1)
        assert (await store.compact(retention=terms, dry_run=True)).feed == 3
        assert (await store.compact(retention=terms)).feed == 3
        assert [each.presentation.summary async for each in store.feed()] == ["two"], "the newest stays"


@pytest.mark.spec("HOL-REPLAY-02", "HOL-REPLAY-03", "HOL-REPLAY-05", "HOL-REPLAY-07")
async def test_events_are_replayed_with_an_envelope_apart_from_their_payload(tmp_path: Path) -> None:
    async with Runtime(tmp_path, agents=[clerk("Shipped.")]) as rt:
        await rt.answer(await rt.send("clerk", "Where is A17?", correlation_id="case-9"))
        raw = [event async for event in _until_end(rt)]
    async with open_store(tmp_path / "wakeful.db") as store:
        found = await store.replayed("clerk")
        second = await store.replayed("clerk", after=found[3].envelope.event_seq, limit=2)
        with pytest.raises(AgentNotFound):
            await store.replayed("clark")
    for event, again in zip(raw, found, strict=True):
        envelope = again.envelope
        assert (envelope.event_id, envelope.event_seq) == (event.event_id, event.sequence)
        assert (envelope.ts, envelope.kind, envelope.agent_id) == (event.timestamp, event.type, "clerk")
        assert again.payload == event.payload, "in full"
    assert second == found[4:6], "the cursor is the event_seq"


@pytest.mark.spec("HOL-REPLAY-04", "HOL-REPLAY-09")
async def test_an_envelope_says_where_an_event_came_from(tmp_path: Path) -> None:
    async with Runtime(tmp_path, agents=[clerk("Noted.", "Done.")]) as rt:
        sent = await rt.receive("clerk", "hello", channel="support", sender="ann", correlation_id="case-9")
        await rt.answer(sent)
        await rt.answer(await rt.send("clerk", "and you?", causation_id=sent.message_id))
    async with open_store(tmp_path / "wakeful.db") as store:
        found = {each.envelope.event_seq: each for each in await store.replayed("clerk")}
    message = next(each.envelope for each in found.values() if each.envelope.message_id == sent.message_id)
    assert message.origin == {"kind": "channel", "channel_id": "support", "sender_id": "ann"}
    assert (message.trust, message.authority_class) == ("untrusted_external", "external_evidence")
    assert (message.delivery_surface, message.admission_context) == ("http_public_enqueue", "local_process")
    assert (message.transport, message.reply_route) == ("support", "channel:support/ann")
    assert message.correlation_id == "case-9"
    brief = next(each for each in found.values() if each.envelope.kind == "brief.created")
    assert brief.envelope.message_id == sent.message_id
    assert (brief.envelope.origin, brief.envelope.reply_route) == (message.origin, message.reply_route)
    assert brief.presentation.visibility == "turn_result", "a client may choose by it what to show"
    answered = [each.envelope for each in found.values() if each.envelope.causation_id == sent.message_id]
    assert answered and all(each.origin == {"kind": "operator"} for each in answered)


@pytest.mark.spec("HOL-REPLAY-01", "HOL-REPLAY-06")
async def test_replaying_lets_nothing_in_and_runs_nothing(tmp_path: Path) -> None:
    async with Runtime(tmp_path, agents=[clerk(calls(("look_up", {"order": "A17"})), "Shipped.")]) as rt:
        await rt.answer(await rt.send("clerk", "Where is A17?"))
    async with open_store(tmp_path / "wakeful.db") as store:
        first = await store.replayed("clerk")
        _ = [entry async for entry in store.feed()]
        await store.transcript("clerk")
        assert await store.replayed("clerk") == first, "nothing was added by reading"
        assert [each.envelope.event_seq for each in first] == sorted(each.envelope.event_seq for each in first)


async def _until_end(rt: Runtime) -> AsyncIterator[object]:
    last = len(await rt._here.engine.store.read("clerk"))
    async with aclosing(rt.follow("clerk")) as events:
        async for event in events:
            yield event
            if event.sequence == last:
                return


@pytest.mark.spec("HOL-CONSOLE-06", "HOL-TROUBLE-10")
async def test_a_transcript_is_messages_and_briefs_and_what_became_of_failed_requests(tmp_path: Path) -> None:
    retried = {"fail": [{"kind": "server_error", "message": "overloaded"}]}
    agent = clerk(retried, "Shipped.", calls(("look_up", {"order": "B2"})), "B2 as well.")
    async with Runtime(tmp_path, agents=[agent]) as rt:
        await rt.answer(await rt.send("clerk", "Where is A17?"))
        await rt.answer(await rt.receive("clerk", "spam", webhook="shop"))
        found = await rt.transcript("clerk")
        assert [(line.kind, line.text) for line in found] == [
            ("operator_message", "Where is A17?"),
            ("provider_failure", found[1].text),
            ("brief", "Shipped."),
            ("brief", "B2 as well."),
        ], "neither tools nor what others said"
        assert "overloaded" in found[1].text and "retry" in found[1].text
        logged = [event async for event in _until_end(rt)]
        assert len([1 for event in logged if getattr(event, "type", "") == "model.failed"]) == 1, "as in the log"
        assert await rt.transcript("clerk", turns=1) == found[3:]
        assert await rt.transcript("clerk", thread="elsewhere") == []
        with pytest.raises(AgentNotFound):
            await rt.transcript("clark")
        await rt.pause("clerk")
        await rt.send("clerk", "Later?")
        assert [(line.text, line.turn_id) for line in (await rt.transcript("clerk"))[4:]] == [("Later?", None)]
    async with open_store(tmp_path / "wakeful.db") as store:
        assert (await store.transcript("clerk"))[:4] == found
        assert [each.presentation.summary for each in await store.tail("clerk")] == ["Shipped.", "B2 as well."]
