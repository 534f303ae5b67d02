"""The wire formats that the server speaks: how each reads a request, and writes an answer or an error."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from wakeful.testing.provider_server import anthropic, chat, gemini, responses
from wakeful.testing.provider_server.answers import WireAnswer
from wakeful.testing.provider_server.wire_requests import KeptConversations, WireName, WireRequest


class WireFormat(NamedTuple):
    """One of them."""

    read: Callable[[str, Mapping[str, Any], KeptConversations], WireRequest]
    """From the path and the body. Raises RequestRefused for what the vendor does not take."""
    whole: Callable[[WireAnswer, WireRequest, int], dict[str, Any]]
    """The answer at once, of the request of this number."""
    events: Callable[[WireAnswer, WireRequest, int], list[bytes]]
    """The answer as a stream."""
    before_usage: Callable[[list[bytes]], int]
    """So many events of a stream come before the counts."""
    error: Callable[[int, str, str, str | None, str | None], bytes]
    """The body of an error: status, type, message, code, and the parameter that it is about."""


WIRES: Mapping[WireName, WireFormat] = {
    "openai_chat": WireFormat(chat.read, chat.whole, chat.events, chat.before_usage, chat.error),
    "openai_responses": WireFormat(
        responses.read, responses.whole, responses.events, responses.before_usage, chat.error
    ),
    "anthropic": WireFormat(anthropic.read, anthropic.whole, anthropic.events, anthropic.before_usage, anthropic.error),
    "gemini": WireFormat(gemini.read, gemini.whole, gemini.events, gemini.before_usage, gemini.error),
}
