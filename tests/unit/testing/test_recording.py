"""A model that is asked once and answers from its file from then on."""

import json
from pathlib import Path
from typing import Any

import pytest

from kit.wires.model_requests import a_request, pieces_of, reply_of
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import History, UserItem
from wakeful.contracts.errors import InvalidConfig, MalformedScript, ModelFailure
from wakeful.contracts.tools import ToolDeclaration
from wakeful.ports import Model, ModelRequest
from wakeful.providers.scripted import ScriptedModel
from wakeful.testing import record

STEPS: list[Any] = [
    {"calls": [{"name": "look_up", "arguments": {"order": "A17"}}], "usage": {"input_tokens": 3}},
    {"text": "it costs 42", "reasoning": "hm", "metadata": {"id": "r1", "headers": {"x-api-key": "sk-1"}}},
]


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    return tmp_path / "recordings" / "prices.json"


def asked(answered: int = 0, text: str = "how much is A17?", **changed: Any) -> ModelRequest:
    return a_request(answered, history=History([UserItem(parts=(Text(text),))]), instructions="Be brief.", **changed)


def written(tape: Path) -> str:
    return tape.read_text()


def nobody() -> Model:
    """A model that must not be asked."""

    def refuse() -> object:
        raise AssertionError("the model was asked")

    return ScriptedModel(refuse, name="real")


async def test_the_file_answers_with_the_same_pieces_and_the_model_is_not_asked(tape: Path) -> None:
    first = record(ScriptedModel(STEPS, name="real"), tape)
    recorded = [await pieces_of(first, asked(answered, stream=True)) for answered in (0, 1)]
    second = record(nobody(), tape)
    assert (first.replays, second.replays, second.ref) == (False, True, "scripted:real")
    replayed = [await pieces_of(second, asked(answered, stream=True)) for answered in (0, 1)]
    assert replayed[0] == recorded[0]
    assert replayed[1][:-1] == recorded[1][:-1]
    assert (await reply_of(second, asked(1))).item.text == "it costs 42"


async def test_a_request_that_differs_is_refused_and_shown_beside_the_recorded_one(tape: Path) -> None:
    await reply_of(record(ScriptedModel(STEPS), tape), asked())
    with pytest.raises(ModelFailure) as refused:
        await reply_of(record(nobody(), tape), asked(text="how much is B2?"))
    assert (refused.value.kind, refused.value.retryable) == ("contract_error", False)
    lines = refused.value.message.splitlines()
    assert lines[0] == f"{tape} has no answer to this request. Delete the file to record again."
    assert [line.strip() for line in lines if line.startswith("-")] == ['-     "text": "how much is A17?"']
    assert [line.strip() for line in lines if line.startswith("+")] == ['+     "text": "how much is B2?"']


@pytest.mark.parametrize(
    "changed",
    [
        {"tools": (ToolDeclaration(name="look_up", input_schema={}),)},
        {"settings": {"temperature": 1}},
        {"tool_choice": "none"},
        {"output_schema": {"type": "object"}},
        {"attempt": 2},
    ],
)
async def test_everything_that_a_request_says_counts(tape: Path, changed: dict[str, Any]) -> None:
    await reply_of(record(ScriptedModel(STEPS), tape), asked())
    with pytest.raises(ModelFailure, match="has no answer"):
        await reply_of(record(nobody(), tape), asked(**changed))


async def test_turn_and_streaming_do_not_count(tape: Path) -> None:
    await reply_of(record(ScriptedModel(STEPS), tape), asked())
    replayed = record(nobody(), tape)
    assert (await reply_of(replayed, asked(turn_id="turn_2", stream=True))).item.calls


async def test_a_model_given_by_its_reference_is_not_made_when_the_file_answers(tape: Path) -> None:
    first = await reply_of(record("scripted:demo", tape), asked())
    with pytest.raises(MalformedScript):
        record("scripted:nowhere.yaml", tape.with_name("other.json"))
    assert await reply_of(record("scripted:nowhere.yaml", tape), asked()) == first


async def test_failures_are_recorded_for_their_attempt(tape: Path) -> None:
    step = {"text": "at last", "fail": {"kind": "overloaded", "status": 529, "retry_after": 2.0}}
    real = record(ScriptedModel([step]), tape)
    with pytest.raises(ModelFailure):
        await reply_of(real, asked(attempt=1))
    await reply_of(real, asked(attempt=2))
    again = record(nobody(), tape)
    with pytest.raises(ModelFailure) as failed:
        await reply_of(again, asked(attempt=1))
    assert (failed.value.kind, failed.value.status, failed.value.retry_after) == ("overloaded", 529, 2.0)
    assert (await reply_of(again, asked(attempt=2))).item.text == "at last"


async def test_the_same_request_twice_has_its_answers_in_order_and_then_the_last(tape: Path) -> None:
    texts = iter(["one", "two"])
    real = record(ScriptedModel(lambda: next(texts)), tape)
    for _ in range(2):
        await reply_of(real, asked())
    again = record(nobody(), tape)
    assert [(await reply_of(again, asked())).item.text for _ in range(3)] == ["one", "two", "two"]


async def test_no_key_and_no_header_gets_into_the_file(tape: Path) -> None:
    secret = {"api_key": "sk-2", "nested": {"authorization": "sk-4"}}
    settings = {"extra_body": secret, "extra_headers": {"x": "sk-3"}, "max_tokens": 9}
    real = record(ScriptedModel(STEPS), tape)
    reply = await reply_of(real, asked(1, settings=settings))
    assert reply.request_metadata["headers"] == {"x-api-key": "sk-1"}
    text = written(tape)
    assert "sk-" not in text
    assert json.loads(text)["exchanges"][0]["request"]["settings"]["max_tokens"] == 9
    assert (await reply_of(record(nobody(), tape), asked(1, settings=settings))).item.text == "it costs 42"


async def test_a_recording_from_before_settings_were_typed_still_answers(tape: Path) -> None:
    settings = {"max_tokens": 9, "openai": {"verbosity": "low"}}
    await reply_of(record(ScriptedModel(STEPS), tape), asked(1, settings=settings))
    older = json.loads(tape.read_text())
    older["exchanges"][0]["request"]["settings"] = {
        "prompt_cache_key": "wk-1",
        "max_output_tokens": 9,
        "verbosity": "low",
    }
    tape.write_text(json.dumps(older))
    assert (await reply_of(record(nobody(), tape), asked(1, settings=settings))).item.text == "it costs 42"


async def test_a_long_conversation_stands_in_the_file_once(tape: Path) -> None:
    real = record(ScriptedModel(["ok"]), tape)
    history = History()
    for round in range(3):
        history.extend([UserItem(parts=(Text(f"question {round}"),))])
        await reply_of(real, a_request(round, history=history))
    assert written(tape).count("question 0") == 1
    again = record(nobody(), tape)
    assert (await reply_of(again, a_request(2, history=history))).item.text == "ok"


@pytest.mark.parametrize(
    "text", ["", "[]", '{"model": "x"', '{"model": "x", "exchanges": [{"request": {"history": [4]}}]}']
)
def test_a_file_that_is_no_recording_is_refused(tape: Path, text: str) -> None:
    tape.parent.mkdir()
    tape.write_text(text)
    with pytest.raises(InvalidConfig, match="is not a recording"):
        record(nobody(), tape)
