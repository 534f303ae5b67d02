"""References to models, as a person writes them."""

import subprocess
import sys

import pytest

from wakeful.contracts.conversation import History
from wakeful.contracts.errors import InvalidConfig, ModelFailure, UnknownProvider
from wakeful.decisions.retries import dispose
from wakeful.ports import ModelRequest
from wakeful.providers.model_references import model_from_reference

KEY = "sk-0123456789"


@pytest.fixture(autouse=True)
def _only_these_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAKEFUL_HOME", "/nowhere/at/all")
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GROQ_API_KEY"):
        monkeypatch.setenv(name, KEY)
    monkeypatch.delenv("MISTRAL_API_KEY", raising=False)


@pytest.mark.parametrize(
    ("reference", "kind"),
    [
        ("openai:gpt-5.5", "OpenAIResponses"),
        ("anthropic:claude-opus-4-7", "AnthropicMessages"),
        ("groq:llama-3.3-70b", "OpenAIChat"),
        ("ollama:qwen3:8b", "OpenAIChat"),
    ],
)
def test_a_reference_becomes_the_client_of_its_wire_format_and_shows_no_key(reference: str, kind: str) -> None:
    model = model_from_reference(reference)
    assert type(model).__name__ == kind
    assert model.ref == reference
    assert KEY not in repr(model)


def test_what_is_wrong_with_a_reference_is_told_before_anything_is_asked() -> None:
    with pytest.raises(UnknownProvider, match="Did you mean openai"):
        model_from_reference("opena:gpt-5.5")
    with pytest.raises(InvalidConfig, match="MISTRAL_API_KEY is not set"):
        model_from_reference("mistral:mistral-large")
    with pytest.raises(InvalidConfig, match="names a provider and no model"):
        model_from_reference("openai:")


def a_request() -> ModelRequest:
    return ModelRequest(instructions="", history=History(), tools=(), turn_id="t", step=1, attempt=1, answered=0)


@pytest.mark.spec("HOL-PROV-11", "HOL-PROV-12")
async def test_an_unsupported_transport_is_refused_as_that_before_any_request_and_the_next_may_follow() -> None:
    settings = {"providers": {"acme": {"transport": "grpc", "base_url": "https://acme.test"}}}
    model = model_from_reference("acme:m", settings=settings)
    with pytest.raises(
        ModelFailure
    ) as caught:  # nothing is sent: the guard of these tests would refuse it in other words
        async for _ in model.respond(a_request()):
            pass
    failure = caught.value
    assert failure.kind == "unsupported_transport" and "transport 'grpc'" in failure.message  # 11
    after = dispose(failure.kind, retryable=failure.retryable, attempt=1, retry_after_ms=None, more_candidates=True)
    assert after == "fallback"  # 12


def test_a_model_is_made_without_loading_the_http_library() -> None:
    program = """
import sys
from wakeful.providers.model_references import model_from_reference
for reference in ("openai:gpt-5.5", "anthropic:claude-opus-4-7", "groq:llama-3"):
    model_from_reference(reference)
assert not {"httpx", "httpx2", "httpcore2", "openai", "anthropic"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], check=True)
