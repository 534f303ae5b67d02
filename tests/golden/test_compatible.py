"""Real conversations with compatible servers: what goes back to each of them is what it took from another client.

The recorded answers are played to a whole run: agent, tools, log and all. Each next request is held against the one
that was recorded, in the messages that the server itself had a part in.
"""

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from wakeful import Agent, run, tool
from wakeful.contracts.events import ToolFailed
from wakeful.providers.endpoints import BUILT_IN, Endpoint
from wakeful.providers.openai_chat import OpenAIChat
from wakeful.providers.openai_responses import OpenAIResponses

RECORDINGS = Path(__file__).resolve().parents[3] / "shared" / "recordings" / "compatible"
needs_recordings = pytest.mark.skipif(
    not RECORDINGS.exists(),
    reason="needs recorded traffic in ../shared/recordings, which is not part of the repository",
)
pytestmark = needs_recordings


class Recording:
    """Answers what was recorded, in order, and keeps what it was asked."""

    def __init__(self, name: str, *, skip: int = 0) -> None:
        self.interactions = yaml.safe_load((RECORDINGS / f"test_{name}.yaml").read_text())["interactions"][skip:]
        self.asked: list[dict[str, Any]] = []
        self.client = httpx2.AsyncClient(transport=httpx2.MockTransport(self._answer))

    async def _answer(self, request: httpx2.Request) -> httpx2.Response:
        response = self.interactions[len(self.asked)]["response"]
        self.asked.append(json.loads(await request.aread()))
        headers = {"content-type": response["headers"]["content-type"][0]}
        if "parsed_body" in response:
            return httpx2.Response(response["status"]["code"], headers=headers, json=response["parsed_body"])
        return httpx2.Response(response["status"]["code"], headers=headers, content=response["body"]["string"].encode())

    @property
    def recorded(self) -> list[dict[str, Any]]:
        return [interaction["request"]["parsed_body"] for interaction in self.interactions]

    def said(self, number: int) -> dict[str, Any]:
        message: dict[str, Any] = self.interactions[number]["response"]["parsed_body"]["choices"][0]["message"]
        return message

    def chat(self, provider: str) -> OpenAIChat:
        asked = self.recorded[0]["model"]
        return OpenAIChat(asked, endpoint=BUILT_IN[provider], api_key="k", client=self.client)


def assistant(body: dict[str, Any]) -> list[dict[str, Any]]:
    return [message for message in body["messages"] if message["role"] == "assistant"]


def meaning(message: dict[str, Any]) -> dict[str, Any]:
    """A message without what a client may choose: its call ids, and the spelling of arguments and of nothing."""
    calls = [
        (call["function"]["name"].rpartition("__")[2], json.loads(call["function"]["arguments"]))
        for call in message.get("tool_calls") or ()
    ]
    left = {key: value for key, value in message.items() if key not in ("tool_calls", "prefix")}
    return {**left, "content": left.get("content") or None, "calls": calls}


@tool(effect="pure")
def load_capability(id: str) -> str:
    """Load a capability to access its full instructions and tools."""
    return "{}"


@tool(effect="pure")
def get_player_name() -> str:
    """Get the player's name."""
    return "Anne"


@tool(effect="pure")
def roll_dice() -> str:
    """Roll a six-sided die and return the result."""
    return "4"


@pytest.mark.spec("LOOP-PROV-04")
async def test_deepseek_gets_its_reasoning_back_in_a_tool_loop(tmp_path: Path) -> None:
    recording = Recording("deepseek_deferred_capability_with_thinking")
    tools = [load_capability, get_player_name, roll_dice]
    agent = Agent("dice", model=recording.chat("deepseek"), tools=tools)
    result = await run(agent, "My guess is 4", store=tmp_path / "runs.db")
    assert result.status == "completed" and "Anne" in str(result.output)
    # The recorded client put a call of its own between the first two: those messages are not the server's.
    theirs = [each for each in assistant(recording.recorded[2]) if each["reasoning_content"]]
    assert [meaning(each) for each in assistant(recording.asked[2])] == [meaning(each) for each in theirs]
    assert all(isinstance(each["reasoning_content"], str) for each in assistant(recording.asked[2]))


@pytest.mark.spec("LOOP-PROV-04")
async def test_cerebras_gets_its_reasoning_back_in_the_next_turn(tmp_path: Path) -> None:
    recording = Recording("cerebras_thinking_part_survives_multiturn")
    agent = Agent("adder", model=recording.chat("cerebras"))
    for words in ("What is 2 + 2? Think briefly first.", "Now add 3 to that."):
        result = await run(agent, words, store=tmp_path / "runs.db", thread="sums")
    assert result.output == "\\(4 + 3 = 7\\)."
    asked = [message for message in recording.asked[1]["messages"] if message["role"] != "system"]
    assert asked == recording.recorded[1]["messages"]


