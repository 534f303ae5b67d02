"""A provider's adapter in the place of a turn runner."""

from typing import Any

import pytest

from kit.hosts.loop_host import CLOCK, SEARCH, Host, search
from wakeful.contracts.errors import InvalidConfig
from wakeful.hosts import ConversationLoop, IterationBudget

HELLO = [{"role": "user", "content": "hello"}]
REQUEST = {
    "messages": HELLO,
    "metadata": {"trace": "t"},
    "runtime_context": {"region": "eu"},
    "runtime_overrides": {"provider_id": "p", "model_id": "m"},
}


@pytest.mark.spec("API-TURN-04")
async def test_an_adapter_gets_one_request_a_turn_and_answers_for_the_model_alone() -> None:
    host = Host()
    seen: list[dict[str, Any]] = []
    deltas: list[Any] = []

    def adapter(request: dict[str, Any]) -> dict[str, Any]:
        seen.append(request)
        request["delta_sink"]({"text": f"part {len(seen)}"})
        if len(seen) == 1:
            return {
                "content": "",
                "tool_calls": [{**search("a", id="c1"), "metadata": {"index": 0}}],
                "continuation_messages": [{"role": "user", "content": "on"}],
                "usage": {"prompt_tokens": 3},
                "request_metadata": {"id": "r1"},
                "provider_diagnostics": {"ms": 5},
            }
        return {
            "message": {"role": "assistant", "content": "all done"},
            "continuation_messages": [],
            "tool_calls": [],
            "usage": {"prompt_tokens": 4},
            "request_metadata": {"id": "r2"},
            "provider_diagnostics": {"ms": 6},
            "structured_output": {
                "parsed": {"answer": 42},
                "diagnostics": {"status": "parsed", "parser": "json", "valid": True},
            },
        }

    options = {
        "provider_turn_adapter": adapter,
        "on_provider_delta": deltas.append,
        "structured_output": {"schema": {"type": "object"}},
        "tool_executor": host,
        "tool_declarations": {"ability/search": SEARCH, "ability/clock": CLOCK},
        "budgets": [IterationBudget("tool_calls", 7)],
        "max_turns": 4,
        "context": {"mine": 1},
        "request": REQUEST,
        "run_id": "run",
        "session_id": "session",
    }
    result = await ConversationLoop().run(HELLO, None, options)
    assert result.completed, result.failure
    first, second = seen
    assert set(first) == {
        *("messages", "tool_declarations", "model", "runtime", "context", "budgets", "run_id", "session_id"),
        *("metadata", "delta_sink", "structured_output"),
    }
    assert [message["content"] for message in first["messages"]] == ["hello"]
    assert [tool["name"] for tool in first["tool_declarations"]] == ["ability/search", "ability/clock"]
    assert first["tool_declarations"][0]["parameters"]["required"] == ["q"]
    assert first["model"] == {"provider_id": "p", "model_id": "m"}
    assert first["runtime"]["region"] == "eu"
    assert (first["context"]["mine"], first["context"]["turn"], second["context"]["turn"]) == (1, 1, 2)
    assert (first["run_id"], first["session_id"], first["metadata"]) == ("run", "session", {"trace": "t"})
    assert first["structured_output"] == {"schema": {"type": "object"}}
    assert [request["budgets"] for request in seen] == [
        {"tool_calls": {"current": used, "limit": 7}, "turns": {"current": used + 1, "limit": 4}} for used in (0, 1)
    ]
    assert deltas == [{"text": "part 1"}, {"text": "part 2"}]
    assert [call.parameters for call in host.calls] == [{"q": "a"}]
    assert [message.type for message in result.messages] == ["text", "tool_call", "tool_result", "text", "text"]
    assert (result.final_content, result.usage["prompt_tokens"]) == ("all done", 7)
    assert (result.request_metadata, result.provider_diagnostics) == ({"id": "r2"}, ({"ms": 5}, {"ms": 6}))
    assert result.structured_output == {"answer": 42}
    assert result.structured_output_diagnostics is not None and result.structured_output_diagnostics.valid
    # It reports a failure, and it may not have run tools.
    failing = await ConversationLoop().run(
        HELLO, None, {"provider_turn_adapter": lambda request: {"failure": {"type": "overloaded", "message": "later"}}}
    )
    assert failing.failure is not None and failing.failure.type == "overloaded"
    meddling = {"content": "x", "tool_execution_results": [{"tool_name": "own/a", "result": {}}]}
    refused = await ConversationLoop().run(HELLO, None, {"provider_turn_adapter": lambda request: meddling})
    assert refused.status == "failed" and refused.tool_execution_results == ()
    assert refused.failure is not None and refused.failure.code == "invalid_provider_turn"


async def test_an_adapter_may_be_async_and_a_sink_that_raises_changes_nothing() -> None:
    told: list[tuple[str, dict[str, Any]]] = []

    async def adapter(request: dict[str, Any]) -> dict[str, Any]:
        for number in range(3):
            request["delta_sink"](number)
        return {"content": "done"}

    async def sink(delta: Any) -> None:
        raise ValueError(f"no {delta}")

    options = {
        "provider_turn_adapter": adapter,
        "on_provider_delta": sink,
        "on_event": lambda name, payload: told.append((name, payload)),
    }
    result = await ConversationLoop().run(HELLO, None, options)
    assert (result.completed, result.final_content) == (True, "done")
    assert [payload for name, payload in told if name == "observer_failed"] == [
        {"surface": "on_provider_delta", "error": "ValueError: no 0"}
    ]


async def test_a_run_has_a_turn_runner_or_an_adapter_and_not_both() -> None:
    host = Host({"content": "x"})
    with pytest.raises(InvalidConfig, match="leave one of them out"):
        await host.run(provider_turn_adapter=lambda request: {})
    with pytest.raises(InvalidConfig, match="give one of them"):
        await ConversationLoop().run(HELLO)
