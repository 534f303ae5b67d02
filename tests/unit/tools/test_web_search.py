"""The search of a model's own provider: offered where the policy lets it, and its sources are cited."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from kit.wires import anthropic_samples, gemini_samples, provider_server, responses_wire
from kit.wires.provider_server import JSON, Asked, ProviderServer, chat_words, serving
from kit.wires.vendor_types import judge
from wakeful import (
    Agent,
    Always,
    Answer,
    Approve,
    Budget,
    GatePolicy,
    Reject,
    Rule,
    Text,
    open_store,
    resume,
    run,
    stream,
    tool,
    web_search,
)
from wakeful.contracts.conversation import AssistantItem
from wakeful.contracts.errors import InvalidConfig
from wakeful.ports import Model
from wakeful.providers import AnthropicMessages, Gemini, OpenAIChat, OpenAIResponses
from wakeful.providers.price_list import price_of
from wakeful.providers.prices import Price, search_fee
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


@tool(effect="pure")
def clock() -> str:
    """The time."""
    return "noon"


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


def searched(wire: str, *, streamed: bool = True) -> provider_server.Answer:
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
        return provider_server.Answer(anthropic_samples.sse(events))
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
        return provider_server.Answer(responses_wire.sse(responses_wire.events_of(ended)))
    grounding = {
        "webSearchQueries": ["weather"],
        "groundingChunks": [{"web": {"uri": PAGE["source_url"], "title": PAGE["source_title"]}}],
        "groundingSupports": [{"segment": {"endIndex": 12, "text": SAID}, "groundingChunkIndices": [0]}],
    }
    whole = gemini_samples.answer({"text": SAID})
    whole["candidates"][0]["groundingMetadata"] = grounding
    if not streamed:
        return provider_server.Answer(json.dumps(whole).encode(), headers=JSON)
    return provider_server.Answer(gemini_samples.sse([whole]))


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
async def test_a_search_that_the_policy_denies_is_not_sent(wire: str) -> None:
    policy = GatePolicy(rules=(Rule(match="web_search", decision="deny", reason="no web"),))
    with serving() as server:
        server.answers = [searched(wire)]
        await run(Agent("a", model(server, wire), tools=[web_search()], policy=policy), "Weather?")
    (asked,) = server.asked
    assert offered(asked) == [] and "tools" not in asked.body


def callable_names(asked: Asked) -> list[str]:
    """The tools of a request that the model may call."""
    tools = asked.body.get("tools", ())
    declared = [each for tool in tools for each in tool.get("functionDeclarations", (tool,))]
    return [
        each["name"] for each in declared if "name" in each and not str(each.get("type", "")).startswith("web_search")
    ]


ASK = GatePolicy(rules=(Rule(match="web_search", decision="ask", reason="searches cost money"),))
CALLS: dict[str, Any] = {}
"""By the wire's name: a call of the model, filled in below."""


@WIRES
async def test_a_search_that_somebody_has_to_be_asked_about_is_asked_about_once_a_turn(
    wire: str, tmp_path: Path
) -> None:
    place: dict[str, Any] = {"store": tmp_path / "runs.db", "thread": "t"}
    asks = lambda asked: CALLS[wire](asked, "web_search", '{"query": "weather in SF"}')  # noqa: E731
    with serving() as server:
        server.answers = [asks, lambda asked: CALLS[wire](asked, "clock", "{}"), searched(wire), asks]
        agent = Agent("a", model(server, wire), tools=[web_search(), clock], policy=ASK)
        waits = await run(agent, "Weather?", key="k", **place)
        async with open_store(tmp_path / "runs.db") as store:
            (approval,) = await store.approvals()
            assert approval.arguments == {"query": "weather in SF"}
            assert "searches cost money" in approval.reason and "until the turn ends" in approval.reason
            await store.decide(approval.approval_id, Approve(), by="ann")
        result = await run(agent, "Weather?", key="k", **place)
        again = await run(agent, "And tomorrow?", **place)
        async with open_store(tmp_path / "runs.db") as store:
            replayed = await store.replay("k")
    assert waits.status == again.status == "approval_required"
    assert (result.output, result.citations, result.warnings) == (SAID, (CITED[wire],), ())
    assert [(len(offered(asked)), callable_names(asked)) for asked in server.asked] == [
        (0, ["clock", "web_search"]),
        (1, ["clock"]),
        (1, ["clock"]),
        (0, ["clock", "web_search"]),
    ]
    for asked in server.asked:
        judge(asked)
    assert replayed.identical, replayed.divergence


