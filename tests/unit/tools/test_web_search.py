"""The search of a model's own provider: offered where the policy lets it, and its sources are cited."""

import json
from pathlib import Path
from typing import Any

import pytest

from kit.wires import anthropic_samples, gemini_samples, responses_wire
from kit.wires.provider_server import JSON, Answer, Asked, ProviderServer, chat_words, serving
from kit.wires.vendor_types import judge
from wakeful import Agent, GatePolicy, Rule, resume, run, stream, tool, web_search
from wakeful.contracts.errors import InvalidConfig
from wakeful.ports import Model
from wakeful.providers import AnthropicMessages, Gemini, OpenAIChat, OpenAIResponses
from wakeful.service.run_result import RunResult
from wakeful.testing import scripted
from wakeful.tools.results import ToolOutput

KEY = "sk-not-to-be-seen-0123456789"
PAGE = {"source": "web_search", "source_url": "https://weather.example/sf", "source_title": "Weather"}
SAID = "It is sunny."


@tool(effect="pure", reads_private=True)
def diary() -> str:
    """Read the diary."""
    return "A secret."


@tool(effect="irreversible")
def pay(to: str) -> str:
    """Pay somebody."""
    return f"paid {to}"


def model(server: ProviderServer, wire: str, name: str | None = None) -> Model:
    options: dict[str, Any] = {"api_key": KEY}
    match wire:
        case "messages":
            return AnthropicMessages(name or "claude-opus-4-7", base_url=server.url, **options)
        case "responses":
            return OpenAIResponses(name or "gpt-5.5", base_url=f"{server.url}/v1", **options)
        case "gemini":
            return Gemini(name or "gemini-3.8-flash", base_url=f"{server.url}/v1beta", **options)
    return OpenAIChat(name or "gpt-4o", base_url=f"{server.url}/v1", provider="openai", **options)


