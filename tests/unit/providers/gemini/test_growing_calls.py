"""Calls of Gemini's whose arguments come piece by piece: put together as Google describes it, or refused whole."""

from collections.abc import Iterator
from typing import Any

import pytest

from kit.wires.gemini_samples import SIGNATURE, answer, decoded, sse
from kit.wires.provider_server import Answer, ProviderServer, serving
from wakeful import Agent, RunResult, run, tool
from wakeful.contracts.conversation import CallPart
from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.models import ArgumentsDelta
from wakeful.providers.gemini import Gemini

END: dict[str, Any] = {}


def begun(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "willContinue": True, **more}


def piece(path: str, *, ends_call: bool = False, **value: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"partialArgs": [{"jsonPath": path, **value}]}
    return made if ends_call else {**made, "willContinue": True}


def streamed(*calls: dict[str, Any], finish: str = "STOP", **beside: Any) -> bytes:
    parts = [{"functionCall": call} for call in calls]
    parts[0].update(beside)
    return sse([*(answer(part, finish=None) for part in parts), answer({"text": ""}, finish=finish)])


def test_texts_are_joined_and_parallel_calls_stay_apart() -> None:
    glimpses, reply = decoded(
        streamed(
            begun("weather"),
            piece("$.location", stringValue="Bos", willContinue=True),
            piece("$.location", stringValue="ton", willContinue=True),
            piece("$.location", stringValue=""),
            END,
            {"name": "theme"},
            begun("weather", id="w-2"),
            piece("$.location", stringValue="San Francisco", willContinue=True),
            piece("$.location", stringValue="", ends_call=True),
            thoughtSignature=SIGNATURE,
        )
    )
    assert reply.item.calls == (
        CallPart(call_id="", name="weather", arguments={"location": "Boston"}, opaque={"thoughtSignature": SIGNATURE}),
        CallPart(call_id="", name="theme", arguments={}),
        CallPart(call_id="w-2", name="weather", arguments={"location": "San Francisco"}),
    )
    assert [each.text for each in glimpses if isinstance(each, ArgumentsDelta)] == [
        '{"location": "Boston"}',
        "{}",
        '{"location": "San Francisco"}',
    ]


def test_values_of_every_kind_find_their_places() -> None:
    pieces = {
        "partialArgs": [
            {"jsonPath": "$.list[0].n", "numberValue": 0.5},
            {"jsonPath": "$.list[0].b", "boolValue": False},
        ]
    }
    _, reply = decoded(
        streamed(
            begun("save"),
            {**pieces, "willContinue": True},
            piece("$.list[1].n", numberValue=3),
            {"willContinue": True},
            piece("$['odd name']['it\\'s']", nullValue="NULL_VALUE"),
            piece("$.plain[0][0]", stringValue="x"),
            END,
        )
    )
    (made,) = reply.item.calls
    assert made.arguments == {
        "list": [{"n": 0.5, "b": False}, {"n": 3}],
        "odd name": {"it's": None},
        "plain": [["x"]],
    }


@pytest.mark.parametrize(
    "pieces",
    [
        [piece("$.a", stringValue="x", willContinue=True), END],
        [piece("$.a", stringValue="x", willContinue=True), piece("$.b", stringValue="y"), END],
        [piece("$.a", stringValue="x"), piece("$.a", stringValue="y"), END],
        [piece("$.a", stringValue="x", willContinue=True), piece("$.a", numberValue=1), END],
        [piece("$.a[1]", stringValue="x"), END],
        [piece("$.a", stringValue="x"), piece("$.a.b", stringValue="y"), END],
        [piece("$.a", numberValue="NaN"), END],
        [piece("$.a", numberValue=float("nan")), END],
        [piece("$.a", numberValue=1, stringValue="x"), END],
        [piece("$.a"), END],
        [piece("a", stringValue="x"), END],
        [piece("$", stringValue="x"), END],
        [piece("$..a", stringValue="x"), END],
        [piece("$[0]", stringValue="x"), END],
        [begun("other"), END],
        [piece("$.a", stringValue="x")],
    ],
)
def test_pieces_that_do_not_fit_together_are_no_call(pieces: list[dict[str, Any]]) -> None:
    """Nor a stream that broke off, which would be waited for and paid again and again: the answer said its end."""
    with pytest.raises(ModelFailure) as lost:
        decoded(streamed(begun("look"), *pieces))
    assert lost.value.kind == "invalid_response"


def test_a_piece_of_no_call_is_refused_and_an_empty_one_is_nothing() -> None:
    with pytest.raises(ModelFailure, match="no name"):
        decoded(streamed(piece("$.a", stringValue="x")))
    assert decoded(sse([answer({"functionCall": {}}, {"text": "Hi"})]))[1].item.text == "Hi"


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with serving() as it:
        yield it


async def asked(server: ProviderServer) -> tuple[RunResult[Any], list[tuple[str, str]]]:
    deleted: list[tuple[str, str]] = []

    @tool(effect="irreversible")
    def delete_files(folder: str = "/", pattern: str = "*") -> str:
        deleted.append((folder, pattern))
        return "deleted"

    model = Gemini("m", base_url=f"{server.url}/v1beta", api_key="k")
    return await run(Agent("s", model, tools=[delete_files]), "tidy up"), deleted


async def test_a_tool_runs_with_all_that_was_streamed_for_it(server: ProviderServer) -> None:
    calls = begun("delete_files"), piece("$.folder", stringValue="old", ends_call=True)
    server.answers = [Answer(streamed(*calls)), Answer(sse([answer({"text": "Done."})]))]
    result, deleted = await asked(server)
    assert (result.status, deleted) == ("completed", [("old", "*")])


async def test_a_tool_never_runs_with_a_half_of_its_arguments(server: ProviderServer) -> None:
    half = Answer(streamed(begun("delete_files"), piece("$.folder", stringValue="old")))
    server.answers = [half, Answer(sse([answer({"text": "Nothing to do."})]))]
    result, deleted = await asked(server)
    assert (result.status, result.final_content, deleted) == ("completed", "Nothing to do.", [])


async def test_a_call_that_the_limit_cut_off_is_told_and_not_run(server: ProviderServer) -> None:
    cut = Answer(streamed(begun("delete_files"), piece("$.folder", stringValue="old"), finish="MAX_TOKENS"))
    server.answers = [cut, Answer(sse([answer({"text": "Nothing to do."})]))]
    result, deleted = await asked(server)
    assert (result.status, deleted) == ("completed", [])
