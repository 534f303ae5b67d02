"""Requests: what stands in them, what they share, and what is refused instead of being sent."""

import json
from dataclasses import replace
from typing import Any

import pytest

from kit.wires.chat_streams import ADD, PEER, TOOLS, response
from kit.wires.model_requests import a_request
from wakeful.contracts.content import File, Image, Text, Thinking
from wakeful.contracts.conversation import ITEM, AssistantItem, CallPart, History, ToolItem, UserItem
from wakeful.contracts.errors import InvalidConfig, ModelFailure
from wakeful.contracts.frames import PromptContentBlock, ProviderPromptCache, ProviderPromptFrame
from wakeful.contracts.tools import ToolDeclaration
from wakeful.providers.openai_chat.decode import decode_response
from wakeful.providers.openai_chat.dialect import COMPATIBLE, OPENAI, Dialect
from wakeful.providers.openai_chat.encode import ChatEncoder
from wakeful.providers.profiles import ModelProfile
from wakeful.providers.wire.names import WireNames

PROFILE = ModelProfile(
    tools=True,
    parallel_tool_calls=True,
    forced_tool_choice=True,
    images=True,
    files=True,
    structured_output=True,
    sampling=frozenset({"temperature", "top_p", "seed"}),
    prompt=frozenset({"prompt_cache_key"}),
)
HI = UserItem(parts=(Text("hi"),))
PNG = Image(data=b"\x89PNG", media_type="image/png")
PNG_URL = "data:image/png;base64,iVBORw=="


def an_encoder(
    tools: tuple[ToolDeclaration, ...] = (),
    dialect: Dialect = COMPATIBLE,
    profile: ModelProfile = PROFILE,
    provider: str = "acme",
) -> ChatEncoder:
    return ChatEncoder("model-1", profile, WireNames(tools), provider=provider, dialect=dialect)


def sent(
    *items: UserItem | AssistantItem | ToolItem,
    dialect: Dialect = COMPATIBLE,
    profile: ModelProfile = PROFILE,
    provider: str = "acme",
    **fields: Any,
) -> Any:
    """The request as a server reads it."""
    encoder = an_encoder(fields.get("tools", ()), dialect, profile, provider)
    return json.loads(b"".join(encoder.body(a_request(history=History(items or (HI,)), **fields))))


def messages(*items: UserItem | AssistantItem | ToolItem, **fields: Any) -> Any:
    return sent(*items, **fields)["messages"]


def calling(*calls: CallPart, text: str = "", provider: str = "acme") -> AssistantItem:
    return AssistantItem(parts=(*((Text(text),) if text else ()), *calls), provider=provider)


def test_a_plain_request_has_nothing_in_it_that_nobody_asked_for() -> None:
    assert sent(instructions="Be brief.") == {
        "model": "model-1",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}],
        "stream": False,
    }


def test_without_instructions_there_is_no_system_message() -> None:
    assert messages(HI, HI) == [{"role": "user", "content": "hi"}] * 2
    assert sent(instructions="", tools=TOOLS)["messages"] == [{"role": "user", "content": "hi"}]


def test_a_stream_asks_for_its_usage_where_the_server_knows_how() -> None:
    assert sent(stream=True)["stream_options"] == {"include_usage": True}
    assert "stream_options" not in sent(stream=True, dialect=Dialect(stream_usage=False))
    assert "stream_options" not in sent(stream=False)


def test_the_system_prompt_and_the_length_limit_have_the_names_the_model_knows() -> None:
    newer = Dialect(system_role="developer", max_tokens_field="max_completion_tokens")
    fields: dict[str, Any] = {"instructions": "Be brief.", "settings": {"max_tokens": 9}}
    old, new = sent(**fields), sent(dialect=newer, **fields)
    assert (old["messages"][0]["role"], old["max_tokens"]) == ("system", 9)
    assert (new["messages"][0]["role"], new["max_completion_tokens"]) == ("developer", 9)
    assert "max_tokens" not in new and "max_completion_tokens" not in old


