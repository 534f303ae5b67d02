"""The client: where requests go, with which key, and that the two ways of asking give the same facts."""

import json
from typing import Any

import pytest

from kit.wires.gemini_samples import SIGNATURE, answer, call, sse
from kit.wires.provider_server import JSON, Answer, serving
from kit.wires.wire_formats import KEY
from wakeful import Agent, run, tool
from wakeful.contracts.errors import InvalidConfig, UnknownProvider
from wakeful.providers import Gemini
from wakeful.providers.endpoints import resolve
from wakeful.providers.model_references import model_from_reference


@tool(effect="pure")
def look(word: str) -> str:
    """Look a word up."""
    return f"{word} is fine"


@pytest.mark.parametrize("stream", [True, False])
async def test_a_whole_run_with_a_tool_sends_the_signature_back_and_the_key_in_its_header(stream: bool) -> None:
    said = [
        answer({"text": "Hm.", "thought": True}, call("look", {"word": "x"}, thoughtSignature=SIGNATURE)),
        answer({"text": "x is fine"}),
    ]
    with serving() as server:
        server.answers = [
            Answer(sse([each])) if stream else Answer(json.dumps(each).encode(), headers=JSON) for each in said
        ]
        model = Gemini("gemini-3.8-flash", base_url=f"{server.url}/v1beta", api_key=KEY)
        result = await run(Agent("a", model, tools=[look], settings={"stream": stream}), "Look.")
    assert result.output == "x is fine"
    how = "streamGenerateContent?alt=sse" if stream else "generateContent"
    assert {asked.path for asked in server.asked} == {f"/v1beta/models/gemini-3.8-flash:{how}"}
    assert {asked.headers["x-goog-api-key"] for asked in server.asked} == {KEY}
    _, thought_and_called, results = server.asked[1].body["contents"]
    thought, called = thought_and_called["parts"]
    assert thought == {"text": "Hm.", "thought": True}
    assert called["thoughtSignature"] == SIGNATURE
    assert called["functionCall"]["id"] == results["parts"][0]["functionResponse"]["id"]
    assert KEY not in json.dumps([each.body for each in server.asked])


def test_the_key_is_read_from_either_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    found = resolve("gemini:gemini-3.8-flash", environ={}, settings={})
    assert found.endpoint.key({"GOOGLE_API_KEY": "b"}).variable == "GOOGLE_API_KEY"
    assert found.endpoint.key({"GOOGLE_API_KEY": "b", "GEMINI_API_KEY": "a"}).variable == "GEMINI_API_KEY"
    with pytest.raises(InvalidConfig, match="GEMINI_API_KEY and GOOGLE_API_KEY is not set"):
        found.endpoint.key({})
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    assert repr(model_from_reference("gemini:gemini-3.8-flash")) == (
        "Gemini('gemini:gemini-3.8-flash' at generativelanguage.googleapis.com)"
    )


def test_google_is_told_to_be_gemini() -> None:
    with pytest.raises(UnknownProvider, match="Did you mean gemini"):
        resolve("google:gemini-3.8-flash", environ={}, settings={})


@pytest.mark.parametrize(
    ("name", "path"),
    [("models/gemini-x", "/v1beta/models/gemini-x"), ("a?b#c", "/v1beta/models/a%3Fb%23c")],
)
async def test_a_name_stays_a_name_in_the_address(name: str, path: str) -> None:
    with serving() as server:
        server.answers = [Answer(sse([answer({"text": "hi"})]))]
        options: dict[str, Any] = {"base_url": f"{server.url}/v1beta", "api_key": KEY}
        await run(Agent("a", Gemini(name, **options)), "Hello")
    assert server.asked[0].path == f"{path}:streamGenerateContent?alt=sse"
