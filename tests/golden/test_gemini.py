"""Recorded traffic with Gemini's own API: what we make of each answer, and our request beside the recorded one.

The recordings stand beside the repository where it is developed; where they are absent these tests are skipped.
"""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kit.wires.gemini_samples import decoded, sse
from kit.wires.gemini_vendor import our_facts, read_by_vendor, sdk_answers, with_plain_base64
from kit.wires.model_requests import a_request
from wakeful.contracts.content import File, Image, Text, Thinking
from wakeful.contracts.conversation import AssistantItem, CallPart, History, ToolItem, UserItem
from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.models import ArgumentsDelta, ReasoningDelta, Reply, TextDelta, TokenUsage
from wakeful.contracts.tools import ToolDeclaration
from wakeful.providers.gemini.decode import decode_response
from wakeful.providers.gemini.encode import GeminiEncoder
from wakeful.providers.profiles import profile_of
from wakeful.providers.wire.names import WireNames
from wakeful.providers.wire.sse import SseParser

RECORDINGS = Path(__file__).resolve().parents[3] / "shared" / "recordings" / "gemini"
FILES = [*sorted(RECORDINGS.glob("*.json")), *sorted(RECORDINGS.glob("*.yaml"))]
BLOCKED = "google_model_safety_settings-0"


def _read(path: Path) -> list[dict[str, Any]]:
    """The exchanges with Gemini in a file: request, model, whether it streamed, and the answers."""
    text = path.read_text("utf-8")
    recorded = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    found = []
    for each in recorded["interactions"]:
        request, response = each["request"], each["response"]
        url = str(request.get("uri") or request["url"])
        if "enerateContent" not in url:
            continue
        body = with_plain_base64(request.get("parsed_body") or json.loads(request["body"]))
        said = response.get("parsed_body")
        if said is None:
            said = response["body"] if isinstance(response["body"], str) else response["body"]["string"]
        stream = said.encode() if isinstance(said, str) else None
        answers = [said] if stream is None else [json.loads(event[1]) for event in SseParser().feed(stream)]
        model = url.partition("/models/")[2].partition(":")[0]
        found.append({"request": body, "model": model, "stream": stream, "answers": answers})
    return found


EXCHANGES = {
    f"{path.stem.removeprefix('test_').removeprefix('opencode-')}-{number}": exchange
    for path in FILES
    for number, exchange in enumerate(_read(path))
}
ANSWERED = [name for name in EXCHANGES if name != BLOCKED]
STREAMS = [name for name, exchange in EXCHANGES.items() if exchange["stream"] is not None]

pytestmark = pytest.mark.skipif(not FILES, reason="needs the recordings in ../shared/recordings, which are not here")


def reply_in(name: str) -> Reply:
    exchange = EXCHANGES[name]
    if exchange["stream"] is not None:
        return decoded(exchange["stream"])[1]
    return decode_response(json.dumps(exchange["answers"][0]).encode(), WireNames())


# --- answers ----------------------------------------------------------------------------------------------------------


def test_enough_was_recorded_to_look_at() -> None:
    assert len(ANSWERED) > 40
    assert len(STREAMS) > 8


@pytest.mark.parametrize("name", ANSWERED)
def test_the_vendor_s_types_read_the_same_in_a_recorded_answer(name: str) -> None:
    assert our_facts(reply_in(name)) == sdk_answers(EXCHANGES[name]["answers"])


@pytest.mark.parametrize("name", ANSWERED)
def test_a_recorded_answer_is_the_same_reply_at_once_and_as_a_stream_of_any_pieces(name: str) -> None:
    *early, last = EXCHANGES[name]["answers"]
    parts = [part for each in (*early, last) for part in each["candidates"][0]["content"].get("parts", ())]
    whole = json.loads(json.dumps(last))
    whole["candidates"][0]["content"]["parts"] = parts
    at_once = decode_response(json.dumps(whole).encode(), WireNames())
    pieces = []
    for at, part in enumerate(parts):
        candidate = {**last["candidates"][0], "content": {"role": "model", "parts": [part]}}
        if at < len(parts) - 1:
            candidate = {key: value for key, value in candidate.items() if key != "finishReason"}
        pieces.append({**last, "candidates": [candidate]})
    glimpses, streamed = decoded(sse(pieces or [last]))
    assert (streamed.item, streamed.stop_reason, streamed.usage) == (at_once.item, at_once.stop_reason, at_once.usage)
    assert "".join(each.text for each in glimpses if isinstance(each, TextDelta)) == streamed.item.text
    thoughts = "".join(part.text for part in streamed.item.parts if isinstance(part, Thinking))
    assert "".join(each.text for each in glimpses if isinstance(each, ReasoningDelta)) == thoughts
    shown = [json.loads(each.text) for each in glimpses if isinstance(each, ArgumentsDelta)]
    assert shown == [call.arguments for call in streamed.item.calls]


