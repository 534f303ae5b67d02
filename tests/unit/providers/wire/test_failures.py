"""What an answer, an error in a stream or an exception means, in the words of several providers."""

import json
import ssl
from typing import Any

import pytest

from wakeful.contracts.models import RETRYABLE, FailureKind
from wakeful.decisions.retries import dispose
from wakeful.providers.wire.failures import (
    Peer,
    from_error_object,
    from_exception,
    from_status,
    interrupted,
    invalid,
    retry_after,
)

PEER = Peer(
    "acme", "acme:gpt-5.5", "https://u:p@api.acme.test/v1/x?k=v", "ACME_API_KEY", lambda: ("gpt-5.5", "gpt-5.5-pro")
)


def kind(status: int, body: Any = b"", headers: dict[str, str] | None = None) -> FailureKind:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return from_status("acme", "acme:m", status, headers or {}, raw).kind


def openai(message: str, type: str = "invalid_request_error", code: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": type, "param": None, "code": code}}


def anthropic(message: str, type: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": type, "message": message}, "request_id": "req_1"}


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (401, openai("Incorrect API key provided", code="invalid_api_key"), "auth_error"),
        (401, anthropic("invalid x-api-key", "authentication_error"), "auth_error"),
        (403, anthropic("not allowed", "permission_error"), "auth_error"),
        (
            403,
            {"error": {"message": "flagged", "code": 403, "metadata": {"reasons": ["violence"]}}},
            "content_filtered",
        ),
        (402, {"error": {"message": "Insufficient credits", "code": 402}}, "quota_exhausted"),
        (429, openai("You exceeded your current quota", "insufficient_quota", "insufficient_quota"), "quota_exhausted"),
        (
            400,
            anthropic("Your credit balance is too low to access the API.", "invalid_request_error"),
            "quota_exhausted",
        ),
        (429, openai("Rate limit reached", "tokens", "rate_limit_exceeded"), "rate_limited"),
        (429, anthropic("slow", "rate_limit_error"), "rate_limited"),
        (429, b"", "rate_limited"),
        (408, b"", "timeout"),
        (409, b"", "server_error"),
        (425, b"", "server_error"),
        (413, anthropic("Request exceeds the maximum size", "request_too_large"), "context_length_exceeded"),
        (400, openai("too long", code="context_length_exceeded"), "context_length_exceeded"),
        (
            400,
            anthropic("prompt is too long: 210000 tokens > 200000 maximum", "invalid_request_error"),
            "context_length_exceeded",
        ),
        (
            400,
            {"object": "error", "message": "This model's maximum context length is 4096 tokens.", "code": 400},
            "context_length_exceeded",
        ),
        (
            400,
            {"error": {"code": 400, "message": "too big", "type": "exceed_context_size_error"}},
            "context_length_exceeded",
        ),
        (400, openai("blocked by our content management policy", code="content_filter"), "content_filtered"),
        (400, anthropic("messages.1: tool_use ids were found", "invalid_request_error"), "contract_error"),
        (404, {"error": "model 'qwen9' not found"}, "contract_error"),
        (422, {"detail": [{"loc": ["body"], "msg": "field required"}]}, "contract_error"),
        (500, anthropic("Internal server error", "api_error"), "server_error"),
        (502, b"<html><h1>Bad Gateway</h1></html>", "server_error"),
        (503, b"", "server_error"),
        (503, openai("The engine is currently overloaded", "server_error"), "overloaded"),
        (529, anthropic("Overloaded", "overloaded_error"), "overloaded"),
        (504, b"", "server_error"),
        (418, b"teapot", "contract_error"),
    ],
)
def test_a_status_and_its_body_have_one_meaning(status: int, body: Any, expected: FailureKind) -> None:
    assert kind(status, body) == expected


@pytest.mark.parametrize(
    ("status", "again"),
    [
        *((status, True) for status in (408, 409, 425, 429, 500, 502, 503, 529)),
        *((status, False) for status in (400, 401, 402, 403, 404, 413, 422)),
    ],
)
def test_what_may_be_tried_again_follows_from_the_status(status: int, again: bool) -> None:
    failure = from_status("acme", None, status, {}, b"")
    disposition = dispose(
        failure.kind, retryable=failure.retryable, attempt=1, retry_after_ms=None, more_candidates=True
    )
    assert (disposition == "retry") is again
    assert (failure.kind in RETRYABLE) is again


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b'"words"', b"{", b"\xff\xfe", b"[" * 100_000, b'{"error": 7}'])
def test_no_body_makes_a_refusal_anything_else(body: bytes) -> None:
    assert kind(500, body) == "server_error"


