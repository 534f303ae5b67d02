"""Who a server is, its owner says: neither the words it is sent nor what it costs follow from its host's name."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from kit.wires import responses_wire
from kit.wires.model_requests import a_request, reply_of
from kit.wires.provider_server import (
    Answer,
    ProviderServer,
    chat_words,
    messages_words,
    refusal,
    responses_words,
    serving,
)
from kit.wires.spoken_replies import Says, tell
from wakeful import Agent, Budget, run, tool
from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.events import CostRecorded
from wakeful.providers import AnthropicMessages, OpenAIChat, OpenAIResponses
from wakeful.providers.endpoints import endpoint, resolve
from wakeful.providers.prices import LOCAL
from wakeful.providers.pricing import ListPricing
from wakeful.providers.wire.addresses import is_loopback, joined, trimmed, with_query

AZURE = """[providers.azure]
base_url = "{url}/openai/deployments/gpt-5-mini/?api-version=2024-10-21"
auth = "api-key"
key_env = "AZURE_OPENAI_API_KEY"
dialect = "openai"
"""
KEY = "0123456789abcdef-azure"


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with serving() as held:
        yield held


@pytest.fixture
def owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes the owner's file."""

    def write(text: str) -> None:
        (tmp_path / "wakeful.toml").write_text(text)
        monkeypatch.setenv("WAKEFUL_CONFIG", str(tmp_path / "wakeful.toml"))

    return write


async def asked(server: ProviderServer, model: Any, **settings: Any) -> Any:
    server.answers = [chat_words("ok")]
    result = await run(Agent("a", model, "Be brief.", settings=settings), "hello")
    assert result.output == "ok", result.message
    return server.asked[-1]


# --- what is sent -----------------------------------------------------------------------------------------------------


async def test_openais_api_behind_another_address_is_spoken_to_as_openais(server: ProviderServer, owner: Any) -> None:
    """By the name in a reference, by a setting, or by what is said in code."""
    owner(
        f'[providers.openai]\nbase_url = "{server.url}/v1"\n'
        'transport = "openai_chat_completions"\nkey_required = false\n'
        f'[providers.gateway]\nbase_url = "{server.url}/gateway"\ndialect = "openai"\n'
    )
    in_code = OpenAIChat("gpt-5.5", base_url=f"{server.url}/v1", provider="openai")
    for model in ("openai:gpt-5.5", "gateway:gpt-5.5", in_code):
        body = (await asked(server, model, max_tokens=9)).body
        assert body["max_completion_tokens"] == 9 and "max_tokens" not in body
        assert body["messages"][0]["role"] == "developer"
        assert "prompt_cache_key" in body


async def test_a_compatible_server_gets_what_most_servers_take(server: ProviderServer, owner: Any) -> None:
    owner(f'[providers.mine]\nbase_url = "{server.url}/v1"\n')
    for model in ("mine:qwen3", OpenAIChat("qwen3", base_url=f"{server.url}/v1")):
        body = (await asked(server, model, max_tokens=9)).body
        assert (body["max_tokens"], body["messages"][0]["role"]) == (9, "system")
        assert "prompt_cache_key" not in body


async def test_a_model_of_openais_by_its_name_gets_the_limit_it_takes(server: ProviderServer) -> None:
    """Nothing is known of the server but its address; the model takes no `max_tokens` anywhere."""
    body = (await asked(server, OpenAIChat("gpt-5.5", base_url=f"{server.url}/v1"), max_tokens=9)).body
    assert (body["max_completion_tokens"], body["messages"][0]["role"]) == (9, "system")


async def test_what_the_owner_writes_about_an_endpoint_holds(server: ProviderServer, owner: Any) -> None:
    quirks = '[providers.mine.quirks]\nmax_tokens_field = "max_completion_tokens"\nsystem_role = "developer"\n'
    owner(f'[providers.mine]\nbase_url = "{server.url}/v1"\n{quirks}')
    body = (await asked(server, "mine:qwen3", max_tokens=9)).body
    assert (body["max_completion_tokens"], body["messages"][0]["role"]) == (9, "developer")
    written = {"max_completion_tokens": 9}
    body = (await asked(server, OpenAIChat("qwen3", base_url=server.url), extra_body=written)).body
    assert body["max_completion_tokens"] == 9 and "max_tokens" not in body


def test_the_host_of_openai_says_nothing_about_a_provider_of_another_name() -> None:
    settings = {"providers": {"mine": {"base_url": "https://eu.api.openai.com/v1"}}}
    assert OpenAIChat("gpt-4o", endpoint=resolve("mine:gpt-4o", settings=settings).endpoint).dialect.call_ids == "any"