def test_tokens_of_the_cache_of_thoughts_and_of_searches_are_counted() -> None:
    assert reply_in("reports-cachedcontenttokencount-on-identical-second-call-1").usage == TokenUsage(
        input_tokens=1200, output_tokens=2, total_tokens=1202, cached_input_tokens=1100
    )
    assert reply_in("streams-tool-call-0").usage == TokenUsage(
        input_tokens=55, output_tokens=60, total_tokens=115, reasoning_tokens=45
    )
    searched = reply_in("google_model_web_search_tool_stream-0").usage
    assert searched is not None
    assert searched.input_tokens == 17 + 102


def test_parallel_calls_come_with_the_signature_on_the_first() -> None:
    first, *others = reply_in("google_instructions_only_with_tool_calls-0").item.calls
    assert [call.name for call in (first, *others)] == ["generate_topic"] * 3
    assert [*first.opaque] == ["thoughtSignature"]
    assert [call.opaque for call in others] == [{}, {}]


def test_an_answer_that_was_blocked_is_content_filtered_with_the_reason_and_its_tokens() -> None:
    with pytest.raises(ModelFailure, match=r"SAFETY, hate_speech") as raised:
        reply_in(BLOCKED)
    assert raised.value.kind == "content_filtered"
    assert raised.value.usage == TokenUsage(input_tokens=14, total_tokens=14)


def test_sources_of_a_recorded_search_are_cited_with_the_words_that_they_support() -> None:
    for name in ("google_model_web_search_tool_stream-0", "google_model_web_search_tool_stream-1"):
        item = reply_in(name).item
        assert item.server_tools == ("web_search",)
        assert item.citations
        assert all(each["source_url"].startswith("https://") and each["source_title"] for each in item.citations)
        words = [each["supports"] for each in item.citations]
        assert all(part in item.text for part in words)


# --- cuts -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", STREAMS)
def test_a_recorded_stream_cut_after_any_event_is_a_lost_attempt(name: str) -> None:
    pieces = EXCHANGES[name]["stream"].replace(b"\r\n", b"\n").strip(b"\n").split(b"\n\n")
    assert decoded(b"\n\n".join(pieces) + b"\n\n")[1].item.parts
    for length in range(len(pieces)):
        check_lost(b"\n\n".join(pieces[:length]) + b"\n\n")


@pytest.mark.parametrize("name", STREAMS)
def test_a_recorded_stream_cut_after_any_byte_is_a_lost_attempt(name: str) -> None:
    stream = EXCHANGES[name]["stream"]
    last = len(stream.rstrip(b"\r\n"))
    for length in (*range(0, last, 97), *range(max(0, last - 64), last + 1)):
        check_lost(stream[:length])


def check_lost(stream: bytes) -> None:
    with pytest.raises(ModelFailure) as raised:
        decoded(stream)
    assert (raised.value.kind, raised.value.stage) == ("stream_interrupted", "body")


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        ("UNAVAILABLE", 503, "overloaded"),
        ("INTERNAL", 500, "server_error"),
        ("RESOURCE_EXHAUSTED", 429, "rate_limited"),
        ("DEADLINE_EXCEEDED", 504, "timeout"),
    ],
)
def test_an_error_in_the_middle_of_a_recorded_stream_is_the_failure_it_names(
    name: str, status: str, code: int, kind: str
) -> None:
    events = [b"data: " + event[1] + b"\n\n" for event in SseParser().feed(EXCHANGES[name]["stream"])]
    words = "The model is overloaded. Please try again later." if code == 503 else "not now"
    error = {"error": {"code": code, "message": words, "status": status}}
    with pytest.raises(ModelFailure) as raised:
        decoded(b"".join(events[:-1]) + sse([error]))
    assert (raised.value.kind, raised.value.status) == (kind, code)


# --- requests ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXCHANGES)
def test_our_request_for_a_recorded_conversation_says_the_same_and_fits_the_vendor_s_types(name: str) -> None:
    exchange = EXCHANGES[name]
    ours = request_like(exchange)
    assert with_plain_base64(read_by_vendor(ours)) == ours
    assert said_in(ours) == said_in(exchange["request"])


def test_a_reply_goes_back_as_it_came_with_its_signature_byte_for_byte() -> None:
    for name in ANSWERED:
        came = [part for each in EXCHANGES[name]["answers"] for part in each["candidates"][0]["content"]["parts"]]
        reply = reply_in(name)
        item = reply.item.model_copy(
            update={"parts": tuple(_with_id(part, at) for at, part in enumerate(reply.item.parts))}
        )
        encoder = GeminiEncoder("gemini-3.8-flash", profile_of("gemini-3.8-flash"))
        body = json.loads(b"".join(encoder.body(a_request(history=History([UserItem(parts=(Text("?"),)), item])))))
        back = body["contents"][1]["parts"]
        signed = [part["thoughtSignature"] for part in came if "thoughtSignature" in part]
        sent = [part["thoughtSignature"] for part in back if "thoughtSignature" in part]
        assert [each for each in sent if each != "skip_thought_signature_validator"] == signed
        joined = "".join(part.get("text", "") for part in came)
        assert "".join(part.get("text", "") for part in back) == joined


