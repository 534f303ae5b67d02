"""Requests to the Responses API: every part of a conversation has its place, and nothing old is encoded twice."""

import json
from typing import Any

import pytest

from kit.wires.model_requests import a_request
from kit.wires.responses_vendor import vendor_accepts
from kit.wires.responses_wire import REASONING, WEATHER, call, decoded, events_of, message, response, sse, words
from wakeful.contracts.content import BlobRef, File, Image, Text, Thinking
from wakeful.contracts.conversation import AssistantItem, CallPart, History, ToolItem, UserItem
from wakeful.contracts.errors import InvalidConfig, ModelFailure
from wakeful.contracts.frames import ProviderPromptCache, ProviderPromptFrame
from wakeful.contracts.model_settings import ModelSettings
from wakeful.contracts.tools import ToolDeclaration
from wakeful.ports import ModelRequest
from wakeful.providers.openai_responses.encode import CODEX_RULES, ResponsesEncoder, WireRules
from wakeful.providers.profiles import ModelProfile
from wakeful.providers.wire.names import WireNames

PROFILE = ModelProfile(
    tools=True,
    parallel_tool_calls=True,
    forced_tool_choice=True,
    images=True,
    files=True,
    reasoning=True,
    structured_output=True,
    prompt=frozenset({"prompt_cache_key", "incremental_responses"}),
)
ASKED = UserItem(parts=(Text("What is the weather in Paris?"),))
ANSWERED = response(REASONING, message(words("I look."), phase="commentary"), call("call_1"), call("call_2", "{}"))


WITH_IDS = WireRules(item_ids=True)


def encoder(**changed: Any) -> ResponsesEncoder:
    fields: dict[str, Any] = {"profile": PROFILE, "names": WireNames([WEATHER]), **changed}
    return ResponsesEncoder("gpt-5.5", fields.pop("profile"), fields.pop("names"), **fields)


def sent(request: ModelRequest, **changed: Any) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(b"".join(encoder(**changed).body(request)))
    return body


def input_of(*items: UserItem | AssistantItem | ToolItem, **changed: Any) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = sent(a_request(history=History(items)), **changed)["input"]
    return entries


def reply_to(ended: dict[str, Any]) -> AssistantItem:
    return decoded(sse(events_of(ended)))[1].item


# --- the conversation -------------------------------------------------------------------------------------------------


def test_a_request_is_the_whole_of_what_the_model_is_to_see() -> None:
    request = a_request(
        instructions="Be brief.",
        history=History([ASKED]),
        tools=(WEATHER,),
        settings={"max_tokens": 80},
        stream=True,
    )
    assert sent(request) == {
        "model": "gpt-5.5",
        "instructions": "Be brief.",
        "tools": [
            {
                "type": "function",
                "name": "client__get_weather",
                "description": "Get current weather for a city.",
                "parameters": WEATHER.input_schema,
                "strict": False,
            }
        ],
        "input": [
            {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "What is the weather in Paris?"}],
            }
        ],
        "store": False,
        "stream": True,
        "include": ["reasoning.encrypted_content"],
        "max_output_tokens": 80,
    }


@pytest.mark.spec("HOL-FRAME-07")
def test_later_requests_hold_the_instructions_the_whole_conversation_and_the_tools() -> None:
    reply = reply_to(ANSWERED)
    results = [
        ToolItem(call_id=made.call_id, name=made.name, parts=(Text(f"result of {made.call_id}"),))
        for made in reply.calls
    ]
    body = sent(a_request(instructions="Be brief.", history=History([ASKED, reply, *results]), tools=(WEATHER,)))
    assert body["instructions"] == "Be brief."
    assert [tool["name"] for tool in body["tools"]] == ["client__get_weather"]
    assert [entry["type"] for entry in body["input"]] == [
        "message",
        "reasoning",
        "message",
        "function_call",
        "function_call",
        "function_call_output",
        "function_call_output",
    ]
    assert [entry["call_id"] for entry in body["input"][3:]] == ["call_1", "call_2", "call_1", "call_2"]
    assert body["input"][5]["output"] == "result of call_1"
    assert vendor_accepts(_with_reasoning_ids(body))["input"] == _with_reasoning_ids(body)["input"]


@pytest.mark.spec("LOOP-PROV-04")
def test_a_server_that_wants_its_ids_gets_everything_exactly_as_it_gave_it() -> None:
    (*entries,) = input_of(ASKED, reply_to(ANSWERED), rules=WITH_IDS)
    assert json.dumps(entries[1]) == json.dumps(REASONING)
    assert entries[1:] == ANSWERED["output"]


