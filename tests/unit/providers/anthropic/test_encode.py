"""Requests to a Messages endpoint: what is sent, and that every item is encoded once."""

import base64
import json
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from kit.wires.anthropic_samples import WEATHER
from kit.wires.model_requests import a_request
from wakeful.contracts.content import File, Image, Text, Thinking
from wakeful.contracts.conversation import AssistantItem, CallPart, History, ToolItem, UserItem
from wakeful.contracts.errors import InvalidConfig, ModelFailure
from wakeful.contracts.frames import PromptContentBlock, ProviderPromptFrame
from wakeful.contracts.tools import ToolDeclaration
from wakeful.providers.anthropic.encode import AnthropicEncoder
from wakeful.providers.profiles import ModelProfile, profile_of

CLAUDE = profile_of("claude-haiku-4-5")
BARE = replace(CLAUDE, prompt=frozenset[Any]({"full_request_only"}))
"""The same without cache marks: what most of these tests are not about."""
MARK = {"type": "ephemeral"}


def sent(
    *items: UserItem | AssistantItem | ToolItem,
    profile: ModelProfile = BARE,
    tools: tuple[ToolDeclaration, ...] = (),
    refuses_sampling: bool = False,
    **request: Any,
) -> dict[str, Any]:
    encoder = AnthropicEncoder("claude-test", profile, tools, refuses_sampling=refuses_sampling)
    body = encoder.body(a_request(history=History(items), tools=tools, **request))
    decoded: dict[str, Any] = json.loads(b"".join(body))
    return decoded


def user(*parts: str | Text | Image | File) -> UserItem:
    return UserItem(parts=tuple(Text(part) if isinstance(part, str) else part for part in parts))


def asks(*calls: str, text: str = "", provider: str = "anthropic") -> AssistantItem:
    words = (Text(text),) if text else ()
    made = tuple(CallPart(call_id=call, name=WEATHER.name, arguments={"city": call}) for call in calls)
    return AssistantItem(parts=(*words, *made), provider=provider)


def answer(call: str, text: str = "sunny", **more: Any) -> ToolItem:
    return ToolItem(call_id=call, name=WEATHER.name, parts=(Text(text),), **more)


