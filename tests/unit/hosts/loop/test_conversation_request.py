"""The conversation request: completed once, immutable afterwards."""

from typing import Any

import pytest
from pydantic import ValidationError

from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.principals import ExecutionPrincipal
from wakeful.contracts.transcript import text
from wakeful.hosts.loop.conversation_request import ConversationRequest

HELLO = {"role": "user", "content": "hello"}
TOOL = {"name": "ability/search", "source": "abilities", "description": "Finds."}
PRINCIPAL = {"effective_agent_id": "helper", "auth_source": "user", "request_context": "chat"}


@pytest.mark.spec("API-REQ-01", "API-REQ-02")
def test_a_request_carries_its_parts_normalised() -> None:
    request = ConversationRequest.normalise(
        {
            "messages": [HELLO],
            "tools": [TOOL, {"name": "client/pick"}],
            "principal": PRINCIPAL,
            "runtime_context": {"tenant": "t"},
            "metadata": {"session_id": "s"},
            "max_turns": 4,
            "workspace": {"workspace_type": "site", "workspace_id": "7"},
        }
    )
    assert request.messages == (text("user", "hello"),)
    assert [(tool.name, tool.executor) for tool in request.tools] == [
        ("ability/search", "host"),
        ("client/pick", "client"),
    ]
    assert request.principal == ExecutionPrincipal(**PRINCIPAL)
    assert (request.runtime_context, request.metadata, request.max_turns) == ({"tenant": "t"}, {"session_id": "s"}, 4)
    assert request.workspace is not None and request.workspace.workspace_id == "7"


@pytest.mark.spec("API-REQ-02")
def test_an_invalid_tool_is_named_by_its_index() -> None:
    with pytest.raises(InvalidValue, match=r"^tools\[1\]: invalid_conversation_tool_declaration: source: "):
        ConversationRequest.normalise({"messages": [HELLO], "tools": [TOOL, {"name": "a/b", "description": "d"}]})
    with pytest.raises(InvalidValue, match=r"^invalid_message_envelope: messages\[0\]\.role"):
        ConversationRequest.normalise({"messages": [{"role": "", "content": "x"}]})


@pytest.mark.spec("API-REQ-03")
def test_turn_limits_have_their_defaults_and_a_floor() -> None:
    request = ConversationRequest.normalise({"messages": [HELLO]})
    assert (request.max_turns, request.single_turn) == (10, False)
    assert ConversationRequest.normalise({"messages": [HELLO], "single_turn": True}).single_turn is True
    with pytest.raises(InvalidValue, match="max_turns"):
        ConversationRequest.normalise({"messages": [HELLO], "max_turns": 0})


@pytest.mark.spec("API-REQ-04")
@pytest.mark.parametrize("field", ["runtime_context", "metadata"])
def test_context_and_metadata_must_be_json(field: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        ConversationRequest.normalise({"messages": [HELLO], field: {"live": object()}})
    assert caught.value.path == field
    assert "not JSON-serialisable" in caught.value.reason


@pytest.mark.spec("API-REQ-05")
def test_overrides_that_say_something_are_copied_into_the_context() -> None:
    request = ConversationRequest.normalise(
        {
            "messages": [HELLO],
            "runtime_context": {"model_id": "old", "tenant": "t"},
            "runtime_overrides": {"model_id": "new", "temperature": 0.0, "system_prompt": "", "tier_1_tools": []},
        }
    )
    assert request.runtime_context == {"model_id": "new", "tenant": "t", "temperature": 0.0}
    with pytest.raises(InvalidValue, match=r"runtime_overrides\.mood"):
        ConversationRequest.normalise({"messages": [HELLO], "runtime_overrides": {"mood": "good"}})


@pytest.mark.spec("API-REQ-06")
def test_a_request_is_immutable_and_copies_carry_the_current_transcript() -> None:
    request = ConversationRequest.normalise({"messages": [HELLO]})
    with pytest.raises(ValidationError, match="frozen"):
        request.max_turns = 99  # type: ignore[misc]
    now = request.with_messages([*request.messages, text("assistant", "hi")])
    assert (len(request.messages), len(now.messages)) == (1, 2)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"effective_agent_id": ""}, "effective_agent_id"),
        ({"auth_source": " "}, "auth_source"),
        ({"request_context": ""}, "request_context"),
        ({"owner_type": "user"}, "owner_key"),
        ({"owner_key": "k"}, "owner_type"),
    ],
)
def test_a_principal_that_is_not_whole_is_refused_by_field(change: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        ExecutionPrincipal.normalise({**PRINCIPAL, **change})
    assert str(caught.value).startswith("invalid_execution_principal: ")
    assert field in str(caught.value)
