"""Histories from elsewhere, as conversation items with every call answered."""

import base64
import json
from typing import Any

import pytest

from wakeful.contracts import transcript
from wakeful.contracts.content import File, Image, Text, Thinking
from wakeful.contracts.conversation import AssistantItem, CallPart, Item, ToolItem, UserItem
from wakeful.contracts.errors import InvalidValue
from wakeful.engine.given_history import items_from

PNG = b"\x89PNG\r\n"
PNG64 = base64.b64encode(PNG).decode()
DATA_URL = f"data:image/png;base64,{PNG64}"
PICTURE = Image(data=PNG, media_type="image/png")
LINK = Image(url="https://example.com/a.jpg", media_type="image/jpeg")

CALL = CallPart(call_id="c1", name="look_up", arguments={"order": "A17"})
RESULT = ToolItem(call_id="c1", name="look_up", parts=(Text("4200"),))
CONVERSATION: tuple[Item, ...] = (
    UserItem(parts=(Text("What does it cost?"), PICTURE, LINK)),
    AssistantItem(parts=(Text("Let me see."), CALL)),
    RESULT,
    AssistantItem(parts=(Text("42."),)),
)

CHAT: list[dict[str, Any]] = [
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "What does it cost?"},
            {"type": "image_url", "image_url": {"url": DATA_URL}},
            {"type": "image_url", "image_url": {"url": "https://example.com/a.jpg"}},
        ],
    },
    {
        "role": "assistant",
        "content": "Let me see.",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": '{"order": "A17"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "4200"},
    {"role": "assistant", "content": "42."},
]
ANTHROPIC: list[dict[str, Any]] = [
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "What does it cost?"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG64}},
            {"type": "image", "source": {"type": "url", "url": "https://example.com/a.jpg"}},
        ],
    },
    {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "Let me see."},
            {"type": "tool_use", "id": "c1", "name": "look_up", "input": {"order": "A17"}},
        ],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "4200"}]},
    {"role": "assistant", "content": "42."},
]
RESPONSES: list[dict[str, Any]] = [
    {
        "role": "user",
        "content": [
            {"type": "input_text", "text": "What does it cost?"},
            {"type": "input_image", "image_url": DATA_URL},
            {"type": "input_image", "image_url": "https://example.com/a.jpg"},
        ],
    },
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Let me see."}]},
    {"type": "function_call", "call_id": "c1", "name": "look_up", "arguments": '{"order": "A17"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "4200"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "42."}]},
]
OURS = [item.model_dump(mode="json") for item in CONVERSATION]


def bare(items: tuple[Item, ...]) -> tuple[Item, ...]:
    """Without the name of the provider, which only some formats tell."""
    return tuple(
        item.model_copy(update={"provider": ""}) if isinstance(item, AssistantItem) else item for item in items
    )


@pytest.mark.parametrize(
    "history",
    [CHAT, ANTHROPIC, RESPONSES, CONVERSATION, OURS],
    ids=["openai chat", "anthropic", "openai responses", "items", "dicts"],
)
def test_calls_results_and_pictures_are_the_same_from_every_format(history: Any) -> None:
    assert bare(items_from(history)) == CONVERSATION


def test_items_round_trip_through_their_own_json() -> None:
    items = items_from(CHAT)
    assert items_from(json.loads(json.dumps([item.model_dump(mode="json") for item in items]))) == items


def test_formats_can_be_mixed() -> None:
    assert bare(items_from([CHAT[0], ANTHROPIC[1], CHAT[2], CONVERSATION[3]])) == CONVERSATION


def test_our_transcript_is_a_history() -> None:
    history = [
        transcript.text("user", "What does it cost?"),
        transcript.tool_call("look_up", {"order": "A17"}, tool_call_id="c1", turn=1),
        transcript.tool_result("look_up", {"success": False}, tool_call_id="c1", content="no such order").to_wire(),
        transcript.text("assistant", "I cannot say."),
    ]
    assert items_from(history) == (
        UserItem(parts=(Text("What does it cost?"),)),
        AssistantItem(parts=(CALL,)),
        ToolItem(call_id="c1", name="look_up", parts=(Text("no such order"),), is_error=True),
        AssistantItem(parts=(Text("I cannot say."),)),
    )


def test_a_system_message_is_a_note_and_not_a_persons_words() -> None:
    assert items_from([{"role": "system", "content": "Be kind."}]) == (
        UserItem(parts=(Text("Be kind."),), origin="runtime"),
    )


def test_reasoning_is_kept_as_it_was_given() -> None:
    block = {"type": "thinking", "thinking": "hm", "signature": "s"}
    (claude,) = items_from([{"role": "assistant", "content": [block, {"type": "text", "text": "ok"}]}])
    assert claude == AssistantItem(
        parts=(Thinking(text="hm", provider="anthropic", opaque=block), Text("ok")), provider="anthropic"
    )
    item = {"type": "reasoning", "id": "r1", "summary": [{"type": "summary_text", "text": "hm"}]}
    (openai,) = items_from([item, {"type": "message", "role": "assistant", "content": "ok"}])
    assert openai.parts == (Thinking(text="hm", provider="openai", opaque=item), Text("ok"))


def test_one_reply_of_the_responses_api_is_one_item_and_parallel_calls_stay_together() -> None:
    items = items_from(
        [
            {"type": "function_call", "call_id": "c1", "name": "a", "arguments": "{}"},
            {"type": "function_call", "call_id": "c2", "name": "b", "arguments": "not json"},
            {"type": "function_call_output", "call_id": "c1", "output": "1"},
            {"type": "function_call_output", "call_id": "c2", "output": ""},
        ]
    )
    assert items[0].parts == (
        CallPart(call_id="c1", name="a", arguments={}),
        CallPart(call_id="c2", name="b", raw_arguments="not json"),
    )
    assert [(item.name, item.text) for item in items[1:] if isinstance(item, ToolItem)] == [
        ("a", "1"),
        ("b", "(no output)"),
    ]


def test_results_and_words_in_one_anthropic_message_keep_their_order() -> None:
    items = items_from(
        [
            ANTHROPIC[1],
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "c1",
                        "is_error": True,
                        "content": [{"type": "text", "text": "no"}],
                    },
                    {"type": "text", "text": "go on"},
                    {
                        "type": "document",
                        "title": "a.pdf",
                        "source": {"type": "base64", "media_type": "application/pdf", "data": "QQ=="},
                    },
                ],
            },
        ]
    )
    assert items[1:] == (
        ToolItem(call_id="c1", name="look_up", parts=(Text("no"),), is_error=True),
        UserItem(parts=(Text("go on"), File(name="a.pdf", data=b"A", media_type="application/pdf"))),
    )


