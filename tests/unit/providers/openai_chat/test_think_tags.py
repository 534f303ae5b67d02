"""Reasoning between `<think>` tags: split off, streamed and not, and put together again byte for byte."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.wires.chat_streams import PEER, TOOLS, chunk, read, response, stream
from wakeful.contracts.content import Text, Thinking
from wakeful.contracts.conversation import ITEM, AssistantItem, CallPart
from wakeful.contracts.models import ReasoningDelta, TextDelta
from wakeful.providers.openai_chat.decode import decode_response
from wakeful.providers.openai_chat.dialect import COMPATIBLE, Dialect
from wakeful.providers.openai_chat.messages import Messages
from wakeful.providers.openai_chat.think_tags import AnswerText, Thought, split
from wakeful.providers.profiles import ModelProfile
from wakeful.providers.wire.attachments import Attachments
from wakeful.providers.wire.names import WireNames

NAMES = WireNames(TOOLS)
R1 = "<think>\nTwo and two.\n</think>\n\nFour."


def reply(text: str, finish: str = "stop", **options: Any) -> Any:
    return decode_response(response({"content": text}, finish), NAMES, PEER, **options)


def said(text: str, finish: str = "stop", **options: Any) -> list[tuple[str, str]]:
    return [(part.type, part.text) for part in reply(text, finish, **options).item.parts]


def content_back(item: AssistantItem, dialect: Dialect = COMPATIBLE, provider: str = "acme") -> Any:
    shown = Attachments("m", ModelProfile(), "openai_chat")
    messages = Messages(provider=provider, names=NAMES, dialect=dialect, attachments=shown)
    encoded = messages.encode(ITEM.validate_json(item.model_dump_json()))  # as it comes out of the log
    return json.loads(encoded[1:])["content"] if encoded else None


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (R1, [("thinking", "Two and two."), ("text", "Four.")]),
        ("\n <think>Hm.</think>Yes", [("thinking", "Hm."), ("text", "Yes")]),
        ("<think>\n\n</think>\n\nYes", [("thinking", ""), ("text", "Yes")]),
        ("<think>Hm.</think>", [("thinking", "Hm.")]),
        ("Use <think> and </think>.", [("text", "Use <think> and </think>.")]),
        ("<think> is a tag.", [("text", "<think> is a tag.")]),
        ("<thinking>no</thinking>", [("text", "<thinking>no</thinking>")]),
        ("<think>a</think>b<think>c</think>d", [("thinking", "a"), ("text", "b<think>c</think>d")]),
    ],
)
def test_a_block_at_the_beginning_of_a_text_is_reasoning(text: str, parts: list[tuple[str, str]]) -> None:
    assert said(text) == parts


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            "So <think>a</think> b<think>c</think>",
            [("text", "So "), ("thinking", "a"), ("text", "b"), ("thinking", "c")],
        ),
        ("So <think>a", [("text", "So <think>a")]),
        (R1, [("thinking", "Two and two."), ("text", "Four.")]),
    ],
)
def test_a_profile_finds_blocks_anywhere(text: str, parts: list[tuple[str, str]]) -> None:
    assert said(text, think_tags=True) == parts


def test_a_block_in_which_the_answer_was_cut_off_is_reasoning() -> None:
    assert said("<think>\nTwo and", "length") == [("thinking", "Two and")]
    assert said("<think>\nTwo and", "stop") == [("text", "<think>\nTwo and")]


@pytest.mark.spec("LOOP-PROV-04")
def test_a_text_with_a_block_goes_back_to_its_own_server_as_it_came() -> None:
    item = reply(R1).item
    assert content_back(item) == R1
    assert content_back(item, provider="other") == "Four."
    assert content_back(item, Dialect(returns=())) == "Four."


TEXTS = st.lists(
    st.sampled_from(["<think>", "</think>", "<", "<thi", "nk>", "</", " ", "\n", "a", "é", "Hm. "]), max_size=12
).map("".join)


@given(TEXTS, st.booleans(), st.booleans())
def test_the_pieces_of_a_text_are_the_text(text: str, everywhere: bool, cut_off: bool) -> None:
    pieces = split(text, everywhere=everywhere, cut_off=cut_off)
    assert "".join("".join(piece) for piece in pieces) == text
    assert all(isinstance(piece, AnswerText | Thought) for piece in pieces)


@given(TEXTS, st.booleans(), st.integers(1, 7))
def test_streamed_or_not_it_is_the_same_and_goes_back_the_same(text: str, everywhere: bool, size: int) -> None:
    chunks = [chunk({"content": text[at : at + size]}) for at in range(0, len(text), size)]
    _, streamed = read(stream(*chunks, chunk(finish="stop")), think_tags=everywhere)
    assert streamed.item == reply(text, think_tags=everywhere).item
    assert (content_back(streamed.item) or "") == text


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 100])
@pytest.mark.parametrize("everywhere", [False, True])
def test_glimpses_of_a_stream_tell_reasoning_from_words(size: int, everywhere: bool) -> None:
    chunks = [chunk({"content": R1[at : at + size]}) for at in range(0, len(R1), size)]
    glimpses, _ = read(stream(*chunks, chunk(finish="stop")), think_tags=everywhere)
    words = "".join(each.text for each in glimpses if isinstance(each, TextDelta))
    thoughts = "".join(each.text for each in glimpses if isinstance(each, ReasoningDelta))
    assert (words, thoughts.strip()) == ("Four.", "Two and two.")


@pytest.mark.parametrize("text", ["  <", "<thi", " \n", "a <think", "plain"])
@pytest.mark.parametrize("everywhere", [False, True])
def test_what_is_held_back_is_shown_in_the_end(text: str, everywhere: bool) -> None:
    chunks = [chunk({"content": each}) for each in text]
    glimpses, answer = read(stream(*chunks, chunk(finish="stop")), think_tags=everywhere)
    assert "".join(each.text for each in glimpses if isinstance(each, TextDelta)) == text == answer.item.text


def test_reasoning_stands_before_the_words_and_the_calls_after_them() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "add", "arguments": "{}"}}
    parts = decode_response(response({"content": R1, "tool_calls": [call]}, "tool_calls"), NAMES, PEER).item.parts
    assert [type(part) for part in parts] == [Thinking, Text, CallPart]