@pytest.mark.parametrize(
    "name",
    ["openrouter_map_messages_reasoning", "openrouter_stream_with_reasoning", "openrouter_preserve_reasoning_block"],
)
async def test_openrouter_gets_its_reasoning_details_back(name: str, tmp_path: Path) -> None:
    """Recorded without a next request: what the server gave is what it documents to take."""
    recording = Recording(name, skip=1 if "preserve" in name else 0)
    given = {}
    if "stream" in name:
        for line in recording.interactions[0]["response"]["body"]["string"].splitlines():
            if '"reasoning_details"' in line:
                delta = json.loads(line.removeprefix("data: "))["choices"][0]["delta"]
                given = {"reasoning_details": delta["reasoning_details"]}
    else:
        given = {
            key: recording.said(0)[key] for key in ("reasoning", "reasoning_details") if recording.said(0).get(key)
        }
    assert given.get("reasoning_details")
    recording.interactions *= 2
    agent = Agent("who", model=recording.chat("openrouter"))
    for words in ("Who are you?", "And now?"):
        await run(agent, words, store=tmp_path / "runs.db", thread="talk")
    (message,) = assistant(recording.asked[1])
    assert {key: value for key, value in message.items() if key.startswith("reasoning")} == given


@pytest.mark.spec("LOOP-PROV-04")
async def test_mistral_gets_its_thinking_parts_back(tmp_path: Path) -> None:
    recording = Recording("mistral_model_thinking_part", skip=1)
    recording.interactions *= 2
    agent = Agent("guide", model=recording.chat("mistral"))
    for words in ("How do I cross the river?", "And the sea?"):
        await run(agent, words, store=tmp_path / "runs.db", thread="ways")
    (message,) = assistant(recording.asked[1])
    assert message["content"] == recording.said(0)["content"]
    shape = [[part["type"] for part in each["content"]] for each in assistant(recording.recorded[0])]
    assert [[part["type"] for part in message["content"]]] == shape, "what the server took from another client"


@tool(effect="pure")
def get_something_by_name(name: str) -> str:
    """Get something."""
    return f"Something with name: {name}"


@pytest.mark.parametrize("name", ["tool_use_failed_error", "tool_use_failed_error_streaming"])
async def test_a_call_that_groq_refuses_goes_back_to_the_model_as_its_own(name: str, tmp_path: Path) -> None:
    recording = Recording(name)
    agent = Agent("tester", model=recording.chat("groq"), instructions="Be concise.", tools=[get_something_by_name])
    result = await run(agent, "Please call it wrongly first", store=tmp_path / "runs.db")
    assert result.status == "completed" and len(recording.asked) == 3
    (failed,) = [each.fact.event for each in result.facts() if isinstance(each.fact.event, ToolFailed)]
    assert (failed.tool_error.kind, "missing properties: 'name'" in failed.message) == ("invalid_arguments", True)
    ours, theirs = (
        [(meaning(each)["calls"]) for each in assistant(bodies[2])] for bodies in (recording.asked, recording.recorded)
    )
    assert ours == theirs
    roles = [[message["role"] for message in bodies[1]["messages"]] for bodies in (recording.asked, recording.recorded)]
    assert roles[0] == roles[1]
    refusal = recording.asked[1]["messages"][-1]
    assert "did not match schema" in refusal["content"]
    # What the model thought is given back where the server put it; the recorded client wrote it into the text.
    thought = assistant(recording.asked[2])[-1]["reasoning"]
    assert thought in assistant(recording.recorded[2])[-1]["content"]


@pytest.mark.spec("LOOP-PROV-04")
async def test_deepseek_gets_reasoning_back_on_responses_too(tmp_path: Path) -> None:
    recording = Recording("deepseek_responses_replay_own_reasoning_history")
    there = Endpoint("deepseek", "openai_responses", "https://api.deepseek.com")
    model = OpenAIResponses(recording.recorded[0]["model"], endpoint=there, api_key="k", client=recording.client)
    for words in ("Reply exactly: done", "Reply exactly: again"):
        await run(Agent("echo", model=model), words, store=tmp_path / "runs.db", thread="echo")
    (ours,) = [item for item in recording.asked[1]["input"] if item["type"] == "reasoning"]
    theirs = [item for item in recording.recorded[1]["input"] if item.get("type") == "reasoning"][-1]
    kept = ("type", "id", "content", "summary")
    assert {key: ours[key] for key in kept} == {key: theirs[key] for key in kept}
    given = recording.interactions[0]["response"]["parsed_body"]["output"][0]
    assert ours == {key: value for key, value in given.items() if key != "status"}
