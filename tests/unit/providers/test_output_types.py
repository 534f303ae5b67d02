"""Every output type on every wire, through `run`, against a server that holds an answer to what it was sent."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Annotated, Any, Literal, NamedTuple, NewType

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field, TypeAdapter
from typing_extensions import TypedDict

from kit.wires import anthropic_vendor, chat_vendor, responses_vendor
from kit.wires.provider_server import (
    Answer,
    Asked,
    ProviderServer,
    chat_words,
    messages_words,
    responses_words,
    serving,
)
from wakeful import Agent, run, stream, tool
from wakeful.contracts.errors import InvalidConfig
from wakeful.decisions.answer_shapes import needs_wrapping
from wakeful.providers import AnthropicMessages, OpenAIChat, OpenAIResponses
from wakeful.providers.wire.schema_answers import without_added_nulls
from wakeful.testing import scripted


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(StrEnum):
    LOW = "low"


class Point(BaseModel):
    x: int
    y: int = 0


class Refund(BaseModel):
    """Money back."""

    kind: Literal["refund"] = "refund"
    cents: int = Field(gt=0)


class Refusal(BaseModel):
    kind: Literal["refusal"] = "refusal"
    why: str = Field(min_length=2)


class Found(BaseModel):
    name: str
    size: int


class Missing(BaseModel):
    name: str


class Node(BaseModel):
    name: str
    children: list["Node"] = []


class Nothing(BaseModel):
    pass


class Typed(TypedDict, total=False):
    n: int


class Pair(NamedTuple):
    a: int
    b: str


@dataclass
class Item:
    name: str
    price: Decimal
    on: date | None = None


class Named(str):
    """A name."""


Handle = NewType("Handle", str)


@dataclass(frozen=True)
class Case:
    """A type, and what a model says for it, as JSON."""

    type: Any
    said: Any
    held: bool = True
    """A provider can be held to it: a strict schema takes every answer that the type takes."""
    by_anthropic: bool | None = None
    """The same for Anthropic, where it differs."""

    def __str__(self) -> str:
        return re.sub(r"[^\w|]+", "_", re.sub(r"\b[\w.]+\.", "", str(self.type))).strip("_")

    @property
    def means(self) -> Any:
        return TypeAdapter(self.type).validate_json(json.dumps(self.said))


CASES = [
    Case(Point, {"x": 1, "y": 2}),
    Case(Point, {"x": 1}),
    Case(list[int], [1, 2, 3]),
    Case(list[Point], [{"x": 1, "y": 2}, {"x": 3}]),
    Case(int, 7),
    Case(float, 1.5),
    Case(bool, False),
    Case(Literal["yes", "no"], "no"),
    Case(Literal[1, "one", None], None),
    Case(Colour, "blue"),
    Case(Level, "low"),
    Case(Refund | Refusal, {"kind": "refusal", "why": "too late"}),
    Case(Annotated[Refund | Refusal, Field(discriminator="kind")], {"kind": "refund", "cents": 3}),
    Case(Found | Missing, {"name": "a"}, held=False, by_anthropic=True),
    Case(Point | None, None),
    Case(Point | None, {"x": 4}),
    Case(str | None, "word"),
    Case(int | str, "x"),
    Case(dict[str, int], {"a": 1, "result": 2}, held=False),
    Case(dict[str, Point], {"a": {"x": 1}}, held=False),
    Case(dict, {"a": [1, None]}, held=False),
    Case(list[dict[str, int]], [{"a": 1}], held=False),
    Case(Any, {"free": True}, held=False),
    Case(Item, {"name": "a", "price": "3.10", "on": "2026-01-02"}),
    Case(Item, {"name": "a", "price": "3.10"}),
    Case(Typed, {"n": 3}),
    Case(Typed, {}),
    Case(Pair, [1, "b"]),
    Case(tuple[int, str], [1, "b"]),
    Case(set[int], [3]),
    Case(date, "2026-01-02"),
    Case(Node, {"name": "a", "children": [{"name": "b", "children": []}]}, by_anthropic=False),
    Case(list[Node], [{"name": "a", "children": []}], by_anthropic=False),
    Case(Nothing, {}),
    Case(Annotated[str, Field(pattern="^[a-z]+$", max_length=5)], "abc"),
    Case(type(None), None),
]


@dataclass(frozen=True)
class Wire:
    """A model at a server of this machine, and how a request of it is read."""

    name: str
    model: Callable[[str], Any]
    words: Callable[[str], Answer]
    form: Callable[[dict[str, Any]], tuple[dict[str, Any], bool] | None]
    """The schema that a request asks the provider to hold the answer to, and whether strictly."""
    check: Callable[[dict[str, Any]], Any]
    speaks_objects: bool = False
    """Told in words, it is told to answer with an object."""

    def __str__(self) -> str:
        return self.name


def _responses_form(body: dict[str, Any]) -> tuple[dict[str, Any], bool] | None:
    form = body.get("text", {}).get("format")
    return (form["schema"], form["strict"]) if form else None


def _chat_form(body: dict[str, Any]) -> tuple[dict[str, Any], bool] | None:
    form = body.get("response_format", {}).get("json_schema")
    return (form["schema"], form["strict"]) if form else None


def _messages_form(body: dict[str, Any]) -> tuple[dict[str, Any], bool] | None:
    form = body.get("output_config", {}).get("format")
    return (form["schema"], True) if form else None


def _chat(name: str, **options: Any) -> Callable[[str], Any]:
    return lambda url: OpenAIChat(name, base_url=f"{url}/v1", **options)


RESPONSES = Wire(
    "responses",
    lambda url: OpenAIResponses("gpt-5.5", base_url=f"{url}/v1"),
    responses_words,
    _responses_form,
    responses_vendor.vendor_accepts,
)
CHAT = Wire("chat", _chat("gpt-4o", provider="openai"), chat_words, _chat_form, chat_vendor.vendor_accepts)
MESSAGES = Wire(
    "messages",
    lambda url: AnthropicMessages("claude-opus-4-7", base_url=url),
    messages_words,
    _messages_form,
    anthropic_vendor.accepted,
)
TOLD = (
    Wire(
        "responses, told",
        lambda url: OpenAIResponses("unheard-of", base_url=f"{url}/v1"),
        responses_words,
        _responses_form,
        responses_vendor.vendor_accepts,
    ),
    Wire("chat, told", _chat("unheard-of"), chat_words, _chat_form, chat_vendor.vendor_accepts),
    Wire(
        "chat, objects",
        _chat("qwen3", quirks={"response_format": "json_object"}),
        chat_words,
        _chat_form,
        chat_vendor.vendor_accepts,
        speaks_objects=True,
    ),
    Wire(
        "messages, told",
        lambda url: AnthropicMessages("claude-3-5-haiku", base_url=url),
        messages_words,
        _messages_form,
        anthropic_vendor.accepted,
    ),
)
WIRES = (RESPONSES, CHAT, MESSAGES, *TOLD)


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with serving() as held:
        yield held


def answers(wire: Wire, case: Case) -> Callable[[Asked], Answer]:
    """The server: what the case says, in the shape that the request asked for, held to the schema of the request."""

    def answer(asked: Asked) -> Answer:
        form = wire.form(asked.body)
        schema = form[0] if form is not None else _told(asked.body)
        value = case.said
        if form is not None or wire.speaks_objects:
            outermost = _root(schema)
            assert outermost.get("type") == "object", "these servers answer with objects"
        if set(schema.get("properties", ())) == {"result"}:
            value = {"result": value}
        value = _filled(schema, schema, value)
        Draft202012Validator(schema).validate(value)
        return wire.words(json.dumps(value))

    return answer


def _told(body: dict[str, Any]) -> dict[str, Any]:
    """The schema that stands in the prompt."""
    said = json.dumps({name: body.get(name) for name in ("instructions", "system", "messages")})
    (text,) = re.findall(r'fit this JSON Schema:\\n((?:[^"\\]|\\.)*)"', said)
    schema: dict[str, Any] = json.loads(json.loads(f'"{text}"'))
    return schema


def _root(schema: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = schema["$defs"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    return found


def _filled(root: dict[str, Any], schema: dict[str, Any], value: Any) -> Any:
    """A strict answer has every property: null stands for one that is left out."""
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
    if isinstance(value, list):
        return [_filled(root, schema.get("items", {}), inner) for inner in value]
    if not isinstance(value, dict):
        return value
    for branch in schema.get("anyOf", ()):
        whole = root["$defs"][branch["$ref"].rpartition("/")[2]] if "$ref" in branch else branch
        filled = _filled(root, whole, value)
        if Draft202012Validator({**root, **whole, "anyOf": [{}]}).is_valid(filled):
            return filled
    named = schema.get("properties", {})
    wanted = {name: None for name in schema.get("required", ()) if name in named}
    return {**wanted, **{name: _filled(root, named.get(name, {}), inner) for name, inner in value.items()}}


def strictly_valid(schema: dict[str, Any]) -> None:
    """OpenAI's rules for strict schemas."""
    assert schema["type"] == "object" and not {"anyOf", "oneOf", "allOf", "$ref", "enum"} & schema.keys()
    _strict(schema)


