"""Context management: asked for by those who want it, noted in numbers, and the conversation stays whole."""

import json
from typing import Any

import pytest

from kit.wires import anthropic_samples
from kit.wires.model_requests import a_request, reply_of
from kit.wires.provider_server import JSON, Answer, serving
from wakeful.contracts.content import Image, Text
from wakeful.contracts.conversation import AssistantItem, CallPart, History, ToolItem, UserItem
from wakeful.contracts.errors import ModelFailure
from wakeful.providers.anthropic import AnthropicMessages
from wakeful.providers.anthropic.context_editing import BETA, CLEAR_TOOL_USES, ClearableResults, eligible

EDITS = {"edits": [{"type": CLEAR_TOOL_USES, "keep": {"type": "tool_uses", "value": 1}, "exclude_tools": ["kept"]}]}
SECRET = "the-secret-in-a-result"


def rounds(*results: tuple[str, str]) -> History:
    """A conversation with these results, each of a round of its own: the tool and what it said."""
    items: list[Any] = [UserItem(parts=(Text("go"),))]
    for number, (name, said) in enumerate(results):
        items.append(
            AssistantItem(parts=(CallPart(call_id=f"c{number}", name=name, arguments={}),), provider="anthropic")
        )
        items.append(ToolItem(call_id=f"c{number}", name=name, parts=(Text(said),)))
    return History(items)


FOUR = (("read", SECRET), ("kept", "x" * 1000), ("read", "ü" * 10), ("read", "newest"))
APPLIED = {"applied_edits": [{"type": CLEAR_TOOL_USES, "cleared_tool_uses": 1, "cleared_input_tokens": 9}]}


def model_at(url: str, **options: Any) -> AnthropicMessages:
    return AnthropicMessages("claude-opus-4-7", base_url=url, api_key="sk-test-0123456789", **options)


def answer(*, stream: bool) -> Answer:
    if stream:
        ended = anthropic_samples.ended()
        ended[0]["context_management"] = APPLIED
        events = [anthropic_samples.started(), *anthropic_samples.text_block(0, "Fine."), *ended]
        return Answer(anthropic_samples.sse(events))
    message = anthropic_samples.started(
        content=[{"type": "text", "text": "Fine."}], stop_reason="end_turn", context_management=APPLIED
    )["message"]
    return Answer(json.dumps(message).encode(), headers=JSON)


@pytest.mark.spec("HOL-FRAME-16")
@pytest.mark.parametrize("stream", [True, False])
async def test_it_is_sent_when_asked_for_and_noted_without_content_and_the_request_stays_whole(stream: bool) -> None:
    with serving() as server:
        server.always = answer(stream=stream)
        model = model_at(server.url)
        plain = await reply_of(model, a_request(history=rounds(*FOUR), stream=stream))
        edited = await reply_of(
            model,
            a_request(history=rounds(*FOUR), stream=stream, settings={"anthropic": {"context_management": EDITS}}),
        )
    without, with_it = server.asked
    # Opt-in: without a word of the caller nothing is sent.
    assert "context_management" not in without.body
    assert "anthropic-beta" not in without.headers
    assert "context_editing" not in plain.request_metadata
    # The option goes along, under the header that it needs.
    assert with_it.body["context_management"] == EDITS
    assert with_it.headers["anthropic-beta"] == BETA
    # What is asked is the same conversation, whole: the log replays either of them.
    assert {**with_it.body, "context_management": None} == {**without.body, "context_management": None}
    assert SECRET in json.dumps(with_it.body["messages"])
    # Numbers and the names of rules: nothing of what a tool said.
    noted = edited.request_metadata["context_editing"]
    assert noted == {
        "edits": [CLEAR_TOOL_USES],
        "eligible_tool_results": 2,
        "eligible_tool_result_bytes": len(SECRET) + 20,
    }
    assert SECRET not in json.dumps(edited.request_metadata)
    assert edited.request_metadata["context_management"] == APPLIED, "what the provider cleared on its side"
    assert edited.item == plain.item


async def test_yes_is_the_providers_own_rule_and_no_is_nothing() -> None:
    with serving() as server:
        server.always = answer(stream=False)
        for wanted in (True, False, None):
            settings = {"anthropic": {"context_management": wanted}}
            await reply_of(model_at(server.url), a_request(history=rounds(*FOUR), settings=settings))
    assert [asked.body.get("context_management") for asked in server.asked] == [
        {"edits": [{"type": CLEAR_TOOL_USES}]},
        None,
        None,
    ]


async def test_other_beta_headers_stay() -> None:
    with serving() as server:
        server.always = answer(stream=False)
        model = model_at(server.url, headers={"anthropic-beta": "new-thing"})
        await reply_of(model, a_request(history=rounds(*FOUR), settings={"anthropic": {"context_management": True}}))
    assert server.asked[0].headers["anthropic-beta"] == f"new-thing,{BETA}"


async def test_a_model_without_it_is_not_sent_it_and_that_is_reported() -> None:
    with serving() as server:
        server.always = answer(stream=False)
        model = model_at(server.url, profile={"prompt": frozenset({"prompt_cache_blocks"})})
        reply = await reply_of(
            model, a_request(history=rounds(*FOUR), settings={"anthropic": {"context_management": True}})
        )
    assert "context_management" not in server.asked[0].body
    assert reply.request_metadata["left_out"] == ["anthropic.context_management"]


@pytest.mark.parametrize("wanted", ["yes", 1.5, {"edits": "all"}, {"edits": [{"keep": 3}]}, {}])
async def test_what_is_no_such_option_is_refused_before_anything_is_sent(wanted: Any) -> None:
    with serving() as server, pytest.raises(ModelFailure, match=r"settings\.anthropic\.context_management") as refused:
        await reply_of(
            model_at(server.url), a_request(history=rounds(), settings={"anthropic": {"context_management": wanted}})
        )
    assert refused.value.kind == "contract_error"
    assert server.asked == []


def test_each_item_is_counted_once_and_the_newest_are_kept() -> None:
    history = rounds(*FOUR)
    assert eligible(history, 0) == ClearableResults(4, len(SECRET) + 1000 + 20 + 6)
    assert eligible(history, 3) == ClearableResults(1, len(SECRET))
    assert eligible(history, 4) == eligible(history, 99) == ClearableResults(0, 0)
    picture = ToolItem(call_id="c9", name="read", parts=(Image(data=b"1234"), Image(url="http://127.0.0.1/p.png")))
    history.extend([picture])
    assert eligible(history, 0) == ClearableResults(5, len(SECRET) + 1000 + 20 + 6 + 4)
    assert eligible(rounds(), 0) == ClearableResults(0, 0)
