"""The stored form of a fact, the chain over it, and old shapes read today."""

import hashlib
import zlib
from dataclasses import replace
from types import NoneType
from typing import Any, get_args

import pytest
from pydantic_core import from_json

from kit.runs.event_samples import ONE_OF_EACH
from kit.runs.store_facts import NOON, completed, fact, message, requested, tool_result
from wakeful.contracts.content import Image, Text
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import EventRefused
from wakeful.contracts.events import (
    BY_KIND,
    EVENTS,
    EventExpired,
    MessageAdmitted,
    ModelRequested,
    SessionStarted,
    UnrecognisedEvent,
)
from wakeful.contracts.history import UPCASTERS, parse, upcast
from wakeful.contracts.messages import ChannelOrigin, OperatorOrigin, SystemOrigin, WebhookOrigin
from wakeful.contracts.models import TokenUsage
from wakeful.store import chain
from wakeful.store.chain import SALT
from wakeful.store.encoding import NO_ROW, OUTSIDER, OWNER, Head, Writer, decode, encode, lengths_of, link_row, read_row
from wakeful.store.hollow_rows import HOLLOW, hollowed
from wakeful.store.kind_numbers import KINDS
from wakeful.store.row_compression import pack
from wakeful.store.single_facts import read_single

WRITTEN = [event for event in ONE_OF_EACH if not isinstance(event, EventExpired)]
"""One of each kind that can be written: one that has expired is only read."""


def stored_and_read(*facts: Fact, writer: Writer = OWNER) -> list[Fact]:
    entries = [entry for row in encode(facts, writer) for entry in read_row(1, row.header, row.body)]
    assert {entry.head.writer for entry in entries} == {writer}
    return [decode(entry.head, entry.payload) for entry in entries]


def test_facts_come_back_as_they_were_and_their_writer_is_known() -> None:
    for event in WRITTEN:
        given = Fact(event, NOON, "main", "turn_1", 2, "call_1", "action_1", "call_0", 3, "call_0#1")
        assert stored_and_read(given) == [given]
    assert stored_and_read(message(), writer=OUTSIDER) == [message()]


def test_an_append_is_one_row_with_each_fact_as_it_was() -> None:
    given = [Fact(event, NOON + 7 * at, "main", "turn_1", at, f"call_{at}", "a") for at, event in enumerate(WRITTEN, 1)]
    (row,) = encode(given, OWNER)
    entries = read_row(12, row.header, row.body)
    assert [decode(entry.head, entry.payload) for entry in entries] == given
    assert [entry.seq for entry in entries] == list(range(12, 12 + len(given)))


def test_facts_of_several_turns_are_a_row_each() -> None:
    given = [Fact(SessionStarted(agent_name="a"), NOON), message(), message("turn_2"), message("turn_2")]
    assert [(row.turn_id, len(row.payloads)) for row in encode(given, OUTSIDER)] == [
        (None, 1),
        ("turn_1", 1),
        ("turn_2", 2),
    ]


def test_bytes_and_nested_parts_come_back_as_they_were() -> None:
    picture = Image(data=bytes(range(256)), media_type="image/png")
    given = fact(MessageAdmitted(message_id="m", item=UserItem(parts=(picture,))))
    assert stored_and_read(given) == [given]


def test_what_has_its_default_takes_no_room() -> None:
    usage = TokenUsage(input_tokens=3, total_tokens=3)
    given = [
        requested(),
        fact(ModelRequested(model_ref="scripted:list", items=1, attempt=1), step=1),
        completed(usage=usage),
    ]
    (row,) = encode(given, OWNER)
    first, second, third = row.payloads
    assert first == second == b'{"model_ref":"scripted:list","items":1}'
    assert b'"token_usage":{"input_tokens":3,"total_tokens":3}' in third
    assert row.body[SALT:] == pack(first + second + third)
    heads = f"[0,39,0,1],[0,39,0,1],[1,{len(third)},0,1]"
    assert row.header.decode() == f'[0,1800000000000000,"main","turn_1",{heads}]'


def test_nothing_that_may_be_none_has_another_default() -> None:
    """None is not stored: it has to be what an absent field means."""
    for event in EVENTS:
        for name, field in event.model_fields.items():
            if NoneType in get_args(field.annotation):
                assert field.default is None, f"{event.kind}.{name}"


def test_the_same_fact_twice_has_different_bytes_so_that_a_digest_reveals_nothing() -> None:
    (one,), (two,) = encode([requested()], OWNER), encode([requested()], OWNER)
    assert one.header == two.header
    assert one.payloads == two.payloads
    assert one.body[:SALT] != two.body[:SALT]


def test_every_byte_of_an_append_and_its_place_count_in_the_chain() -> None:
    (row,) = encode([tool_result(), requested()], OWNER)
    salt, facts = row.body[:SALT], row.payloads
    start = chain.origin("agent_1")
    right = row.link(start)
    assert right == link_row(start, row.header, row.body, read_row(1, row.header, row.body))
    others = {
        row.link(chain.origin("agent_2")),
        chain.link(start, row.header + b" ", salt, facts),
        chain.link(start, row.header, bytes(SALT), facts),
        chain.link(start, row.header, salt, [facts[0][:-1], facts[1]]),
        chain.link(start, row.header, salt, facts[::-1]),
        chain.link(start, row.header, salt, facts[:1]),
        row.link(right),
    }
    assert len(others) == 7
    assert right not in others
    assert len(right) == chain.SIZE