def use(call: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": call, "name": "client__get_weather", "input": {"city": call}}


def result(call: str, content: Any = "sunny", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call, "content": content, **more}


def words(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


# --- the whole of it --------------------------------------------------------------------------------------------------


@pytest.mark.spec("HOL-FRAME-07")
def test_a_request_is_instructions_conversation_and_tools_with_a_mark_on_each_stable_part() -> None:
    body = sent(user("Hi"), profile=CLAUDE, tools=(WEATHER,), instructions="Be brief.", settings={"max_tokens": 80})
    assert body == {
        "model": "claude-test",
        "tools": [
            {
                "name": "client__get_weather",
                "description": "Get current weather for a city.",
                "input_schema": {**WEATHER.input_schema, "additionalProperties": False},
                "cache_control": MARK,
            }
        ],
        "system": [{"type": "text", "text": "Be brief.", "cache_control": MARK}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi", "cache_control": MARK}]}],
        "max_tokens": 80,
        "stream": False,
    }


def frame(*blocks: tuple[str, bool]) -> ProviderPromptFrame:
    made = tuple(PromptContentBlock(text=text, stability="stable", cache_breakpoint=ends) for text, ends in blocks)
    return ProviderPromptFrame(system_prompt="all of it", system_blocks=made[:2], context_blocks=made[2:])


@pytest.mark.spec("HOL-FRAME-13")
def test_the_frame_s_breakpoints_become_cache_blocks() -> None:
    given = frame(("Rules.", True), ("Person.", False), ("Memory.", True), ("Today.", False))
    body = sent(user("Hi"), profile=CLAUDE, instructions="not this", frame=given)
    assert body["system"] == [
        {**words("Rules."), "cache_control": MARK},
        words("Person."),
        {**words("Memory."), "cache_control": MARK},
        words("Today."),
    ]
    assert sent(user("Hi"), profile=CLAUDE, frame=frame())["system"] == [{**words("all of it"), "cache_control": MARK}]


def test_there_are_never_more_marks_than_the_api_takes() -> None:
    given = frame(*((f"block {number}", True) for number in range(9)))
    body = json.dumps(sent(user("Hi"), profile=CLAUDE, tools=(WEATHER,), frame=given))
    assert body.count('"cache_control"') == 4


def test_a_model_without_cache_blocks_gets_no_marks() -> None:
    body = sent(user("Hi"), profile=BARE, tools=(WEATHER,), instructions="Be brief.")
    assert b"cache_control" not in json.dumps(body).encode()


def test_without_instructions_and_tools_neither_is_named() -> None:
    assert sent(user("Hi"), instructions="  ", stream=True) == {
        "model": "claude-test",
        "messages": [{"role": "user", "content": [words("Hi")]}],
        "max_tokens": 32_000,
        "stream": True,
    }


# --- the moving mark, and what is shared ------------------------------------------------------------------------------


@pytest.mark.spec("HOL-FRAME-14")
def test_one_mark_moves_with_the_conversation_and_no_item_is_encoded_twice() -> None:
    encoder = AnthropicEncoder("claude-test", CLAUDE, (WEATHER,))
    history = History([user("Weather?"), asks("a")])
    steps: list[list[Any]] = [[answer("a")], [asks("b"), answer("b")], [asks(text="Fine."), user("Thanks")]]
    bodies: list[list[bytes]] = []
    for step in steps:
        history.extend(step)
        bodies.append(encoder.body(a_request(history=history, tools=(WEATHER,))))
    for body in bodies:
        marked = [
            [block for block in message["content"] if "cache_control" in block]
            for message in json.loads(b"".join(body))["messages"]
        ]
        assert [len(blocks) for blocks in marked] == [0] * (len(marked) - 1) + [1]
    for earlier, later in pairwise(bodies):
        kept = [chunk for chunk in earlier[:-2] if not chunk.startswith(b',"cache_control"')]
        assert all(old is new for old, new in zip(kept, later, strict=False))  # the very same bytes, not equal ones


def test_consecutive_requests_share_their_prefix_up_to_the_mark() -> None:
    encoder = AnthropicEncoder("claude-test", CLAUDE, (WEATHER,))
    history = History([user("Weather?")])
    first = b"".join(encoder.body(a_request(history=history, instructions="Be brief.")))
    history.extend([asks("a"), answer("a")])
    second = b"".join(encoder.body(a_request(history=history, instructions="Be brief.")))
    until = first.rindex(b',"cache_control"')
    assert second.startswith(first[:until])
    assert json.loads(first[:until] + b"}]}]}")["messages"] == [{"role": "user", "content": [words("Weather?")]}]


def test_the_mark_passes_over_blocks_that_cannot_have_it() -> None:
    thought = Thinking(text="hm", provider="anthropic", opaque={"signature": "c2ln"})
    paused = AssistantItem(parts=(thought,), provider="anthropic")
    body = sent(user("Hi"), paused, profile=CLAUDE)
    assert body["messages"] == [
        {"role": "user", "content": [{**words("Hi"), "cache_control": MARK}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}]},
    ]


def test_other_tool_names_are_another_encoding() -> None:
    other = WEATHER.model_copy(update={"name": "client.get_weather"})
    history = History([user("?"), asks("a"), answer("a")])
    one = AnthropicEncoder("m", BARE, (WEATHER,)).body(a_request(history=history))
    two = AnthropicEncoder("m", BARE, (other, WEATHER)).body(a_request(history=history))
    names = [json.loads(b"".join(body))["messages"][1]["content"][0]["name"] for body in (one, two)]
    assert names[0] == "client__get_weather" and names[1].startswith("client__get_weather_")


# --- order and pairing ------------------------------------------------------------------------------------------------


def test_neighbours_of_one_role_become_one_message_with_results_first() -> None:
    body = sent(user("A"), user("B"), asks(text="I will"), asks("a", "b"), answer("a"), answer("b"), user("C"))
    assert body["messages"] == [
        {"role": "user", "content": [words("A"), words("B")]},
        {"role": "assistant", "content": [words("I will"), use("a"), use("b")]},
        {"role": "user", "content": [result("a"), result("b"), words("C")]},
    ]


def test_words_after_a_call_go_before_it() -> None:
    item = AssistantItem(parts=(*asks("a").parts, Text("I will check.")), provider="anthropic")
    body = sent(user("?"), item, answer("a"))
    assert body["messages"][1]["content"] == [words("I will check."), use("a")]


def test_a_note_between_call_and_result_goes_after_the_result() -> None:
    body = sent(user("?"), asks("a", "b"), user("hurry"), answer("b"), answer("a"), asks(text="ok"))
    assert body["messages"][2:] == [
        {"role": "user", "content": [result("a"), result("b"), words("hurry")]},
        {"role": "assistant", "content": [words("ok")]},
    ]


def test_a_call_nobody_answered_gets_an_answer_that_says_so() -> None:
    nothing = result("a", "No result of this call was recorded.", is_error=True)
    body = sent(user("?"), asks("a"), user("again"))
    assert body["messages"][2]["content"] == [nothing, words("again")]
    assert sent(user("?"), asks("a"))["messages"][2]["content"] == [nothing]


def test_a_result_without_its_call_is_words() -> None:
    told = [words("Result of an earlier call of client/get_weather (zz):"), words("sunny")]
    assert sent(user("?"), answer("zz"))["messages"] == [{"role": "user", "content": [words("?"), *told]}]
    body = sent(user("?"), asks("a"), answer("zz"), answer("a"))
    assert body["messages"][2]["content"] == [result("a"), *told]


def test_a_result_that_came_too_late_does_not_change_what_was_sent() -> None:
    encoder = AnthropicEncoder("m", BARE, (WEATHER,))
    history = History([user("?"), asks("a"), asks(text="never mind")])
    before = json.loads(b"".join(encoder.body(a_request(history=history))))["messages"]
    history.extend([answer("a"), user("?")])
    after = json.loads(b"".join(encoder.body(a_request(history=history))))["messages"]
    assert after[: len(before)] == before
    assert after[-1]["content"][0] == words("Result of an earlier call of client/get_weather (a):")


def orders(seed: int) -> list[Any]:
    """Conversations in any order at all, from few enough pieces that calls and answers often meet."""
    pick = Random(seed)
    return [
        pick.choice([user("u"), user(""), asks(text="t"), asks("a"), asks("b", "c", text="t"), *map(answer, "abcz")])
        for _ in range(pick.randrange(1, 9))
    ]


@pytest.mark.parametrize("batch", range(20))
def test_whatever_the_order_each_call_is_followed_by_exactly_its_answers(batch: int) -> None:
    for seed in range(batch * 40, batch * 40 + 40):
        items = orders(seed)
        encoder = AnthropicEncoder("m", CLAUDE, (WEATHER,))
        history = History()
        for item in items:  # as a turn does: a request after each new item
            history.extend([item])
            sent_so_far = json.loads(b"".join(encoder.body(a_request(history=history))))["messages"]
            check_pairing(sent_so_far)
        check_pairing(sent(*items, profile=CLAUDE, tools=(WEATHER,))["messages"])


def check_pairing(messages: list[dict[str, Any]]) -> None:
    roles = [message["role"] for message in messages]
    assert all(one != two for one, two in pairwise(roles))
    open_calls: list[str] = []
    for message in messages:
        assert message["content"]
        results = [block["tool_use_id"] for block in message["content"] if block["type"] == "tool_result"]
        first = [block["type"] for block in message["content"][: len(results)]]
        assert first == ["tool_result"] * len(results)
        assert sorted(results) == sorted(open_calls)
        uses = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
        last = [block["type"] for block in message["content"][len(message["content"]) - len(uses) :]]
        assert last == ["tool_use"] * len(uses)
        open_calls = uses
    assert not open_calls


def test_ids_of_other_providers_are_made_to_fit_and_still_pair() -> None:
    body = sent(user("?"), asks("functions.get:0", provider="openai"), answer("functions.get:0"))
    made = body["messages"][1]["content"][0]["id"]
    assert made != "functions.get:0" and made.replace("_", "").isalnum()
    assert body["messages"][2]["content"][0]["tool_use_id"] == made


# --- what goes back as it came ----------------------------------------------------------------------------------------


@pytest.mark.spec("LOOP-PROV-04")
def test_what_the_provider_sent_goes_back_untouched() -> None:
    hidden = {"type": "redacted_thinking", "data": "ZW5jcnlwdGVk+/=="}
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "é\u2028"}}
    cited = {"citations": [{"type": "char_location", "cited_text": "x", "document_index": 0}]}
    item = AssistantItem(
        provider="anthropic",
        parts=(
            Thinking(text="Ünïcode\n\u2028 ", provider="anthropic", opaque={"signature": "EqQB/+=="}),
            Thinking(provider="anthropic", opaque=hidden),
            Thinking(provider="anthropic", opaque=search),
            Text("Found."),
            Thinking(provider="anthropic", opaque={"text_fields": cited}),
            CallPart(call_id="t", name=WEATHER.name, arguments={}, opaque={"caller": {"type": "direct"}}),
        ),
    )
    assert sent(user("?"), item, answer("t"))["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "Ünïcode\n\u2028 ", "signature": "EqQB/+=="},
        hidden,
        search,
        {**words("Found."), **cited},
        {"type": "tool_use", "id": "t", "name": "client__get_weather", "input": {}, "caller": {"type": "direct"}},
    ]


