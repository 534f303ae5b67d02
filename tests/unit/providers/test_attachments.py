"""One rule for attachments on every wire, through `run`: shown, or refused by name before anything is sent."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from kit.wires import anthropic_vendor, chat_vendor, responses_vendor
from kit.wires.model_requests import a_request
from kit.wires.provider_server import (
    ProviderServer,
    chat_call,
    chat_words,
    messages_call,
    messages_words,
    responses_call,
    responses_words,
    serving,
)
from wakeful import Agent, File, Image, run, tool
from wakeful.contracts.conversation import History, UserItem
from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.events import RoutingCandidatesResolved, RoutingDecided, ToolResult
from wakeful.providers import AnthropicMessages, OpenAIChat, OpenAIResponses
from wakeful.testing import scripted

PNG = Image(data=b"\x89PNG")
BMP = Image(data=b"BM", media_type="image/bmp")
SCAN = File(name="scan.png", data=b"\x89PNG", media_type="image/png")
FAR = Image(url="https://pictures.test/a.png?token=secret-word")
PDF = File(name="bill.pdf", data=b"%PDF\xff", media_type="application/pdf")
FAR_PDF = File(name="bill.pdf", url="https://files.test/bill.pdf", media_type="application/pdf")
NOTES = File(name="notes.md", data=b"# notes", media_type="text/markdown")
UNTYPED = File(name="Makefile", data=b"all:\n")
WORD = File(
    name="letter.docx",
    data=b"PK\xff",
    media_type="application/vnd.openxmlformats-officedocument.wordprocessingml.document",
)
ZIP = File(name="all.zip", data=b"PK\xff", media_type="application/zip")
WAV = File(name="call.wav", data=b"RIFF\xff", media_type="audio/wav")
OGG = File(name="call.ogg", data=b"OggS\xff", media_type="audio/ogg")
MP4 = File(name="clip.mp4", data=b"\x00\x00", media_type="video/mp4")
EVERY = (PNG, BMP, SCAN, FAR, PDF, FAR_PDF, NOTES, UNTYPED, WORD, ZIP, WAV, OGG, MP4)
PICTURES = (PNG, SCAN, FAR)
TEXTS = (NOTES, UNTYPED)


class Wire(NamedTuple):
    """A model, and what of all attachments it takes."""

    name: str
    make: Any
    model: str
    words: Any
    call: Any
    accepts: Any
    takes: tuple[Any, ...]

    def at(self, server: ProviderServer) -> Any:
        return self.make(self.model, base_url=f"{server.url}/v1")

    def __str__(self) -> str:
        return self.name


_RESPONSES = (responses_words, responses_call, responses_vendor.vendor_accepts)
_CHAT = (chat_words, chat_call, chat_vendor.vendor_accepts)
_MESSAGES = (messages_words, messages_call, anthropic_vendor.accepted)
WIRES = (
    Wire("responses", OpenAIResponses, "gpt-5.5", *_RESPONSES, (*PICTURES, PDF, FAR_PDF, *TEXTS, WORD)),
    Wire("responses, words only", OpenAIResponses, "unheard-of", *_RESPONSES, TEXTS),
    Wire("chat", OpenAIChat, "gpt-4o", *_CHAT, (*PICTURES, PDF, *TEXTS)),
    Wire("chat, audio", OpenAIChat, "gpt-4o-audio-preview", *_CHAT, (WAV, *TEXTS)),
    Wire("chat, words only", OpenAIChat, "qwen3", *_CHAT, TEXTS),
    Wire("messages", AnthropicMessages, "claude-opus-4-7", *_MESSAGES, (*PICTURES, PDF, FAR_PDF, *TEXTS)),
    Wire("messages, words only", AnthropicMessages, "unheard-of", *_MESSAGES, TEXTS),
)


def named(part: Any) -> str:
    return part.name if isinstance(part, File) else part.media_type + (" url" if part.url else "")


def gap(part: Any) -> str:
    if isinstance(part, Image) or part.media_type.startswith("image/"):
        return "vision"
    return "audio" if part.media_type.startswith("audio/") else "files"


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with serving() as held:
        yield held


@pytest.mark.parametrize("wire", WIRES, ids=str)
@pytest.mark.parametrize("part", EVERY, ids=named)
async def test_an_attachment_is_shown_or_refused_by_name(part: Any, wire: Wire, server: ProviderServer) -> None:
    server.always = wire.words("seen")
    model = wire.at(server)
    result = await run(Agent("a", model), ["What is this?", part])
    if part in wire.takes:
        assert result.output == "seen", result.message
        wire.accepts(server.asked[0].body)
        return
    assert server.asked == [], "nothing was sent"
    said = result.message or ""
    assert result.stop_reason == "routing_not_possible"
    assert f"{model.ref} cannot take" in said and part.media_type in said
    if isinstance(part, File):
        assert repr(part.name) in said
    assert "It takes text files" in said and "use a model that takes it" in said
    assert "secret-word" not in said


@pytest.mark.parametrize("wire", WIRES, ids=str)
@pytest.mark.parametrize("part", EVERY, ids=named)
async def test_what_a_tool_returns_is_shown_or_named_in_its_place(
    part: Any, wire: Wire, server: ProviderServer
) -> None:
    @tool(effect="pure")
    def fetch() -> list[Any]:
        """Fetch it."""
        return ["Here:", part]

    server.answers = [lambda asked: wire.call(asked, {}), wire.words("done")]
    result = await run(Agent("a", wire.at(server), tools=[fetch]), "go")
    assert result.output == "done", result.message
    body = server.asked[1].body
    wire.accepts(body)
    told = json.dumps(body)
    assert ("was left out" in told) is (part not in wire.takes)
    assert ("It is kept with the result of this call." in told) is (part not in wire.takes)
    if part not in wire.takes and isinstance(part, File):
        assert f"the file '{part.name}'" in told
    (found,) = (entry.fact.event for entry in result.facts() if isinstance(entry.fact.event, ToolResult))
    assert part in found.item.parts, "the log has it"


@pytest.mark.parametrize("wire", WIRES, ids=str)
@pytest.mark.parametrize("part", [PNG, PDF, WAV, MP4], ids=named)
async def test_a_caller_who_can_do_without_it_has_it_left_out_and_named(
    part: Any, wire: Wire, server: ProviderServer
) -> None:
    server.always = wire.words("answered")
    agent = Agent("a", wire.at(server), settings={"accept_gap": [gap(part)]})
    result = await run(agent, ["What is this?", part])
    assert result.output == "answered", result.message
    wire.accepts(server.asked[0].body)
    assert ("was left out" in json.dumps(server.asked[0].body)) is (part not in wire.takes)


async def test_a_fallback_that_cannot_take_it_is_no_candidate(server: ProviderServer) -> None:
    server.always = chat_words("seen")
    blind, sees = OpenAIChat("qwen3", base_url=server.url), OpenAIChat("gpt-4o", base_url=server.url)
    for chain in ([blind, sees], [sees, blind]):
        result = await run(Agent("a", chain[0], fallbacks=chain[1:]), ["What is this?", PDF])
        assert result.output == "seen"
        events = [entry.fact.event for entry in result.facts()]
        (resolved,) = (event for event in events if isinstance(event, RoutingCandidatesResolved))
        (decided,) = (event for event in events if isinstance(event, RoutingDecided))
        assert [(each.model_ref, each.reason) for each in resolved.excluded] == [(blind.ref, "capability_gap")]
        assert "'bill.pdf' (application/pdf)" in resolved.excluded[0].detail
        assert (decided.selected_model_ref, decided.fallback_chain) == (sees.ref, ())
    assert {asked.body["model"] for asked in server.asked} == {"gpt-4o"}


@pytest.mark.parametrize("wire", [each for each in WIRES if "words only" in each.name], ids=str)
async def test_an_attachment_of_an_earlier_turn_is_refused_before_sending_too(
    wire: Wire, server: ProviderServer, tmp_path: Any
) -> None:
    """Another model goes on with the thread; where one follows that takes it, that one is asked."""
    store = tmp_path / "runs.db"
    first = await run(Agent("a", scripted(["seen"])), ["Look.", PDF], store=store, thread="t")
    assert first.output == "seen"
    server.always = wire.words("on")
    result = await run(Agent("a", wire.at(server)), "And now?", store=store, thread="t")
    assert server.asked == [] and "'bill.pdf'" in (result.message or "")
    able = Agent("a", wire.at(server), fallbacks=[wire._replace(model=_able(wire)).at(server)])
    assert (await run(able, "And now?", store=store, thread="t")).output == "on"


def _able(wire: Wire) -> str:
    return {"responses": "gpt-5.5", "chat": "gpt-4o", "messages": "claude-opus-4-7"}[wire.name.partition(",")[0]]


@pytest.mark.parametrize("wire", WIRES, ids=str)
def test_it_is_the_profile_and_the_wire_that_keep_it_from_being_sent(wire: Wire) -> None:
    """The inversion: said to take everything, the same model is sent all that its wire has words for."""
    model = wire.make(wire.model, base_url="http://127.0.0.1:1/v1")
    for part in EVERY:
        request = a_request(history=History([UserItem(parts=(part,))]))
        if part in wire.takes:
            assert b"".join(model._encoder(request).body(request))
            continue
        with pytest.raises(ModelFailure, match="cannot take"):
            model._encoder(request).body(request)
        open_minded = wire.make(
            wire.model, base_url="http://127.0.0.1:1/v1", profile={"images": True, "files": True, "audio": True}
        )
        sent_then = open_minded.untaken(part) is None
        assert sent_then is (part in _BY_WIRE[wire.name.partition(",")[0]]), part


_BY_WIRE = {
    "responses": (*PICTURES, PDF, FAR_PDF, *TEXTS, WORD),
    "chat": (*PICTURES, PDF, *TEXTS, WAV),
    "messages": (*PICTURES, PDF, FAR_PDF, *TEXTS),
}
"""What the wire takes from a model that takes everything."""