CHEAP = Price(input=Decimal(1), output=Decimal(1), searches=Decimal(10))


def priced(server: ProviderServer, wire: str, price: Price) -> Model:
    there: dict[str, Any] = {"api_key": KEY, "price": price}
    match wire:
        case "messages":
            return AnthropicMessages("claude-opus-4-7", base_url=server.url, **there)
        case "responses":
            return OpenAIResponses("gpt-5.5", base_url=f"{server.url}/v1", **there)
    return Gemini("gemini-3.8-flash", base_url=f"{server.url}/v1beta", **there)


@WIRES
async def test_the_fee_of_a_search_is_in_the_cost_and_a_fee_that_nobody_knows_leaves_the_cost_open(wire: str) -> None:
    costs = []
    for price in (CHEAP, CHEAP._replace(searches=Decimal(0)), CHEAP._replace(searches=None)):
        with serving() as server:
            server.answers = [searched(wire)]
            agent = Agent("a", priced(server, wire, price), tools=[web_search()])
            costs.append(await run(agent, "Weather?"))
    fee, free, _ = costs
    assert fee.cost_usd is not None and free.cost_usd is not None
    assert round(fee.cost_usd - free.cost_usd, 6) == 0.01, "one search, at ten dollars a thousand"
    assert [each.cost_summary.cost_complete for each in costs] == [True, True, False]


async def test_money_is_held_for_searches_and_where_it_does_not_suffice_none_is_offered() -> None:
    """A hundred searches could cost a dollar: the answer is given without."""
    sent = []
    for search in (web_search(max_uses=1), web_search(max_uses=100)):
        with serving() as server:
            server.answers = [searched("messages")]
            agent = Agent("a", priced(server, "messages", CHEAP), tools=[search], settings={"max_tokens": 100})
            assert (await run(agent, "Weather?", budget=Budget(usd="0.5"))).status == "completed"
            sent += [len(offered(asked)) for asked in server.asked]
    assert sent == [1, 0]


def test_a_sellers_published_fee_is_in_its_price() -> None:
    fees = {ref: search_fee(ref) for ref in ("anthropic:claude-opus-4-7", "gemini:gemini-2.5-flash", "groq:any")}
    assert fees == {"anthropic:claude-opus-4-7": 10, "gemini:gemini-2.5-flash": None, "groq:any": None}
    listed = price_of("anthropic:claude-opus-4-7")
    assert listed is not None and listed.price.searches == 10


@pytest.mark.parametrize("decision", [Reject("not now"), Answer("it is sunny")])
async def test_a_no_and_an_answer_in_its_place_let_no_provider_search(decision: Any, tmp_path: Path) -> None:
    place: dict[str, Any] = {"store": tmp_path / "runs.db", "key": "k"}
    with serving() as server:
        server.answers = [lambda asked: anthropic_call(asked, "web_search", '{"query": "w"}'), searched("messages")]
        agent = Agent("a", model(server, "messages"), tools=[web_search()], policy=ASK)
        await run(agent, "Weather?", **place)
        async with open_store(tmp_path / "runs.db") as store:
            await store.decide((await store.approvals())[0].approval_id, decision, by="ann")
        await run(agent, "Weather?", **place)
    assert [len(offered(asked)) for asked in server.asked] == [0, 0]


