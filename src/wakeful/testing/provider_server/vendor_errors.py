"""Errors as each vendor writes them: status, headers and body for a word of the weather, or for a bad request."""

import time
from collections.abc import Mapping
from email.utils import formatdate
from typing import NamedTuple

from wakeful.testing.provider_server.weather import Trouble
from wakeful.testing.provider_server.wire_requests import RequestRefused, WireName
from wakeful.testing.provider_server.wire_table import WIRES

JSON = {"content-type": "application/json"}
PAGE = b"<!DOCTYPE html>\n<html><head><title>Bad gateway</title></head><body><h1>502 Bad gateway</h1></body></html>\n"
HTML = {"content-type": "text/html; charset=utf-8"}
Words = tuple[str, str, str | None]
"""Its type, its message, its code."""

_OPENAI: Mapping[str, Words] = {
    "429": (
        "requests",
        "Rate limit reached for {model} on requests per min (RPM): Limit 3, Used 3, Requested 1.",
        "rate_limit_exceeded",
    ),
    "quota": (
        "insufficient_quota",
        "You exceeded your current quota, please check your plan and billing details.",
        "insufficient_quota",
    ),
    "500": ("server_error", "The server had an error while processing your request. Sorry about that!", None),
    "503": ("server_error", "Service Unavailable.", "service_unavailable"),
    "504": ("server_error", "Gateway timeout.", "gateway_timeout"),
    "529": ("server_error", "The engine is currently overloaded, please try again later.", "engine_overloaded"),
    "401": ("invalid_request_error", "Incorrect API key provided.", "invalid_api_key"),
    "404": (
        "invalid_request_error",
        "The model `{model}` does not exist or you do not have access to it.",
        "model_not_found",
    ),
    "too_long": (
        "invalid_request_error",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        "context_length_exceeded",
    ),
}
_ANTHROPIC: Mapping[str, Words] = {
    "429": ("rate_limit_error", "This request would exceed your organization's rate limit.", None),
    "quota": ("invalid_request_error", "Your credit balance is too low to access the Anthropic API.", None),
    "500": ("api_error", "Internal server error", None),
    "503": ("api_error", "Service unavailable", None),
    "504": ("timeout_error", "Gateway timeout", None),
    "529": ("overloaded_error", "Overloaded", None),
    "401": ("authentication_error", "invalid x-api-key", None),
    "404": ("not_found_error", "model: {model}", None),
    "too_long": ("invalid_request_error", "prompt is too long: {tokens} tokens > 200000 maximum", None),
}
_GEMINI: Mapping[str, Words] = {
    "429": ("RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota).", None),
    "quota": ("RESOURCE_EXHAUSTED", "Your prepayment credits are depleted.", None),
    "500": ("INTERNAL", "An internal error has occurred.", None),
    "503": ("UNAVAILABLE", "The service is currently unavailable.", None),
    "504": ("DEADLINE_EXCEEDED", "The service is unable to finish processing within the deadline.", None),
    "529": ("UNAVAILABLE", "The model is overloaded. Please try again later.", None),
    "401": ("INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", None),
    "404": ("NOT_FOUND", "models/{model} is not found for API version v1beta.", None),
    "too_long": (
        "INVALID_ARGUMENT",
        "The input token count ({tokens}) exceeds the maximum number of tokens allowed (1048576).",
        None,
    ),
}
_WORDS: Mapping[WireName, Mapping[str, Words]] = {
    "openai_chat": _OPENAI,
    "openai_responses": _OPENAI,
    "anthropic": _ANTHROPIC,
    "gemini": _GEMINI,
}
_STATUS = {"quota": 429, "too_long": 400}
_STATUS_THERE = {("anthropic", "quota"): 400, ("gemini", "401"): 400, ("gemini", "529"): 503}
ERRORS = frozenset(_OPENAI) | {"502"}
"""The words of the weather that are an answer with an error."""
_REFUSED: Mapping[WireName, Mapping[int, str]] = {
    "anthropic": {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error"},
    "gemini": {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 404: "NOT_FOUND"},
}


class VendorError(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


def error_of(trouble: Trouble, wire: WireName, model: str, tokens: int) -> VendorError:
    """What the vendor of this wire format answers for a word of the weather."""
    word = trouble.word
    if word == "502":
        return VendorError(502, dict(HTML), PAGE)
    status = _STATUS_THERE.get((wire, word)) or _STATUS.get(word) or int(word)
    kind, words, code = _WORDS[wire][word]
    body = WIRES[wire].error(status, kind, words.format(model=model, tokens=tokens), code, None)
    return VendorError(status, JSON | _when(trouble, wire), body)


def refusal(refused: RequestRefused, wire: WireName) -> VendorError:
    """A request that the vendor does not take."""
    kind = _REFUSED.get(wire, {}).get(refused.status, "invalid_request_error")
    body = WIRES[wire].error(refused.status, kind, refused.words, refused.code, refused.param)
    return VendorError(refused.status, dict(JSON), body)


def _when(trouble: Trouble, wire: WireName) -> dict[str, str]:
    """The headers that say when to come back."""
    if (seconds := trouble.text("after")) is not None:
        return {"retry-after": seconds}
    if trouble.text("date") is not None:
        return {"retry-after": formatdate(time.time() + trouble.number("date", 0), usegmt=True)}
    if trouble.text("reset") is None:
        return {}
    wait = trouble.number("reset", 0)
    if wire == "anthropic":
        until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + wait))
        start = "anthropic-ratelimit-requests"
        return {f"{start}-limit": "50", f"{start}-remaining": "0", f"{start}-reset": until}
    counted = {"x-ratelimit-limit-requests": "3", "x-ratelimit-remaining-requests": "0"}
    return {**counted, "x-ratelimit-reset-requests": f"{wait:g}s"}
