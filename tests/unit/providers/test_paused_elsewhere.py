"""A turn that another provider paused goes on here: what only made that one go on is not sent."""

import json
from typing import Any

import pytest

from kit.wires.model_requests import a_request
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import AssistantItem, History, UserItem
from wakeful.providers.openai_chat.dialect import OPENAI
from wakeful.providers.openai_chat.encode import ChatEncoder
from wakeful.providers.openai_responses.encode import ResponsesEncoder
from wakeful.providers.profiles import ModelProfile
from wakeful.providers.wire.names import WireNames

HISTORY = [
    UserItem(parts=(Text("go"),)),
    AssistantItem(parts=(Text("so far"),), provider="anthropic"),
    UserItem(parts=(), origin="runtime"),
]
PROFILE = ModelProfile(tools=True)


def chat() -> list[dict[str, Any]]:
    encoder = ChatEncoder("m", PROFILE, WireNames(()), provider="openai", dialect=OPENAI)
    found: list[dict[str, Any]] = json.loads(b"".join(encoder.body(a_request(history=History(HISTORY)))))["messages"]
    return found


def responses() -> list[dict[str, Any]]:
    encoder = ResponsesEncoder("m", PROFILE, WireNames(()), provider="openai")
    found: list[dict[str, Any]] = json.loads(b"".join(encoder.body(a_request(history=History(HISTORY)))))["input"]
    return found


@pytest.mark.parametrize("encoded", [chat, responses])
def test_an_empty_item_is_left_out(encoded: Any) -> None:
    assert [message["role"] for message in encoded()] == ["user", "assistant"]
