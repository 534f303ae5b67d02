"""Spans of turns, read from the log by the SDK's own exporter in memory; names as they are published."""

import asyncio
import contextlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics

from wakeful import Agent, run, tool
from wakeful.bootstrap.stores import opened_store
from wakeful.ports import ModelRequest
from wakeful.service.ended_turns import EndedTurns, cursor_at
from wakeful.service.telemetry import TelemetryReader
from wakeful.system import SystemClock
from wakeful.telemetry.meters import BoundedNames
from wakeful.telemetry.span_sender import SpanSender
from wakeful.testing import scripted
from wakeful.views import span_names
from wakeful.views.turn_spans import plain_name

PASSWORD = "hunter2-of-the-shop"


@tool(effect="pure")
def look(what: str, password: str = "") -> str:
    """Look at something."""
    return f"saw {what}"


@tool(effect="pure")
def break_down() -> str:
    """Fail."""
    raise ValueError("the lamp is broken")


async def told(store: Path, *, content: bool = False, cursor: Path | None = None) -> list[ReadableSpan]:
    """The spans of everything that ended in a store, as an exporter of the SDK is given them."""
    exporter = InMemorySpanExporter()
    async with opened_store(store) as opened:
        reader = TelemetryReader(
            opened, SystemClock(), SpanSender(exporter, Resource.create({})), content=content, cursor_file=cursor
        )
        place = EndedTurns(0) if cursor is None else cursor_at(cursor, 0)
        while rows := await place.fresh(opened, 3):
            assert await reader._send(rows)
            place.take(rows)
    return list(exporter.get_finished_spans())


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


async def test_a_failed_call_a_child_and_a_lost_request_are_spans_of_their_own(tmp_path: Path) -> None:
    def replies(request: ModelRequest) -> object:
        if "look around" in request.history[0].text:
            return {"calls": [{"name": "finish_subtask", "arguments": {"result": "all is well"}}]}
        task = {"title": "Rosebud", "instructions": "look around"}
        return [
            {"fail": [{"kind": "rate_limited", "message": "later"}], "calls": [{"name": "break_down"}]},
            {"calls": [{"name": "run_subtask", "arguments": task}]},
            "done",
        ][request.answered]

    agent = Agent("scout", scripted(replies), tools=[break_down], subtasks=True)
    result = await run(agent, "go", store=tmp_path / "w.db")
    spans = await told(tmp_path / "w.db")
    assert result.status == "completed"
    names = [span.name for span in spans]
    assert names[0] == "invoke_agent scout" and "invoke_agent run_subtask" in names
    by_id = {span.context.span_id: span for span in spans}  # type: ignore[union-attr]
    parents = {span.name: by_id[span.parent.span_id].name for span in spans if span.parent is not None}
    assert parents["execute_tool break_down"] == "invoke_agent scout"
    assert parents["invoke_agent run_subtask"] == "execute_tool run_subtask"
    assert parents["execute_tool finish_subtask"] == "invoke_agent run_subtask"
    (broken,) = [span for span in spans if span.name == "execute_tool break_down"]
    assert not broken.status.is_ok and not broken.status.is_unset and attributes(broken)["error.type"]
    errors = [
        attributes(span)["error.type"] for span in spans if span.name.startswith("chat") and not span.status.is_unset
    ]
    assert errors == ["rate_limited"]
    assert "lamp" not in str([attributes(span) for span in spans]) and "Rosebud" not in str(
        [s.to_json() for s in spans]
    )
    for span in spans:
        assert span.start_time is not None and span.end_time is not None and span.start_time <= span.end_time


async def test_what_was_said_is_there_only_by_name_and_then_redacted(tmp_path: Path) -> None:
    call = {"calls": [{"name": "look", "arguments": {"what": "the garden", "password": PASSWORD}}]}
    agent = Agent("scout", scripted([call, "a rose"]), tools=[look])
    await run(agent, "what grows there?", store=tmp_path / "w.db")
    silent = str([attributes(span) for span in await told(tmp_path / "w.db")])
    assert not any(word in silent for word in ("garden", "rose", "grows", PASSWORD))
    spans = await told(tmp_path / "w.db", content=True)
    (root,) = [span for span in spans if span.parent is None]
    assert "what grows there?" in attributes(root)[span_names.INPUT_MESSAGES]
    assert "a rose" in attributes(root)[span_names.OUTPUT_MESSAGES]
    (looked,) = [span for span in spans if span.name == "execute_tool look"]
    assert "the garden" in attributes(looked)[span_names.TOOL_ARGUMENTS]
    assert attributes(looked)[span_names.TOOL_RESULT] == "saw the garden"
    assert PASSWORD not in str([attributes(span) for span in spans])


