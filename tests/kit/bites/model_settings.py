"""Settings of a model request: each with values, and what a provider gets under each of them."""

import threading
from pathlib import Path
from typing import Any

from kit.bites import Bites
from kit.wires.provider_server import Asked, serving
from kit.wires.spoken_replies import Says, spoken, tool_names
from wakeful import Agent, Retry, run, tool
from wakeful.providers import AnthropicMessages, Gemini, OpenAIChat, OpenAIResponses
from wakeful.testing import ProviderServer

MODEL_SETTINGS = Bites()
AT_ONCE = Retry(patience=0)
KEY = "sk-not-to-be-seen-0123456789"


@tool(effect="pure")
def look() -> str:
    """Look."""
    return "fine"


@tool(effect="pure")
def show() -> str:
    """Show."""
    return "fine"


async def asked_under(wire: str, settings: dict[str, Any]) -> Asked:
    """The first request of a run."""
    with serving() as server:
        server.always = spoken(Says("done"))
        models: dict[str, Any] = {
            "chat": lambda: OpenAIChat("gpt-4o", base_url=f"{server.url}/v1", api_key=KEY, provider="openai"),
            "responses": lambda: OpenAIResponses("gpt-5.5", base_url=f"{server.url}/v1", api_key=KEY),
            "messages": lambda: AnthropicMessages("claude-sonnet-4-5", base_url=server.url, api_key=KEY),
        }
        await run(Agent("desk", models[wire](), "Be brief.", [look, show], settings=settings), "go")
        return server.asked[0]


def sent(setting: str, wire: str, *values: Any, under: str | None = None) -> None:
    """The setting is sent as it is, under this name."""

    async def observe(value: Any, folder: Path) -> Any:
        return (await asked_under(wire, {setting: value})).body[under or setting]

    MODEL_SETTINGS.of(f"settings.{setting}", *((value, value) for value in values))(observe)


sent("temperature", "chat", 0.1, 0.9)
sent("top_p", "chat", 0.1, 0.9)
sent("max_tokens", "responses", 16, 32, under="max_output_tokens")
sent("stop", "messages", ["END"], ["A", "B"], under="stop_sequences")
sent("seed", "chat", 1, 2)
sent("presence_penalty", "chat", -1, 1)
sent("frequency_penalty", "chat", -1, 1)
sent("logit_bias", "chat", {"7": 1}, {"8": 1})
sent("parallel_tool_calls", "responses", True, False)
sent("service_tier", "responses", "flex", "priority")
sent("user", "responses", "u-1", "u-2")
sent("metadata", "responses", {"a": "1"}, {"b": "2"})


@MODEL_SETTINGS.of(
    "settings.tool_choice",
    ("auto", ("auto", 2)),
    ("required", ({"type": "any"}, 2)),
    ("none", ({"type": "none"}, 2)),
    ("look", ({"type": "tool", "name": "look"}, 2)),
)
async def _choice(value: Any, folder: Path) -> Any:
    body = (await asked_under("messages", {"tool_choice": value})).body
    return body.get("tool_choice", "auto"), len(tool_names(body))


@MODEL_SETTINGS.of(
    "settings.thinking",
    ("low", {"type": "enabled", "budget_tokens": 2_048}),
    (5_000, {"type": "enabled", "budget_tokens": 5_000}),
    (False, {"type": "disabled"}),
)
async def _thinking(value: Any, folder: Path) -> Any:
    return (await asked_under("messages", {"thinking": value})).body["thinking"]


@MODEL_SETTINGS.of(
    "settings.cache", (True, {"type": "ephemeral"}), ("1h", {"type": "ephemeral", "ttl": "1h"}), (False, None)
)
async def _cache(value: Any, folder: Path) -> Any:
    return (await asked_under("messages", {"cache": value})).body["system"][0].get("cache_control")


@MODEL_SETTINGS.of("settings.timeout", (0.2, "failed"), (600, "completed"))
async def _timeout(value: float, folder: Path) -> Any:
    over = threading.Event()
    if value > 1:
        over.set()

    def late(asked: Asked) -> Any:
        over.wait()  # no answer comes before the run has given up, however long that takes it
        answer: Any = spoken(Says("done"))
        return answer(asked)

    with serving() as server:
        server.always = late
        model = OpenAIChat("gpt-4o", base_url=f"{server.url}/v1", api_key=KEY)
        try:
            return (await run(Agent("desk", model, settings={"timeout": value}, retry=AT_ONCE), "go")).status
        finally:
            over.set()


@MODEL_SETTINGS.of("settings.first_byte_timeout", (0.2, "failed"), (600, "completed"))
async def _first_byte(value: float, folder: Path) -> Any:
    with ProviderServer(["done"]) as server:
        if value < 1:
            server.weather.always("hang")
        desk = Agent("desk", server.model("openai:gpt-5.5"), settings={"first_byte_timeout": value}, retry=AT_ONCE)
        return (await run(desk, "go")).status


@MODEL_SETTINGS.of("settings.extra_headers", ({"x-trace": "a"}, "a"), ({"x-trace": "b"}, "b"))
async def _headers(value: dict[str, str], folder: Path) -> Any:
    return (await asked_under("chat", {"extra_headers": value})).headers["x-trace"]


@MODEL_SETTINGS.of("settings.extra_body", ({"top_k": 3}, 3), ({"top_k": 4}, 4))
async def _body(value: dict[str, Any], folder: Path) -> Any:
    return (await asked_under("chat", {"extra_body": value})).body["top_k"]


@MODEL_SETTINGS.of("settings.anthropic", ({"top_k": 3}, 3), ({"top_k": 4}, 4))
async def _anthropic(value: dict[str, Any], folder: Path) -> Any:
    return (await asked_under("messages", {"anthropic": value})).body["top_k"]


@MODEL_SETTINGS.of(
    "settings.openai", ({"verbosity": "low"}, {"verbosity": "low"}), ({"verbosity": "high"}, {"verbosity": "high"})
)
async def _openai(value: dict[str, Any], folder: Path) -> Any:
    return (await asked_under("responses", {"openai": value})).body["text"]


@MODEL_SETTINGS.of("settings.gemini", ({"top_k": 1}, 1), ({"top_k": 2}, 2))
async def _gemini(value: dict[str, Any], folder: Path) -> Any:
    with serving() as server:
        server.always = spoken(Says("done"))
        model = Gemini("gemini-3.8-flash", base_url=f"{server.url}/v1beta", api_key=KEY)
        await run(Agent("desk", model, settings={"gemini": value}), "go")
        return server.asked[0].body["generationConfig"]["topK"]


@MODEL_SETTINGS.of("settings.stream", (True, True), (False, False))
async def _stream(value: bool, folder: Path) -> Any:
    return (await asked_under("chat", {"stream": value})).body["stream"]
