"""Redaction: which values are hidden, which are not, and what is hashed afterwards."""

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wakeful.contracts.content import Text
from wakeful.contracts.conversation import AssistantItem, CallPart
from wakeful.contracts.envelope import Fact, RuntimeEvent, StoredFact, published
from wakeful.contracts.events import EVENTS, AnyEvent, AssistantRecorded, CallAsked, ToolArgs, ToolStarted, TurnStarted
from wakeful.contracts.events.turns import HistoryImported
from wakeful.contracts.tools import ToolDeclaration
from wakeful.decisions.redaction import (
    REDACTED,
    call_envelope,
    declared_by,
    is_sensitive,
    redact,
    redact_event,
    redact_parameters,
    stable_hash,
)

WORDS = {
    "api key": ("api_key", "apiKey", "API-KEY", "stripe_api_key_2"),
    "authorization": ("authorization", "Authorization", "proxy-authorization"),
    "auth token": ("auth_token", "authToken", "x-auth-token"),
    "bearer": ("bearer", "BearerValue"),
    "cookie": ("cookie", "set-cookie", "cookies"),
    "credential": ("credential", "credentials", "aws_credentials"),
    "nonce": ("nonce", "_wpnonce"),
    "password": ("password", "userPassword"),
    "private key": ("private_key", "privateKey", "PRIVATE-KEY"),
    "secret": ("secret", "client_secret", "secrets"),
    "token": ("token", "access_token", "refreshToken", "token_id"),
}


def tool(**fields: Any) -> ToolDeclaration:
    return ToolDeclaration(**{"name": "a/b", "input_schema": {}, **fields})


@pytest.mark.spec("API-RED-01", "API-RED-02")
@pytest.mark.parametrize("word", WORDS)
def test_a_key_that_contains_a_sensitive_word_hides_its_value(word: str) -> None:
    for key in WORDS[word]:
        assert is_sensitive(key)
        assert redact({key: "s3cr3t", "other": "shown"}) == {key: "[redacted]", "other": "shown"}


@pytest.mark.parametrize(
    "key", ["session_id", "sessionId", "key", "keyboard", "author", "authority_class", "idempotency_key", "pass", "id"]
)
def test_other_names_hide_nothing(key: str) -> None:
    """A session id is an address, not a secret."""
    assert redact({key: "value"}) == {key: "value"}


@pytest.mark.spec("API-RED-03")
@pytest.mark.parametrize(
    ("declaration", "hidden"),
    [
        (tool(sensitive_parameters=("pin",)), {"pin": REDACTED}),
        (tool(sensitive_parameters=("card.number",)), {"card": {"number": REDACTED, "name": "N"}}),
        (
            tool(sensitive_parameters=("people.*.phone",)),
            {"people": [{"phone": REDACTED, "n": 1}, {"phone": REDACTED}]},
        ),
        (tool(sensitive_parameters=("people.phone",)), {"people": [{"phone": REDACTED, "n": 1}, {"phone": REDACTED}]}),
        (tool(sensitive_parameters=("people",)), {"people": REDACTED}),
    ],
    ids=["top", "nested", "list items", "list items without a star", "a whole list"],
)
def test_declared_paths_are_hidden(declaration: ToolDeclaration, hidden: dict[str, Any]) -> None:
    given_ = {"pin": 1234, "card": {"number": "4242", "name": "N"}, "people": [{"phone": "1", "n": 1}, {"phone": "2"}]}
    assert redact(given_, declared_by(declaration)) == {**given_, **hidden}