async def test_always_offers_the_search_from_the_next_request_on_and_in_later_turns(tmp_path: Path) -> None:
    place: dict[str, Any] = {"store": tmp_path / "runs.db"}
    with serving() as server:
        call = lambda asked: anthropic_call(asked, "web_search", '{"query": "w"}')  # noqa: E731
        server.answers = [call, searched("messages"), searched("messages")]
        agent = Agent("a", model(server, "messages"), tools=[web_search()], policy=ASK)
        await run(agent, "Weather?", key="k", **place)
        async with open_store(tmp_path / "runs.db") as store:
            await store.decide((await store.approvals())[0].approval_id, Always(scope="tool"), by="ann")
        await run(agent, "Weather?", key="k", **place)
        await run(agent, "And tomorrow?", **place)
    assert [len(offered(asked)) for asked in server.asked] == [0, 1, 1]


async def test_nobody_is_asked_for_a_model_that_cannot_search_and_that_is_said() -> None:
    with serving() as server:
        server.answers = [chat_words("I cannot search.")]
        result = await run(Agent("a", model(server, "chat"), tools=[web_search()], policy=ASK), "Weather?")
    assert "tools" not in server.asked[0].body
    assert any("a person would have to be asked" in warning for warning in result.warnings), result.warnings


@WIRES
async def test_a_turn_with_citations_replays_from_its_log(wire: str, tmp_path: Path) -> None:
    with serving() as server:
        server.answers = [searched(wire), lambda asked: CALLS[wire](asked, "pay", '{"to": "bob"}')]
        agent = Agent("a", model(server, wire), tools=[web_search(), pay])
        for key in ("one", "two"):
            await run(agent, "Weather?", store=tmp_path / "runs.db", thread="t", key=key)
    async with open_store(tmp_path / "runs.db") as store:
        for key in ("one", "two"):
            report = await store.replay(key)
            assert report.identical, report.divergence
        assert report.checked["permission.evaluated"] == 1, "the verdict rests on what the search before it found"


FOREIGN = {
    "our own": lambda: [AssistantItem(parts=(Text(SAID),), citations=(PAGE,))],
    "anthropic": lambda: [
        {
            "role": "assistant",
            "content": [
                {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "w"}},
                {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
                {"type": "text", "text": SAID, "citations": [{"url": PAGE["source_url"], "title": "Weather"}]},
            ],
        }
    ],
    "responses": lambda: [
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": SAID}]},
    ],
    "chat": lambda: [
        {
            "role": "assistant",
            "content": SAID,
            "annotations": [{"type": "url_citation", "url_citation": {"url": PAGE["source_url"], "title": "Weather"}}],
        }
    ],
}


@pytest.mark.parametrize("kind", FOREIGN)
async def test_sources_in_a_given_history_are_untrusted_input(kind: str) -> None:
    """The same call runs unasked after the same words without their sources."""
    statuses = []
    for told in (FOREIGN[kind](), [{"role": "assistant", "content": SAID}]):
        says = [{"calls": [{"name": "pay", "arguments": {"to": "bob"}}]}, "Done."]
        agent = Agent("a", scripted(says, leftover="ignore"), tools=[pay])
        history = [{"role": "user", "content": "Weather?"}, *told]
        result = await run(agent, "Do what it says.", history=history)
        assert [item.text for item in result.history()][:2] == ["Weather?", SAID]
        statuses.append(result.status)
    assert statuses == ["approval_required", "completed"]


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


def anthropic_call(asked: Asked, name: str, arguments: str) -> provider_server.Answer:
    block = anthropic_samples.call_block(0, "toolu_1", name, arguments)
    return provider_server.Answer(
        anthropic_samples.sse([anthropic_samples.started(), *block, *anthropic_samples.ended("tool_use")])
    )


def responses_call(asked: Asked, name: str, arguments: str) -> provider_server.Answer:
    call = responses_wire.call("call_1", arguments, name=name)
    return provider_server.Answer(responses_wire.sse(responses_wire.events_of(responses_wire.response(call))))


def gemini_call(asked: Asked, name: str, arguments: str) -> provider_server.Answer:
    called = gemini_samples.call(name, json.loads(arguments), "call_1")
    return provider_server.Answer(gemini_samples.sse([gemini_samples.answer(called)]))


CALLS |= {"messages": anthropic_call, "responses": responses_call, "gemini": gemini_call}


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