def test_equal_facts_of_an_append_have_different_digests() -> None:
    """One of them may be erased: what is kept of it must not be what the other one shows."""
    given = [b"{}"] * 20
    salt = bytes(range(SALT))
    linked = {chain.link(b"", b"", salt, given[:count]) for count in range(21)}
    assert len(linked) == 21
    swapped = [*given[:9], b"[]", *given[9:]]
    assert chain.link(b"", b"", salt, swapped) != chain.link(b"", b"", salt, [b"[]", *given])


def test_a_kind_keeps_its_number_for_good() -> None:
    """Stored rows hold the numbers: a new kind comes last, and then the digest of the others stays."""
    known = KINDS[:38]
    assert hashlib.sha256("\n".join(known).encode()).hexdigest()[:16] == "32f4931db16adb52"
    assert set(KINDS) <= set(BY_KIND), "a kind that is gone keeps its place; say here which one it is"
    assert len(set(KINDS)) == len(KINDS)


def test_a_row_that_names_its_kinds_is_read_like_one_that_numbers_them() -> None:
    (row,) = encode([requested(), completed()], OWNER)
    named = row.header.replace(b"[0,39", b'["model.requested",39').replace(b"[1,", b'["model.completed",')
    assert named != row.header
    assert read_row(1, named, row.body) == read_row(1, row.header, row.body)


def test_a_row_with_more_than_this_version_knows_is_read() -> None:
    header = b'[0,2,"main","t",["a.b",2,5,1,"c",null,null,0,"l",1,"new"]]'
    (entry,) = read_row(4, header, bytes(SALT) + pack(b"{}"))
    assert entry == (4, Head("a.b", 1, 7, 0, "main", "t", 1, "c", None, None, 0, "l"), b"{}")


def test_an_event_that_has_expired_is_read_with_all_that_stands_around_it() -> None:
    given = [Fact(event, NOON + at, "main", "turn_1", at, f"call_{at}", "a") for at, event in enumerate(WRITTEN, 1)]
    (row,) = encode(given, OWNER)
    whole = read_row(12, row.header, row.body)
    gone = set(range(0, len(given), 3))
    body = hollowed(row.body, lengths_of(row.header), gone)
    left = read_row(12, row.header, body)
    assert left == [entry._replace(payload=None) if at in gone else entry for at, entry in enumerate(whole)]
    for at, entry in enumerate(left):
        event = given[at].event
        expired = EventExpired(event_type=event.kind, event_version=event.version)
        assert decode(entry.head, entry.payload) == (replace(given[at], event=expired) if at in gone else given[at])
    start = chain.origin("agent_1")
    assert link_row(start, row.header, body, left) == row.link(start)
    with pytest.raises(EventRefused, match=r"event\.expired stands for an event that is gone and cannot be written"):
        encode([decode(left[0].head, left[0].payload)], OWNER)


def sealed(number: int, inside: bytes) -> bytes:
    """With a checksum that is right."""
    return bytes((number,)) + zlib.crc32(inside).to_bytes(4, "big") + inside


@pytest.mark.parametrize(
    ("inside", "problem"),
    [
        (b"\x00", "is cut off"),
        (b"\x01" + bytes(31), "is cut off"),
        (b"", "does not say which of its facts have expired"),
        (b"\x02" + bytes(32), "does not say which of its facts have expired"),
        (b"\x00" + bytes(SALT), "packed row"),
        (b"\x00" + bytes(SALT) + pack(b"{}x"), "packed row"),
        (b"\x01" + bytes(32) + pack(b"{}"), "packed row"),
    ],
)
def test_a_body_with_expired_facts_that_is_not_what_its_header_says_is_no_row(inside: bytes, problem: str) -> None:
    header = b'[0,2,"main","t",["a.b",2]]'
    with pytest.raises(ValueError, match=problem):
        read_row(1, header, bytes(SALT) + sealed(HOLLOW, inside))
    with pytest.raises(ValueError, match="does not match its checksum"):
        read_row(1, header, bytes(SALT) + sealed(HOLLOW, inside + b"x")[:-1])


