"""Providers as data, and how environment, file and code change them."""

from pathlib import Path
from typing import Any

import pytest

from wakeful.contracts.errors import InvalidConfig, UnknownProvider
from wakeful.providers.endpoints import BUILT_IN, Endpoint, endpoint, endpoints, resolve
from wakeful.providers.wire.redaction import Secret

NOWHERE = {"WAKEFUL_HOME": "/nowhere/at/all"}
KEY = "sk-0123456789"


def configured(settings: dict[str, Any], provider: str, **environ: str) -> Endpoint:
    return endpoint(provider, environ=environ, settings={"providers": settings})


@pytest.mark.parametrize(
    ("reference", "wire", "model"),
    [
        ("openai:gpt-5.5", "openai_responses", "gpt-5.5"),
        ("anthropic:claude-opus-4-7", "anthropic", "claude-opus-4-7"),
        ("openrouter:meta/llama-3.3:free", "openai_chat", "meta/llama-3.3:free"),
        ("groq/llama-3.3-70b", "openai_chat", "llama-3.3-70b"),
        ("ollama:qwen3:8b", "openai_chat", "qwen3:8b"),
    ],
)
def test_a_reference_names_an_endpoint_and_a_model(reference: str, wire: str, model: str) -> None:
    found = resolve(reference, environ=NOWHERE)
    assert (found.endpoint.wire, found.model) == (wire, model)


@pytest.mark.spec("HOL-PROV-13")
def test_what_is_built_in_fits_a_wire_format_as_it_is() -> None:
    ready = {name: known for name, known in BUILT_IN.items() if known.base_url}
    assert {"openai", "anthropic", "openrouter", "groq", "deepseek", "together", "mistral"} <= ready.keys()
    assert {"ollama", "vllm", "lmstudio"} <= ready.keys()
    for known in ready.values():
        assert known.wire is not None
        assert known.auth == {"anthropic": "x-api-key", "gemini": "x-goog-api-key"}.get(known.wire, "bearer")
        assert not known.headers
        local = known.base_url.startswith("http://127.0.0.1:")
        assert local or known.base_url.startswith("https://")
        assert known.key_required is not local


@pytest.mark.spec("HOL-PROV-14")
def test_a_provider_that_needs_more_than_a_wire_format_works_only_when_configured() -> None:
    with pytest.raises(InvalidConfig, match=r"no address built in\n.*providers.openai-codex\] base_url"):
        resolve("openai-codex:gpt-5.5", environ=NOWHERE)
    for name in ("bedrock", "vertex", "copilot"):
        with pytest.raises(UnknownProvider):
            resolve(f"{name}:m", environ=NOWHERE)
    settings = {"openai-codex": {"base_url": "https://codex.test/v1", "headers": {"account-id": "a-1"}}}
    found = configured(settings, "openai-codex")
    assert (found.wire, found.base_url, dict(found.headers)) == (
        "openai_responses",
        "https://codex.test/v1",
        {"account-id": "a-1"},
    )


@pytest.mark.spec("HOL-PROV-05")
def test_any_provider_can_be_configured_with_the_chat_completions_transport() -> None:
    settings = {
        "acme": {"transport": "openai_chat_completions", "base_url": "https://acme.test/v1/", "key_env": "ACME"}
    }
    found = configured(settings, "acme")
    assert (found.wire, found.base_url, found.key_env, found.key_required) == (
        "openai_chat",
        "https://acme.test/v1",
        ("ACME",),
        True,
    )
    assert configured({"openai": {"transport": "openai_chat_completions"}}, "openai").wire == "openai_chat"


def test_a_transport_nobody_speaks_is_known_as_that() -> None:
    assert configured({"acme": {"transport": "grpc", "base_url": "https://acme.test"}}, "acme").wire is None


def test_an_unknown_provider_is_told_with_near_names_and_the_list() -> None:
    with pytest.raises(UnknownProvider, match=r"no provider 'antropic'\nDid you mean anthropic.*There are: anthropic"):
        resolve("antropic:claude", environ=NOWHERE)
    with pytest.raises(UnknownProvider, match="names no provider"):
        resolve(":x", environ=NOWHERE)


def test_a_provider_without_a_model_is_told_with_an_example() -> None:
    with pytest.raises(InvalidConfig, match="no model\nWrite provider:model, such as anthropic:claude"):
        resolve("anthropic:", environ=NOWHERE)
    with pytest.raises(InvalidConfig, match="no model"):
        resolve("openai", environ=NOWHERE)


def test_a_missing_key_is_told_with_its_variable() -> None:
    known = endpoint("groq", environ=NOWHERE)
    with pytest.raises(InvalidConfig, match="groq needs a key, and GROQ_API_KEY is not set\nexport GROQ_API_KEY="):
        known.key({})
    with pytest.raises(InvalidConfig, match="GROQ_API_KEY"):
        known.key({"GROQ_API_KEY": "  "})
    assert known.key({"GROQ_API_KEY": f" {KEY}\n"}) == (Secret(KEY), "GROQ_API_KEY")


def test_a_server_on_this_machine_needs_no_key_and_takes_one() -> None:
    known = endpoint("ollama", environ=NOWHERE)
    assert known.key({}).secret is None
    assert known.auth_headers(known.key({"OLLAMA_API_KEY": KEY}).secret) == {"authorization": f"Bearer {KEY}"}