def test_what_another_provider_thought_is_left_out() -> None:
    item = AssistantItem(
        provider="openai",
        parts=(
            Thinking(text="secret", provider="openai", opaque={"id": "rs_1"}),
            Text("hi"),
            CallPart(call_id="t", name=WEATHER.name, arguments={}, opaque={"item_id": "fc_1"}),
        ),
    )
    assert sent(user("?"), item, answer("t"))["messages"][1]["content"] == [words("hi"), {**use("t"), "input": {}}]
    only_thoughts = AssistantItem(provider="openai", parts=item.parts[:1])
    assert sent(user("a"), only_thoughts, user("b"))["messages"] == [
        {"role": "user", "content": [words("a"), words("b")]}
    ]


def test_a_paused_reply_comes_back_as_the_last_message() -> None:
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
    paused = AssistantItem(provider="anthropic", parts=(Thinking(provider="anthropic", opaque=search),))
    body = sent(user("?"), paused, UserItem(parts=(), origin="runtime"))
    assert body["messages"][-1] == {"role": "assistant", "content": [search]}


def test_malformed_arguments_go_back_as_what_they_are() -> None:
    item = AssistantItem(provider="anthropic", parts=(CallPart(call_id="t", name="f", raw_arguments='{"a'),))
    assert sent(user("?"), item, answer("t"))["messages"][1]["content"][0]["input"] == {"INVALID_JSON": '{"a'}