def test_a_dialect_that_would_change_nothing_is_refused() -> None:
    transport = "anthropic_messages"
    settings = {"providers": {"mine": {"base_url": "http://10.0.0.1", "transport": transport, "dialect": "openai"}}}
    with pytest.raises(InvalidConfig, match="dialect has no effect"):
        endpoint("mine", settings=settings)
    with pytest.raises(InvalidConfig, match="dialect is 'azure'"):
        endpoint("mine", settings={"providers": {"mine": {"base_url": "http://10.0.0.1", "dialect": "azure"}}})


REFUSED_BY_OPENAI = {"stop": ["END"], "parallel_tool_calls": True, "metadata": {"team": "support"}}


@pytest.mark.parametrize(("dialect", "taken"), [("openai", False), ("compatible", True)])
async def test_openais_models_are_sent_nothing_that_they_refuse_under_another_name(
    server: ProviderServer, owner: Any, dialect: str, taken: bool
) -> None:
    known = '[providers.mine.quirks]\nknown_fields = ["metadata"]\n'
    owner(f'[providers.mine]\nbase_url = "{server.url}/v1"\ndialect = "{dialect}"\n{known}')

    @tool(effect="pure")
    def look() -> str:
        """Look something up."""
        return "fine"

    tell(server, Says("hello"))
    result = await run(
        Agent("a", "mine:o3", tools=[look], settings={**REFUSED_BY_OPENAI, "openai": {"verbosity": "low"}}), "hi"
    )
    body = server.asked[-1].body
    assert {name: name in body for name in REFUSED_BY_OPENAI} == dict.fromkeys(REFUSED_BY_OPENAI, taken)
    assert ("verbosity" in body) is not taken, "the settings under `openai` are for its API under any name"
    left = ["openai"] if taken else [*REFUSED_BY_OPENAI]
    assert sorted(result.request_metadata["left_out"]) == sorted(left)


@pytest.mark.parametrize(("dialect", "back"), [("openai", None), ("compatible", "rs_0")])
async def test_the_owner_says_whether_a_server_of_the_responses_format_is_openais(
    server: ProviderServer, owner: Any, dialect: str, back: str | None
) -> None:
    """OpenAI's API stores nothing for us, so that the id of reasoning names nothing there."""
    owner(f'[providers.mine]\nbase_url = "{server.url}/v1"\ntransport = "openai_responses"\ndialect = "{dialect}"\n')
    tell(server, Says("hello", thought="Hm."), Says("again"))
    agent = Agent("a", "mine:gpt-5.5")
    first = await run(agent, "hi")
    await run(agent, "hi", history=first.history())
    (thought,) = [item for item in server.asked[-1].body["input"] if item["type"] == "reasoning"]
    assert thought.get("id") == back
    assert thought["encrypted_content"]


# --- Azure ------------------------------------------------------------------------------------------------------------


