"""openai-agents: `Runner.run` on a scripted model, tracing off, no turn limit."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from agents import Agent, RunConfig, Runner, function_tool
from agents.items import ModelResponse
from agents.models.interface import Model
from agents.usage import Usage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from contestants import Turn
from contestants.work import FINAL, PROMPT, TOOL, add, arguments


class Scripted(Model):
    """Gives the next reply of a list."""

    def __init__(self, replies: list[ModelResponse]) -> None:
        self._replies = iter(replies)

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        return next(self._replies)

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        raise NotImplementedError("this benchmark does not stream")


def _reply(item: ResponseFunctionToolCall | ResponseOutputMessage) -> ModelResponse:
    usage = Usage(requests=1, input_tokens=10, output_tokens=5, total_tokens=15)
    return ModelResponse(output=[item], usage=usage, response_id=None)


def prepare(rounds: int, folder: Path) -> Turn:
    replies = [
        _reply(
            ResponseFunctionToolCall(
                name=TOOL, arguments=json.dumps(arguments(i)), call_id=f"call_{i}", type="function_call"
            )
        )
        for i in range(rounds)
    ]
    text = ResponseOutputText(text=FINAL, type="output_text", annotations=[])
    replies.append(
        _reply(ResponseOutputMessage(id="final", content=[text], role="assistant", status="completed", type="message"))
    )
    agent = Agent(name="bench", model=Scripted(replies), tools=[function_tool(add)])

    async def turn() -> str:
        result = await Runner.run(agent, PROMPT, max_turns=None, run_config=RunConfig(tracing_disabled=True))
        return str(result.final_output)

    return turn