def test_settings_that_the_model_refuses_are_left_out_and_reported() -> None:
    settings = {"temperature": 0, "stop": ["."], "logit_bias": {"7": 3}, "user": "u", "extra_body": {"top_k": 3}}
    body = sent(settings=settings)
    assert {name: body.get(name) for name in ("temperature", "stop", "logit_bias", "user", "top_k")} == {
        "temperature": 0,
        "stop": ["."],
        "logit_bias": None,
        "user": "u",
        "top_k": 3,
    }
    assert an_encoder().left_out(a_request(settings=settings)) == ["logit_bias"]


@pytest.mark.parametrize("name", ["model", "messages", "tools", "stream", "response_format"])
def test_a_setting_cannot_stand_for_what_the_request_says(name: str) -> None:
    for place in ("openai", "extra_body"):
        with pytest.raises(InvalidConfig, match=f"settings.{place}.{name}: the runtime writes this field itself"):
            sent(settings={place: {name: "x"}})


@pytest.mark.parametrize("settings", [{"n": 2}, {"logprobs": True}, {"modalities": ["audio"]}, {"functions": [{}]}])
def test_an_answer_that_nobody_would_read_is_not_asked_for(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfig, match="nothing here reads"):
        sent(settings={"openai": settings})
    assert sent(settings={"openai": {"n": 1}}, provider="openai")["n"] == 1


# --- tools ---------------------------------------------------------------------------------------------------


@pytest.mark.spec("HOL-SCHEMA-05", "HOL-SCHEMA-06", "HOL-SCHEMA-07")
def test_tools_are_declared_relaxed_under_their_wire_names() -> None:
    first, second = sent(tools=TOOLS)["tools"]
    assert first == {
        "type": "function",
        "function": {
            "name": "client__look_up",
            "description": "Looks something up.",
            "parameters": {
                "type": "object",
                "properties": {"word": {"type": "string"}},
                "required": ["word"],
                "additionalProperties": False,
            },
            "strict": False,
        },
    }
    assert second["function"]["parameters"].get("required") is None, "what is optional stays optional"
    assert "description" not in second["function"]
    assert "strict" not in sent(tools=TOOLS, dialect=Dialect(strict_field=False))["tools"][0]["function"]


@pytest.mark.parametrize("choice", ["none", "required"])
def test_tool_use_is_forced_or_forbidden(choice: str) -> None:
    body = sent(tools=TOOLS, tool_choice=choice)
    assert body["tool_choice"] == choice
    assert len(body["tools"]) == 2, "forbidden or not, the tools stay, and with them the shared prefix"
    assert "tool_choice" not in sent(tools=TOOLS)


def test_one_tool_is_forced_by_its_name() -> None:
    forced = {"type": "function", "function": {"name": "client__look_up"}}
    assert sent(tools=TOOLS, tool_choice=("client/look_up",))["tool_choice"] == forced


def test_of_several_tools_the_others_are_not_offered_by_a_server_that_cannot_be_told_names() -> None:
    three = (*TOOLS, ToolDeclaration(name="third", input_schema={"type": "object"}))
    choice = tuple(tool.name for tool in TOOLS)
    theirs = sent(tools=three, tool_choice=choice, provider="openai")
    assert theirs["tool_choice"]["type"] == "allowed_tools" and len(theirs["tools"]) == 3
    others = sent(tools=three, tool_choice=choice)
    assert others["tool_choice"] == "required"
    assert [tool["function"]["name"] for tool in others["tools"]] == ["client__look_up", "add"]


def test_a_call_that_cannot_be_forced_is_left_out_and_reported() -> None:
    unforced = ModelProfile(tools=True)
    for fields in ({}, {"tools": TOOLS, "profile": unforced}, {"tools": TOOLS, "profile": ModelProfile()}):
        assert "tool_choice" not in sent(tool_choice="required", **fields)
    request = a_request(tools=TOOLS, tool_choice="required")
    assert an_encoder(TOOLS, profile=unforced).left_out(request) == ["tool_choice"]
    assert "tool_choice" not in sent(tool_choice="none")