@pytest.mark.spec("API-RED-03")
@pytest.mark.parametrize(
    "flag", [{"sensitive": True}, {"x-sensitive": True}, {"secret": True}, {"writeOnly": True}, {"format": "password"}]
)
def test_schema_flags_hide_wherever_the_schema_puts_them(flag: dict[str, Any]) -> None:
    marked = {"type": "string", **flag}
    schema = {
        "type": "object",
        "properties": {
            "top": marked,
            "list": {"type": "array", "items": marked},
            "either": {"anyOf": [{"type": "null"}, marked]},
            "tree": {"$ref": "#/$defs/node"},
            "shown": {"type": "string"},
        },
        "patternProperties": {"^x-": marked},
        "$defs": {"node": {"type": "object", "properties": {"v": marked, "next": {"$ref": "#/$defs/node"}}}},
    }
    raw = {
        "top": "a",
        "list": ["b"],
        "either": "c",
        "tree": {"v": "d", "next": {"v": "e", "next": None}},
        "x-9": "f",
    }
    assert redact(raw, declared_by(tool(input_schema=schema))) == {
        "top": REDACTED,
        "list": [REDACTED],
        "either": REDACTED,
        "tree": {"v": REDACTED, "next": {"v": REDACTED, "next": None}},
        "x-9": REDACTED,
    }
    plain = {key: value for key, value in schema.items() if key != "patternProperties"}
    assert redact({"shown": "ok"}, declared_by(tool(input_schema=plain))) == {"shown": "ok"}


@pytest.mark.spec("API-RED-04")
def test_redaction_reaches_every_depth_of_objects_and_lists() -> None:
    deep: Any = {"password": "p"}
    for _ in range(20):
        deep = {"a": [deep, {"token": "t"}]}
    assert "p" not in _texts(redact(deep)) and "t" not in _texts(redact(deep))
    assert _texts(deep) >= {"p", "t"}


def test_nesting_without_end_is_hidden_rather_than_walked() -> None:
    deep: Any = {"password": "p"}
    for _ in range(5_000):
        deep = {"a": [deep]}
    assert _texts(redact(deep)) == {REDACTED}
    assert _texts(redact(deep, declared_by(tool(sensitive_parameters=("z",))))) == {REDACTED}


@pytest.mark.spec("API-RED-05")
def test_numbers_of_tokens_are_shown() -> None:
    usage = {
        "prompt_tokens": 10,
        "max_tokens": 4_000,
        "tokens_used": 3.5,
        "token_count": 7,
        "token_usage": {"input_tokens": 1, "output_tokens": 2},
        "completion_tokens_details": {"reasoning_tokens": 5},
        "tokens_are_estimate": True,
        "max_output_tokens": None,
    }
    assert redact(usage) == usage
    assert redact({"budget": usage}, declared_by(tool(sensitive_parameters=("z",)))) == {"budget": usage}


def test_a_count_is_a_number_and_a_numeric_token_is_still_a_token() -> None:
    assert redact({"tokens": ["abc"], "tokens_used": "abc"}) == {"tokens": [REDACTED], "tokens_used": REDACTED}
    assert redact({"token": 123456, "auth_token": 1}) == {"token": REDACTED, "auth_token": REDACTED}
    assert redact({"secret_tokens": 5}) == {"secret_tokens": REDACTED}


@pytest.mark.spec("API-RED-06")
def test_the_hash_is_of_canonical_json() -> None:
    value = {"b": [1, {"z": None, "ä": "ü"}], "a": 1.5}
    canonical = '{"a":1.5,"b":[1,{"z":null,"ä":"ü"}]}'.encode()
    assert stable_hash(value) == "sha256:" + hashlib.sha256(canonical).hexdigest()
    assert stable_hash({"a": 1.5, "b": [1, {"ä": "ü", "z": None}]}) == stable_hash(value)
    assert stable_hash({"b": [{"z": None, "ä": "ü"}, 1], "a": 1.5}) != stable_hash(value)


NAMES = ("a", "password", "max_tokens", "tokens", "token", "b")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_redacting_twice_is_redacting_once_and_changes_nothing_given(value: Any) -> None:
    before = json.dumps(value)
    once = redact(value)
    assert redact(once) == once
    assert json.dumps(value) == before


@given(
    st.dictionaries(st.text(max_size=5), st.dictionaries(st.text(max_size=5), st.integers(), max_size=3), max_size=4)
)
@settings(max_examples=40)
def test_the_hash_does_not_depend_on_the_order_of_keys(value: dict[str, Any]) -> None:
    assert stable_hash(dict(reversed(list(value.items())))) == stable_hash(value)


