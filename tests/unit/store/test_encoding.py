"""The stored form of a fact, the chain over it, and old shapes read today."""

from types import NoneType
from typing import Any, get_args

import pytest

from event_samples import ONE_OF_EACH
from store_facts import NOON, fact, message, requested, tool_result
from wakeful.contracts.content import Image
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import EVENTS, MessageAdmitted, ModelRequested, Unrecognised
from wakeful.contracts.history import UPCASTERS, parse, upcast
from wakeful.store import chain
from wakeful.store.encoding import OUTSIDER, OWNER, SALT, decode, encode, read_head


def test_a_fact_comes_back_as_it_was_and_its_writer_is_known() -> None:
    for event in ONE_OF_EACH:
        given = Fact(event, NOON, "main", "turn_1", 2, "call_1", "action_1", "call_0", 3, "call_0#1")
        (stored,) = encode([given], OWNER)
        assert decode(read_head(stored.header), stored.body) == given
    (stored,) = encode([message()], OUTSIDER)
    assert read_head(stored.header).writer == OUTSIDER


def test_bytes_and_nested_parts_come_back_as_they_were() -> None:
    picture = Image(data=bytes(range(256)), media_type="image/png")
    given = fact(MessageAdmitted(message_id="m", item=UserItem(parts=(picture,))))
    (stored,) = encode([given], OWNER)
    assert decode(read_head(stored.header), stored.body) == given


def test_what_has_its_default_takes_no_room() -> None:
    (stored,) = encode([requested()], OWNER)
    assert stored.body[SALT:] == b'{"model_ref":"scripted:list","items":1}'
    assert stored.header == b'["model.requested",1,1800000000000000,0,"main","turn_1",1]'


def test_nothing_that_may_be_none_has_another_default() -> None:
    """None is not stored: it has to be what an absent field means."""
    for event in EVENTS:
        for name, field in event.model_fields.items():
            if NoneType in get_args(field.annotation):
                assert field.default is None, f"{event.kind}.{name}"


def test_the_same_fact_twice_has_different_bytes_so_that_a_digest_reveals_nothing() -> None:
    one, two = encode([requested(), requested()], OWNER)
    assert one.header == two.header
    assert one.body[SALT:] == two.body[SALT:]
    assert one.body[:SALT] != two.body[:SALT]


def test_every_byte_of_an_event_and_its_place_count_in_the_chain() -> None:
    (stored,) = encode([tool_result()], OWNER)
    right = chain.link(chain.origin("agent_1"), *stored)
    others = {
        chain.link(chain.origin("agent_2"), *stored),
        chain.link(chain.origin("agent_1"), stored.header + b" ", stored.body),
        chain.link(chain.origin("agent_1"), stored.header, stored.body[:-1]),
        chain.link(right, *stored),
    }
    assert len(others) == 4
    assert right not in others
    assert len(right) == chain.SIZE


def test_a_header_with_ids_from_the_future_is_read() -> None:
    assert read_head(b'["a.b",1,2,0,"main","t",1,"c",null,null,0,"new"]').call_id == "c"


def test_kinds_and_versions_from_the_future_are_kept() -> None:
    body = {"any": [1, {"thing": None}]}
    assert upcast("weather.changed", 3, body) == Unrecognised(
        original_kind="weather.changed", original_version=3, body=body
    )
    newer = ModelRequested.version + 1
    assert upcast("model.requested", newer, body) == Unrecognised(
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
    assert UPCASTERS == {}
