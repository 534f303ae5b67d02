"""Runs of the library against a peer: asked at once or watched, with tools that are worth calling."""

from collections.abc import Sequence
from typing import Any

from kit.runs.engine_runs import of_kind
from wakeful import Agent, RunResult, run, stream, tool
from wakeful.contracts.events import ModelFailed
from wakeful.ports import Model
from wakeful.providers.wire.http import Timeouts

SOON = Timeouts(connect=20, first_byte=3, between_chunks=3, whole=60)
"""For a server that stalls: everything else on this machine answers much sooner."""


@tool(effect="pure")
def get_weather(city: str) -> str:
    """Get the current weather for a city."""
    return f"21 degrees in {city}"


@tool(effect="pure")
def get_time(city: str) -> str:
    """Get the current time in a city."""
    return f"noon in {city}"


def agent_on(model: Model, *fallbacks: Model, tools: Sequence[Any] = ()) -> Agent[Any, Any]:
    return Agent("traveller", model, "Be brief.", tools, fallbacks=fallbacks)


async def asked(agent: Agent[Any, Any], prompt: str, *, watched: bool = True, **options: Any) -> RunResult[Any]:
    """One run: watched while it streams, or without a stream at all."""
    if not watched:
        return await run(agent, prompt, settings={"stream": False}, **options)
    async with stream(agent, prompt, **options) as events:
        shown = [event async for event in events]
        result = await events.result()
    if result.completed:
        assert "".join(event.text for event in shown if event.type == "text").endswith(result.output)
    return result


def lost(result: RunResult[Any]) -> list[tuple[str, str, int, str]]:
    """Kind, stage, attempt and disposition of every lost attempt."""
    return [(each.failure_kind, each.stage, each.attempt, each.disposition) for each in of_kind(result, ModelFailed)]
