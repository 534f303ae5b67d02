"""A model's reply, made fit to be stored."""

import pytest

from wakeful.contracts.content import Text
from wakeful.contracts.conversation import AssistantItem, CallPart
from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.events import AssistantRecorded, CallAsked
from wakeful.engine.replies import check_size, fit


def reply(*parts: Text | CallPart) -> AssistantItem:
    return AssistantItem(parts=parts)


def call(call_id: str, **fields: object) -> CallPart:
    return CallPart(**{"call_id": call_id, "name": "act", "arguments": {}, **fields})  # type: ignore[arg-type]


def test_a_plain_reply_is_left_as_it_is() -> None:
    item = reply(Text("hello"), call("a", arguments={"x": 1, "y": "z", "n": None}))
    assert fit(item, 1, set()) is item


def test_ids_are_unique_in_the_conversation() -> None:
    used = {"a"}
    item = fit(reply(call("a"), call(""), call("b"), call("b"), call("tool-call-3-2")), 3, used)
    ids = [part.call_id for part in item.calls]
    assert len(set(ids)) == 5 and "a" not in ids and ids[2] == "b"
    assert used == {"a", *ids}


def test_arguments_that_json_cannot_hold_are_no_object() -> None:
    (part,) = fit(reply(call("a", arguments={"x": float("inf")})), 1, set()).calls
    assert part.arguments is None and part.raw_arguments == "{'x': inf}"


@pytest.mark.parametrize("count", [40, 256])
def test_a_reply_of_very_many_calls_is_taken_as_long_as_it_can_be_kept(count: int) -> None:
    item = reply(*(call(f"call-{number}", arguments={"x": "a" * 200}) for number in range(count)))
    asked = tuple(CallAsked(call_id=part.call_id, name=part.name) for part in item.calls)
    recorded = AssistantRecorded(item=item, calls=asked)
    if count == 40:
        check_size(recorded)
    else:
        with pytest.raises(ModelFailure, match="256 calls"):
            check_size(recorded)