def test_a_model_without_tools_gets_none_and_that_is_reported() -> None:
    without = replace(PROFILE, tools=False)
    assert "tools" not in sent(tools=TOOLS, profile=without)
    assert an_encoder(TOOLS, profile=without).left_out(a_request(tools=TOOLS)) == ["tools"]


def test_parallel_calls_are_spoken_of_only_when_somebody_asks() -> None:
    assert "parallel_tool_calls" not in sent(tools=TOOLS)
    assert sent(tools=TOOLS, settings={"parallel_tool_calls": False})["parallel_tool_calls"] is False
    assert "parallel_tool_calls" not in sent(settings={"parallel_tool_calls": False})


def test_what_a_schema_had_to_be_changed_to_is_reported() -> None:
    odd = ToolDeclaration(name="odd", input_schema={"type": "object", "properties": {"a": {"type": "array"}}})
    encoder = an_encoder((odd,))
    assert [change.partition(":")[0] for change in encoder.changes(a_request(tools=(odd,)))] == ["odd"]


def test_a_tool_that_takes_no_object_is_refused() -> None:
    with pytest.raises(ModelFailure, match="the tool bad") as failed:
        sent(tools=(ToolDeclaration(name="bad", input_schema={"type": "string"}),))
    assert failed.value.kind == "contract_error"


# --- the answer's shape --------------------------------------------------------------------------------------

ANSWER = {"title": "An Answer", "type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


def test_structured_output_goes_together_with_tools_and_streaming() -> None:
    body = sent(tools=TOOLS, output_schema=ANSWER, stream=True)
    described = body["response_format"]["json_schema"]
    assert body["response_format"]["type"] == "json_schema"
    assert (described["name"], described["strict"]) == ("An_Answer", True)
    assert described["schema"]["properties"] == ANSWER["properties"]
    assert (len(body["tools"]), body["stream"]) == (2, True)


def test_an_optional_field_is_nullable_in_a_strict_answer() -> None:
    optional = {**ANSWER, "required": []}
    described = sent(output_schema=optional)["response_format"]["json_schema"]
    assert described["strict"] is True
    assert described["schema"]["properties"] == {"a": {"type": ["integer", "null"]}}


def test_an_answer_that_strict_cannot_say_is_described_without_it() -> None:
    a_map = {**ANSWER, "properties": {"a": {"type": "object", "additionalProperties": {"type": "integer"}}}}
    described = sent(output_schema=a_map)["response_format"]["json_schema"]
    assert described["strict"] is False
    assert described["schema"]["properties"] == a_map["properties"]


def test_what_the_wire_cannot_say_about_the_answer_is_said_in_words() -> None:
    only_json, nothing = Dialect(response_format="json_object"), Dialect(response_format="none")
    spoken = sent(instructions="Be brief.", output_schema=ANSWER, dialect=only_json)
    assert spoken["response_format"] == {"type": "json_object"}
    assert spoken["messages"][0]["content"].startswith("Be brief.\n\nWhen you give your final answer")
    assert json.dumps(ANSWER, separators=(",", ":")) in spoken["messages"][0]["content"]
    assert "response_format" not in sent(output_schema=ANSWER, dialect=nothing)
    undeclared = sent(output_schema=ANSWER, profile=replace(PROFILE, structured_output=False))
    assert "response_format" not in undeclared and "JSON Schema" in undeclared["messages"][0]["content"]
    a_list = sent(output_schema={"type": "array", "items": {"type": "integer"}}, dialect=nothing)
    assert '{"type":"array"' in a_list["messages"][0]["content"]
    a_list = sent(output_schema={"type": "array", "items": {"type": "integer"}}, dialect=only_json)
    assert '{"type":"object","properties":{"result":{"type":"array"' in a_list["messages"][0]["content"]


# --- prompts -------------------------------------------------------------------------------------------------


def test_a_prompt_with_a_picture_is_a_list_of_parts() -> None:
    there = Image(url="https://example.com/a.png")
    (message,) = messages(UserItem(parts=(Text("See:"), PNG, there)))
    assert message["content"] == [
        {"type": "text", "text": "See:"},
        {"type": "image_url", "image_url": {"url": PNG_URL}},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
    ]


def test_files_go_as_what_chat_knows() -> None:
    pdf = File(name="a.pdf", data=b"%PDF", media_type="application/pdf")
    wav = File(name="a.wav", data=b"RIFF", media_type="audio/wav")
    notes = File(name="notes.md", data="é".encode(), media_type="text/markdown; charset=utf-8")
    picture = File(name="a.png", data=b"\x89PNG", media_type="image/png")
    (message,) = messages(UserItem(parts=(pdf, wav, notes, picture)), profile=replace(PROFILE, audio=True))
    assert message["content"] == [
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="}},
        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
        {"type": "text", "text": "File notes.md:\né"},
        {"type": "image_url", "image_url": {"url": PNG_URL}},
    ]


def test_several_texts_are_parts_or_joined_for_a_server_that_wants_text() -> None:
    two = UserItem(parts=(Text("a"), Text("b")))
    assert messages(two)[0]["content"] == [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert messages(two, dialect=Dialect(content_parts=False))[0]["content"] == "a\n\nb"


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (PNG, "is not known to take images"),
        (File(name="a.pdf", data=b"%PDF", media_type="application/pdf"), "is not known to take files"),
    ],
)
def test_a_prompt_the_model_cannot_see_is_refused_and_not_thinned_out(part: Image | File, words: str) -> None:
    blind = ModelProfile(tools=True)
    with pytest.raises(ModelFailure, match=words) as failed:
        sent(UserItem(parts=(Text("See:"), part)), profile=blind)
    assert failed.value.kind == "contract_error"


