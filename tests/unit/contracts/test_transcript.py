"""The `wakeful.message` envelope: what is accepted, what is refused, how calls and results pair."""

from typing import Any

import pytest

from wakeful.contracts import transcript
from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.transcript import (
    TYPES,
    Message,
    check_pairing,
    merge_same_role,
    normalise,
    normalise_all,
)


def refused(raw: Any) -> InvalidValue:
    with pytest.raises(InvalidValue) as caught:
        normalise(raw)
    return caught.value


@pytest.mark.spec("API-MSG-01")
def test_plain_dicts_and_envelopes_are_normalised_to_the_same_envelope() -> None:
    plain = normalise({"role": "user", "content": "hello"})
    envelope = normalise(
        {"schema": "wakeful.message", "version": 1, "type": "text", "role": "user", "content": "hello"}
    )
    assert plain == envelope == normalise(plain)
    assert plain.to_wire() == {
        "schema": "wakeful.message",
        "version": 1,
        "type": "text",
        "role": "user",
        "content": "hello",
        "payload": {},
        "metadata": {},
    }


@pytest.mark.spec("API-MSG-02")
def test_only_the_nine_types_and_version_1_are_accepted() -> None:
    assert {
        "text",
        "tool_call",
        "tool_result",
        "input_required",
        "approval_required",
        "final_result",
        "error",
        "delta",
        "multimodal_part",
    } == TYPES
    for kind in TYPES:
        assert normalise({"type": kind, "content": ""}).type == kind
    assert refused({"type": "banner", "content": ""}).path == "type"
    assert refused({"version": 2, "type": "text", "content": ""}).path == "version"
    assert refused({"schema": "other.message", "type": "text", "content": ""}).path == "schema"


@pytest.mark.spec("API-MSG-03")
@pytest.mark.parametrize(
    ("content", "metadata", "expected"),
    [
        ("words", {}, "text"),
        ("words", {"type": "final_result"}, "final_result"),
        ("words", {"type": "unheard-of"}, "text"),
        (["a", "b"], {}, "multimodal_part"),
        (["a", "b"], {"type": "delta"}, "delta"),
        ("words", {"error": True}, "error"),
        (["a"], {"error": True}, "multimodal_part"),
    ],
)
def test_type_of_a_plain_message_follows_from_metadata_then_content_then_error(
    content: Any, metadata: dict[str, Any], expected: str
) -> None:
    assert normalise({"role": "user", "content": content, "metadata": metadata}).type == expected


@pytest.mark.spec("API-MSG-04")
def test_absent_role_follows_from_the_type_and_an_empty_one_is_refused() -> None:
    roles = {kind: normalise({"type": kind, "content": ""}).role for kind in TYPES}
    assert {kind for kind, role in roles.items() if role == "tool"} == {
        "tool_result",
        "input_required",
        "approval_required",
    }
    assert set(roles.values()) == {"tool", "assistant"}
    assert normalise({"type": "tool_result", "role": "assistant", "content": ""}).role == "assistant"
    for empty in ("", "  "):
        assert refused({"role": empty, "content": "x"}).path == "role"


@pytest.mark.spec("API-MSG-05", "API-MSG-06")
def test_builders_use_the_default_roles_and_pair_by_tool_call_id() -> None:
    call = transcript.tool_call("client/search", {"q": "x"}, tool_call_id="c1", turn=3)
    result = transcript.tool_result("client/search", {"success": True, "result": 7}, tool_call_id="c1", content="7")
    assert (call.role, result.role) == ("assistant", "tool")
    assert call.payload == {"tool_name": "client/search", "parameters": {"q": "x"}, "turn": 3}
    assert result.payload == {"tool_name": "client/search", "success": True, "result": 7}
    assert call.metadata["tool_call_id"] == result.metadata["tool_call_id"] == call.tool_call_id == "c1"


@pytest.mark.spec("API-MSG-07")
@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ({"role": "user"}, "content"),
        ({"role": "user", "content": 7}, "content"),
        ({"role": 7, "content": "x"}, "role"),
        ({"role": "user", "content": "x", "metadata": []}, "metadata"),
        ({"role": "user", "content": "x", "payload": "p"}, "payload"),
        ({"role": "user", "content": "x", "tool_calls": []}, "tool_calls"),
        ({"role": "user", "content": "x", "id": 4}, "id"),
    ],
)
def test_errors_carry_the_prefix_and_name_the_field(raw: dict[str, Any], field: str) -> None:
    error = refused(raw)
    assert str(error).startswith("invalid_message_envelope: ")
    assert error.path == field