async def test_a_classic_azure_address_keeps_its_query_behind_every_path(
    server: ProviderServer, owner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
    owner(AZURE.format(url=server.url))
    there = await asked(server, "azure:gpt-5-mini", max_tokens=9)
    assert there.path == "/openai/deployments/gpt-5-mini/chat/completions?api-version=2024-10-21"
    assert there.headers["api-key"] == KEY and "authorization" not in there.headers
    assert there.body["max_completion_tokens"] == 9


async def test_the_version_may_stand_in_a_setting(
    server: ProviderServer, owner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
    owner(AZURE.format(url=server.url).replace("?api-version=2024-10-21", "") + 'api_version = "2024-10-21"\n')
    there = await asked(server, "azure:gpt-5-mini")
    assert there.path == "/openai/deployments/gpt-5-mini/chat/completions?api-version=2024-10-21"


async def test_azure_refuses_in_words_that_keep_the_version_and_not_the_key(
    server: ProviderServer, owner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
    owner(AZURE.format(url=server.url))
    server.always = refusal(404, "DeploymentNotFound", f"no deployment at api version 2024-10-21 for {KEY}")
    result = await run(Agent("a", "azure:gpt-5-mini"), "hello")
    assert result.message is not None
    assert "azure answered 404: no deployment at api version 2024-10-21 for [redacted]" in result.message


@pytest.mark.parametrize(
    ("model", "words", "path"),
    [
        (OpenAIResponses, responses_words, "/base/responses?api-version=1&x=y"),
        (OpenAIChat, chat_words, "/base/chat/completions?api-version=1&x=y"),
        (AnthropicMessages, messages_words, "/base/v1/messages?api-version=1&x=y"),
    ],
)
async def test_every_wire_puts_its_path_before_the_query(
    server: ProviderServer, model: Any, words: Any, path: str
) -> None:
    server.answers = [words("ok")]
    made = model("m", base_url=f"{server.url}/base/?api-version=1&x=y")
    assert (await run(Agent("a", made), "hello")).output == "ok"
    assert server.asked[0].path == path


async def test_a_background_answer_is_asked_for_with_the_query() -> None:
    seen: list[tuple[str, str]] = []
    done = responses_wire.response(responses_wire.message(responses_wire.words("ok")))

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append((request.method, request.url.raw_path.decode()))
        return httpx2.Response(200, json={**done, "status": "queued"} if request.method == "POST" else done)

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as client:
        model = OpenAIResponses("gpt-5.5", base_url="http://127.0.0.1/openai?api-version=1", client=client)
        reply = await reply_of(model, a_request(settings={"openai": {"background": True}}))
        await model.abandon("resp_1")
    assert reply.item.text == "ok"
    assert seen == [
        ("POST", "/openai/responses?api-version=1"),
        ("GET", "/openai/responses/resp_1?api-version=1&include%5B%5D=reasoning.encrypted_content"),
        ("POST", "/openai/responses/resp_1/cancel?api-version=1"),
    ]


# --- who answered, and what it cost -----------------------------------------------------------------------------------


async def test_an_error_names_the_server_that_answered(server: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    at = f"127.0.0.1:{server.port}"
    server.always = refusal(401, "invalid_api_key", "who?")
    refused = await run(Agent("a", "openai:gpt-5.5"), "hello")
    assert f"openai at {at} refused the key in OPENAI_API_KEY (answered 401)" in (refused.message or "")
    server.always = Answer(b"{}", 200, {"content-type": "application/json"})
    for model in (OpenAIChat("m", base_url=server.url), AnthropicMessages("m", base_url=server.url)):
        broken = await run(Agent("a", model), "hello")
        assert f"{model.ref.partition(':')[0]} at {at}" in (broken.message or "")


async def test_a_server_on_this_machine_costs_nothing_under_any_name(server: ProviderServer) -> None:
    server.always = chat_words("ok")
    model = OpenAIChat("gpt-4o", base_url=f"{server.url}/v1", provider="openai")
    result = await run(Agent("a", model), "hello", budget=Budget(usd="0.000001"))
    assert result.output == "ok" and result.cost_usd == 0
    (cost,) = (entry.fact.event for entry in result.facts() if isinstance(entry.fact.event, CostRecorded))
    assert (cost.amount, cost.price_list) == ("0", "local")
    assert result.cost_summary.total.local_calls == 1 and result.cost_summary.cost_complete


async def test_the_owners_price_holds_for_a_server_on_this_machine(server: ProviderServer, owner: Any) -> None:
    owner(f'[providers.mine]\nbase_url = "{server.url}"\n[providers.mine.prices.m]\ninput = 1000000\noutput = 0\n')
    server.always = chat_words("ok")
    result = await run(Agent("a", "mine:m"), "hello")
    assert result.cost_usd == 7 and result.cost_summary.total.local_calls == 0


def test_a_sellers_price_for_what_another_server_answers_names_that_server() -> None:
    pricing = ListPricing()
    own, other = OpenAIResponses("gpt-5.5"), OpenAIResponses("gpt-5.5", base_url="https://gateway.test/v1")
    at_openai, there = (pricing.estimate(model, lambda: 1000, 10, 0) for model in (own, other))
    assert at_openai is not None and there is not None
    assert there.amount == at_openai.amount
    assert there.price_list == f"{at_openai.price_list} via gateway.test"


def test_another_machines_server_of_no_seller_has_no_price() -> None:
    model = OpenAIChat("qwen3", base_url="http://10.0.0.1/v1")
    assert model.price is None and ListPricing().estimate(model, lambda: 1, 1, 0) is None


# --- addresses --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://127.0.0.1:1/v1", True),
        ("http://localhost:1", True),
        ("http://[::1]:1", True),
        ("http://[::ffff:127.0.0.1]:1", True),
        ("http://127.9.9.9", True),
        ("http://127.evil.example", False),
        ("http://localhost.example", False),
        ("http://10.0.0.1", False),
        ("http://[::ffff:10.0.0.1]", False),
        ("https://api.openai.com/v1", False),
    ],
)
def test_only_an_address_of_this_machine_is_local(url: str, local: bool) -> None:
    assert is_loopback(url) is local
    assert (OpenAIChat("m", base_url=url).price is LOCAL) is local
    assert OpenAIChat("m", base_url=url).leaves_machine is not local


def test_paths_and_queries_are_put_together() -> None:
    assert trimmed(" https://a.test/v1/?k=v#x ") == "https://a.test/v1?k=v"
    assert joined("https://a.test/v1?k=v", "/chat") == "https://a.test/v1/chat?k=v"
    assert joined("https://a.test", "/chat") == "https://a.test/chat"
    assert with_query("https://a.test/v1?k=v", [("a", "b c")]) == "https://a.test/v1?k=v&a=b+c"
    assert with_query("https://a.test/v1", []) == "https://a.test/v1"