@pytest.mark.spec("API-MSG-10")
@pytest.mark.parametrize(
    ("history", "place", "said"),
    [
        (CHAT[:2], "history[1]", "'c1' of look_up has no result"),
        (CHAT[2:], "history[0]", "a tool result for 'c1', but no call before it has this id"),
        ([CHAT[0], CHAT[2], CHAT[1]], "history[1]", "but no call before it has this id"),
        ([*CHAT, CHAT[2]], "history[4]", "a second tool result for 'c1'"),
        ([*CHAT, CHAT[1]], "history[4]", "a second tool call with the id 'c1'"),
        (ANTHROPIC[:2], "history[1]", "has no result"),
        (RESPONSES[3:], "history[0]", "but no call before it has this id"),
        (CONVERSATION[2:], "history[0]", "but no call before it has this id"),
    ],
)
def test_a_call_or_a_result_without_its_partner_is_refused_by_its_place(history: Any, place: str, said: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        items_from(history)
    assert (refused.value.code, refused.value.path) == ("unpaired_input_messages", place)
    assert said in refused.value.reason


@pytest.mark.parametrize(
    ("history", "said"),
    [
        ("words", "expected a list of messages, not a str"),
        ({"role": "user"}, "expected a list of messages, not a dict"),
        (["words"], r"history\[0\]: a bare string"),
        ([{"role": "wizard", "content": "x"}], r"history\[0\]: 'wizard' is not a role"),
        ([{"content": "x"}], r"history\[0\]: not a known kind of message"),
        ([{"type": "file_search_call"}], r"history\[0\]: an item of type 'file_search_call'"),
        ([object()], r"history\[0\]: a builtins\.object is not a known kind of message"),
        ([{"role": "user", "content": [{"type": "input_audio"}]}], r"history\[0\]\.content\[0\]: .*'input_audio'"),
        ([{"role": "user", "content": [{"type": "input_image", "file_id": "f1"}]}], r"content\[0\]: .*elsewhere"),
        ([{"role": "user", "content": [{"type": "image_url", "image_url": "data:image/png;base64,!"}]}], "not base64"),
        ([{"role": "user", "content": 5}], "content is a string or a list of blocks, not a int"),
        ([{"role": "assistant", "tool_calls": [{"function": {"name": "a"}}]}], "without an id"),
        ([{"role": "tool", "content": "x"}], "without the id of its call"),
        ([{"role": "user", "parts": [{"type": "text", "txt": "x"}]}], r"history\[0\]"),
    ],
)
def test_what_cannot_be_taken_over_is_refused_by_its_place(history: Any, said: str) -> None:
    with pytest.raises(InvalidValue, match=said):
        items_from(history)


def test_a_message_without_content_says_nothing() -> None:
    assert items_from([{"role": "user", "content": ""}, {"role": "assistant", "content": None}]) == ()
    assert items_from([]) == ()


# --- the libraries themselves, where they are installed ------------------------------------------------------------


def test_langchain_messages() -> None:
    messages = pytest.importorskip("langchain_core.messages", reason="langchain-core is not installed")
    blocks = [{"type": "text", "text": "What does it cost?"}, *CHAT[0]["content"][1:]]
    history = [
        messages.HumanMessage(blocks),
        messages.AIMessage("Let me see.", tool_calls=[{"name": "look_up", "args": {"order": "A17"}, "id": "c1"}]),
        messages.ToolMessage("4200", tool_call_id="c1"),
        messages.AIMessage("42."),
    ]
    assert items_from(history) == CONVERSATION
    assert items_from(messages.messages_to_dict(history)) == CONVERSATION
    (_, failed) = items_from([history[1], messages.ToolMessage("no", tool_call_id="c1", status="error")])
    assert isinstance(failed, ToolItem) and failed.is_error


def test_pydantic_ai_messages() -> None:
    ai = pytest.importorskip("pydantic_ai.messages", reason="pydantic-ai is not installed")
    history = [
        ai.ModelRequest(
            parts=[
                ai.UserPromptPart(
                    ["What does it cost?", ai.BinaryContent(PNG, media_type="image/png"), ai.ImageUrl(url=LINK.url)]
                )
            ]
        ),
        ai.ModelResponse(parts=[ai.TextPart("Let me see."), ai.ToolCallPart("look_up", {"order": "A17"}, "c1")]),
        ai.ModelRequest(parts=[ai.ToolReturnPart("look_up", 4200, "c1")]),
        ai.ModelResponse(parts=[ai.TextPart("42.")]),
    ]
    assert items_from(history) == CONVERSATION
    assert items_from(ai.ModelMessagesTypeAdapter.dump_python(history)) == CONVERSATION
    retry = ai.ModelRequest(parts=[ai.RetryPromptPart("again", tool_name="look_up", tool_call_id="c1")])
    (_, failed) = items_from([history[1], retry])
    assert isinstance(failed, ToolItem) and failed.is_error and failed.text == "again"


def test_openai_objects() -> None:
    chat = pytest.importorskip("openai.types.chat", reason="openai is not installed")
    reply = chat.ChatCompletionMessage.model_validate(CHAT[1])
    assert items_from([CHAT[0], reply, CHAT[2], CHAT[3]]) == CONVERSATION
