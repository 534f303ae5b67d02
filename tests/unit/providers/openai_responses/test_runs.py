"""Whole turns on the Responses API: what was said is in the log, and goes back as it came."""

from pathlib import Path
from typing import Any

import httpx2
import pytest

from kit.wires.responses_server import ResponsesServer, streamed
from kit.wires.responses_wire import REASONING, call, events_of, message, response, sse, words
from wakeful import Agent, run, tool
from wakeful.contracts.events import ModelCompleted, ModelFailed
from wakeful.providers.endpoints import Endpoint
from wakeful.providers.openai_responses import OpenAIResponses

ASKS = response(REASONING, message(words("I look."), phase="commentary"), call(name="get_weather"))
TELLS = response(message(words("It is sunny."), phase="final_answer"), id="resp_2")


@tool(effect="pure")
def get_weather(city: str) -> str:
    """Get current weather for a city."""
    return f"sunny in {city}"


def agent_at(server: ResponsesServer) -> Agent[Any, Any]:
    model = OpenAIResponses("gpt-5.5", base_url="http://127.0.0.1/v1", api_key="k", client=server.client)
    return Agent("reporter", model=model, instructions="Be brief.", tools=[get_weather])


async def test_a_tool_loop(tmp_path: Path) -> None:
    server = ResponsesServer(ASKS, TELLS)
    result = await run(agent_at(server), "Weather in Paris?", store=tmp_path / "store.db")
    assert (result.status, result.output) == ("completed", "It is sunny.")
    first, second = server.bodies
    assert first["tools"][0]["name"].endswith("get_weather")
    assert second["input"][: len(first["input"])] == first["input"]
    thought, said, made, answer = second["input"][1:]
    assert thought == {key: value for key, value in REASONING.items() if key != "id"}
    assert (said["content"], said["phase"]) == ("I look.", "commentary")
    assert (made["call_id"], made["arguments"]) == ("call_1", '{"city":"Paris"}')
    assert answer["call_id"] == "call_1"
    assert "sunny in Paris" in answer["output"]


async def test_reasoning_too_large_for_the_log_comes_back_byte_for_byte(tmp_path: Path) -> None:
    large = {**REASONING, "encrypted_content": "gAAAA" + "é-_=" * 40_000}
    server = ResponsesServer({**ASKS, "output": [large, *ASKS["output"][1:]]}, TELLS)
    await run(agent_at(server), "Weather in Paris?", store=tmp_path / "store.db")
    (thought,) = [entry for entry in server.inputs[1] if entry["type"] == "reasoning"]
    assert thought["encrypted_content"] == large["encrypted_content"]


PLAIN = {
    "type": "reasoning",
    "id": "rs_9",
    "status": "completed",
    "summary": [],
    "content": [{"type": "reasoning_text", "text": "Paris is a city…"}],
}
SUMMED = {"type": "reasoning", "id": "rs_9", "summary": [{"type": "summary_text", "text": "A city."}]}
BACK = {key: value for key, value in PLAIN.items() if key != "status"}


def plain_agent(server: ResponsesServer, name: str, model: str) -> Agent[Any, Any]:
    there = Endpoint(name, "openai_responses", "http://127.0.0.1/v1", key_required=False)
    answering = OpenAIResponses(model, endpoint=there, api_key="k", client=server.client)
    return Agent("reporter", model=answering, tools=[get_weather])


@pytest.mark.spec("LOOP-PROV-04")
@pytest.mark.parametrize(
    ("name", "model", "thought", "back"),
    [
        ("vllm", "nobody-knows-it", PLAIN, BACK),
        ("vllm", "gpt-oss-20b", PLAIN, BACK),
        ("vllm", "nobody-knows-it", {**PLAIN, "encrypted_content": "x"}, {**BACK, "encrypted_content": "x"}),
        ("vllm", "nobody-knows-it", SUMMED, SUMMED),
        ("openai", "nobody-knows-it", PLAIN, BACK),
        ("openai", "nobody-knows-it", REASONING, {key: REASONING[key] for key in REASONING if key != "id"}),
        ("openai", "nobody-knows-it", SUMMED, None),
        ("openai", "gpt-5.5", SUMMED, None),
        ("openai", "gpt-4o", REASONING, None),
        ("openai", "ft:gpt-4o-mini:acme::1", REASONING, None),
    ],
)
async def test_reasoning_goes_back_where_it_can_be_read(
    name: str, model: str, thought: dict[str, Any], back: dict[str, Any] | None, tmp_path: Path
) -> None:
    """In its own words or encrypted; not a summary that names what OpenAI did not store, nor to a model without any."""
    server = ResponsesServer({**ASKS, "output": [thought, *ASKS["output"][1:]]}, TELLS)
    result = await run(plain_agent(server, name, model), "Weather in Paris?", store=tmp_path / "store.db")
    assert result.output == "It is sunny."
    assert [entry for entry in server.inputs[1] if entry["type"] == "reasoning"] == ([] if back is None else [back])


async def test_a_model_nobody_knows_is_asked_for_its_reasoning_once_it_has_shown_some() -> None:
    server = ResponsesServer({**ASKS, "output": [SUMMED, *ASKS["output"][1:]]}, TELLS)
    await run(plain_agent(server, "openai", "nobody-knows-it"), "Weather in Paris?")
    assert [body.get("include") for body in server.bodies] == [None, ["reasoning.encrypted_content"]]
    server = ResponsesServer({**ASKS, "output": ASKS["output"][1:]}, TELLS)
    await run(plain_agent(server, "openai", "nobody-knows-it"), "Weather in Paris?")
    assert [body.get("include") for body in server.bodies] == [None, None]


async def test_reasoning_goes_to_no_other_address_of_the_same_name() -> None:
    lost = httpx2.Response(401, json={"error": {"message": "no"}})
    first, second = ResponsesServer({**ASKS, "output": [PLAIN, *ASKS["output"][1:]]}, lost), ResponsesServer(TELLS)
    models = [
        OpenAIResponses("gpt-5.5", base_url=f"http://127.0.0.1:{port}/v1", api_key="k", client=server.client)
        for port, server in ((1, first), (2, second))
    ]
    agent = Agent("reporter", model=models[0], fallbacks=[models[1]], tools=[get_weather])
    assert (await run(agent, "Weather in Paris?")).output == "It is sunny."
    assert [entry["type"] for entry in first.inputs[1]] == ["message", "reasoning", "message", "function_call", OUTPUT]
    assert [entry["type"] for entry in second.inputs[0]] == ["message", "message", "function_call", OUTPUT]


OUTPUT = "function_call_output"


@pytest.mark.parametrize(
    ("broken", "kind"),
    [
        (streamed(sse(events_of(TELLS)[:-1])), "stream_interrupted"),
        (httpx2.Response(529, json={"error": {"message": "busy"}}), "overloaded"),
        (streamed(sse(events_of(response(status="failed", error={"code": "server_error"})))), "server_error"),
    ],
)
async def test_a_lost_attempt_is_recorded_and_the_next_one_answers(
    tmp_path: Path, broken: httpx2.Response, kind: str
) -> None:
    server = ResponsesServer(broken, TELLS)
    result = await run(agent_at(server), "Hello?", store=tmp_path / "store.db")
    assert result.output == "It is sunny."
    events = [entry.fact.event for entry in result.facts()]
    (lost,) = [event for event in events if isinstance(event, ModelFailed)]
    assert lost.failure_kind == kind
    (won,) = [event for event in events if isinstance(event, ModelCompleted)]
    assert won.request_metadata["response_id"] == "resp_2"
    assert server.bodies[0] == server.bodies[1]
