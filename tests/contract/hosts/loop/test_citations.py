"""Citations that tools bring: kept where they are fit to be read, and no input to any decision."""

import json
from typing import Any

import pytest

from kit.hosts.loop_host import SEARCH, Host, calling, search
from wakeful.contracts.events import ToolResult
from wakeful.hosts import ConversationLoop, ConversationResult

FOUND: dict[str, Any] = {
    "source": " wiki ",
    "source_id": "page 7",
    "item_id": "i",
    "fragment_id": "f",
    "source_title": "Gold",
    "source_url": "https://example.org/gold",
    "score": 0.5,
    "excerpt": "It glitters.",
}


async def cited(*citations: Any, **metadata: Any) -> tuple[Host, ConversationResult]:
    host = Host(calling(search("x")), {"content": "done"})
    host.answers["x"] = {"success": True, "result": "found", "metadata": {"citations": list(citations), **metadata}}
    return host, await host.mediated()


def kept(result: ConversationResult) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = result.tool_execution_results[0]["result"]["metadata"]["citations"]
    return found


@pytest.mark.spec("API-CIT-01", "API-CIT-02")
async def test_a_citation_is_kept_in_its_fields_and_what_is_no_text_or_number_is_dropped() -> None:
    _, result = await cited(
        FOUND, {"source": "", "source_id": ["x"], "score": "high", "own": "stays"}, "no object", engine="own"
    )
    assert kept(result) == [{**FOUND, "source": "wiki"}, {"own": "stays"}]
    assert result.tool_execution_results[0]["result"]["metadata"]["engine"] == "own"
    # The model's runner reads the same.
    (told,) = [message for message in result.messages if message.type == "tool_result"]
    assert told.payload["metadata"]["citations"] == kept(result)


@pytest.mark.spec("API-CIT-03", "API-CIT-04")
async def test_a_citation_says_what_was_restricted_and_nothing_private() -> None:
    who = {"effective_agent_id": "helper", "auth_source": "user", "owner_key": "k", "token_id": "t"}
    private = {"owner_key": "k", "capabilities": ["edit"], "token_id": "t", "cookie": "c", "audience_claims": {"a": 1}}
    _, result = await cited(
        {**FOUND, "access_status": "partial", "restriction_reason": "workspace", "principal": who, **private},
        {"source": "x", "access_status": "perhaps"},
    )
    first, second = kept(result)
    assert (first["access_status"], first["restriction_reason"]) == ("partial", "workspace")
    assert first["principal"] == {"effective_agent_id": "helper", "auth_source": "user"}
    assert not set(private) & set(first)
    assert second == {"source": "x"}
    assert '"k"' not in json.dumps(result.to_wire())


@pytest.mark.spec("API-CIT-06")
async def test_what_a_citation_says_about_access_decides_nothing() -> None:
    outcomes = []
    for status in ("allowed", "denied", "source_restricted"):
        host = Host(calling(search("x", id="c1")), calling(search("y", id="c2")), {"content": "done"})
        host.answers["x"] = {
            "success": True,
            "result": "found",
            "metadata": {"citations": [{"source": "s", "access_status": status}]},
        }
        loop = ConversationLoop(store=host.store, hooks=host.hooks)
        result = await loop.run(
            [{"role": "user", "content": "go"}],
            host.turn_runner,
            {"tool_executor": host, "tool_declarations": {"ability/search": SEARCH}, "max_turns": 4},
        )
        outcomes.append((result.completed, [call.parameters for call in host.calls]))
    assert outcomes == [(True, [{"q": "x"}, {"q": "y"}])] * 3


@pytest.mark.spec("STD-CALL-05")
async def test_the_log_names_what_a_result_rests_on() -> None:
    host, _ = await cited(FOUND, {"source": "web", "source_id": "page 9"}, {"own": "stays"})
    (told,) = [each.fact.event for each in await host.log() if isinstance(each.fact.event, ToolResult)]
    assert told.evidence_refs == ("https://example.org/gold", "page 9")
    plain = Host(calling(search("x")), {"content": "done"})
    await plain.mediated()
    (told,) = [each.fact.event for each in await plain.log() if isinstance(each.fact.event, ToolResult)]
    assert told.evidence_refs == ()
