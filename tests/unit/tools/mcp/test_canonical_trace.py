"""The canonical run (a server counts aloud, then there is an answer), watched, read again, and rejoined."""

from pathlib import Path
from typing import Any

import pytest

from kit.runs.whole_views import run_stream
from wakeful import Agent, from_mcp, stream
from wakeful.bootstrap.stores import opened_store
from wakeful.contracts.envelope import StoredFact
from wakeful.testing import scripted
from wakeful.views.run_stream import RunStream
from wakeful.views.run_stream_events import (
    McpProgressEvent,
    RunEvent,
    StatusEvent,
    StepEvent,
    TextEvent,
    ToolCallEvent,
    ToolResultEvent,
)

CANONICAL = [
    "status(starting)",
    "step(1, started)",
    "usage(1)",
    "tool_call(mcp.shop/count)",
    "mcp_progress(1 of 2, 'at 1')",
    "mcp_progress(2 of 2, 'at 2')",
    "tool_result(mcp.shop/count, success)",
    "step(1, completed)",
    "step(2, started)",
    "text('Final answer')",
    "usage(2)",
    "step(2, completed)",
    "status(completed)",
]


def trace(events: list[RunEvent]) -> list[str]:
    """The events in the words of the canonical trace; words that came in pieces are one text."""
    told: list[str] = []
    words = ""
    for event in events:
        if isinstance(event, TextEvent):
            words += event.text
            continue
        if words:
            told.append(f"text({words!r})")
            words = ""
        match event:
            case StatusEvent():
                told.append(f"status({event.status})")
            case StepEvent():
                told.append(f"step({event.step}, {event.status})")
            case ToolCallEvent():
                told.append(f"tool_call({event.tool_name})")
            case McpProgressEvent():
                told.append(f"mcp_progress({event.progress:g} of {event.total or 0:g}, {event.message!r})")
            case ToolResultEvent():
                told.append(f"tool_result({event.tool_name}, {event.metadata.status})")
            case _:
                told.append(f"{event.type}({getattr(event, 'step', '')})")
    return told


def fields(events: list[RunEvent]) -> list[dict[str, Any]]:
    """Everything but the words, which come in pieces when they are watched."""
    return [event.model_dump(mode="json") for event in events if not isinstance(event, TextEvent)]


async def canonical(url: str, folder: Path, *, emit: bool = True, planning: bool = False) -> tuple[list[RunEvent], str]:
    source = from_mcp("shop", url=url, classes={"*": "network"}, reads_private=False, pins=folder / "pins.json")
    asks = {"calls": [{"name": "mcp.shop/count", "arguments": {"to": 2}}]}
    plan = str(folder / "plan.yaml")
    Path(plan).write_text("- 'Count to two, then answer.'\n")
    options: dict[str, Any] = {"planning_enabled": True, "planning_model": f"scripted:{plan}"} if planning else {}
    agent = Agent("clerk", scripted([asks, "Final answer"]), tools=[source], emit_mcp_progress=emit, **options)
    async with stream(agent, "count", store=folder / "store.db") as watched:
        events = [event async for event in watched]
    return events, watched.turn_id or ""


async def stored(folder: Path, turn_id: str) -> list[StoredFact]:
    """The turn's facts, from the file alone."""
    async with opened_store(folder / "store.db") as store:
        row = await store.turn(turn_id)
        assert row is not None
        return await store.read(row.agent_id, turn_id=turn_id)


@pytest.mark.spec("CTL-TRACE-11")
async def test_the_canonical_trace_is_the_same_watched_read_from_the_log_and_after_coming_back(
    sdk_url: str, tmp_path: Path
) -> None:
    watched, turn = await canonical(sdk_url, tmp_path)
    assert trace(watched) == CANONICAL
    facts = await stored(tmp_path, turn)
    replayed = run_stream(turn, facts)
    assert trace(replayed) == CANONICAL
    assert fields(replayed) == fields(watched), "types, order and fields"
    # A subscriber that comes back at any place reads on from where it was, with or without an overlap.
    for place in range(len(facts) + 1):
        for overlap in (0, 1, place):
            view = RunStream(turn)
            seen = [event for entry in facts[:place] for event in view.feed(entry)]
            seen += [
                event for entry in facts[place - overlap if place >= overlap else 0 :] for event in view.feed(entry)
            ]
            assert seen == replayed
        # One that lost its view as well makes it anew, and is shown what comes after what it has.
        fresh = RunStream(turn)
        after = [
            event
            for entry in facts
            for event in fresh.feed(entry)
            if entry.seq > (facts[place - 1].seq if place else 0)
        ]
        assert replayed[len(replayed) - len(after) :] == after


@pytest.mark.spec("CTL-TRACE-08")
async def test_without_progress_the_trace_lacks_exactly_its_two_progress_events(sdk_url: str, tmp_path: Path) -> None:
    silent, turn = await canonical(sdk_url, tmp_path, emit=False)
    quiet = [line for line in CANONICAL if not line.startswith("mcp_progress")]
    assert len(quiet) == len(CANONICAL) - 2
    assert trace(silent) == quiet
    assert trace(run_stream(turn, await stored(tmp_path, turn))) == quiet


@pytest.mark.spec("CTL-TRACE-07")
async def test_with_planning_the_trace_is_the_same_and_the_planner_stands_between_its_first_two_events(
    sdk_url: str, tmp_path: Path
) -> None:
    watched, turn = await canonical(sdk_url, tmp_path, planning=True)
    for events in (watched, run_stream(turn, await stored(tmp_path, turn))):
        phases = [event.phase for event in events]
        planned = phases.count("planner")
        assert planned > 0
        assert phases == ["executor"] + ["planner"] * planned + ["executor"] * (len(phases) - planned - 1)
        assert trace(events[:1] + events[1 + planned :]) == CANONICAL
        assert trace(events[1 : 1 + planned])[0] == "step(1, started)"
