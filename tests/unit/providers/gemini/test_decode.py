"""What Gemini answers, and what each way of going wrong comes to."""

import json
from typing import Any

import pytest

from kit.wires.gemini_samples import SIGNATURE, USAGE, answer, call, decoded, sse
from wakeful.contracts.content import Image, Text, Thinking
from wakeful.contracts.conversation import AssistantItem, CallPart
from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.models import RETRYABLE, Reply
from wakeful.providers.gemini.decode import decode_response
from wakeful.providers.wire.failures import from_status
from wakeful.providers.wire.names import WireNames


def reply_to(said: dict[str, Any]) -> Reply:
    return decode_response(json.dumps(said).encode(), WireNames())


def failure_of(said: dict[str, Any]) -> ModelFailure:
    with pytest.raises(ModelFailure) as raised:
        reply_to(said)
    with pytest.raises(ModelFailure) as streamed:
        decoded(sse([said]))
    assert streamed.value.kind == raised.value.kind
    return raised.value


def test_texts_are_one_and_a_signed_part_stands_by_itself() -> None:
    pieces = [
        answer({"text": "I think", "thought": True}, finish=None),
        answer({"text": " hard", "thought": True}, finish=None),
        answer({"text": "It is "}, finish=None),
        answer({"text": "fine"}, finish=None),
        answer({"text": "", "thoughtSignature": SIGNATURE}),
    ]
    assert decoded(sse(pieces))[1].item == AssistantItem(
        parts=(
            Thinking(text="I think hard", provider="gemini", opaque={"thought": True}),
            Text("It is fine"),
            Thinking(provider="gemini", opaque={"part": {"text": "", "thoughtSignature": SIGNATURE}}),
        ),
        provider="gemini",
    )


def test_a_call_keeps_what_came_with_it_and_may_have_no_id() -> None:
    reply = reply_to(answer(call("look", {"a": 1}, thoughtSignature=SIGNATURE), call("look", {}, "id-2")))
    assert reply.item.calls == (
        CallPart(call_id="", name="look", arguments={"a": 1}, opaque={"thoughtSignature": SIGNATURE}),
        CallPart(call_id="id-2", name="look", arguments={}),
    )
    assert reply.stop_reason == "tool_calls"


def test_arguments_that_are_no_object_are_kept_as_they_were_written() -> None:
    (made,) = reply_to(answer({"functionCall": {"name": "look", "args": [1]}})).item.calls
    assert (made.arguments, made.raw_arguments) == (None, "[1]")


def test_a_picture_that_the_model_made_is_a_picture() -> None:
    reply = reply_to(answer({"inlineData": {"mimeType": "image/png", "data": "cG5n"}}))
    assert reply.item.parts == (Image(data=b"png", media_type="image/png"),)


def test_a_part_of_a_kind_nobody_knows_is_kept_whole() -> None:
    part = {"executableCode": {"language": "PYTHON", "code": "1"}}
    assert reply_to(answer(part, {"text": "1"})).item.parts[0] == Thinking(provider="gemini", opaque={"part": part})


@pytest.mark.parametrize(("reason", "stop"), [("STOP", "end"), ("MAX_TOKENS", "length"), ("OTHER", "other")])
def test_a_reason_to_stop_is_told_in_our_word_and_kept_in_theirs(reason: str, stop: str) -> None:
    reply = reply_to(answer({"text": "x"}, finish=reason))
    assert (reply.stop_reason, reply.request_metadata["provider_stop_reason"]) == (stop, reason)


@pytest.mark.parametrize("reason", ["SAFETY", "RECITATION", "PROHIBITED_CONTENT", "SPII", "BLOCKLIST"])
def test_an_answer_that_was_stopped_for_what_it_says_is_content_filtered(reason: str) -> None:
    stopped = failure_of(answer(finish=reason))
    assert (stopped.kind, stopped.stage, reason in stopped.message) == ("content_filtered", "decode", True)
    assert reply_to(answer({"text": "half of"}, finish=reason)).stop_reason == "content_filter"


def test_a_blocked_prompt_is_content_filtered() -> None:
    said = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": USAGE}
    blocked = failure_of(said)
    assert blocked.kind == "content_filtered"
    assert "the prompt was blocked (PROHIBITED_CONTENT)" in blocked.message


def test_a_call_that_gemini_could_not_read_is_worth_another_attempt() -> None:
    lost = failure_of(answer(finish="MALFORMED_FUNCTION_CALL"))
    assert lost.kind == "empty_response"
    assert lost.kind in RETRYABLE


def test_an_answer_without_an_end_is_not_believed() -> None:
    with pytest.raises(ModelFailure, match="no finishReason") as raised:
        reply_to(answer({"text": "half"}, finish=None))
    assert raised.value.kind == "invalid_response"


def test_what_follows_the_end_is_no_part_of_the_reply() -> None:
    assert decoded(sse([answer({"text": "a"}), answer({"text": "b"})]))[1].item.text == "a"


def refused(status: int, code: str, words: str, *details: dict[str, Any]) -> ModelFailure:
    error = {"error": {"code": status, "message": words, "status": code, "details": list(details)}}
    return from_status("gemini", "gemini:gemini-x", status, {}, json.dumps(error).encode())


QUOTA = "You exceeded your current quota, please check your plan and billing details."


@pytest.mark.parametrize(
    ("status", "code", "words", "kind"),
    [
        (400, "INVALID_ARGUMENT", "Unknown name", "contract_error"),
        (
            400,
            "INVALID_ARGUMENT",
            "The input token count (9) exceeds the maximum number of tokens",
            "context_length_exceeded",
        ),
        (403, "PERMISSION_DENIED", "no", "auth_error"),
        (404, "NOT_FOUND", "models/gemini-x is not found for API version v1beta", "contract_error"),
        (429, "RESOURCE_EXHAUSTED", "Resource has been exhausted", "rate_limited"),
        (429, "RESOURCE_EXHAUSTED", "Your prepayment credits are depleted.", "quota_exhausted"),
        (500, "INTERNAL", "An internal error has occurred.", "server_error"),
        (503, "UNAVAILABLE", "The model is overloaded. Please try again later.", "overloaded"),
        (504, "DEADLINE_EXCEEDED", "The deadline expired.", "timeout"),
    ],
)
def test_each_error_of_the_api_is_a_failure_of_its_kind(status: int, code: str, words: str, kind: str) -> None:
    assert refused(status, code, words).kind == kind


def test_a_key_that_is_none_is_an_auth_error_though_google_calls_it_an_argument() -> None:
    reason = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
    assert refused(400, "INVALID_ARGUMENT", "API key not valid.", reason).kind == "auth_error"


def test_a_limit_of_a_minute_is_waited_for_and_one_of_a_day_is_not() -> None:
    def limit(name: str) -> dict[str, Any]:
        return {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": name}]}

    wait = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}
    minute = refused(429, "RESOURCE_EXHAUSTED", QUOTA, limit("GenerateRequestsPerMinutePerProject"), wait)
    assert (minute.kind, minute.retry_after) == ("rate_limited", 34.5)
    day = refused(429, "RESOURCE_EXHAUSTED", QUOTA, limit("GenerateRequestsPerDayPerProjectPerModel-FreeTier"))
    assert day.kind == "quota_exhausted"
