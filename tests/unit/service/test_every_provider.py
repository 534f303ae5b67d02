"""Every provider that is built in, behind the chat's own loop: a direct answer, and one tool call."""

from typing import Any

import pytest

from kit.runs.engine_runs import of_kind
from kit.wires.provider_server import (
    Answers,
    ProviderServer,
    chat_call,
    chat_words,
    gemini_call,
    gemini_words,
    messages_call,
    messages_words,
    responses_call,
    responses_words,
    serving,
)
from wakeful import Agent, RunResult, tool
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.events import ModelFailed, ToolResult
from wakeful.hosts.chat.messages import answer_message
from wakeful.providers.endpoints import BUILT_IN, Endpoint
from wakeful.store.memory import MemoryStore
from wakeful.views.wire_messages import WireMessage

WORDS = {
    "openai_chat": chat_words,
    "openai_responses": responses_words,
    "anthropic": messages_words,
    "gemini": gemini_words,
}
CALL = {
    "openai_chat": chat_call,
    "openai_responses": responses_call,
    "anthropic": messages_call,
    "gemini": gemini_call,
}
MODELS = {"openai": "gpt-5.5", "openai-codex": "gpt-5.5", "anthropic": "claude-opus-4-7", "gemini": "gemini-3.8-flash"}


@tool(effect="pure", permission_class="safe")
def weigh(order: str) -> str:
    """What an order weighs."""
    return f"{order} weighs 7"


async def said(server: ProviderServer, endpoint: Endpoint, *answers: Answers) -> RunResult[Any]:
    """A chat message that this provider answers."""
    server.answers = list(answers)
    sent: list[WireMessage] = []
    message = {
        "thread_id": "t1",
        "content": "What does A17 weigh?",
        "provider": endpoint.name,
        "model": MODELS.get(endpoint.name, "m-1"),
    }
    agent: Agent[Any, Any] = Agent("helper", "scripted:demo", tools=[weigh])
    around = new_engine(MemoryStore())
    result = await answer_message(around, agent, message, user_id="ann", send_message=sent.append)
    assert (result.status, of_kind(result, ModelFailed)) == ("completed", [])
    assert [one.type for one in sent][-2:] == ["cost_summary", "turn_terminal"]
    return result


@pytest.mark.spec("LOOP-ACC-14")
@pytest.mark.parametrize("name", BUILT_IN)
async def test_with_each_provider_there_is_a_direct_answer_and_a_tool_call(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = BUILT_IN[name]
    assert endpoint.wire is not None
    words, call = WORDS[endpoint.wire], CALL[endpoint.wire]
    with serving() as server:
        monkeypatch.setenv(f"{name.replace('-', '_').upper()}_BASE_URL", server.url)
        monkeypatch.setenv(endpoint.key_env[0], "sk-of-nobody")
        direct = await said(server, endpoint, words("Seven, I think."))
        assert (direct.output, direct.tool_calls, len(server.asked)) == ("Seven, I think.", 0, 1)
        server.asked.clear()
        called = await said(server, endpoint, lambda asked: call(asked, {"order": "A17"}), words("It weighs seven."))
        assert (called.output, called.tool_calls, len(server.asked)) == ("It weighs seven.", 1, 2)
        (result,) = of_kind(called, ToolResult)
        assert result.item.text == "A17 weighs 7" and "A17 weighs 7" in str(server.asked[1].body)
