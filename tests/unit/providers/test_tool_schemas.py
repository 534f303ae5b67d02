"""Tools as they stand in the requests of all three wire formats."""

import json
from typing import Any

import pytest
from pydantic import BaseModel

from wakeful.contracts.content import Text
from wakeful.contracts.conversation import History, UserItem
from wakeful.contracts.model_settings import ModelSettings
from wakeful.contracts.tools import ToolDeclaration
from wakeful.ports import ModelRequest
from wakeful.providers.anthropic.encode import AnthropicEncoder as Anthropic
from wakeful.providers.openai_chat.encode import ChatEncoder as Chat
from wakeful.providers.openai_responses.encode import ResponsesEncoder as Responses
from wakeful.providers.profiles import profile_of
from wakeful.providers.wire.names import WireNames


class Place(BaseModel):
    city: str
    country: str = "SE"


class Arguments(BaseModel):
    place: Place
    days: int = 1


TOOLS = (ToolDeclaration(name="client/weather", description="Weather.", input_schema=Arguments.model_json_schema()),)
FORMATS = ["openai_responses", "openai_chat", "anthropic"]


def sent(wire: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The tool as it is sent, and its schema."""
    names = WireNames(TOOLS)
    history = History([UserItem(parts=(Text("hello"),))])
    request = ModelRequest(
        instructions="",
        history=history,
        tools=TOOLS,
        turn_id="t",
        step=1,
        attempt=1,
        answered=0,
        settings=ModelSettings(),
    )
    if wire == "anthropic":
        chunks = Anthropic("claude-opus-4-7", profile_of("claude-opus-4-7"), TOOLS, names=names).body(request)
    else:
        encoder = Responses if wire == "openai_responses" else Chat
        chunks = encoder("gpt-5.5", profile_of("gpt-5.5"), names).body(request)
    tool = json.loads(b"".join(chunks))["tools"][0]
    tool = tool.get("function", tool)
    return tool, tool["input_schema" if wire == "anthropic" else "parameters"]


@pytest.mark.spec("HOL-SCHEMA-05", "HOL-SCHEMA-06", "HOL-SCHEMA-07")
@pytest.mark.parametrize("wire", FORMATS)
def test_a_request_that_says_nothing_about_it_carries_relaxed_schemas(wire: str) -> None:
    tool, schema = sent(wire)
    assert (
        schema["required"] == ["place"] and schema["properties"]["days"]["type"] == "integer"
    )  # 05: not strict's form
    assert tool.get("strict", False) is False and (wire == "anthropic" or "strict" in tool)  # 06
    assert schema["additionalProperties"] is False  # 07
    assert schema["$defs"]["Place"]["additionalProperties"] is False


@pytest.mark.spec("API-TURN-09")
@pytest.mark.parametrize("wire", FORMATS)
def test_a_tool_is_sent_under_its_alias(wire: str) -> None:
    assert sent(wire)[0]["name"] == "client__weather"