# --- pictures and documents -------------------------------------------------------------------------------------------


PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "UE5H"}}


def test_pictures_and_documents_in_prompts() -> None:
    pdf = File(name="a.pdf", data=b"%PDF", media_type="application/pdf")
    note = File(name="n.md", data="grüß".encode(), media_type="text/markdown")
    far = File(name="b.pdf", url="https://example.com/b.pdf", media_type="application/pdf")
    body = sent(user("See:", Image(data=b"PNG"), Image(url="https://example.com/x.png"), pdf, note, far))
    encoded = base64.b64encode(b"%PDF").decode()
    assert body["messages"][0]["content"] == [
        words("See:"),
        PICTURE,
        {"type": "image", "source": {"type": "url", "url": "https://example.com/x.png"}},
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": encoded},
            "title": "a.pdf",
        },
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "grüß"}, "title": "n.md"},
        {"type": "document", "source": {"type": "url", "url": "https://example.com/b.pdf"}, "title": "b.pdf"},
    ]


def test_pictures_in_results() -> None:
    shown = ToolItem(call_id="a", name=WEATHER.name, parts=(Text("Here:"), Image(data=b"PNG")), is_error=True)
    body = sent(user("?"), asks("a"), shown)
    assert body["messages"][2]["content"] == [result("a", [words("Here:"), PICTURE], is_error=True)]


