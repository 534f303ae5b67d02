"""A result that is longer than what a model is shown: its preview, its record, and all of it in the store."""

import hashlib
from pathlib import Path

import pytest

from kit.runs.engine_runs import calls, of_kind
from wakeful import Agent, open_store, run, tool
from wakeful.bootstrap.stores import opened_store
from wakeful.contracts.budgets import MAX_TOOL_RESULT_BYTES
from wakeful.contracts.envelope import published
from wakeful.contracts.events import EVENTS, OutputExpired, OutputRedacted, OutputSpilled, OutputTruncated, ToolResult
from wakeful.contracts.retention import Retention
from wakeful.contracts.schema import LIMITS, event_schema, validate_event
from wakeful.contracts.tools import PREVIEW_CHARS
from wakeful.errors import ArtifactExpired
from wakeful.runtime.retention import RetentionPass
from wakeful.testing import FixedClock, scripted
from wakeful.tools.results import BYTES_PER_TOKEN, ToolOutput

KEY = "sk-live-0123456789abcdefghijklmnop"
WHOLE = "".join(f"line {n} of a long report ä\n" for n in range(20_000))


@tool(effect="pure")
def report() -> str:
    """More than a model is shown."""
    return WHOLE


@tool(effect="pure")
def short() -> str:
    """Less."""
    return "short"


@pytest.mark.spec("STD-OUTP-01", "STD-OUTP-02")
async def test_a_large_result_is_a_preview_and_a_record_that_leads_to_all_of_it(tmp_path: Path) -> None:
    who = Agent("a", scripted([calls("report", "short"), "I have read it."]), tools=[report, short])
    result = await run(who, "go", store=tmp_path / "o.db")
    (spilled,), (cut,) = of_kind(result, OutputSpilled), of_kind(result, OutputTruncated)
    long, small = sorted(of_kind(result, ToolResult), key=lambda event: event.tool_name)
    data = WHOLE.encode()
    digest = hashlib.sha256(data).hexdigest()
    assert spilled == OutputSpilled(
        output_ref=f"sha256:{digest}",
        owner=long.item.call_id,
        media_type="text/plain; charset=utf-8",
        encoding="utf-8",
        size_bytes=len(data),
        sha256=digest,
        preview=WHOLE[:PREVIEW_CHARS],
        truncated=True,
        redacted=False,
        expires_at=None,
    )
    assert (cut.output_ref, cut.original_bytes) == (spilled.output_ref, len(data))
    assert cut.kept_bytes == len(long.item.text.encode()) <= MAX_TOOL_RESULT_BYTES
    assert (long.preview, long.result_ref and long.result_ref.digest) == (WHOLE[:PREVIEW_CHARS], spilled.output_ref)
    async with opened_store(tmp_path / "o.db") as store:
        assert await store.get_blob(spilled.output_ref) == data, "all of it, wherever the answer went"
    assert WHOLE[:100] not in result.output
    assert small.result_ref is None, "what fits needs no record"


@pytest.mark.spec("STD-OUTP-04")
async def test_previews_and_what_a_model_is_shown_keep_to_the_published_limits(tmp_path: Path) -> None:
    assert event_schema()["x-limits"] == LIMITS
    assert (LIMITS["preview_chars"], LIMITS["tool_result_bytes"], LIMITS["tool_result_tokens"]) == (500, 50_000, 8_000)
    previews = {
        (event.kind, name): event.model_json_schema()["properties"][name]
        for event in EVENTS
        for name in event.model_fields
        if name == "preview" or name.endswith("_preview")
    }
    assert len(previews) >= 7
    for where, schema in previews.items():
        shapes = schema.get("anyOf", [schema])
        assert any(shape.get("maxLength") == LIMITS["preview_chars"] for shape in (schema, *shapes)), where

    @tool(effect="pure")
    def generous() -> ToolOutput:
        """Wants to show more than anything may."""
        return ToolOutput(WHOLE, most_bytes=10**9)

    who = Agent("a", scripted([calls("report", "generous"), WHOLE]), tools=[report, generous])
    result = await run(who, WHOLE, store=tmp_path / "o.db")
    by_name = {event.tool_name: event for event in of_kind(result, ToolResult)}
    assert len(by_name["generous"].preview) == len(by_name["report"].preview) == LIMITS["preview_chars"]
    sizes = [cut.kept_bytes for cut in of_kind(result, OutputTruncated)]
    assert all(size <= LIMITS["tool_result_bytes"] for size in sizes)
    assert sorted(size > LIMITS["tool_result_tokens"] * BYTES_PER_TOKEN for size in sizes) == [False, True]
    written = [published(entry, "r").model_dump(mode="json") for entry in result.facts()]
    assert [problem for event in written for problem in validate_event(event)] == []
    shown = [text for event in written for name, text in event["payload"].items() if name.endswith("preview") and text]
    assert max(len(text) for text in shown) == LIMITS["preview_chars"], "the prompt's and the answer's too"


@pytest.mark.spec("STD-OUTP-03")
async def test_what_becomes_of_an_output_is_said_with_its_reference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spilled, cut and redacted when it comes, expired when its time is over; reading it then says so."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    @tool(effect="pure")
    def leaky() -> str:
        """A long result with a key of the runtime's own in it."""
        return f"{WHOLE} {KEY}"

    who = Agent("a", scripted([calls("leaky"), "I have read it."]), tools=[leaky])
    result = await run(who, "go", store=tmp_path / "o.db", thread="chat")
    (spilled,), (cut,) = of_kind(result, OutputSpilled), of_kind(result, OutputTruncated)
    (redacted,) = of_kind(result, OutputRedacted)
    assert spilled.redacted
    assert cut.output_ref == redacted.output_ref == spilled.output_ref
    assert cut.original_bytes > cut.kept_bytes > 0
    async with opened_store(tmp_path / "o.db") as store:
        assert KEY.encode() not in await store.get_blob(spilled.output_ref)
        late = FixedClock(4_000_000_000_000_000)
        report = await RetentionPass(store, late, Retention()).run()
        (gone,) = [entry.fact.event for entry in await store.read("a") if isinstance(entry.fact.event, OutputExpired)]
        assert (report.outputs, gone.output_ref, gone.of_turn) == (1, spilled.output_ref, result.turn_id)
    async with open_store(tmp_path / "o.db") as opened:
        with pytest.raises(ArtifactExpired, match="has expired"):
            await opened.artifact(spilled.output_ref)
