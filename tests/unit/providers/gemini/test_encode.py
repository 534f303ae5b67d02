"""Requests to Gemini: settings, schemas, attachments and the order of a conversation, in the API's own words."""

import json
from typing import Any

import pytest

from kit.wires.gemini_vendor import read_by_vendor, with_plain_base64
from kit.wires.model_requests import a_request
from wakeful.contracts.content import File, Image, Text
from wakeful.contracts.conversation import AssistantItem, CallPart, History, ToolItem, UserItem
from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.tools import ToolDeclaration
from wakeful.providers.gemini.encode import GeminiEncoder
from wakeful.providers.gemini.part_writer import UNSIGNED
from wakeful.providers.profiles import profile_of

ASKED = UserItem(parts=(Text("Weather?"),))
WEATHER = ToolDeclaration(
    name="client/get_weather",
    description="Get the weather.",
    input_schema={"type": "object", "properties": {"city": {"type": "string", "pattern": "^[A-Z]"}}},
    effect="pure",
)
ANSWER = {"type": "object", "properties": {"kind": {"const": "rain"}}, "required": ["kind"]}


def body(model: str = "gemini-3.8-flash", tools: tuple[ToolDeclaration, ...] = (), **asked: Any) -> dict[str, Any]:
    """A request, which Google's types take."""
    encoder = GeminiEncoder(model, profile_of(model), tools)
    made = json.loads(b"".join(encoder.body(a_request(tools=tools, **{"history": History([ASKED]), **asked}))))
    assert with_plain_base64(read_by_vendor(made)) == with_plain_base64(made)
    found: dict[str, Any] = made
    return found


def left_out(model: str, **settings: Any) -> tuple[str, ...]:
    return GeminiEncoder(model, profile_of(model)).left_out(a_request(settings=settings))


def test_settings_are_written_in_the_words_of_the_api() -> None:
    settings = {"temperature": 0.5, "top_p": 0.9, "max_tokens": 99, "stop": "END", "seed": 7, "gemini": {"top_k": 40}}
    assert body(settings=settings)["generationConfig"] == {
        "temperature": 0.5,
        "topP": 0.9,
        "maxOutputTokens": 99,
        "stopSequences": ["END"],
        "seed": 7,
        "topK": 40,
    }


@pytest.mark.parametrize(
    ("model", "thinking", "sent"),
    [
        ("gemini-3.8-flash", "low", {"thinkingLevel": "LOW", "includeThoughts": True}),
        ("gemini-3.8-flash", 9_000, {"thinkingLevel": "HIGH", "includeThoughts": True}),
        ("gemini-2.5-flash", "medium", {"thinkingBudget": 8_192, "includeThoughts": True}),
        ("gemini-2.5-flash", 60_000, {"thinkingBudget": 24_576, "includeThoughts": True}),
        ("gemini-2.5-flash", False, {"thinkingBudget": 0}),
    ],
)
def test_thinking_is_asked_for_as_a_model_takes_it(model: str, thinking: Any, sent: dict[str, Any]) -> None:
    assert body(model, settings={"thinking": thinking})["generationConfig"]["thinkingConfig"] == sent


def test_what_a_model_cannot_take_is_named() -> None:
    assert left_out("gemini-2.0-flash", thinking="low") == ("thinking",)
    assert left_out("gemini-2.5-pro", thinking=False) == ("thinking",)
    assert left_out("gemini-3.8-flash", cache="1h", user="u", service_tier="scale") == ("service_tier", "user", "cache")


def test_vendor_fields_go_where_they_belong_in_either_spelling() -> None:
    safety = [{"category": "HARM_CATEGORY_HATE_SPEECH", "threshold": "BLOCK_NONE"}]
    made = body(settings={"gemini": {"safety_settings": safety, "mediaResolution": "MEDIA_RESOLUTION_LOW"}})
    assert made["safetySettings"] == safety
    assert made["generationConfig"] == {"mediaResolution": "MEDIA_RESOLUTION_LOW"}


def test_a_field_that_gemini_does_not_have_is_an_error_with_the_one_that_was_meant() -> None:
    with pytest.raises(ModelFailure, match=r"settings\.gemini\.topk is not a field.*did you mean 'topK'") as raised:
        body(settings={"gemini": {"topk": 40}})
    assert raised.value.kind == "contract_error"