def test_a_wrong_key_is_told_with_its_variable() -> None:
    failure = from_status("acme", "acme:m", 401, {}, b"", peer=PEER)
    assert failure.message == "acme refused the key in ACME_API_KEY (answered 401)"


def test_an_unknown_model_is_told_with_near_names() -> None:
    peer = PEER._replace(model_ref="acme:gpt-5.5-prp")
    body = json.dumps(openai("The model `gpt-5.5-prp` does not exist", code="model_not_found")).encode()
    failure = from_status("acme", "acme:gpt-5.5-prp", 404, {}, body, peer=peer)
    assert "does not know the model 'gpt-5.5-prp'" in failure.message
    assert "Did you mean gpt-5.5-pro" in failure.message


def test_a_long_conversation_is_told_with_its_model() -> None:
    body = json.dumps(openai("maximum context length is 10 tokens")).encode()
    assert "too long for gpt-5.5" in from_status("acme", "acme:gpt-5.5", 400, {}, body, peer=PEER).message


def test_a_long_story_is_cut_and_a_page_for_browsers_is_left_out() -> None:
    assert len(from_status("acme", None, 500, {}, b"x" * 10_000).message) < 500
    assert "<html>" not in from_status("acme", None, 502, {}, b"<html>" + b"x" * 100).message


def test_diagnostics_tell_what_the_transport_knew_without_user_or_query() -> None:
    diagnostics = from_status("acme", "acme:gpt-5.5", 429, {"Retry-After": "3"}, b"", peer=PEER).diagnostics
    assert diagnostics is not None
    assert (diagnostics.url, diagnostics.status, diagnostics.stage) == ("https://api.acme.test/v1/x", 429, "headers")
    assert diagnostics.http_client is not None and diagnostics.http_client.status == 429


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ({"type": "overloaded_error", "message": "Overloaded"}, "overloaded"),
        ({"type": "api_error", "message": "oops"}, "server_error"),
        ({"type": "rate_limit_error", "message": "slow"}, "rate_limited"),
        ({"code": "rate_limit_exceeded", "message": "slow"}, "rate_limited"),
        ({"code": "server_error", "message": "oops"}, "server_error"),
        ({"code": "context_length_exceeded", "message": "long"}, "context_length_exceeded"),
        ({"type": "invalid_request_error", "message": "bad"}, "contract_error"),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "overloaded"),
        ({"error": {"code": 502, "message": "upstream"}}, "unknown"),
        ({"code": 502, "message": "upstream"}, "server_error"),
        ({"message": "who knows"}, "unknown"),
        ({}, "unknown"),
    ],
)
def test_an_error_in_a_stream_is_classified_by_its_own_content(error: dict[str, Any], expected: FailureKind) -> None:
    failure = from_error_object("acme", "acme:m", error)
    assert (failure.kind, failure.stage) == (expected, "body")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"Retry-After": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 30.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT", "date": "Wed, 21 Oct 2026 07:28:30 GMT"}, 0.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, 40.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": ""}, None),
        ({}, None),
    ],
)
def test_when_to_come_back_is_read_from_every_form(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=60.0) == seconds


class TransportError(OSError):
    """Stands in for a client's class of that name."""


class ConnectError(TransportError):
    pass


class ReadError(TransportError):
    pass