@pytest.mark.parametrize(
    ("part", "profile", "why"),
    [
        (Image(data=b"x"), replace(BARE, images=False), "it is not known to take images"),
        (Image(data=b"x", media_type="image/tiff"), BARE, "image/tiff is not a format that it takes"),
        (File(name="z.zip", data=b"\xff\xfe", media_type="application/zip"), BARE, "application/zip is not supported"),
        (File(name="z.csv", url="https://example.com/z.csv", media_type="text/csv"), BARE, "text/csv is not supported"),
    ],
)
def test_what_cannot_be_shown_is_refused_in_a_prompt_and_named_in_a_result(
    part: Image | File, profile: ModelProfile, why: str
) -> None:
    with pytest.raises(ModelFailure, match=why):
        sent(user("See:", part), profile=profile)
    found = ToolItem(call_id="a", name=WEATHER.name, parts=(part,))
    (block,) = sent(user("?"), asks("a"), found, profile=profile)["messages"][-1]["content"]
    (named,) = block["content"]
    assert named["type"] == "text" and f"was left out: {why}" in named["text"]


def test_a_file_of_text_is_read_to_a_model_that_takes_no_files() -> None:
    block = sent(user("See:", File(name="z.txt", data=b"x")), profile=replace(BARE, files=False))["messages"][0]
    assert block["content"][1] == {"type": "text", "text": "File z.txt:\nx"}


@pytest.mark.parametrize("text", ["", " ", "\n"])
def test_empty_words_are_not_sent(text: str) -> None:
    assert sent(user("a"), user(text), asks(text=text), user("b"))["messages"] == [
        {"role": "user", "content": [words("a"), words("b")]}
    ]


def test_half_a_surrogate_pair_does_not_stop_a_request() -> None:
    assert sent(user("a\ud83d"))["messages"][0]["content"] == [words("a?")]


# --- settings ---------------------------------------------------------------------------------------------------------


def test_settings_are_sent_under_this_api_s_names() -> None:
    settings = {
        "temperature": 0,
        "stop": "END",
        "max_tokens": 9,
        "user": "u",
        "service_tier": "default",
        "anthropic": {"top_k": 3, "output_config": {"effort": "max"}, "inference_geo": "eu"},
    }
    body = sent(user("Hi"), settings=settings)
    del body["model"], body["messages"]
    assert body == {
        "temperature": 0,
        "top_k": 3,
        "stop_sequences": ["END"],
        "max_tokens": 9,
        "output_config": {"effort": "max"},
        "metadata": {"user_id": "u"},
        "service_tier": "standard_only",
        "inference_geo": "eu",
        "stream": False,
    }


@pytest.mark.parametrize(
    ("profile", "refuses", "settings"),
    [
        (BARE, True, {}),  # the newer version of the API
        (profile_of("claude-opus-4-7"), False, {}),  # a model that takes none
        (BARE, False, {"anthropic": {"thinking": {"type": "enabled", "budget_tokens": 1024}, "top_k": 3}}),
    ],
)
def test_sampling_that_would_be_refused_is_left_out_and_reported(
    profile: ModelProfile, refuses: bool, settings: dict[str, Any]
) -> None:
    given = {"temperature": 0.5, "top_p": 0.9, "anthropic": {"top_k": 3}, **settings}
    body = sent(user("Hi"), profile=profile, refuses_sampling=refuses, settings=given)
    assert not {"temperature", "top_p", "top_k"} & body.keys()
    encoder = AnthropicEncoder("m", profile, refuses_sampling=refuses)
    assert encoder.left_out(a_request(settings=given)) == ("temperature", "top_p", "anthropic.top_k")
    assert AnthropicEncoder("m", BARE).left_out(a_request(settings={"temperature": 0.5})) == ()  # inversion


@pytest.mark.parametrize("name", ["model", "messages", "stream", "tools", "system"])
def test_a_setting_cannot_replace_what_the_runtime_says(name: str) -> None:
    with pytest.raises(InvalidConfig, match=rf"settings\.anthropic\.{name}: the runtime writes this field itself"):
        sent(user("Hi"), settings={"anthropic": {name: "x"}})