def test_a_keyword_that_gemini_has_not_is_said_in_the_description() -> None:
    (listed,) = body(tools=(WEATHER,))["tools"]
    (declared,) = listed["functionDeclarations"]
    assert declared["parametersJsonSchema"]["properties"]["city"] == {
        "type": "string",
        "description": '(pattern: "^[A-Z]")',
    }
    encoder = GeminiEncoder("gemini-3.8-flash", profile_of("gemini-3.8-flash"), (WEATHER,))
    assert encoder.changes(a_request())[-1].endswith("pattern was moved into the description")


def test_an_answer_is_held_to_its_schema_beside_tools_only_where_a_model_takes_both() -> None:
    newer = body("gemini-3.8-flash", (WEATHER,), output_schema=ANSWER)
    assert newer["generationConfig"]["responseJsonSchema"]["properties"]["kind"] == {"enum": ["rain"]}
    older = body("gemini-2.5-flash", (WEATHER,), output_schema=ANSWER)
    assert "generationConfig" not in older
    assert "It has to fit this JSON Schema" in older["systemInstruction"]["parts"][-1]["text"]
    alone = body("gemini-2.5-flash", output_schema=ANSWER)
    assert alone["generationConfig"]["responseMimeType"] == "application/json"


def test_results_of_tools_have_a_content_of_their_own_with_what_they_show() -> None:
    calls = tuple(CallPart(call_id=f"c{n}", name="client/get_weather", arguments={}) for n in (1, 2))
    history = History(
        [
            ASKED,
            AssistantItem(parts=calls, provider="gemini"),
            ToolItem(call_id="c1", name="client/get_weather", parts=(Text("21"), Image(data=b"png"))),
            ToolItem(call_id="c2", name="client/get_weather", parts=(Text("no"),), is_error=True),
            UserItem(parts=(Text("And now?"),)),
        ]
    )
    _, _, results, after = body(tools=(WEATHER,), history=history)["contents"]
    first, shown, second = results["parts"]
    assert first["functionResponse"]["response"] == {"output": "21"}
    assert shown == {"inlineData": {"mimeType": "image/png", "data": "cG5n"}}
    assert second["functionResponse"]["response"] == {"error": "no"}
    assert after == {"role": "user", "parts": [{"text": "And now?"}]}


def test_a_call_of_another_provider_is_marked_as_unsigned_for_models_that_demand_signatures() -> None:
    call = CallPart(call_id="c1", name="client/get_weather", arguments={}, opaque={"caller": "x"})
    history = History([ASKED, AssistantItem(parts=(call,), provider="anthropic")])
    (sent,) = body(tools=(WEATHER,), history=history)["contents"][1]["parts"]
    assert sent["thoughtSignature"] == UNSIGNED
    assert "caller" not in sent
    (older,) = body("gemini-2.5-flash", (WEATHER,), history=history)["contents"][1]["parts"]
    assert "thoughtSignature" not in older


def test_a_call_without_an_answer_gets_one_and_nothing_said_is_still_a_content() -> None:
    call = CallPart(call_id="c1", name="client/get_weather", arguments={})
    history = History([ASKED, AssistantItem(parts=(call,), provider="gemini")])
    last = body(tools=(WEATHER,), history=history)["contents"][-1]
    assert last["parts"][0]["functionResponse"]["response"] == {"error": "No result of this call was recorded."}
    assert body(history=History())["contents"] == [{"role": "user", "parts": [{"text": ""}]}]


@pytest.mark.parametrize("kind", ["audio/wav", "video/mp4", "application/pdf"])
def test_sound_video_and_documents_are_shown_as_the_vendor_s_types_have_them(kind: str) -> None:
    """Sound and video were never recorded: the vendor's types are all there is to hold them against."""
    asked = UserItem(parts=(Text("What is it?"), File(name="x", data=b"\x00\xff", media_type=kind)))
    (content,) = body(history=History([asked]))["contents"]
    assert content["parts"][1] == {"inlineData": {"mimeType": kind, "data": "AP8="}}


def test_a_picture_format_that_gemini_does_not_take_is_refused_by_name() -> None:
    asked = UserItem(parts=(Image(data=b"gif", media_type="image/gif"),))
    with pytest.raises(ModelFailure, match=r"image/gif is not a format that it takes.*WebP, HEIC"):
        body(history=History([asked]))