def caused(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "stage", "expected", "told"),
    [
        (caused(ConnectError("x"), ConnectionRefusedError(111, "refused")), "connect", "connection", "nothing listens"),
        (caused(ConnectError("x"), ssl.SSLCertVerificationError("bad")), "connect", "connection", "not trusted"),
        (ConnectError("[Errno -2] Name or service not known"), "connect", "connection", "no such host"),
        (ReadError("reset"), "headers", "connection", "before it answered"),
        (ReadError("reset"), "body", "stream_interrupted", "nothing of it was used"),
        (TimeoutError(), "body", "timeout", "stopped in the middle"),
        (TimeoutError(), "send", "timeout", "did not take the request"),
        (ZeroDivisionError("ours"), "headers", "unknown", "ZeroDivisionError: ours"),
    ],
)
def test_an_exception_is_told_by_what_was_being_done(
    error: BaseException, stage: Any, expected: FailureKind, told: str
) -> None:
    failure = from_exception("acme", "acme:m", error, stage=stage, peer=PEER)
    assert (failure.kind, failure.stage) == (expected, stage)
    assert told in failure.message
    assert failure.diagnostics is not None and failure.diagnostics.source_chain


def test_secrets_are_out_of_messages_and_chains() -> None:
    peer = PEER._replace(secrets=("sk-0123456789",))
    failure = from_exception("acme", None, ReadError("header sk-0123456789 is bad"), stage="headers", peer=peer)
    assert "sk-0123456789" not in f"{failure} {failure.diagnostics!r}"
    told = from_error_object("acme", None, {"message": "key sk-0123456789"}, peer=peer)
    assert "sk-0123456789" not in told.message and "[redacted]" in told.message
    # The same words without the value in the list would have been shown:
    assert "sk-0123456789" in from_error_object("acme", None, {"message": "key sk-0123456789"}).message


def test_a_missing_end_and_a_wrong_shape_have_their_own_kinds() -> None:
    assert interrupted(PEER, "the stream ended early").kind == "stream_interrupted"
    failure = invalid(PEER, "the answer is no object")
    assert (failure.kind, failure.stage) == ("invalid_response", "decode")


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"error": {"message": "prompt too long; exceeded max context length by 4 tokens"}}),  # Ollama
        (400, {"error": "This model's maximum prompt length is 131072 but the request contains 537812 tokens."}),
        (400, {"error": "the model is loaded with context length of only 4096 tokens, which is not enough"}),
        (400, {"message": "The decoder prompt (length 5012) is longer than the maximum model length of 4096."}),
        (400, {"message": "max_tokens must be at least 1, got -5."}),
        (400, {"error": {"type": "too_many_prompt_tokens", "message": "Too many."}}),  # Perplexity
        (400, {"error": {"message": "Your request exceeded model token limit: 262144 (requested: 300000)"}}),  # Kimi
        (400, {"error": {"message": "invalid params, context window exceeds limit (2013)"}}),  # MiniMax
        (400, {"error": {"code": "1261", "message": "Prompt exceeds max length"}}),  # Z.ai
        (400, {"error": {"message": "prompt token count of 140001 exceeds the limit of 128000"}}),  # Copilot
        (422, {"error": {"message": "The input (300 tokens) is longer than the model's context length (200 tokens)."}}),
        (422, {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000"}),
        (400, {"error": {"message": "Range of input length should be [1, 30720]"}}),  # DashScope
    ],
)
def test_a_conversation_that_is_too_long_is_understood_in_every_servers_words(status: int, body: Any) -> None:
    failure = from_status("acme", "acme:m", status, {}, json.dumps(body).encode())
    assert failure.kind == "context_length_exceeded"


@pytest.mark.parametrize(
    "words", ["max_tokens exceeds the limit of 8192", "too many requests", "max_tokens must be at least 1, got 0"]
)
def test_other_limits_are_not_taken_for_the_conversations(words: str) -> None:
    body = json.dumps({"error": {"message": words}}).encode()
    assert from_status("acme", "acme:m", 400, {}, body).kind == "contract_error"


def test_a_full_tier_of_groqs_is_busy() -> None:
    body = b'{"error":{"message":"capacity_exceeded"}}'
    assert from_status("groq", "groq:m", 498, {}, body).kind == "overloaded"


def test_a_suggestion_follows_one_full_stop() -> None:
    peer = Peer("openai", "openai:gpt-5.55", known_models=lambda: ("gpt-5.5",))
    body = b'{"error":{"code":"model_not_found","message":"The model does not exist."}}'
    message = from_status("openai", "openai:gpt-5.55", 404, {}, body, peer=peer).message
    assert "does not exist. Did you mean gpt-5.5?" in message
