"""Replies are streamed by default; `settings={"stream": False}` asks for them whole, and the facts are the same."""

from typing import Any

from wakeful import Agent, run
from wakeful.contracts.model_settings import ModelSettings
from wakeful.ports import ModelRequest
from wakeful.testing import scripted


async def asked(settings: dict[str, Any] | None) -> tuple[bool, ModelSettings, list[str]]:
    seen: list[ModelRequest] = []

    def answer(request: ModelRequest) -> str:
        seen.append(request)
        return "hi"

    result = await run(Agent("a", scripted(answer), settings=settings), "hello")
    (request,) = seen
    return request.stream, request.settings, [entry.fact.event.kind for entry in result.facts()]


async def test_streaming_is_the_default_and_can_be_turned_off() -> None:
    by_default, _, streamed = await asked(None)
    off, settings, whole = await asked({"stream": False, "temperature": 0.5})
    assert (by_default, off) == (True, False)
    assert settings == ModelSettings(temperature=0.5)
    assert streamed == whole