REFUSED = {"oneOf", "allOf", "not", "if", "then", "else", "patternProperties", "prefixItems", "uniqueItems", "default"}
REFUSED |= {"minLength", "maxLength", "minProperties", "maxProperties", "propertyNames", "contains", "discriminator"}
FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}


def _strict(schema: Any) -> None:
    assert isinstance(schema, dict)
    assert not REFUSED & schema.keys(), schema
    assert "type" in schema or "$ref" in schema or "anyOf" in schema, schema
    assert "$ref" not in schema or set(schema) == {"$ref"}
    assert schema.get("format", "date") in FORMATS
    assert "(?" not in schema.get("pattern", "")
    kinds = schema.get("type", [])
    if "object" in ([kinds] if isinstance(kinds, str) else kinds):
        assert schema["additionalProperties"] is False
        assert schema["required"] == list(schema["properties"])
    if "array" in ([kinds] if isinstance(kinds, str) else kinds):
        assert schema["items"]
    for key in ("properties", "$defs"):
        for inner in schema.get(key, {}).values():
            _strict(inner)
    for inner in [*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else ())]:
        _strict(inner)


def is_same(found: Any, wanted: Any) -> bool:
    return type(found) is type(wanted) and bool(found == wanted)


@pytest.mark.parametrize("wire", WIRES, ids=str)
@pytest.mark.parametrize("case", CASES, ids=str)
async def test_an_answer_of_any_type_is_asked_for_and_taken(case: Case, wire: Wire, server: ProviderServer) -> None:
    server.always = answers(wire, case)
    async with stream(Agent("a", wire.model(server.url), output_type=case.type), "go") as watched:
        text = "".join([piece async for piece in watched.text()])
        result = await watched.result()
    assert result.status == "completed", result.final_content
    assert is_same(result.output, case.means)
    # What is shown while it comes is the answer, too, without the object that the wire put round it.
    shown = without_added_nulls(TypeAdapter(case.type).json_schema(), json.loads(text))
    assert is_same(TypeAdapter(case.type).validate_json(json.dumps(shown)), case.means)
    (asked,) = server.asked
    wire.check(asked.body)
    form = wire.form(asked.body)
    if wire in TOLD:
        assert form is None
    elif wire is MESSAGES:
        assert (form is not None) is (case.held if case.by_anthropic is None else case.by_anthropic)
    else:
        assert form is not None and form[1] is case.held
    if form is not None and form[1]:
        strictly_valid(form[0])