@pytest.mark.parametrize(
    "body",
    [
        b"",
        bytes(SALT),
        *(bytes(SALT) + packed for packed in (b"\x00{}x", b"\x03{}", b"\x01{}", pack(b"{}" * 400))),
        *(bytes(SALT) + sealed(number, inside) for number, inside in ((0, b"{}x"), (1, b"{}"), (3, b"{}"))),
        b"\x01" * SALT + sealed(HOLLOW, b"{}"),
    ],
)
def test_a_body_that_is_not_what_its_header_says_is_no_row(body: bytes) -> None:
    with pytest.raises(ValueError, match="packed"):
        read_row(1, b'[0,2,"main","t",["a.b",2]]', body)


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"7",
        b"{}",
        b"[]",
        b"[0,2]",
        b'[0,2,"main","t",{}]',
        b'[0,2,"main","t",7]',
        b'[0,2,"main","t",["a.b"]]',
        b'[0,2,"main","t",["a.b","2"]]',
        b'[0,2,"main","t",["a.b",-2]]',
        b'[0,2,"main","t",["a.b",999999999999999999999999]]',
        b'[0,2,"main","t",[-1,2]]',
        b'[0,2,"main","t",[999,2]]',
    ],
)
@pytest.mark.parametrize("body", [b"", bytes(SALT) + pack(b"{}"), bytes(SALT) + pack(b"{}" * 400)])
def test_a_header_that_was_never_written_is_no_row(header: bytes, body: bytes) -> None:
    with pytest.raises(NO_ROW):
        read_row(1, header, body)


def test_a_row_with_a_single_fact_of_an_older_store_is_read() -> None:
    header = b'["a.b",1,2,0,"main","t",1,"c",null,null,0,null,"new"]'
    assert read_single(3, header, bytes(SALT) + b"{}") == (3, Head("a.b", 1, 2, 0, "main", "t", 1, "c"), b"{}")
    assert read_single(3, b'["a.b",1,2,1]', bytes(SALT) + b"{}").head == Head("a.b", 1, 2, 1)


def test_kinds_and_versions_from_the_future_are_kept() -> None:
    body = {"any": [1, {"thing": None}]}
    assert upcast("weather.changed", 3, body) == UnrecognisedEvent(
        original_kind="weather.changed", original_version=3, body=body
    )
    newer = ModelRequested.version + 1
    assert upcast("model.requested", newer, body) == UnrecognisedEvent(
        original_kind="model.requested", original_version=newer, body=body
    )


def test_what_does_not_fit_its_kind_is_an_error_and_not_a_guess() -> None:
    with pytest.raises(ValueError, match="items"):
        upcast("model.requested", 1, {"model_ref": "x"})


def test_an_old_shape_is_brought_up_to_date_step_by_step() -> None:
    def first(body: dict[str, Any]) -> dict[str, Any]:
        return {**body, "model_ref": body["model"]}

    def second(body: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in body.items() if name != "model"}

    # Every payload is of version 1 today, so the past of this one is told with smaller numbers.
    steps = {("model.requested", -1): first, ("model.requested", 0): second}
    old = {"model": "scripted:list", "items": 4}
    assert upcast("model.requested", -1, old, steps) == ModelRequested(model_ref="scripted:list", items=4)
    assert upcast("model.requested", 0, {**old, "model_ref": "x:y"}, steps) == ModelRequested(model_ref="x:y", items=4)
    assert old == {"model": "scripted:list", "items": 4}
    with pytest.raises(ValueError, match="no step to version 0"):
        parse("model.requested", -1, b"{}", {("model.requested", 0): second})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({}, {}),
        ({"origin": "operator"}, {}),
        (
            {"origin": "runtime", "authority_class": "runtime_instruction"},
            {"message_kind": "internal_followup", "origin": SystemOrigin(subsystem="library")},
        ),
        (
            {"origin": "integration", "authority_class": "integration_signal"},
            {"message_kind": "webhook_event", "origin": WebhookOrigin(source="library")},
        ),
        (
            {"origin": "external", "authority_class": "external_evidence"},
            {"message_kind": "channel_event", "origin": ChannelOrigin(channel_id="library")},
        ),
    ],
)
def test_a_message_of_version_1_says_today_where_it_comes_from(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert list(UPCASTERS) == [("message.admitted", 1)]
    body = {"message_id": "msg_1", "item": {"role": "user", "parts": [{"type": "text", "text": "hi"}]}}
    said = UserItem(parts=(Text("hi"),))
    authority = {name: value for name, value in old.items() if name == "authority_class"}
    assert upcast("message.admitted", 1, body | old) == MessageAdmitted(
        message_id="msg_1", item=said, **authority, **new
    )


def test_what_a_plain_message_leaves_at_its_default_is_not_stored() -> None:
    event = MessageAdmitted(message_id="msg_1", item=UserItem(parts=(Text("hi"),)), priority="normal")
    (row,) = encode([Fact(event, NOON, "main", "turn_1")], OUTSIDER)
    (payload,) = row.payloads
    assert set(from_json(payload)) == {"message_id", "item"}


def test_an_origin_that_says_what_the_default_says_is_not_stored_and_every_other_one_is() -> None:
    for origin, stored in (
        (OperatorOrigin(), None),
        (OperatorOrigin(actor_id="token:clerk"), {"kind": "operator", "actor_id": "token:clerk"}),
        (SystemOrigin(subsystem="timers"), {"kind": "system", "subsystem": "timers"}),
    ):
        event = MessageAdmitted(message_id="msg_1", item=UserItem(parts=(Text("hi"),)), origin=origin)
        (row,) = encode([Fact(event, NOON, "main", "turn_1")], OUTSIDER)
        assert from_json(row.payloads[0]).get("origin") == stored
        (entry,) = read_row(1, row.header, row.body)
        assert decode(entry.head, entry.payload).event == event