@pytest.mark.spec("API-BND-04")
@pytest.mark.parametrize("bad", [object(), {1, 2}, b"bytes", float("nan"), {1: "a key that is no text"}])
def test_what_json_cannot_hold_is_refused_where_it_stands(bad: Any) -> None:
    error = refused({"role": "user", "content": "x", "payload": {"deep": [0, bad]}})
    assert error.path == "payload"
    assert "deep[1]" in error.reason


def test_a_list_that_is_no_list_of_messages_is_refused_by_its_place() -> None:
    with pytest.raises(InvalidValue, match=r"^invalid_message_envelope: messages\[1\]\.role"):
        normalise_all([{"role": "user", "content": "a"}, {"role": "", "content": "b"}])
    with pytest.raises(InvalidValue, match="a list of messages"):
        normalise_all({"role": "user", "content": "a"})


def test_a_message_keeps_its_own_copy_of_what_it_was_given() -> None:
    payload = {"list": [1]}
    message = normalise({"role": "user", "content": "x", "payload": payload})
    payload["list"].append(2)
    assert message.payload == {"list": [1]}


@pytest.mark.spec("API-MSG-08")
def test_merging_joins_same_roles_keeps_the_originals_and_is_idempotent() -> None:
    said = [
        transcript.text("user", "one"),
        transcript.text("user", "two"),
        transcript.text("assistant", "three"),
        transcript.tool_call("a/b", {}, tool_call_id="c", turn=1),
        transcript.text("user", "four"),
    ]
    before = [message.to_wire() for message in said]
    merged = merge_same_role(said)
    assert [(message.type, message.role, message.content) for message in merged] == [
        ("multimodal_part", "user", "one\n\ntwo"),
        ("multimodal_part", "assistant", "three"),
        ("text", "user", "four"),
    ]
    assert merged[0].payload["parts"] == before[:2]
    assert merged[1].payload["parts"] == before[2:4]
    assert merge_same_role(merged) == merged
    assert [message.to_wire() for message in said] == before


def test_merging_what_was_merged_before_does_not_nest() -> None:
    first = merge_same_role([transcript.text("user", "one"), transcript.text("user", "two")])
    again = merge_same_role([*first, transcript.text("user", "three")])
    assert [part["content"] for part in again[0].payload["parts"]] == ["one", "two", "three"]


@pytest.mark.spec("API-MSG-09")
@pytest.mark.parametrize(
    "message",
    [
        transcript.text("user", "hello"),
        transcript.text("user", "hello", metadata={"k": 1}),
        transcript.parts("user", [{"type": "image"}]),
        transcript.tool_call("a/b", {"x": 1}, tool_call_id="c", turn=1),
        transcript.tool_result("a/b", {"success": True}, tool_call_id="c", content="{}"),
        normalise({"type": "text", "role": "user", "content": "x", "metadata": {"type": "delta", "error": 1}}),
    ],
    ids=lambda message: str(message.type),
)
def test_projection_to_a_provider_message_loses_neither_type_nor_payload(message: Message) -> None:
    projected = message.to_provider()
    assert set(projected) <= {"role", "content", "metadata"}
    assert (projected["role"], projected["content"]) == (message.role, message.content)
    assert normalise(projected).type == message.type
    assert projected.get("metadata", {}).get("payload", {}) == message.payload


def test_a_plain_text_is_projected_without_metadata() -> None:
    assert transcript.text("user", "hi").to_provider() == {"role": "user", "content": "hi"}


CALL = transcript.tool_call("a/b", {}, tool_call_id="c1", turn=1)
RESULT = transcript.tool_result("a/b", {"success": True}, tool_call_id="c1", content="{}")


@pytest.mark.spec("API-MSG-10")
@pytest.mark.parametrize(
    "messages",
    [[CALL], [RESULT], [RESULT, CALL], [CALL, RESULT, RESULT], [CALL, CALL, RESULT]],
    ids=["no result", "no call", "wrong order", "two results", "two calls"],
)
def test_unpaired_calls_and_results_are_refused(messages: list[Message]) -> None:
    with pytest.raises(InvalidValue, match=r"^unpaired_input_messages: "):
        check_pairing(messages)


@pytest.mark.spec("API-MSG-10")
def test_paired_ones_pass_and_a_pending_call_may_lack_its_result() -> None:
    check_pairing([CALL, RESULT])
    check_pairing(merge_same_role([transcript.text("assistant", "hm"), CALL, RESULT]))
    check_pairing([CALL], pending={"c1"})
    with pytest.raises(InvalidValue):
        check_pairing([CALL], pending={"another"})


def test_a_call_without_an_id_cannot_pair() -> None:
    nameless = normalise({"type": "tool_call", "content": "", "payload": {"tool_name": "a/b"}})
    with pytest.raises(InvalidValue, match=r"^unpaired_input_messages: messages\[0\]"):
        check_pairing([nameless])