@pytest.mark.parametrize("wire", [RESPONSES, CHAT, MESSAGES], ids=str)
async def test_an_answer_that_does_not_fit_goes_back_to_the_model(wire: Wire, server: ProviderServer) -> None:
    server.answers = [wire.words('{"result": ["x"]}'), wire.words('{"result": [4]}')]
    result = await run(Agent("a", wire.model(server.url), output_type=list[int]), "go")
    assert result.output == [4]
    told = json.dumps(server.asked[1].body)
    assert "[0]: Input should be a valid integer" in told and "Answer again" in told
    for asked in server.asked:
        wire.check(asked.body)


@pytest.mark.parametrize("wire", [RESPONSES, CHAT, MESSAGES], ids=str)
async def test_a_model_that_leaves_the_object_out_or_fences_it_is_understood(
    wire: Wire, server: ProviderServer
) -> None:
    for said in ("[4, 5]", '```json\n{"result": [4, 5]}\n```', ' { "result" : [4, 5] } '):
        server.answers = [wire.words(said)]
        result = await run(Agent("a", wire.model(server.url), output_type=list[int]), "go")
        assert result.output == [4, 5], said


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_a_script_answers_with_any_type(case: Case) -> None:
    result = await run(Agent("a", scripted([json.dumps(case.said)]), output_type=case.type), "go")
    assert is_same(result.output, case.means)


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_a_child_ends_with_a_result_of_any_type(case: Case) -> None:
    """`finish_subtask` takes the value, or the object that holds it."""
    agent = Agent("child", scripted([{"calls": [_finish(case)]}]), output_type=case.type)
    parent = Agent("parent", scripted([{"calls": [{"name": "agent/child", "arguments": _TASK}]}, "done"]))
    result = await run(parent.changed(tools=[agent.as_tool()]), "go")
    assert result.output == "done"
    (call,) = result.calls("agent/child")
    assert call.result == case.said or json.loads(call.result or "") == case.said