def test_the_first_variable_that_is_set_counts() -> None:
    known = configured({"openai": {"key_env": ["WORK_KEY", "HOME_KEY"]}}, "openai")
    assert known.key({"HOME_KEY": KEY}).variable == "HOME_KEY"
    assert known.key({"HOME_KEY": KEY, "WORK_KEY": "w-key-1"}).variable == "WORK_KEY"


@pytest.mark.parametrize(
    ("settings", "header", "refuses"),
    [
        ({}, {"x-api-key": KEY, "anthropic-version": "2023-06-01"}, False),
        (
            {"api_version": "2026-10-21"},
            {"authorization": f"Bearer {KEY}", "anthropic-version": "2026-10-21"},
            True,
        ),
        (
            {"api_version": "2026-10-21", "auth": "x-api-key"},
            {"x-api-key": KEY, "anthropic-version": "2026-10-21"},
            True,
        ),
        ({"auth": "bearer"}, {"authorization": f"Bearer {KEY}", "anthropic-version": "2023-06-01"}, False),
    ],
)
def test_the_version_of_anthropics_api_decides_how_the_key_travels(
    settings: dict[str, Any], header: dict[str, str], refuses: bool
) -> None:
    known = configured({"anthropic": settings}, "anthropic")
    assert known.auth_headers(Secret(KEY)) == header
    assert known.refuses_sampling is refuses


def test_a_compatible_server_speaking_messages_gets_version_and_key_header_without_being_told() -> None:
    found = configured({"acme": {"transport": "anthropic_messages", "base_url": "http://127.0.0.1:1"}}, "acme")
    assert found.auth_headers(Secret(KEY)) == {"x-api-key": KEY, "anthropic-version": "2023-06-01"}


def test_the_environment_wins_over_the_file_and_the_file_over_what_is_built_in(tmp_path: Path) -> None:
    file = tmp_path / "wakeful.toml"
    file.write_text('[providers.openai]\nbase_url = "https://file.test/v1"\n[providers.openai.headers]\nX-Team = "t"\n')
    environ = {"WAKEFUL_HOME": str(tmp_path)}
    found = endpoint("openai", environ=environ)
    assert found.base_url == "https://file.test/v1" and str(file) in found.source
    assert found.headers == {"X-Team": "t"}
    found = endpoint("openai", environ={**environ, "OPENAI_BASE_URL": "https://env.test/v1/"})
    assert (found.base_url, found.source) == ("https://env.test/v1", "OPENAI_BASE_URL")
    assert found.headers == {"X-Team": "t"}
    assert endpoint("openai", environ=NOWHERE).base_url == "https://api.openai.com/v1"


def test_a_file_in_the_current_folder_redirects_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wakeful.toml").write_text('[providers.openai]\nbase_url = "https://thief.test/v1"\n')
    monkeypatch.chdir(tmp_path)
    assert endpoint("openai", environ=NOWHERE).host == "api.openai.com"
    named = {"WAKEFUL_CONFIG": str(tmp_path / "wakeful.toml")}  # the same file, named by its owner, counts
    assert endpoint("openai", environ=named).host == "thief.test"


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"api_key": KEY}, "holds a key"),
        ({"bas_url": "x"}, "Did you mean base_url"),
        ({"base_url": "api.acme.test"}, "is not an address"),
        ({"base_url": f"https://me:{KEY}@acme.test"}, "holds a user or a password"),
        ({"base_url": 7}, "Write a text"),
        ({"auth": "cookie"}, "Write bearer"),
        ({"key_env": [1]}, "name of a variable"),
        ({"headers": {"a": 1}}, "headers is not a table"),
        ({"key_required": "yes"}, "true or false"),
    ],
)
def test_a_mistake_in_the_settings_is_told_with_its_place_and_without_its_key(
    settings: dict[str, Any], told: str
) -> None:
    with pytest.raises(InvalidConfig) as caught:
        configured({"openai": settings}, "openai")
    assert told in str(caught.value) and "[providers.openai]" in str(caught.value)
    assert KEY not in str(caught.value)


def test_a_file_that_is_not_toml_is_told_with_its_name(tmp_path: Path) -> None:
    file = tmp_path / "wakeful.toml"
    file.write_text("[providers")
    with pytest.raises(InvalidConfig, match=r"wakeful.toml is not TOML"):
        endpoint("openai", environ={"WAKEFUL_CONFIG": str(file)})
    with pytest.raises(InvalidConfig, match="there is no such file"):
        endpoint("openai", environ={"WAKEFUL_CONFIG": str(tmp_path / "missing.toml")})


def test_an_endpoint_does_not_show_its_headers() -> None:
    assert KEY not in repr(configured({"openai": {"headers": {"x-token": KEY}}}, "openai"))


def test_a_list_of_all_providers_says_which_cannot_be_used_and_why() -> None:
    found = endpoints(environ={}, settings={"providers": {"acme": {}, "mine": {"base_url": "http://127.0.0.1:9"}}})
    assert isinstance(found["openai"], Endpoint) and isinstance(found["mine"], Endpoint)
    assert isinstance(found["acme"], InvalidConfig) and isinstance(found["openai-codex"], InvalidConfig)