def test_what_the_provider_gave_goes_back_as_it_came_but_for_ids_that_may_name_nothing() -> None:
    _, thought, said, first, second = input_of(ASKED, reply_to(ANSWERED))
    assert thought == {key: value for key, value in REASONING.items() if key != "id"}
    assert thought["encrypted_content"] == REASONING["encrypted_content"]
    assert said == {"type": "message", "role": "assistant", "content": "I look.", "phase": "commentary"}
    assert first == {
        "type": "function_call",
        "call_id": "call_1",
        "name": "client__get_weather",
        "arguments": '{"city":"Paris"}',
    }
    assert second["arguments"] == "{}"


def test_reasoning_without_its_encrypted_content_is_sent_only_where_its_id_is_wanted() -> None:
    bare = {key: value for key, value in REASONING.items() if key != "encrypted_content"}
    reply = reply_to(response(bare, message(words("Hi"))))
    assert [entry["type"] for entry in input_of(ASKED, reply)] == ["message", "message"]
    assert [entry["type"] for entry in input_of(ASKED, reply, rules=WITH_IDS)] == ["message", "reasoning", "message"]


def test_reasoning_is_not_sent_to_a_model_that_does_not_reason_unless_it_is_asked_to() -> None:
    plain = ModelProfile(tools=True)
    request = a_request(history=History([ASKED, reply_to(ANSWERED)]))
    assert "reasoning" not in [entry["type"] for entry in sent(request, profile=plain)["input"]]
    request.settings = ModelSettings(openai={"reasoning_effort": "low"})
    body = sent(request, profile=plain)
    assert "reasoning" in [entry["type"] for entry in body["input"]]
    assert (body["reasoning"], body["include"]) == ({"effort": "low"}, ["reasoning.encrypted_content"])


def test_on_a_switch_of_provider_its_own_parts_are_dropped_and_words_and_calls_stay() -> None:
    foreign = AssistantItem(
        provider="anthropic",
        parts=(
            Thinking(text="hm", provider="anthropic", opaque={"type": "thinking", "signature": "x"}),
            Text("I look."),
            CallPart(call_id="toolu_1", name="client/get_weather", arguments={"city": "Paris"}, opaque={"x": 1}),
        ),
    )
    assert input_of(foreign) == [
        {"type": "message", "role": "assistant", "content": "I look."},
        {
            "type": "function_call",
            "call_id": "toolu_1",
            "name": "client__get_weather",
            "arguments": '{"city":"Paris"}',
        },
    ]
    ours = reply_to(ANSWERED)
    elsewhere = input_of(ours, provider="openai-codex")
    assert [entry["type"] for entry in elsewhere] == ["message", "function_call", "function_call"]
    assert "phase" not in elsewhere[0]


def test_an_item_of_which_nothing_is_for_this_provider_leaves_no_gap() -> None:
    only_thought = AssistantItem(provider="anthropic", parts=(Thinking(text="hm", provider="anthropic"),))
    assert len(input_of(only_thought, ASKED)) == 1
    assert len(input_of(ASKED, only_thought, ASKED)) == 2
    assert input_of(only_thought) == []


def test_a_message_whose_words_no_longer_fit_its_frame_is_still_said() -> None:
    frame, said = reply_to(response(message(words("one"), words("two")))).parts[:2]
    assert input_of(AssistantItem(provider="openai", parts=(frame, said))) == [
        {"type": "message", "role": "assistant", "content": "one"}
    ]


def test_a_refusal_and_several_texts_keep_their_kinds() -> None:
    reply = reply_to(response(message(words("No: ", annotations=[{"n": 1}]), {"type": "refusal", "refusal": "never"})))
    (said,) = input_of(reply)
    assert said["content"] == [
        {"type": "output_text", "annotations": [{"n": 1}], "text": "No: "},
        {"type": "refusal", "refusal": "never"},
    ]


def test_unknown_items_go_back_to_the_provider_they_came_from() -> None:
    search = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"query": "x"}, "new": [1]}
    reply = reply_to(response(search, message(words("Hi"))))
    assert input_of(reply)[0] == {
        "type": "web_search_call", "status": "completed", "action": {"query": "x"}, "new": [1],
    }  # fmt: skip
    assert input_of(reply, rules=WITH_IDS)[0] == search