def _with_id(part: Any, at: int) -> Any:
    return part.model_copy(update={"call_id": f"call_{at}"}) if isinstance(part, CallPart) else part


def test_thoughts_of_another_provider_are_left_out() -> None:
    item = AssistantItem(
        parts=(Thinking(text="secret", provider="openai", opaque={"id": "rs_1"}), Text("Hello.")), provider="openai"
    )
    encoder = GeminiEncoder("gemini-2.5-pro", profile_of("gemini-2.5-pro"))
    body = b"".join(encoder.body(a_request(history=History([UserItem(parts=(Text("?"),)), item]))))
    assert json.loads(body)["contents"][1] == {"role": "model", "parts": [{"text": "Hello."}]}


def request_like(exchange: dict[str, Any]) -> dict[str, Any]:
    """What we would send for a recorded request's conversation, tools and settings."""
    theirs, model = exchange["request"], exchange["model"]
    config = theirs.get("generationConfig", {})
    settings = {"temperature": config.get("temperature"), "top_p": config.get("topP")}
    mode = theirs.get("toolConfig", {}).get("functionCallingConfig", {})
    tools = tuple(
        ToolDeclaration(
            name=tool["name"],
            description=tool["description"],
            input_schema=tool.get("parameters_json_schema") or {"type": "object", "properties": {}},
        )
        for listed in theirs.get("tools", ())
        for tool in listed.get("functionDeclarations", ())
    )
    encoder = GeminiEncoder(model, profile_of(model), tools)
    request = a_request(
        instructions="".join(part["text"] for part in theirs.get("systemInstruction", {}).get("parts", ())),
        history=History(items_of(theirs)),
        tools=tools,
        tool_choice=tuple(mode["allowedFunctionNames"]) if mode.get("mode") == "ANY" else "auto",
        settings={name: value for name, value in settings.items() if value is not None},
        output_schema=config.get("responseJsonSchema"),
    )
    ours: dict[str, Any] = json.loads(b"".join(encoder.body(request)))
    return ours


def items_of(theirs: dict[str, Any]) -> Iterator[Any]:
    for content in theirs["contents"]:
        if content["role"] == "model":
            yield AssistantItem(parts=tuple(map(_part, content["parts"])), provider="gemini")
            continue
        results = [part for part in content["parts"] if "functionResponse" in part]
        for part in results:
            answer = part["functionResponse"]
            said = json.dumps(answer["response"])
            is_error = "error" in answer["response"]
            yield ToolItem(call_id=answer["id"], name=answer["name"], parts=(Text(said),), is_error=is_error)
        if said := tuple(_part(part) for part in content["parts"] if "functionResponse" not in part):
            yield UserItem(parts=said)


def _part(part: dict[str, Any]) -> Any:
    if "functionCall" in part:
        call = part["functionCall"]
        beside = {key: value for key, value in part.items() if key != "functionCall"}
        return CallPart(call_id=call["id"], name=call["name"], arguments=call["args"], opaque=beside)
    if part.get("thought"):
        beside = {key: value for key, value in part.items() if key != "text"}
        return Thinking(text=part["text"], provider="gemini", opaque=beside)
    if "text" in part:
        return Text(part["text"])
    if "fileData" in part:
        there = part["fileData"]
        return File(url=there["file_uri"], media_type=there["mime_type"])
    blob = part["inlineData"]
    data, kind = base64.b64decode(blob["data"]), blob["mimeType"]
    return Image(data=data, media_type=kind) if kind.startswith("image/") else File(data=data, media_type=kind)


def said_in(body: dict[str, Any]) -> dict[str, Any]:
    """A request without what does not matter: how the result of a call is wrapped, and where a text file stands."""
    contents = []
    for content in body["contents"]:
        parts = []
        for part in content["parts"]:
            if "functionResponse" in part:
                answer = part["functionResponse"]
                parts.append({"result": [answer["id"], answer["name"], "error" in answer["response"]]})
            elif "functionCall" in part:
                parts.append(part)
            elif part.get("inlineData", {}).get("mimeType", "").startswith("text/"):
                parts.append({"text": base64.b64decode(part["inlineData"]["data"]).decode()})
            elif "fileData" in part:
                parts.append({"fileData": sorted(part["fileData"].values())})
            else:
                text = part.get("text", "")
                at = text.find("\n") + 1 if text.startswith("File ") else 0
                parts.append({**part, "text": text[at:]} if "text" in part else part)
        contents.append({"role": content["role"], "parts": parts})
    config = body.get("generationConfig", {})
    return {
        "contents": contents,
        "system": [part["text"] for part in body.get("systemInstruction", {}).get("parts", ())],
        "tools": [
            (tool["name"], tool["description"])
            for listed in body.get("tools", ())
            for tool in listed.get("functionDeclarations", ())
        ],
        "choice": body.get("toolConfig") if "allowedFunctionNames" in str(body.get("toolConfig")) else None,
        "sampling": [config.get(name) for name in ("temperature", "topP", "responseMimeType")],
    }