def test_a_file_by_url_is_refused_because_chat_would_not_fetch_it() -> None:
    with pytest.raises(ModelFailure, match="does not support files by URL; give its bytes"):
        sent(UserItem(parts=(File(name="a.pdf", url="https://example.com/a.pdf", media_type="application/pdf"),)))


def test_half_a_character_in_a_prompt_does_not_stop_it() -> None:
    assert messages(UserItem(parts=(Text.model_construct(text="a\ud83d", ref=None),)))[0]["content"] == "a\ufffd"


# --- calls and results ---------------------------------------------------------------------------------------


def test_calls_and_their_results_are_paired_by_id() -> None:
    said = calling(
        CallPart(call_id="x", name="client/look_up", arguments={"word": "é", "deep": {"n": [1, 2.5, None]}}),
        CallPart(call_id="y", name="add", arguments={}),
        text="One moment.",
    )
    found = ToolItem(call_id="x", name="client/look_up", parts=(Text("a"), Text("b")))
    added = ToolItem(call_id="y", name="add", parts=(Text("failed: no"),), is_error=True)
    assert messages(HI, said, found, added, tools=TOOLS)[1:] == [
        {
            "role": "assistant",
            "content": "One moment.",
            "tool_calls": [
                {
                    "id": "x",
                    "type": "function",
                    "function": {"name": "client__look_up", "arguments": '{"word":"é","deep":{"n":[1,2.5,null]}}'},
                },
                {"id": "y", "type": "function", "function": {"name": "add", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "x", "content": "a\nb"},
        {"role": "tool", "tool_call_id": "y", "content": "failed: no"},
    ]


def test_calls_without_words_have_no_content() -> None:
    assert messages(HI, calling(CallPart(call_id="x", name="add", arguments={})))[1]["content"] is None


def test_malformed_arguments_are_shown_again_wrapped_where_the_server_would_choke_on_them() -> None:
    said = calling(CallPart(call_id="x", name="add", raw_arguments='{"a": '))

    def shown(dialect: Dialect) -> str:
        arguments: str = messages(HI, said, dialect=dialect)[1]["tool_calls"][0]["function"]["arguments"]
        return arguments

    assert shown(OPENAI) == '{"a": '
    assert json.loads(shown(COMPATIBLE)) == {"malformed_arguments": '{"a": '}


@pytest.mark.parametrize(("style", "longest"), [("any", 200), ("forty", 40), ("nine", 9)])
def test_ids_are_written_as_the_server_takes_them_and_stay_paired(style: Any, longest: int) -> None:
    ids = ["a" * 200, "abcDEF123", "tool-call-1-1"]
    said = calling(*(CallPart(call_id=one, name="add", arguments={}) for one in ids))
    results = [ToolItem(call_id=one, name="add", parts=(Text("1"),)) for one in ids]
    _, assistant, *tools = messages(HI, said, *results, dialect=Dialect(call_ids=style))
    called = [call["id"] for call in assistant["tool_calls"]]
    assert called == [tool["tool_call_id"] for tool in tools]
    assert len(set(called)) == 3 and max(map(len, called)) <= longest
    assert called[1] == "abcDEF123", "an id that fits is not touched"


def test_pictures_of_results_stand_in_one_user_message_behind_all_results_of_the_round() -> None:
    pdf = File(name="a.pdf", data=b"%PDF", media_type="application/pdf")
    said = calling(*(CallPart(call_id=one, name="add", arguments={}) for one in "xyz"))
    results = (
        ToolItem(call_id="x", name="add", parts=(Text("seen"), PNG)),
        ToolItem(call_id="y", name="add", parts=(Text("plain"),)),
        ToolItem(call_id="z", name="add", parts=(pdf,)),
    )
    everything = messages(HI, said, *results, calling(text="I see."), HI)
    assert [message["role"] for message in everything] == [
        *("user", "assistant", "tool", "tool", "tool", "user", "assistant", "user")
    ]
    assert everything[2]["content"] == "seen\n[image/png: shown in the user message after the results]"
    assert everything[3]["content"] == "plain"
    assert everything[5]["content"] == [
        {"type": "text", "text": "From the result of add (x):"},
        {"type": "image_url", "image_url": {"url": PNG_URL}},
        {"type": "text", "text": "From the result of add (z):"},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="}},
    ]
    still_open = messages(HI, said, *results)
    assert still_open == everything[:6]


def test_a_picture_of_a_result_that_the_model_cannot_see_is_named_instead() -> None:
    said = calling(CallPart(call_id="x", name="add", arguments={}))
    result = ToolItem(call_id="x", name="add", parts=(PNG,))
    everything = messages(HI, said, result, profile=ModelProfile(tools=True))
    assert [message["role"] for message in everything] == ["user", "assistant", "tool"]
    named = "[the image of 4 bytes (image/png) was left out: it is not known to take images. "
    assert everything[2]["content"] == f"{named}It is kept with the result of this call.]"


# --- what goes back to whom ----------------------------------------------------------------------------------

THOUGHT = Thinking(
    text="Hm.",
    provider="acme",
    opaque={"openai_chat": {"said_in": ["reasoning_content"], "fields": {"reasoning_details": [{"data": "x="}]}}},
)
BOTH = Dialect(returns=("reasoning_content", "reasoning_details"))


@pytest.mark.spec("LOOP-PROV-04")
def test_reasoning_goes_back_as_it_came_where_the_server_wants_it() -> None:
    item = AssistantItem(parts=(THOUGHT, Text("42")), provider="acme")
    plain = {"role": "assistant", "content": "42"}
    kept = {**plain, "reasoning_content": "Hm.", "reasoning_details": [{"data": "x="}]}
    assert messages(HI, item, dialect=BOTH)[1] == kept
    assert messages(HI, item)[1] == kept, "what a server gives is what it takes"
    assert messages(HI, item, dialect=OPENAI)[1] == messages(HI, item, dialect=Dialect(returns=()))[1] == plain
    assert messages(HI, item, dialect=Dialect(returns=("reasoning_details",)))[1].keys() == kept.keys() - {
        "reasoning_content"
    }


@pytest.mark.spec("LOOP-PROV-04")
def test_a_message_goes_back_as_it_came_through_decoding_and_the_log() -> None:
    call = {
        "id": "call_a",
        "type": "function",
        "function": {"name": "client__look_up", "arguments": '{"word":"é"}'},
        "extra_content": {"google": {"thought_signature": "c2ln"}},
    }
    came = {
        "role": "assistant",
        "content": "One moment.",
        "reasoning": "Hm.",
        "reasoning_details": [{"type": "reasoning.encrypted", "data": "x=", "index": 0}],
        "annotations": [{"url": "a"}],
        "tool_calls": [call],
    }
    reply = decode_response(response(came, "tool_calls"), WireNames(TOOLS), PEER)
    stored = ITEM.validate_json(reply.item.model_dump_json())
    back = Dialect(returns=("reasoning", "reasoning_details", "annotations"))
    assert messages(HI, stored, tools=TOOLS, dialect=back)[1] == came


def test_reasoning_of_another_provider_or_another_wire_stays_here() -> None:
    others = THOUGHT.model_copy(update={"provider": "other"})
    elsewhere = Thinking(text="Hm.", provider="acme", opaque={"encrypted_content": "x"})
    item = AssistantItem(parts=(others, elsewhere, Text("42")), provider="other")
    assert messages(HI, item, dialect=BOTH)[1] == {"role": "assistant", "content": "42"}


def test_a_reply_of_which_nothing_is_left_is_no_message() -> None:
    item = AssistantItem(parts=(THOUGHT,), provider="acme")
    assert [message["role"] for message in messages(item, HI, dialect=OPENAI)] == ["user"]
    assert messages(HI, item, dialect=BOTH)[1]["content"] == ""


@pytest.mark.spec("LOOP-PROV-04")
def test_what_a_server_added_to_a_call_goes_back_to_it_and_to_nobody_else() -> None:
    signature = {"google": {"thought_signature": "c2ln"}}
    call = CallPart(
        call_id="x", name="add", arguments={}, opaque={"openai_chat": {"call": {"extra_content": signature}}}
    )
    (same,) = messages(HI, calling(call))[1]["tool_calls"]
    (other,) = messages(HI, calling(call, provider="other"))[1]["tool_calls"]
    assert same["extra_content"] == signature
    assert other == {"id": "x", "type": "function", "function": {"name": "add", "arguments": "{}"}}


# --- bytes ---------------------------------------------------------------------------------------------------


@pytest.mark.spec("HOL-FRAME-07")
def test_a_request_has_the_whole_conversation_and_the_whole_catalogue_each_time() -> None:
    history = History([HI])
    encoder = an_encoder(TOOLS)
    for answer in range(3):
        body = json.loads(b"".join(encoder.body(a_request(history=history, tools=TOOLS, instructions="Be brief."))))
        assert [tool["function"]["name"] for tool in body["tools"]] == ["client__look_up", "add"]
        assert len(body["messages"]) == 1 + len(history)
        assert body["messages"][0]["content"] == "Be brief."
        history.extend([calling(text=f"answer {answer}"), HI])


def test_consecutive_requests_share_everything_up_to_their_last_old_message() -> None:
    for tools, instructions in ((TOOLS, "Be brief."), ((), "")):
        history = History([HI])
        encoder = an_encoder(tools)
        first = encoder.body(a_request(history=history, tools=tools, instructions=instructions))
        history.extend([calling(text="x"), ToolItem(call_id="a", name="add", parts=(PNG,)), HI])
        second = encoder.body(a_request(history=history, tools=tools, instructions=instructions))
        assert b"".join(second).startswith(b"".join(first[:-1]))
        assert second[0] is first[0], "the head is made once"


def test_each_item_is_encoded_once() -> None:
    history = History([HI] * 3)
    encoder = an_encoder(TOOLS)
    request = a_request(history=history, tools=TOOLS, instructions="Be brief.")
    first, second = encoder.body(request), encoder.body(request)
    assert all(one is other for one, other in zip(first[1:-1], second[1:-1], strict=True))


def test_the_same_history_is_encoded_anew_for_a_server_with_other_habits() -> None:
    said = calling(CallPart(call_id="tool-call-1", name="client/look_up", arguments={}))
    history = History([HI, said])
    ids = []
    for dialect in (COMPATIBLE, Dialect(call_ids="nine")):
        body = an_encoder(TOOLS, dialect).body(a_request(history=history, tools=TOOLS))
        ids.append(json.loads(b"".join(body))["messages"][1]["tool_calls"][0]["id"])
    assert ids[0] == "tool-call-1" and len(ids[1]) == 9


def test_another_set_of_tools_makes_another_head_and_other_names() -> None:
    history = History([HI])
    encoder = an_encoder(TOOLS)
    one = encoder.body(a_request(history=history, tools=TOOLS))
    two = encoder.body(a_request(history=history, tools=(ADD,)))
    assert [tool["function"]["name"] for tool in json.loads(b"".join(two))["tools"]] == ["add"]
    assert encoder.body(a_request(history=history, tools=TOOLS)) == one


def test_the_cache_key_is_sent_only_to_a_server_that_knows_it() -> None:
    cache = ProviderPromptCache(agent_id="a", prompt_cache_key="wk-1", context_fingerprint="sha256:0")
    frame = ProviderPromptFrame(system_prompt="Be brief.", cache=cache)
    assert sent(dialect=OPENAI, frame=frame)["prompt_cache_key"] == "wk-1"
    own = {"openai": {"prompt_cache_key": "mine"}}
    assert sent(dialect=OPENAI, settings=own, frame=frame, provider="openai")["prompt_cache_key"] == "mine"
    assert "prompt_cache_key" not in sent(settings=own, frame=frame)
    assert "prompt_cache_key" not in sent(dialect=OPENAI, settings={"cache": False}, frame=frame)
    assert "prompt_cache_key" not in sent(dialect=OPENAI)


@pytest.mark.spec("HOL-FRAME-07")
def test_all_blocks_of_the_frame_stand_before_the_conversation() -> None:
    block = PromptContentBlock(text="Today is Monday.", stability="turn_scoped")
    frame = ProviderPromptFrame(system_prompt="Be brief.", context_blocks=(block,))
    system, user = messages(HI, instructions="Be brief.", frame=frame)
    assert system == {"role": "system", "content": "Be brief.\n\nToday is Monday."}
    assert user == {"role": "user", "content": "hi"}


# --- quirks --------------------------------------------------------------------------------------------------


def test_quirks_are_set_by_name_and_unknown_ones_are_refused() -> None:
    dialect = COMPATIBLE.with_quirks({"needs_done": False, "returns": ["reasoning"]})
    assert (dialect.needs_done, dialect.returns, dialect.stream_usage) == (False, ("reasoning",), True)
    with pytest.raises(InvalidConfig, match="no quirk needs_dne"):
        COMPATIBLE.with_quirks({"needs_dne": False})


@pytest.mark.parametrize(
    "quirks",
    [{"needs_done": "false"}, {"needs_done": 0}, {"call_ids": "ten"}, {"returns": "reasoning"}, {"returns": [1]}],
)
def test_a_quirk_that_says_nothing_sensible_is_refused(quirks: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfig, match=next(iter(quirks))):
        COMPATIBLE.with_quirks(quirks)


def test_no_default_loosens_a_check() -> None:
    assert COMPATIBLE.needs_done and OPENAI.needs_done