def test_malformed_arguments_go_back_as_the_model_wrote_them() -> None:
    reply = reply_to(response(call(arguments='{"city":')))
    assert input_of(reply)[0]["arguments"] == '{"city":'


def test_pictures_and_files_stand_in_prompts_and_in_results() -> None:
    parts = (
        Text("See:"),
        Image(data=b"\x89PNG", media_type="image/png"),
        Image(url="https://example.com/cat.jpg"),
        File(name="a.pdf", data=b"%PDF", media_type="application/pdf"),
        File(name="b.pdf", url="https://example.com/b.pdf"),
    )
    shown = [
        {"type": "input_text", "text": "See:"},
        {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,iVBORw=="},
        {"type": "input_image", "detail": "auto", "image_url": "https://example.com/cat.jpg"},
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="},
        {"type": "input_file", "file_url": "https://example.com/b.pdf"},
    ]
    history = History(
        [
            UserItem(parts=parts),
            AssistantItem(provider="openai", parts=(CallPart(call_id="call_1", name="look", arguments={}),)),
            ToolItem(call_id="call_1", name="look", parts=parts),
        ]
    )
    body = sent(a_request(history=history))
    assert body["input"][0]["content"] == shown
    assert body["input"][2] == {"type": "function_call_output", "call_id": "call_1", "output": shown}
    assert vendor_accepts(body)["input"] == body["input"]


@pytest.mark.parametrize(
    "part", [Image(data=b"x"), File(name="a.pdf", data=b"x", media_type="application/pdf")], ids=lambda part: part.type
)
def test_what_a_model_cannot_see_is_refused_in_a_prompt_and_named_in_a_result(part: Image | File) -> None:
    blind = ModelProfile(tools=True)
    with pytest.raises(ModelFailure, match="is not known to take"):
        input_of(UserItem(parts=(part,)), profile=blind)
    (entry,) = input_of(ToolItem(call_id="call_1", name="x", parts=(part,)), profile=blind)
    assert "was left out: it is not known to take" in entry["output"][0]["text"]


def test_a_file_of_text_is_read_to_a_model_that_takes_no_files() -> None:
    (entry,) = input_of(UserItem(parts=(File(name="a.txt", data=b"x"),)), profile=ModelProfile(tools=True))
    assert entry["content"] == [{"type": "input_text", "text": "File a.txt:\nx"}]


def test_what_was_not_fetched_is_never_sent_as_if_it_were_whole() -> None:
    ref = BlobRef(digest="sha256:0", size=1)
    for item in (
        UserItem(parts=(Text("preview", ref=ref),)),
        ToolItem(call_id="call_1", name="x", parts=(Text("preview", ref=ref),)),
        AssistantItem(provider="openai", parts=(Thinking(provider="openai", ref=ref),)),
        AssistantItem(parts=(CallPart(call_id="call_1", name="x", arguments_ref=ref),)),
        AssistantItem(parts=(Text("preview", ref=ref),)),
    ):
        with pytest.raises(ModelFailure, match="was not fetched"):
            input_of(item)


def test_half_a_character_does_not_stop_a_request() -> None:
    broken = AssistantItem(parts=(CallPart(call_id="c", name="x", arguments={"a": "\ud83d"}),))
    body = sent(a_request(instructions="\ud83d", history=History([UserItem(parts=(Text("\ud83d"),)), broken])))
    assert (body["instructions"], body["input"][0]["content"][0]["text"]) == ("\ud83d", "\ud83d")


def test_schemas_that_had_to_be_written_differently_are_reported() -> None:
    odd = {"$schema": "https://json-schema.org", "type": "object", "properties": {}}
    tool = ToolDeclaration(name="look", input_schema=odd)
    changes = encoder().changes(a_request(tools=(tool,), output_schema=odd))
    assert [change.partition(":")[0] for change in changes] == ["look", "answer"]
    assert encoder().changes(a_request(tools=(WEATHER,))) == []


# --- choices ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("choice", ["none", "required"])
def test_tool_use_is_forced_and_forbidden(choice: Any) -> None:
    body = sent(a_request(tools=(WEATHER,), tool_choice=choice))
    assert body["tool_choice"] == choice
    assert len(body["tools"]) == 1, "forbidding tools does not change the head"
    assert "tool_choice" not in sent(a_request(tools=(WEATHER,)))


def test_a_call_is_not_forced_on_a_model_that_refuses_that_and_it_is_reported() -> None:
    request, mild = a_request(tools=(WEATHER,), tool_choice="required"), ModelProfile(tools=True)
    assert "tool_choice" not in sent(request, profile=mild)
    assert encoder(profile=mild).left_out(request) == ["tool_choice"]


def test_a_required_call_of_a_model_without_tools_is_left_out_and_reported() -> None:
    request = a_request(tool_choice="required")
    assert "tool_choice" not in sent(request)
    assert encoder().left_out(request) == ["tool_choice"]


def test_a_model_without_tools_is_offered_none() -> None:
    request, without = a_request(tools=(WEATHER,)), ModelProfile(tools=False)
    assert "tools" not in sent(request, profile=without)
    assert encoder(profile=without).left_out(request) == ["tools"]


def test_a_model_without_parallel_calls_is_told_so() -> None:
    body = sent(a_request(tools=(WEATHER,)), profile=ModelProfile(tools=True, parallel_tool_calls=False))
    assert body["parallel_tool_calls"] is False
    assert "parallel_tool_calls" not in sent(a_request(tools=(WEATHER,)))
    asked = a_request(tools=(WEATHER,), settings={"parallel_tool_calls": False})
    assert sent(asked)["parallel_tool_calls"] is False


def test_structured_output_stands_beside_tools() -> None:
    shape = {
        "title": "Weather report",
        "type": "object",
        "properties": {"degrees": {"type": "number"}},
        "required": ["degrees"],
        "additionalProperties": False,
    }
    body = sent(a_request(tools=(WEATHER,), output_schema=shape, settings={"openai": {"verbosity": "low"}}))
    assert body["text"]["verbosity"] == "low"
    assert body["text"]["format"]["name"] == "Weather_report"
    assert body["text"]["format"]["strict"] is True
    assert body["text"]["format"]["schema"]["properties"] == {"degrees": {"type": "number"}}
    assert len(body["tools"]) == 1
    assert vendor_accepts(body)["text"] == body["text"]


def test_structured_output_is_not_strict_where_that_would_change_what_is_valid() -> None:
    a_map = {"type": "object", "additionalProperties": {"type": "string"}}
    (fmt,) = [sent(a_request(output_schema={"type": "object", "properties": {"notes": a_map}}))["text"]["format"]]
    assert (fmt["strict"], fmt["name"]) == (False, "output")
    assert fmt["schema"]["properties"] == {"notes": a_map}


def test_a_model_that_cannot_be_held_to_a_shape_is_told_of_it_in_words() -> None:
    shape = {"type": "object", "properties": {"note": {"type": "string"}}}
    body = sent(a_request(instructions="Be brief.", output_schema=shape), profile=ModelProfile(tools=True))
    assert "text" not in body
    assert body["instructions"].startswith("Be brief.\n\nWhen you give your final answer")
    assert json.dumps(shape, separators=(",", ":")) in body["instructions"]


def test_settings_the_model_takes_are_sent_and_others_are_reported() -> None:
    settings = {"temperature": 0.2, "max_tokens": 5, "service_tier": "flex"}
    takes = ModelProfile(tools=True, sampling=frozenset({"temperature", "top_p"}))
    refuses = ModelProfile(tools=True, sampling=frozenset())
    request = a_request(settings=settings)
    body = sent(request, profile=takes)
    assert (body["temperature"], body["max_output_tokens"], body["service_tier"]) == (0.2, 5, "flex")
    assert encoder(profile=takes).left_out(request) == []
    assert "temperature" not in sent(request, profile=refuses)
    assert encoder(profile=refuses).left_out(request) == ["temperature"]


@pytest.mark.parametrize("name", ["stream", "input", "tool_choice", "previous_response_id", "conversation"])
def test_a_field_that_would_change_what_is_promised_is_refused(name: str) -> None:
    with pytest.raises(InvalidConfig, match=rf"settings\.openai\.{name}"):
        a_request(settings={"openai": {name: True}})


@pytest.mark.spec("HOL-FRAME-10")
def test_a_cache_key_is_sent_when_there_is_one() -> None:
    body = sent(a_request(history=History([ASKED, ASKED]), settings={"openai": {"prompt_cache_key": "agent-7"}}))
    assert (body["prompt_cache_key"], len(body["input"])) == ("agent-7", 2)
    assert "prompt_cache_key" not in sent(a_request(history=History([ASKED])))


def test_a_cache_key_is_kept_from_a_server_that_knows_none_and_reported_when_somebody_chose_it() -> None:
    plain = ModelProfile(tools=True)
    cache = ProviderPromptCache(agent_id="agent-7", prompt_cache_key="wk-1", context_fingerprint="x")
    frame = ProviderPromptFrame(system_prompt="", cache=cache)
    for own, left_out in (({}, []), ({"prompt_cache_key": "mine"}, ["openai.prompt_cache_key"])):
        request = a_request(settings={"openai": own}, frame=frame)
        assert "prompt_cache_key" not in sent(request, profile=plain)
        assert encoder(profile=plain).left_out(request) == left_out


# --- bytes ------------------------------------------------------------------------------------------------------------


def test_the_next_request_begins_with_all_the_bytes_of_this_one_but_its_tail() -> None:
    history = History([ASKED])
    request = a_request(instructions="Be brief.", history=history, tools=(WEATHER,))
    one = encoder()
    first = one.body(request)
    reply = reply_to(ANSWERED)
    history.extend([reply, *(ToolItem(call_id=c.call_id, name=c.name, parts=(Text("ok"),)) for c in reply.calls)])
    second = one.body(request)
    before = b"".join(first[:-1])
    assert b"".join(second).startswith(before)
    assert all(old is new for old, new in zip(first[2:-1], second[2:-1], strict=False)), "nothing is encoded twice"
    assert first[0] is second[0], "nor is the head"


def test_an_item_is_encoded_once() -> None:
    history = History([UserItem(parts=(Text(str(number)),)) for number in range(50)])
    one, request = encoder(), a_request(history=history)
    first = one.encoded(request).items
    kept = list(first)
    history.extend([ASKED])
    assert all(old is new for old, new in zip(kept, one.encoded(request).items, strict=False))


def test_other_instructions_or_tools_make_another_head() -> None:
    one = encoder()
    other = ToolDeclaration(name="look", input_schema={"type": "object", "properties": {}})
    heads = [
        one.encoded(a_request(instructions="a", tools=(WEATHER,))).head,
        one.encoded(a_request(instructions="b", tools=(WEATHER,))).head,
        one.encoded(a_request(instructions="b", tools=(WEATHER, other))).head,
    ]
    assert len(set(heads)) == 3


def test_two_providers_share_a_history_and_no_bytes() -> None:
    history = History([ASKED, reply_to(ANSWERED)])
    request = a_request(history=history)
    first = encoder(rules=WITH_IDS).body(request)
    second = encoder(provider="openai-codex").body(request)
    assert b"rs_1" in b"".join(first)
    assert b"rs_1" not in b"".join(second)


# --- openai-codex -----------------------------------------------------------------------------------------------------


def codex(request: ModelRequest, **changed: Any) -> dict[str, Any]:
    return sent(request, provider="openai-codex", rules=CODEX_RULES, **changed)


@pytest.mark.spec("HOL-PROV-04", "HOL-PROV-07")
def test_codex_always_streams_and_never_limits_its_output() -> None:
    request = a_request(history=History([ASKED]), settings={"max_tokens": 90}, stream=False)
    body = codex(request)
    assert body["stream"] is True
    assert "max_output_tokens" not in body
    assert "max_tokens" not in body
    one = encoder(provider="openai-codex", rules=CODEX_RULES)
    assert one.left_out(request) == ["max_tokens", "stream=false"]
    usual = sent(request)
    assert (usual["stream"], usual["max_output_tokens"]) == (False, 90), "the rule is codex's own"


@pytest.mark.spec("HOL-PROV-08")
def test_codex_requests_keep_their_fields_when_they_are_empty() -> None:
    body = codex(a_request(), profile=ModelProfile(tools=True))
    assert body["reasoning"] is None
    assert body["include"] == []
    assert (body["instructions"], body["tools"], body["tool_choice"]) == ("", [], "auto")
    usual = sent(a_request(), profile=ModelProfile(tools=True))
    assert not {"reasoning", "include", "instructions", "tools", "tool_choice"} & usual.keys()


def _with_reasoning_ids(body: dict[str, Any]) -> dict[str, Any]:
    """The vendor's types want an id on reasoning; its server, where nothing is stored, refuses one."""
    entries = [{"id": "rs_1", **entry} if entry["type"] == "reasoning" else entry for entry in body["input"]]
    return {**body, "input": entries}