@pytest.mark.parametrize(
    ("choice", "parallel", "sent_choice"),
    [
        ("auto", True, None),
        ("required", True, {"type": "any"}),
        ("none", True, {"type": "none"}),
        ("auto", False, {"type": "auto", "disable_parallel_tool_use": True}),
        ("required", False, {"type": "any", "disable_parallel_tool_use": True}),
        ("none", False, {"type": "none"}),
    ],
)
def test_tool_choice_and_parallel_calls(choice: str, parallel: bool, sent_choice: object) -> None:
    by_profile = replace(BARE, parallel_tool_calls=parallel)
    assert sent(user("?"), profile=by_profile, tools=(WEATHER,), tool_choice=choice).get("tool_choice") == sent_choice
    by_setting = sent(user("?"), tools=(WEATHER,), tool_choice=choice, settings={"parallel_tool_calls": parallel})
    assert by_setting.get("tool_choice") == sent_choice and "parallel_tool_calls" not in by_setting
    assert "tool_choice" not in sent(user("?"), profile=by_profile, tool_choice=choice)


def test_a_model_that_cannot_be_forced_is_asked_and_the_caller_told() -> None:
    profile = replace(BARE, forced_tool_choice=False)
    assert "tool_choice" not in sent(user("?"), profile=profile, tools=(WEATHER,), tool_choice="required")
    assert AnthropicEncoder("m", profile, (WEATHER,)).left_out(a_request(tool_choice="required")) == ("tool_choice",)
    thinking = {"anthropic": {"thinking": {"type": "adaptive"}}}
    assert "tool_choice" not in sent(user("?"), tools=(WEATHER,), tool_choice="required", settings=thinking)
    request = a_request(tool_choice="required", settings=thinking)
    assert AnthropicEncoder("m", BARE, (WEATHER,)).left_out(request) == ("tool_choice",)


def test_a_model_without_tools_gets_none_and_the_caller_told() -> None:
    profile = replace(BARE, tools=False)
    assert "tools" not in sent(user("?"), profile=profile, tools=(WEATHER,))
    assert AnthropicEncoder("m", profile, (WEATHER,)).left_out(a_request()) == ("tools",)


SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}


def test_an_output_schema_goes_together_with_tools() -> None:
    body = sent(user("?"), tools=(WEATHER,), output_schema=SCHEMA)
    form = body["output_config"]["format"]
    assert (form["type"], form["schema"]["additionalProperties"]) == ("json_schema", False)
    assert "minimum" not in form["schema"]["properties"]["n"]  # refused by the API; checked here in any case
    assert body["tools"][0]["name"] == "client__get_weather"
    assert "system" not in body
    (change,) = AnthropicEncoder("m", BARE).changes(a_request(output_schema=SCHEMA))
    assert change.startswith("answer: #/properties/n") and "minimum" in change


def test_an_answer_that_is_no_object_is_asked_for_inside_one() -> None:
    body = sent(user("?"), output_schema={"type": "array", "items": {"type": "integer"}})
    schema = body["output_config"]["format"]["schema"]
    assert schema["properties"] == {"result": {"type": "array", "items": {"type": "integer"}}}


def test_an_answer_that_the_api_cannot_hold_a_model_to_is_asked_for_in_words() -> None:
    body = sent(user("?"), output_schema={"type": "object", "additionalProperties": {"type": "integer"}})
    assert "output_config" not in body
    assert '{"type":"object","additionalProperties":{"type":"integer"}}' in body["system"][0]["text"]


def test_where_the_api_cannot_hold_a_model_to_a_schema_the_model_is_told_it() -> None:
    profile = replace(CLAUDE, structured_output=False)
    body = sent(user("?"), profile=profile, instructions="Be brief.", tools=(WEATHER,), output_schema=SCHEMA)
    assert "output_config" not in body
    assert body["system"][0]["text"] == "Be brief."
    assert '"properties":{"n":' in body["system"][1]["text"]
    assert body["system"][1]["cache_control"] == MARK
