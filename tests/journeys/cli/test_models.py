"""`wakeful models` and what `wakeful doctor` says of providers, with a provider on this machine."""

import json
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from kit.surfaces.command_line import Wakeful
from kit.wires.loopback import nobody_listens
from kit.wires.provider_server import (
    Answer,
    ProviderServer,
    chat_words,
    messages_words,
    refusal,
    responses_words,
)
from wakeful.contracts.models import RETRYABLE
from wakeful.decisions import retries
from wakeful.providers.endpoints import BUILT_IN
from wakeful.providers.price_list import list_date, list_name

KEY = "sk-canary-0123456789abcdef"
LIST = f"{list_name()} of {list_date()}"
CLAUDE = "anthropic:claude-opus-4-7"


PRICE = """[providers.anthropic.prices."claude-opus-4-7"]
input = 5
output = 25
cached_input = 0.5
cache_write = 6.25
"""


@pytest.fixture
def claude(provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> ProviderServer:
    """The provider, in the place of Anthropic's."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", provider.url)
    return provider


@pytest.fixture
def settings(folder: Path) -> Callable[[str], None]:
    def write(text: str) -> None:
        (folder / "home").mkdir(exist_ok=True)
        (folder / "home/wakeful.toml").write_text(text)

    return write


# --- list and show ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("typed", ["models", "models list"])
def test_the_list_says_where_each_key_is_and_what_each_model_can_do_and_costs(
    wakeful: Wakeful, monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    done = wakeful(*typed.split())
    lines = {line.split()[0]: " ".join(line.split()) for line in done.out.splitlines() if line}
    assert done.code == 0
    assert lines["openai"] == "openai in OPENAI_API_KEY https://api.openai.com/v1"
    assert lines["anthropic"] == "anthropic missing: set ANTHROPIC_API_KEY https://api.anthropic.com"
    assert lines["ollama"] == "ollama not needed http://127.0.0.1:11434/v1"
    assert lines[CLAUDE].startswith(f"{CLAUDE} 1M 128k 5 25 0.5 tools parallel forced images")
    assert lines["openai:o3"].startswith("openai:o3 200k 100k 2 8 0.5 tools forced")
    assert lines["mistral:mistral-small"].split()[3:6] != ["0", "0", "0"], "an unknown price is not zero"
    assert LIST in lines["prices"]
    assert "groq" in lines["any"]
    assert KEY not in done.out + done.err


@pytest.mark.spec("LOOP-PROV-01")
def test_the_list_for_programs_has_every_provider_and_every_capability(
    wakeful: Wakeful, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROQ_API_KEY", KEY)
    done = wakeful("models", "list", "--json")
    found = json.loads(done.out)
    providers = {each["name"]: each for each in found["providers"]}
    assert list(providers) == ["scripted", *BUILT_IN]
    assert (providers["groq"]["key"], providers["groq"]["key_variable"]) == ("found", "GROQ_API_KEY")
    assert (providers["mistral"]["key"], providers["mistral"]["status"]) == ("missing", "unavailable")
    assert (providers["vllm"]["key"], providers["vllm"]["status"]) == ("not_needed", "available")
    assert providers["openai-codex"]["status"] == "unavailable"
    models = {each["ref"]: each for each in found["models"]}
    for each in models.values():
        assert isinstance(each["capabilities"]["tools"], bool)
        assert isinstance(each["capabilities"]["parallel_tool_calls"], bool)
    assert models["openai:o3"]["capabilities"]["parallel_tool_calls"] is False
    assert models[CLAUDE]["price"]["price_list"] == found["price_list"] == list_name()
    assert models[CLAUDE]["price"]["as_of"] == found["prices_as_of"]
    assert KEY not in done.out


def test_one_provider_can_be_listed_alone_and_a_wrong_name_is_answered_with_a_near_one(wakeful: Wakeful) -> None:
    found = json.loads(wakeful("models", "list", "--provider", "mistral", "--json").out)
    assert [each["name"] for each in found["providers"]] == ["mistral"]
    assert {each["provider"] for each in found["models"]} == {"mistral"}
    wrong = wakeful("models", "list", "--provider", "mystral")
    assert (wrong.code, wrong.out) == (2, "")
    assert "did you mean mistral?" in wrong.err


def test_one_model_is_shown_with_endpoint_transport_key_profile_and_price(
    wakeful: Wakeful, claude: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = wakeful("models", "show", CLAUDE)
    assert done.code == 0
    for line in (
        "provider     anthropic: available",
        f"endpoint     {claude.url} (ANTHROPIC_BASE_URL)",
        "transport    anthropic_messages, version 2023-06-01",
        "key          in ANTHROPIC_API_KEY",
        "retry        3 quick attempts from 0.2 s, then waits of up to 60 s",
        "window       1M tokens, answers of 128k at most",
        "sampling     takes no sampling parameters",
        "price        0 in, 0 out",
        "             USD per million tokens, by local",
        f"next         wakeful models test {CLAUDE}",
    ):
        assert line in done.out
    assert claude.asked == [], "showing sends nothing"
    monkeypatch.delenv("ANTHROPIC_BASE_URL")
    shown = wakeful("models", "show", CLAUDE).out
    assert "price        5 in, 25 out, 0.5 cached, 6.25 to write the cache\n" in shown
    assert f"             USD per million tokens, by genai-prices {list_name().split()[1]} of" in shown
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://gateway.test")
    assert f"by genai-prices {list_name().split()[1]} via gateway.test of" in wakeful("models", "show", CLAUDE).out
    monkeypatch.setenv("ANTHROPIC_BASE_URL", claude.url)
    page = json.loads(wakeful("models", "show", CLAUDE, "--json").out)
    assert page["provider"]["endpoint_source"] == "ANTHROPIC_BASE_URL"
    assert page["model"]["capabilities"]["reasoning"] is True
    assert KEY not in done.out + json.dumps(page)


def test_a_model_that_is_not_described_is_shown_as_a_safe_guess_with_near_names(wakeful: Wakeful) -> None:
    done = wakeful("models", "show", "deepseek:deepseek-v5-flash")
    assert done.code == 0
    assert "abilities    tools (unknown model: a safe guess)" in done.out
    assert "price        unknown" in done.out
    assert "near         deepseek:deepseek-v4-flash, " in done.out
    # Which models a server of one's own has, nobody here knows: the beginning of a name is no suggestion.
    local = wakeful("models", "show", "ollama:qwen33").out
    assert "near " not in local
    assert "price        0 in, 0 out\n             USD per million tokens, by local\n" in local


def test_the_owners_file_adds_a_provider_and_knows_a_profile_better(
    wakeful: Wakeful, settings: Callable[[str], None]
) -> None:
    own = '[providers.acme]\nbase_url = "https://acme.test/v1"\nkey_env = "ACME_KEY"\n'
    settings(f"{own}[providers.acme.profile]\nimages = true\n")
    page = json.loads(wakeful("models", "show", "acme:m-1", "--json").out)
    assert (page["provider"]["endpoint"], page["provider"]["key"]) == ("https://acme.test/v1", "missing")
    assert page["model"]["capabilities"]["images"] is True
    assert page["provider"]["endpoint_source"].endswith("wakeful.toml: [providers.acme]")


@pytest.mark.parametrize(
    ("reference", "says"), [("opena:gpt-5.5", "did you mean openai"), ("openai", "names a provider and no model")]
)
@pytest.mark.parametrize("verb", ["show", "test"])
def test_a_reference_that_names_no_model_is_a_wrong_request(
    wakeful: Wakeful, monkeypatch: pytest.MonkeyPatch, verb: str, reference: str, says: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    done = wakeful("models", verb, reference)
    assert (done.code, done.out) == (2, "")
    assert says in done.err


# --- test -------------------------------------------------------------------------------------------------------------


@pytest.mark.journey("models test", "models test --json")
def test_a_tiny_call_tells_what_came_back_how_long_it_took_and_what_it_cost(
    wakeful: Wakeful, claude: ProviderServer, settings: Callable[[str], None]
) -> None:
    settings(PRICE)
    claude.always = messages_words("hello")
    done = wakeful("models", "test", CLAUDE)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"{CLAUDE} answered in ") and '\n  "hello"\n' in done.out
    # 10 fresh, 3 written to the cache and 5 read from it; 7 out: 10*5 + 3*6.25 + 5*0.5 + 7*25, for a million.
    assert "  18 tokens in, 7 out; 0.00024625 USD by settings" in done.out
    asked = claude.asked[0]
    assert asked.body["max_tokens"] <= 100
    assert len(asked.body["messages"]) == 1
    assert "tools" not in asked.body
    probe = json.loads(wakeful("models", "test", CLAUDE, "--json").out)
    assert (probe["ok"], probe["said"], probe["cost"]) == (True, "hello", "0.00024625")
    assert probe["usage"]["output_tokens"] == 7


@pytest.mark.parametrize(
    ("reference", "variable", "answer", "path"),
    [
        ("openai:gpt-5.5", "OPENAI_BASE_URL", responses_words("hello"), "/responses"),
        ("ollama:qwen3", "OLLAMA_BASE_URL", chat_words("hello"), "/chat/completions"),
    ],
)
def test_the_other_formats_are_tried_the_same_way(
    wakeful: Wakeful,
    provider: ProviderServer,
    monkeypatch: pytest.MonkeyPatch,
    reference: str,
    variable: str,
    answer: Answer,
    path: str,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv(variable, provider.url)
    provider.always = answer
    done = wakeful("models", "test", reference)
    assert (done.code, done.err) == (0, "")
    assert f"{reference} answered in " in done.out and '\n  "hello"\n' in done.out
    assert provider.asked[0].path == path
    if reference.startswith("ollama"):
        assert "0 USD by local" in done.out


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        (refusal(401, "authentication_error", f"bad key {KEY}"), "auth_error", "the key in ANTHROPIC_API_KEY"),
        (refusal(429, "insufficient_quota", "no credit"), "quota_exhausted", "Add credit or raise the limit"),
        (refusal(429, "rate_limit_error", "slow", **{"retry-after": "7"}), "rate_limited", "Wait 7 s and try again"),
        (refusal(529, "overloaded_error", "busy"), "overloaded", "Wait a little and try again"),
        (refusal(404, "not_found_error", "model: claude-opus-4-70"), "contract_error", "Did you mean claude-opus-4-7"),
        (refusal(400, "invalid_request_error", "prompt is too long"), "context_length_exceeded", "too long for"),
        (Answer(b"<html>", 200, {"content-type": "text/html"}), "invalid_response", "speak anthropic_messages?"),
    ],
)
def test_what_goes_wrong_is_told_so_that_a_person_can_act(
    wakeful: Wakeful, claude: ProviderServer, answer: Answer, kind: str, says: str
) -> None:
    claude.always = answer
    done = wakeful("models", "test", "anthropic:claude-opus-4-70")
    assert done.code == 1
    assert f"did not answer ({kind})" in done.out
    assert says in done.out
    assert len(claude.asked) == 1, "a test is one call"
    probe = json.loads(wakeful("models", "test", "anthropic:claude-opus-4-70", "--json").out)
    assert (probe["ok"], probe["failure_kind"]) == (False, kind)
    assert KEY not in done.out + done.err + json.dumps(probe)


def test_an_address_where_nothing_listens_is_named_with_where_it_came_from(
    wakeful: Wakeful, monkeypatch: pytest.MonkeyPatch
) -> None:
    with nobody_listens() as port:
        address = f"127.0.0.1:{port}"
        monkeypatch.setenv("VLLM_BASE_URL", f"http://{address}/v1")
        done = wakeful("models", "test", "vllm:qwen3")
    assert done.code == 1
    assert f"{address} cannot be reached: nothing listens there" in done.out
    assert "comes from: VLLM_BASE_URL" in done.out


def test_a_server_that_never_answers_is_given_up_after_the_time_that_was_said(
    wakeful: Wakeful, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("VLLM_BASE_URL", f"http://127.0.0.1:{silent.getsockname()[1]}/v1")
        done = wakeful("models", "test", "vllm:qwen3", "--timeout", "0.2")
    assert done.code == 1
    assert "did not answer (timeout)" in done.out
    assert "no answer within 0.2 s" in done.out


def test_a_missing_key_is_a_wrong_request_that_names_the_variable(wakeful: Wakeful) -> None:
    for command in (("models", "test", CLAUDE), ("run", "hello", "--model", CLAUDE)):
        done = wakeful(*command)
        assert (done.code, done.out) == (2, "")
        assert "anthropic needs a key, and ANTHROPIC_API_KEY is not set\nHint: export ANTHROPIC_API_KEY=..." in done.err
    assert "nothing was run yet" in wakeful("events").err, "no turn was left behind"


def test_a_script_can_be_tried_like_any_model(wakeful: Wakeful) -> None:
    assert wakeful("models", "test", "scripted:demo").code == 0
    shown = wakeful("models", "show", "scripted:demo")
    assert (shown.code, "needs no key and no network" in shown.out) == (0, True)


# --- run and doctor ---------------------------------------------------------------------------------------------------


def test_a_run_goes_through_the_provider_and_its_refusal_names_the_variable(
    wakeful: Wakeful, claude: ProviderServer
) -> None:
    claude.answers = [messages_words("Good morning.")]
    done = wakeful("run", "hello", "--model", CLAUDE)
    assert (done.code, done.out) == (0, "Good morning.\n")
    claude.always = refusal(401, "authentication_error", f"bad key {KEY}")
    refused = wakeful("run", "hello", "--model", CLAUDE)
    assert (refused.code, refused.out) == (3, ""), "the turn rests until the key is mended"
    assert "refused the key in ANTHROPIC_API_KEY" in refused.err
    assert KEY not in refused.err


@pytest.mark.spec("HOL-PROV-01")
def test_which_candidate_is_asked_is_visible_and_one_with_a_foreign_transport_is_never_sent_anything(
    wakeful: Wakeful, claude: ProviderServer, settings: Callable[[str], None], folder: Path
) -> None:
    settings(f'[providers.acme]\nbase_url = "{claude.url}/acme"\ntransport = "grpc"\n{PRICE}')
    (folder / "clerk.yaml").write_text(f"name: clerk\nmodel: acme:m\nfallbacks: [{CLAUDE}]\n")
    claude.answers = [messages_words("Good morning.")]
    done = wakeful("run", "hello", "--agent", "clerk.yaml", "--json")
    result = json.loads(done.out)
    assert (done.code, result["final_content"]) == (0, "Good morning.")
    assert [asked.path for asked in claude.asked] == ["/v1/messages"], "fails closed: nothing went to the other"
    listed = [json.loads(line) for line in wakeful("events", result["turn_id"], "--json").out.splitlines()]
    seen = [(event["type"], event["payload"].get("model_ref")) for event in listed if "model" in event["type"]]
    assert seen[0] == ("model.requested", CLAUDE), "what cannot be sent is no request"
    resolved = next(event["payload"] for event in listed if event["type"] == "routing.candidates.resolved")
    assert [(each["model_ref"], each["reason"]) for each in resolved["excluded"]] == [
        ("acme:m", "unsupported_transport")
    ]
    shown = wakeful("events", result["turn_id"]).out
    assert f"{CLAUDE}; without acme:m (unsupported_transport)" in shown
    assert f"{CLAUDE}: it is the first of the chain that can be asked in the place of acme:m" in shown
    assert "acme is configured with the transport 'grpc'" in resolved["excluded"][0]["detail"]
    assert "0.00024625 USD, settings" in shown


@pytest.mark.spec("HOL-RETRY-10")
def test_doctor_shows_for_each_provider_key_endpoint_and_retry_policy(
    wakeful: Wakeful, monkeypatch: pytest.MonkeyPatch, settings: Callable[[str], None], provider: ProviderServer
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    fine = wakeful("doctor", "--wide")
    assert fine.code == 0
    rows = {line.split()[0]: " ".join(line.split()) for line in fine.out.splitlines() if line.startswith("  ")}
    policy = "3 quick attempts from 0.2 s, then waits of up to 60 s"
    assert rows["openai"] == f"openai available in OPENAI_API_KEY https://api.openai.com/v1 {policy}"
    assert rows["groq"] == f"groq unavailable missing: set GROQ_API_KEY https://api.groq.com/openai/v1 {policy}"
    assert all(rows[name].endswith(policy) for name in BUILT_IN)
    report = json.loads(wakeful("doctor", "--json").out)
    for each in report["providers"]:
        assert each["retry"] == {
            "max_attempts": retries.MAX_ATTEMPTS,
            "first_backoff_ms": retries.FIRST_BACKOFF_MS,
            "longest_backoff_ms": retries.LONGEST_WAIT_MS,
            "longest_retry_after_ms": retries.LONGEST_ASKED_MS,
            "retried": sorted(RETRYABLE),
        }
    # What nobody speaks is said, and refused before anything is sent.
    settings(f'[providers.acme]\nbase_url = "{provider.url}"\ntransport = "grpc"\n')
    closed = wakeful("doctor", "--live", "acme:m")
    assert closed.code == 1
    assert "acme          misconfigured" in closed.out
    assert "transport 'grpc' is not supported" in closed.out
    assert "acme:m did not answer (unsupported_transport)" in closed.out
    assert provider.asked == []
    assert KEY not in fine.out + json.dumps(report) + closed.out


def test_doctor_makes_a_tiny_call_only_when_it_is_asked_to(wakeful: Wakeful, claude: ProviderServer) -> None:
    claude.answers = [messages_words("hello"), refusal(401, "authentication_error", f"bad key {KEY}")]
    assert wakeful("doctor").code == 0
    assert claude.asked == []
    done = wakeful("doctor", "--live", CLAUDE)
    assert done.code == 0
    assert f"live         {CLAUDE} answered in " in done.out
    refused = wakeful("doctor", "--live", CLAUDE, "--live", "groq:llama-3", "--json")
    report = json.loads(refused.out)
    assert (refused.code, report["healthy"], report["store_healthy"]) == (1, False, True)
    assert [each["failure_kind"] for each in report["live"]] == ["auth_error", None]
    assert "GROQ_API_KEY is not set" in report["problems"][1], "no key: told, not raised, in a report"
    assert KEY not in done.out + refused.out


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[providers.openai\n", "is not TOML"),
        (f'[providers.openai]\napi_key = "{KEY}"\n', "api_key holds a key"),
        (f'[providers.openai]\nkey_env = "{KEY}"\n', "key_env does not hold the name of a variable"),
        ('[providers.openai]\nbase_ulr = "x"\n', "Did you mean base_url?"),
        ("[providers.openai.profile]\nimagse = true\n", "Did you mean images?"),
    ],
)
def test_doctor_finds_what_is_wrong_in_the_settings_and_repeats_no_key_from_them(
    wakeful: Wakeful, settings: Callable[[str], None], text: str, says: str
) -> None:
    settings(text)
    done = wakeful("doctor")
    assert done.code == 1
    assert says in done.out
    listed = wakeful("models")
    shown = wakeful("models", "show", "openai:gpt-5.5")
    assert KEY not in done.out + done.err + listed.out + listed.err + shown.out + shown.err


def test_an_address_in_a_variable_that_is_none_is_a_misconfiguration(
    wakeful: Wakeful, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROQ_BASE_URL", "groq.test")
    done = wakeful("doctor")
    assert done.code == 1
    assert "GROQ_BASE_URL: 'groq.test' is not an address" in done.out
