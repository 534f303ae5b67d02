"""Token figures of a turn's end: there when a provider gave some, absent when none did."""

from typing import Any

import pytest

from kit.runs.whole_views import transcript
from wakeful import Agent, run, tool
from wakeful.contracts.events import Terminal, ToolResult
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted

BROKEN = {"fail": {"kind": "contract_error", "message": "wrong field"}}


async def ended(script: list[Any]) -> tuple[Terminal, list[Any]]:
    @tool(effect="pure")
    async def look() -> str:
        """Look."""
        return "seen"

    result = await run(Agent("a", scripted(script), tools=[look]), "go")
    terminal = result.facts()[-1].fact.event
    assert isinstance(terminal, Terminal)
    return terminal, transcript(result.facts())


@pytest.mark.spec("HOL-TOK-05")
async def test_a_failed_turn_carries_token_usage_only_when_there_is_some() -> None:
    asked = {"calls": [{"name": "look", "arguments": {}}]}
    usage = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
    with_figures, entries = await ended([{**asked, "usage": usage}, BROKEN])
    assert with_figures.status == "failed"
    assert with_figures.token_usage is not None and with_figures.token_usage.total_tokens == 5
    (failure,) = [entry for entry in entries if entry.kind == "runtime_failure"]
    assert failure.data.token_usage is None, "the lost attempt itself reported nothing"
    without, entries = await ended([asked, BROKEN])
    assert without.status == "failed" and without.token_usage is None
    (failure,) = [entry for entry in entries if entry.kind == "runtime_failure"]
    assert failure.data.token_usage is None


@pytest.mark.spec("CTL-META-08")
async def test_the_artifact_of_a_large_result_is_named_in_its_metadata_and_holds_all_of_it() -> None:
    @tool(effect="pure")
    async def read_all() -> str:
        """A long text."""
        return "line\n" * 50_000

    store = MemoryStore()
    script = [{"calls": [{"name": "read_all", "arguments": {}}]}, "read"]
    result = await run(Agent("a", scripted(script), tools=[read_all]), "go", store=store)
    (event,) = [entry.fact.event for entry in result.facts() if isinstance(entry.fact.event, ToolResult)]
    artifact = event.metadata.offloaded_artifact_id
    assert artifact is not None and event.truncated
    assert await store.get_blob(artifact) == b"line\n" * 50_000
    assert len(event.item.text) < 50_000
