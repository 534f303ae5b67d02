"""Recorded conversations of every wire format, had by whole runs: each request has to fit the vendor's own types.

The recorded answers are played to an agent with tools and a store, in order and for two turns of a thread. Then the
same conversation goes on at a model of another format, which has to take it over.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from kit.wires.provider_server import Asked, ProviderServer, serving
from kit.wires.spoken_replies import Says, tell
from kit.wires.vendor_types import HANDED_BACK, judge
from wakeful import Agent, Budget, run, tool
from wakeful.ports import Model
from wakeful.providers import AnthropicMessages, Gemini, OpenAIChat, OpenAIResponses
from wakeful.providers.endpoints import BUILT_IN, Endpoint

RECORDINGS = Path(__file__).resolve().parents[3] / "shared" / "recordings"
KEY = "sk-not-to-be-seen-0123456789"
FORMATS: dict[str, Callable[..., Model]] = {
    "anthropic-messages": AnthropicMessages,
    "gemini": Gemini,
    "openai-chat": OpenAIChat,
    "openai-responses": OpenAIResponses,
}
FILES = [
    *(path for folder in sorted(FORMATS) for path in sorted(RECORDINGS.glob(f"{folder}*/*.json"))),
    *sorted((RECORDINGS / "compatible").glob("*.yaml")),
    *sorted((RECORDINGS / "gemini").glob("*.yaml")),
]
pytestmark = pytest.mark.skipif(
    not FILES, reason="needs recorded traffic in ../shared/recordings, which is not part of the repository"
)


@tool(effect="pure")
def get_weather(city: str) -> str:
    """Get the weather of a city."""
    return json.dumps({"city": city, "temperature": 22})


@tool(effect="pure")
def get_player_name() -> str:
    """Get the player's name."""
    return "Anne"


@tool(effect="pure")
def get_something_by_name(name: str) -> str:
    """Get something."""
    return f"Something with name: {name}"


class Played:
    """The recorded answers of one conversation, over and over, and what was asked."""

    def __init__(self, path: Path) -> None:
        text = path.read_text("utf-8")
        recorded = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
        exchanges = [_exchange(each) for each in recorded["interactions"] if is_asked(each["request"])]
        self.url, self.name = exchanges[-1][:2]
        self._answers = [answer for url, _, answer in exchanges if _plain(url) == _plain(self.url)]
        self.asked: list[Asked] = []
        self.client = httpx2.AsyncClient(transport=httpx2.MockTransport(self._answer))

    async def _answer(self, request: httpx2.Request) -> httpx2.Response:
        status, kind, body = self._answers[len(self.asked) % len(self._answers)]
        self.asked.append(Asked(request.url.path, dict(request.headers), json.loads(await request.aread())))
        return httpx2.Response(status, headers={"content-type": kind}, content=body)

    def model(self, folder: str) -> Model:
        make = next((make for name, make in FORMATS.items() if folder.startswith(name)), None)
        if make is not None:
            return make(self.name, api_key=KEY, client=self.client)
        host = httpx2.URL(self.url).host
        if self.url.endswith("/responses"):
            there = Endpoint("theirs", "openai_responses", f"https://{host}")
            return OpenAIResponses(self.name, endpoint=there, api_key=KEY, client=self.client)
        there = next(each for each in BUILT_IN.values() if each.host == host)
        return OpenAIChat(self.name, endpoint=there, api_key=KEY, client=self.client)


def is_asked(request: dict[str, Any]) -> bool:
    """A model was asked; in some recordings a file was fetched, or tokens were counted, too."""
    url = str(request.get("uri") or request["url"])
    return request["method"] == "POST" and not url.endswith(":countTokens")


def _plain(url: str) -> str:
    """An address, however it was asked to answer."""
    return url.partition("?")[0].replace(":streamGenerateContent", ":generateContent")


def _model_in(url: str, body: dict[str, Any]) -> str:
    """The model that was asked: Gemini's stands in the address."""
    return str(body.get("model") or url.partition("/models/")[2].partition(":")[0])


def _exchange(each: dict[str, Any]) -> tuple[str, str, tuple[int, str, bytes]]:
    request, response = each["request"], each["response"]
    if "uri" not in request:
        kind = response["headers"].get("content-type", "text/event-stream")
        return (
            request["url"],
            _model_in(request["url"], json.loads(request["body"])),
            (response["status"], kind, response["body"].encode()),
        )
    said = response["parsed_body"] if "parsed_body" in response else response["body"]["string"]
    body = said if isinstance(said, str) else json.dumps(said)
    answer = response["status"]["code"], response["headers"]["content-type"][0], body.encode()
    return request["uri"], _model_in(request["uri"], request["parsed_body"]), answer


def another(server: ProviderServer, name: str) -> Model:
    """A model of a format, which answers in words."""
    base = server.url if name == "anthropic-messages" else f"{server.url}/v1"
    asked = {"anthropic-messages": "claude-opus-4-7", "gemini": "gemini-3.8-flash"}.get(name, "gpt-5.5")
    return FORMATS[name](asked, base_url=base, api_key=KEY)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem.removeprefix('test_')}")
async def test_what_a_run_sends_in_a_recorded_conversation_fits_the_vendors_types(path: Path, tmp_path: Path) -> None:
    played = Played(path)
    tools: list[Any] = [get_weather, get_player_name, get_something_by_name]
    agent = Agent("a", played.model(path.parent.name), "Be brief.", tools)
    # Some recordings end with a call: played over and over, only the budget ends them.
    once: dict[str, Any] = {"store": tmp_path / "runs.db", "thread": "t", "budget": Budget(model_calls=4)}
    for words in ("What is the weather in Paris?", "And now?"):
        await run(agent, words, **once)
    assert len(played.asked) >= 2
    with serving() as server:
        for name in FORMATS:
            tell(server, Says("done"))
            assert (await run(agent, "Go on.", **once, model=another(server, name))).output == "done"
        assert len(server.asked) == len(FORMATS)
    for asked in (*played.asked, *server.asked):
        judge(asked, handed_back=HANDED_BACK)
        assert "prompt_cache_key" not in asked.body or not asked.path.endswith("/messages")
