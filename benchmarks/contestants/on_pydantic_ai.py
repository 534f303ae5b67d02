"""pydantic-ai: `Agent.run` on a scripted model.

The model is a subclass of `Model` and not `FunctionModel`: that one estimates the tokens of the whole history at
every call, a cost of the test double that would be charged to the library.
"""

from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage, UsageLimits

from contestants import Turn
from contestants.work import FINAL, PROMPT, TOOL, add, arguments


class Scripted(Model):
    """Gives the next reply of a list."""

    def __init__(self, replies: list[ModelResponse]) -> None:
        super().__init__()
        self._replies = iter(replies)

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        self.prepare_request(model_settings, model_request_parameters)
        return next(self._replies)

    @property
    def model_name(self) -> str:
        return "scripted"

    @property
    def system(self) -> str:
        return "scripted"


def prepare(rounds: int, folder: Path) -> Turn:
    usage = RequestUsage(input_tokens=10, output_tokens=5)
    replies = [
        ModelResponse(parts=[ToolCallPart(TOOL, arguments(i), tool_call_id=f"call_{i}")], usage=usage)
        for i in range(rounds)
    ]
    replies.append(ModelResponse(parts=[TextPart(FINAL)], usage=usage))
    agent = Agent(Scripted(replies), tools=[add])

    async def turn() -> str:
        result = await agent.run(PROMPT, usage_limits=UsageLimits(request_limit=None))
        return result.output

    return turn