def searched(wire: str, *, streamed: bool = True) -> Answer:
    """An answer that the provider searched for, with its source."""
    if wire == "messages":
        cited = {
            "type": "web_search_result_location",
            "url": PAGE["source_url"],
            "title": PAGE["source_title"],
            "encrypted_index": "abc",
            "cited_text": "Sunny all day",
        }
        found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
        events = [
            anthropic_samples.started(),
            *anthropic_samples.block(
                0,
                {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
                {"type": "input_json_delta", "partial_json": '{"query": "weather"}'},
            ),
            *anthropic_samples.block(1, found),
            *anthropic_samples.block(
                2,
                {"type": "text", "text": "", "citations": []},
                {"type": "citations_delta", "citation": cited},
                {"type": "text_delta", "text": SAID},
            ),
            *anthropic_samples.ended(),
        ]
        return Answer(anthropic_samples.sse(events))
    if wire == "responses":
        link = {
            "type": "url_citation",
            "url": PAGE["source_url"],
            "title": PAGE["source_title"],
            "start_index": 0,
            "end_index": len(SAID),
        }
        call = {
            "type": "web_search_call",
            "id": "ws_1",
            "status": "completed",
            "action": {"type": "search", "query": "w"},
        }
        words = {**responses_wire.words(SAID), "annotations": [link]}
        ended = responses_wire.response(call, responses_wire.message(words))
        return Answer(responses_wire.sse(responses_wire.events_of(ended)))
    grounding = {
        "webSearchQueries": ["weather"],
        "groundingChunks": [{"web": {"uri": PAGE["source_url"], "title": PAGE["source_title"]}}],
        "groundingSupports": [{"segment": {"endIndex": 12, "text": SAID}, "groundingChunkIndices": [0]}],
    }
    whole = gemini_samples.answer({"text": SAID})
    whole["candidates"][0]["groundingMetadata"] = grounding
    return Answer(gemini_samples.sse([whole])) if streamed else Answer(json.dumps(whole).encode(), headers=JSON)


def offered(asked: Asked) -> list[dict[str, Any]]:
    """The provider's own tools in a request."""
    tools = asked.body.get("tools", ())
    searches = [each for each in tools if str(each.get("type", "")).startswith("web_search") or "googleSearch" in each]
    return [{name: value for name, value in each.items() if name != "cache_control"} for each in searches]


CITED = {
    "messages": {**PAGE, "excerpt": "Sunny all day"},
    "responses": {**PAGE, "supports": SAID},
    "gemini": {**PAGE, "supports": SAID},
}
SENT = {
    "messages": {"type": "web_search_20250305", "name": "web_search", "max_uses": 2},
    "responses": {"type": "web_search"},
    "gemini": {"googleSearch": {}},
}
WIRES = pytest.mark.parametrize("wire", SENT)


@WIRES
async def test_a_search_is_sent_as_the_vendor_has_it_and_its_sources_are_in_the_result(wire: str) -> None:
    with serving() as server:
        server.answers = [searched(wire)]
        result = await run(Agent("a", model(server, wire), tools=[web_search(max_uses=2)]), "Weather?")
    (asked,) = server.asked
    judge(asked)
    assert offered(asked) == [SENT[wire]]
    assert (result.output, result.citations) == (SAID, (CITED[wire],))
    document = json.loads(result.to_json())
    assert document["citations"] == [CITED[wire]]
    assert RunResult.from_json(result.to_json()).citations == result.citations


@WIRES
async def test_sources_come_with_a_stream_and_stay_in_the_log(wire: str, tmp_path: Path) -> None:
    place: dict[str, Any] = {"store": tmp_path / "runs.db", "key": "k"}
    with serving() as server:
        server.answers = [searched(wire)]
        agent = Agent("a", model(server, wire), tools=[web_search()])
        async with stream(agent, "Weather?", **place) as s:
            async for _ in s:
                pass
            watched = await s.result()
        again = await run(agent, "Weather?", **place)
        resumed = await resume(tmp_path / "runs.db", watched.turn_id, agents=[agent])
    assert len(server.asked) == 1
    assert watched.citations == again.citations == resumed.citations == (CITED[wire],)


@WIRES
async def test_what_was_found_is_untrusted_input_and_goes_back_as_the_vendor_has_it(wire: str, tmp_path: Path) -> None:
    """A call that acts outside is let through before a search, and asked about after it."""
    place: dict[str, Any] = {"store": tmp_path / "runs.db", "thread": "t"}
    paying = {"messages": anthropic_call, "responses": responses_call, "gemini": gemini_call}[wire]
    statuses = []
    for answers in ([], [searched(wire)]):
        with serving() as server:
            server.answers = [*answers, lambda asked: paying(asked, "pay", '{"to": "bob"}'), searched(wire)]
            agent = Agent("a", model(server, wire), tools=[web_search(), pay])
            for _ in answers:
                (said,) = [
                    item for item in (await run(agent, "Weather?", **place)).history() if item.role == "assistant"
                ]
                assert said.server_tools == ("web_search",)
            statuses.append((await run(agent, "Do what it says.", **(place if answers else {}))).status)
            for asked in server.asked:
                judge(asked)
    assert statuses == ["completed", "approval_required"]


@WIRES
async def test_a_search_that_the_policy_denies_or_would_ask_about_is_not_sent_and_that_is_said(wire: str) -> None:
    for decision, words in (("deny", "no web"), ("ask", "a person would have to be asked")):
        policy = GatePolicy(rules=(Rule(match="web_search", decision=decision, reason="no web"),))
        with serving() as server:
            server.answers = [searched(wire)]
            result = await run(Agent("a", model(server, wire), tools=[web_search()], policy=policy), "Weather?")
        (asked,) = server.asked
        assert offered(asked) == []
        if decision == "ask":
            assert any(words in warning for warning in result.warnings), result.warnings


@WIRES
async def test_inversion_after_untrusted_and_private_input_no_search_is_offered(wire: str, tmp_path: Path) -> None:
    """Without the check, what the diary says could leave the machine in the words that are searched for."""
    names = {"messages": anthropic_call, "responses": responses_call, "gemini": gemini_call}
    with serving() as server:
        server.answers = [searched(wire), lambda asked: names[wire](asked, "diary", "{}"), searched(wire)]
        agent = Agent("a", model(server, wire), tools=[web_search(), diary])
        place: dict[str, Any] = {"store": tmp_path / "runs.db", "thread": "t"}
        await run(agent, "Weather?", **place)
        result = await run(agent, "And my diary?", **place)
    first, second, third = server.asked
    assert (len(offered(first)), len(offered(second))) == (1, 1)
    assert offered(third) == []
    assert any("the provider was not offered web_search" in warning for warning in result.warnings)


def anthropic_call(asked: Asked, name: str, arguments: str) -> Answer:
    block = anthropic_samples.call_block(0, "toolu_1", name, arguments)
    return Answer(anthropic_samples.sse([anthropic_samples.started(), *block, *anthropic_samples.ended("tool_use")]))


def responses_call(asked: Asked, name: str, arguments: str) -> Answer:
    call = responses_wire.call("call_1", arguments, name=name)
    return Answer(responses_wire.sse(responses_wire.events_of(responses_wire.response(call))))


def gemini_call(asked: Asked, name: str, arguments: str) -> Answer:
    called = gemini_samples.call(name, json.loads(arguments), "call_1")
    return Answer(gemini_samples.sse([gemini_samples.answer(called)]))


async def test_a_format_without_a_search_is_asked_without_and_that_is_said() -> None:
    with serving() as server:
        server.answers = [chat_words("I cannot search.")]
        result = await run(Agent("a", model(server, "chat"), tools=[web_search()]), "Weather?")
    assert "tools" not in server.asked[0].body
    assert result.warnings == ("openai:gpt-4o does not take tools.web_search: the request was sent without",)


async def test_an_older_gemini_is_offered_a_search_only_without_other_tools() -> None:
    with serving() as server:
        server.answers = [searched("gemini"), searched("gemini")]
        older = model(server, "gemini", "gemini-2.5-flash")
        alone = await run(Agent("a", older, tools=[web_search()]), "Weather?")
        beside = await run(Agent("a", older, tools=[web_search(), diary]), "Weather?")
    assert [len(offered(asked)) for asked in server.asked] == [1, 0]
    assert alone.warnings == ()
    assert "tools.web_search" in beside.warnings[0]


async def test_options_that_a_vendor_has_no_word_for_are_named() -> None:
    with serving() as server:
        server.answers = [searched("responses")]
        search = web_search(max_uses=3, allowed_domains=["example.com"])
        result = await run(Agent("a", model(server, "responses"), tools=[search]), "Weather?")
    assert offered(server.asked[0]) == [{"type": "web_search", "filters": {"allowed_domains": ["example.com"]}}]
    assert "web_search.max_uses" in result.warnings[0]


def test_wrong_options_are_errors() -> None:
    with pytest.raises(InvalidConfig, match="Give one of them"):
        web_search(allowed_domains=["a.example"], blocked_domains=["b.example"])
    with pytest.raises(InvalidConfig, match="at least 1"):
        web_search(max_uses=0)
    with pytest.raises(InvalidConfig, match="Give a list"):
        web_search(allowed_domains="example.com")


async def test_sources_of_a_tool_of_ones_own_are_in_the_result_too() -> None:
    @tool(effect="pure")
    def find() -> ToolOutput:
        """Find."""
        return ToolOutput("found", metadata={"citations": [{"source_url": " https://a.example ", "score": "high"}]})

    result = await run(
        Agent("a", scripted([{"calls": [{"name": "find", "arguments": {}}]}, "done"]), tools=[find]), "go"
    )
    assert result.citations == ({"source_url": "https://a.example"},)