_TASK = {"input": "do it"}


def _finish(case: Case) -> dict[str, Any]:
    schema = TypeAdapter(case.type).json_schema()
    given = {"result": case.said} if needs_wrapping(schema) else case.said
    return {"name": "finish_subtask", "arguments": given}


@pytest.mark.parametrize("wire", [RESPONSES, CHAT, MESSAGES], ids=str)
async def test_text_types_ask_for_nothing_and_keep_their_class(wire: Wire, server: ProviderServer) -> None:
    for kind, wanted in ((Named, Named), (Handle, str), (str, str)):
        server.answers = [wire.words("Ada")]
        result = await run(Agent("a", wire.model(server.url), output_type=kind), "go")
        assert result.output == "Ada" and type(result.output) is wanted
        assert wire.form(server.asked[-1].body) is None


def test_a_text_class_with_rules_of_its_own_is_refused_when_the_agent_is_made() -> None:
    class Checked(str):
        def __new__(cls, text: str) -> "Checked":
            return super().__new__(cls, text.strip())

    with pytest.raises(InvalidConfig, match="cannot be described to a model"):
        Agent("a", scripted(["x"]), output_type=Checked)


@tool(effect="pure")
def look() -> str:
    """Look."""
    return "seen"


@pytest.mark.parametrize("wire", [RESPONSES, CHAT, MESSAGES], ids=str)
async def test_words_beside_a_call_are_left_as_they_are(wire: Wire, server: ProviderServer) -> None:
    """They are no answer, and a model may say anything there."""
    server.answers = [wire.words('{"other": 1}'), wire.words('{"result": 2}')]
    result = await run(Agent("a", wire.model(server.url), tools=[look], output_type=int), "go")
    assert result.output == 2
    assert '{\\"other\\": 1}' in json.dumps(server.asked[1].body)