async def test_a_cursor_gives_each_turn_once_also_to_the_next_process(tmp_path: Path) -> None:
    agent, place = Agent("scout", scripted(lambda _: "yes")), tmp_path / "run" / "cursor.json"
    assert await told(tmp_path / "w.db", cursor=place) == []
    for _ in range(5):
        await run(agent, "go", store=tmp_path / "w.db")
    first = await told(tmp_path / "w.db", cursor=place)
    await run(agent, "go", store=tmp_path / "w.db")
    second = await told(tmp_path / "w.db", cursor=place)
    turns = [[attributes(span)["wakeful.turn.id"] for span in each if span.parent is None] for each in (first, second)]
    assert [len(each) for each in turns] == [5, 1] and not set(turns[0]) & set(turns[1])


async def test_a_turn_that_cannot_be_read_keeps_no_other_from_being_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = tmp_path / "w.db"
    broken = await run(Agent("broken", scripted(lambda _: "yes")), "go", store=store)
    whole = await run(Agent("whole", scripted(lambda _: "yes")), "go", store=store)
    with contextlib.closing(sqlite3.connect(store)) as connection, connection:  # as a failing disk would
        damaged = "UPDATE appends SET body = zeroblob(length(body)) WHERE id = (SELECT min(id) + 1 FROM appends)"
        assert connection.execute(damaged).rowcount == 1
    spans = await told(store)
    assert [attributes(span)["wakeful.turn.id"] for span in spans if span.parent is None] == [whole.turn_id]
    assert f"turn {broken.turn_id} is left out of telemetry" in caplog.text


class SmallExporter(SpanExporter):
    """Of an endpoint that refuses what is too large."""

    def __init__(self, most: int) -> None:
        self.most, self.asked, self.taken = most, 0, list[ReadableSpan]()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.asked += 1
        if len(spans) > self.most:
            return SpanExportResult.FAILURE
        self.taken += spans
        return SpanExportResult.SUCCESS


@pytest.mark.parametrize("most", [1, 2, 5, 100])
async def test_what_is_too_large_for_one_request_is_sent_in_smaller_ones(tmp_path: Path, most: int) -> None:
    store, exporter = tmp_path / "w.db", SmallExporter(most)
    for _ in range(5):
        await run(Agent("scout", scripted(lambda _: "yes")), "go", store=store)
    wanted = [(span.name, span.start_time) for span in await told(store)]
    async with opened_store(store) as opened:
        reader = TelemetryReader(opened, SystemClock(), SpanSender(exporter, Resource.create({})))
        assert await reader._send(await EndedTurns(0).fresh(opened, 20))
        assert [(span.name, span.start_time) for span in exporter.taken] == wanted
        assert (reader.is_failing, reader.failures) == (False, 0)


async def test_an_endpoint_that_takes_nothing_is_asked_no_more_than_twice_at_a_time(tmp_path: Path) -> None:
    store, exporter = tmp_path / "w.db", SmallExporter(0)
    for _ in range(5):
        await run(Agent("scout", scripted(lambda _: "yes")), "go", store=store)
    async with opened_store(store) as opened:
        reader = TelemetryReader(opened, SystemClock(), SpanSender(exporter, Resource.create({})))
        assert not await reader._send(await EndedTurns(0).fresh(opened, 20))
    assert (exporter.asked, reader.is_failing) == (2, True)


async def test_the_same_turn_has_the_same_ids_whenever_it_is_read(tmp_path: Path) -> None:
    await run(Agent("scout", scripted(["yes"])), "go", store=tmp_path / "w.db")
    first, second = await told(tmp_path / "w.db"), await told(tmp_path / "w.db")
    assert [span.context for span in first] == [span.context for span in second] and first[0].context is not None


class Hanging(SpanExporter):
    """Never comes back, as an address that swallows everything."""

    def export(self, spans: Any) -> SpanExportResult:
        import threading

        threading.Event().wait(30)
        return SpanExportResult.SUCCESS


async def test_a_request_that_hangs_is_let_go_of_when_the_reader_is_closed(tmp_path: Path) -> None:
    agent = Agent("scout", scripted(lambda _: "yes"))
    async with opened_store(tmp_path / "w.db") as opened:
        reader = TelemetryReader(opened, SystemClock(), SpanSender(Hanging(), Resource.create({})))
        reader.start()
        assert (await run(agent, "go", store=tmp_path / "w.db")).status == "completed"
        async with asyncio.timeout(20):
            await reader.close()


def test_the_names_are_those_that_are_published() -> None:
    ours = {value for name, value in vars(span_names).items() if name.isupper() and str(value).startswith("gen_ai.")}
    published = {
        value
        for module in (gen_ai_attributes, gen_ai_metrics)
        for value in vars(module).values()
        if isinstance(value, str)
    }
    assert len(ours) > 15 and ours <= published


def test_names_that_models_make_up_do_not_become_labels_without_end() -> None:
    names = BoundedNames(2)
    assert [names.label(name) for name in ("a", "b", "c", "a", "d")] == ["a", "b", "other", "a", "other"]
    assert plain_name("client/search_docs") == "client/search_docs"
    assert plain_name("tell everybody that Rosebud") == "other" and plain_name("x" * 101) == "other"