@pytest.mark.spec("API-RED-07")
def test_the_call_envelope_is_the_redacted_form_and_its_hash() -> None:
    envelope = call_envelope({"q": "x", "api_key": "k", "pin": 1}, tool(sensitive_parameters=("pin",)))
    safe = {"q": "x", "api_key": REDACTED, "pin": REDACTED}
    assert envelope == {"parameters": safe, "parameters_sha256": stable_hash(safe), "parameters_redacted": True}
    assert call_envelope({"q": "x", "api_key": "another", "pin": 2}, tool(sensitive_parameters=("pin",))) == envelope
    assert call_envelope(None)["parameters"] == {}


def test_redact_parameters_reads_schema_and_paths() -> None:
    schema = {"properties": {"a": {"writeOnly": True}}}
    assert redact_parameters({"a": 1, "b": 2, "c": 3}, schema, ("b",)) == {"a": REDACTED, "b": REDACTED, "c": 3}
    assert redact_parameters({"a": 1, "b": 2, "c": 3}, schema) == {"a": REDACTED, "b": 2, "c": 3}


def _texts(value: Any) -> set[str]:
    """Every text, without recursion."""
    found, waiting = set(), [value]
    while waiting:
        here = waiting.pop()
        if isinstance(here, dict):
            waiting.extend(here.values())
        elif isinstance(here, list):
            waiting.extend(here)
        elif isinstance(here, str):
            found.add(here)
    return found


def show(event: AnyEvent) -> RuntimeEvent:
    return published(StoredFact("agent", 1, Fact(event, at=0, thread_id="main", turn_id="t", step=1, call_id="c")), "r")


def test_events_lose_arguments_wherever_they_stand() -> None:
    calls = (
        CallPart(
            call_id="c", name="a/b", arguments={"q": "shown", "password": "p1", "pin": "p2"}, opaque={"sig": "p3"}
        ),
        CallPart(call_id="d", name="a/b", raw_arguments='{"password": "p4"'),
    )
    item = AssistantItem(parts=(Text("hm"), *calls))
    said = AssistantRecorded(item=item, calls=(CallAsked(call_id="c", name="a/b"),), continuation=(item,))
    imported = HistoryImported(items=(item,), count=1)
    started = ToolStarted(
        tool_name="a/b",
        safe_args={"q": "shown", "pin": "p2", "password": "p1"},
        args_sha256="sha256:0",
        is_read_only=True,
        is_concurrency_safe=True,
        is_destructive=False,
        batch_id="b",
        position=0,
        scheduling="parallel",
        dispatched=True,
        effect="pure",
        idempotency_key="k",
    )
    piece = ToolArgs(delta='"password": "p5', safe_args={"password": "p1"})
    declarations = {"a/b": tool(sensitive_parameters=("pin",))}
    for event in (said, imported, started, piece):
        open_, safe = show(event), redact_event(show(event), declarations)
        secrets = {f"p{n}" for n in range(1, 6)}
        assert any(secret in text for text in _texts(open_.payload) for secret in secrets)
        assert not any(secret in text for text in _texts(safe.payload) for secret in secrets), event.kind
        assert safe.model_copy(update={"payload": {}}) == open_.model_copy(update={"payload": {}})
    assert redact_event(show(said), declarations).payload["item"]["parts"][1]["arguments"] == {
        "q": "shown",
        "password": REDACTED,
        "pin": REDACTED,
    }


def test_a_callers_context_is_redacted_in_events_too() -> None:
    fields = TurnStarted.model_fields
    assert "context" in fields
    raw = show(ToolArgs(delta=None)).model_copy(update={"payload": {"context": {"tenant": "t", "api_key": "k"}}})
    assert redact_event(raw).payload == {"context": {"tenant": "t", "api_key": REDACTED}}


def test_no_field_of_an_event_is_itself_taken_for_a_secret() -> None:
    """Otherwise a read surface would hide what the runtime has to show."""
    names = {name for event in EVENTS for name in _names(event.model_json_schema())}
    assert "token_usage" in names
    assert not {name for name in names if is_sensitive(name)}


def _names(schema: Any) -> set[str]:
    if isinstance(schema, list):
        return {name for inner in schema for name in _names(inner)}
    if not isinstance(schema, dict):
        return set()
    own = set(schema.get("properties", {}))
    return own.union(*(_names(inner) for inner in schema.values()))
