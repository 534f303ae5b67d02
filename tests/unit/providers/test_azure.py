"""OpenAI on Azure: where a deployment is asked, and what is said when something is missing."""

from typing import Any

import pytest

from kit.wires.provider_server import chat_words, serving
from wakeful import Agent, run
from wakeful.contracts.errors import InvalidConfig, KeyMissing
from wakeful.providers.endpoints import resolve
from wakeful.providers.model_references import model_from_reference

RESOURCE = "https://shop.openai.azure.com/"
KEY = "azure-key-0123456789"


def at(environ: dict[str, str], settings: dict[str, Any] | None = None) -> str:
    found = resolve("azure:my gpt", environ=environ, settings={"providers": settings or {}})
    return found.endpoint.url("/chat/completions")


def test_with_a_version_the_deployment_stands_in_the_path() -> None:
    found = at({"AZURE_OPENAI_ENDPOINT": RESOURCE, "OPENAI_API_VERSION": "2024-10-21"})
    assert found == (
        "https://shop.openai.azure.com/openai/deployments/my%20gpt/chat/completions?api-version=2024-10-21"
    )


@pytest.mark.parametrize("resource", [RESOURCE, RESOURCE + "openai", RESOURCE + "openai/v1/"])
def test_without_one_the_newer_path_is_asked(resource: str) -> None:
    assert at({"AZURE_OPENAI_ENDPOINT": resource}) == "https://shop.openai.azure.com/openai/v1/chat/completions"


def test_an_address_of_the_owner_is_taken_as_it_is() -> None:
    where = "https://shop.openai.azure.com/openai/deployments/d?api-version=2024-10-21"
    assert at({}, {"azure": {"base_url": where}}) == (
        "https://shop.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21"
    )


def test_a_missing_resource_and_a_missing_key_are_named() -> None:
    with pytest.raises(InvalidConfig, match=r"AZURE_OPENAI_ENDPOINT is not set\nexport AZURE_OPENAI_ENDPOINT=https"):
        at({})
    with pytest.raises(KeyMissing, match="AZURE_OPENAI_API_KEY is not set"):
        resolve("azure:d", environ={"AZURE_OPENAI_ENDPOINT": RESOURCE}, settings={}).endpoint.key({})


async def test_a_run_sends_the_key_as_azure_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as server:
        server.answers = [chat_words("hi")]
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", server.url)
        monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_API_VERSION", "2024-10-21")
        result = await run(Agent("a", model_from_reference("azure:gpt-4o")), "Hello")
    (asked,) = server.asked
    assert result.output == "hi"
    assert asked.path == "/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21"
    assert (asked.headers["api-key"], "authorization" in asked.headers) == (KEY, False)


@pytest.mark.parametrize(
    ("reference", "url", "key"),
    [
        ("xai:grok-4.7", "https://api.x.ai/v1/responses", "XAI_API_KEY"),
        ("huggingface:openai/gpt-oss-120b", "https://router.huggingface.co/v1/chat/completions", "HF_TOKEN"),
        ("cerebras:gpt-oss-120b", "https://api.cerebras.ai/v1/chat/completions", "CEREBRAS_API_KEY"),
    ],
)
def test_names_of_compatible_providers_lead_to_their_addresses(reference: str, url: str, key: str) -> None:
    found = resolve(reference, environ={}, settings={})
    assert found.endpoint.url("/responses" if url.endswith("/responses") else "/chat/completions") == url
    assert found.endpoint.key_env == (key,)
